#include "layout/swizzle.h"

#include <algorithm>

#include "layout/matrix.h"
#include "layout/swizzle_vectors.h"

namespace sonde::layout {
namespace {

enum class Filling : uint8_t { kNobody, kSource, kDestination };

bool read_bases(Arena &arena, const Layout &layout, const char *what, Bases &bases) {
  for (const Dim &in : layout.ins()) {
    const auto columns = layout.columns_of(in);
    switch (in.name) {
      case dim::kRegister:
        for (const uint64_t column : columns) bases.registers.add(column);
        if (bases.registers.size() != columns.size()) {
          arena.fail(Fault::kInvalid, std::string("swizzle: the ") + what +
                                          " has zero register bases; its broadcast registers must be dropped first");
          return false;
        }
        break;
      case dim::kLane:
        bases.lanes = columns;
        break;
      case dim::kWarp:
        for (const uint64_t column : columns) bases.warps.add(column);
        break;
      case dim::kBlock:
        for (const uint64_t column : columns) bases.blocks.add(column);
        break;
      default:
        if (in.bits == 0) break;
        arena.fail(Fault::kInvalid, std::string("swizzle: the ") + what + " has the in dim " +
                                        std::string(dim_text(in.name)) +
                                        "; register, lane, warp and block are expected");
        return false;
    }
  }
  return true;
}

bool check(Arena &arena, const Layout &source, const Layout &destination, const SwizzleOptions &options) {
  const auto outs = source.outs();
  const auto others = destination.outs();
  if (!std::equal(outs.begin(), outs.end(), others.begin(), others.end(),
                  [](const Dim &a, const Dim &b) { return a.name == b.name && a.bits == b.bits; })) {
    arena.fail(Fault::kInvalid, "swizzle: the source's out dims " + describe(outs) + " and the destination's " +
                                    describe(others) + " differ");
    return false;
  }
  if (!is_power_of_two(options.bits_per_element) || options.bits_per_element > 128) {
    arena.fail(Fault::kInvalid, "swizzle: elements of " + std::to_string(options.bits_per_element) +
                                    " bits; a power of two up to 128 is expected");
    return false;
  }
  if (!is_power_of_two(options.banks) || options.banks > 64) {
    arena.fail(Fault::kInvalid,
               "swizzle: " + std::to_string(options.banks) + " banks; a power of two up to 64 is expected");
    return false;
  }
  return true;
}

// Vectors of both lists, in the order of the first; where sums occur, a basis of what both spans share.
void intersect(const VectorList &a, const VectorList &b, VectorList &out) {
  if (!a.has_sums() && !b.has_sums()) {
    for (const uint64_t vector : a) {
      if ((b.units() & vector) != 0) out.add(vector);
    }
    return;
  }
  // The functionals that vanish on a or on b vanish on what both share, and nothing else does: taken twice, the
  // annihilator gives it back, in the order that the published results have.
  constexpr uint32_t kBits = kMaxBits;
  uint64_t functionals[2 * kBits];
  const uint32_t of_a = annihilator_basis(a.all(), kBits, functionals);
  const uint32_t of_b = annihilator_basis(b.all(), kBits, functionals + of_a);
  uint64_t shared[kBits];
  const uint32_t count = annihilator_basis({functionals, of_a + of_b}, kBits, shared);
  for (uint32_t i = 0; i < count; ++i) out.add(shared[i]);
}

void subtract(const VectorList &a, const VectorList &b, VectorList &out) {
  for (const uint64_t vector : a) {
    if (!b.has(vector)) out.add(vector);
  }
}

// What one access moves. Registers that both sides share; where those are less than one bank's 32 bits, the bank is
// filled so that at least one side moves it whole and the other side's warps, not its lanes, share it.
Filling find_vector(const Bases &source, const Bases &destination, uint32_t bits_log2, VectorList &vector) {
  intersect(source.registers, destination.registers, vector);
  vector.truncate(7 - bits_log2);  // 128 bits
  if (vector.size() + bits_log2 >= 5) return Filling::kNobody;

  const uint32_t wanted = 5 - bits_log2;
  VectorList open_source;
  VectorList open_destination;
  subtract(source.registers, vector, open_source);
  subtract(destination.registers, vector, open_destination);
  VectorList of_source;
  VectorList of_destination;
  intersect(open_source, destination.warps, of_source);
  intersect(open_destination, source.warps, of_destination);
  bool takes_source = of_source.size() > of_destination.size();
  if (of_source.size() == of_destination.size() && !of_source.empty()) {
    takes_source = *std::min_element(of_source.begin(), of_source.end()) <
                   *std::min_element(of_destination.begin(), of_destination.end());
  }
  for (const uint64_t item : takes_source ? of_source : of_destination) vector.add(item);

  if (vector.size() < wanted) {
    VectorList of_warps;
    intersect(source.warps, destination.warps, of_warps);
    for (const uint64_t item : of_warps) vector.add(item);
  }
  for (uint32_t i = 0; vector.size() < wanted && (i < source.warps.size() || i < destination.warps.size()); ++i) {
    if (i < source.warps.size() && !vector.has(source.warps[i])) vector.add(source.warps[i]);
    // What tells blocks apart cannot lie within one block's memory.
    if (vector.size() < wanted && i < destination.warps.size() && !vector.has(destination.warps[i]) &&
        !source.blocks.has(destination.warps[i])) {
      vector.add(destination.warps[i]);
    }
  }
  vector.truncate(wanted);
  return takes_source ? Filling::kSource : Filling::kDestination;
}

// The lanes of one wavefront.
void find_tile(std::span<const uint64_t> lanes, const AccessTile *explicit_tile, uint32_t vector_bits_log2,
               uint32_t banks_log2, VectorList &tile) {
  if (explicit_tile != nullptr) {
    for (const uint8_t lane : explicit_tile->address_lanes()) {
      if (lane < lanes.size()) tile.add(lanes[lane]);
    }
    return;
  }
  const auto count = static_cast<uint32_t>(lanes.size());
  const uint32_t words_log2 = vector_bits_log2 > 5 ? vector_bits_log2 - 5 : 0;
  const uint32_t dropped = words_log2 + count > banks_log2 ? words_log2 + count - banks_log2 : 0;
  for (uint32_t i = 0; i + dropped < count; ++i) tile.add(lanes[i]);
}

// As many vectors as asked for that meet the spans of both sides as little as possible: `source` and `destination` hold
// the vector, the wavefront's lanes and the blocks of a side.
void find_segments(const VectorList &source, const VectorList &destination, uint32_t dims, uint32_t wanted,
                   VectorList &segments) {
  for (uint64_t free = ~(source.units() | destination.units()) & low_mask(dims); free != 0 && segments.size() < wanted;
       free &= free - 1) {
    segments.add(free & -free);
  }
  if (segments.size() == wanted) return;

  VectorList less;
  VectorList more;
  subtract(source, destination, less);
  subtract(destination, source, more);
  std::sort(less.begin(), less.end());
  std::sort(more.begin(), more.end());
  const VectorList &e = less.size() <= more.size() ? less : more;
  const VectorList &f = less.size() <= more.size() ? more : less;
  // Each sum of a pair serves both sides; as few pairs as possible are broken to get more segments, at the price of
  // conflicts.
  const uint32_t pairs = e.size();
  const uint32_t missing = wanted - segments.size();
  const uint32_t broken = std::min(missing > pairs ? missing - pairs : 0, pairs);
  for (uint32_t i = broken; i < pairs && segments.size() < wanted; ++i) segments.add(e[i] ^ f[i]);
  for (uint32_t i = 0; i < broken && segments.size() < wanted; ++i) segments.add(e[i]);
  for (uint32_t i = 0; i < broken && segments.size() < wanted; ++i) segments.add(f[i]);
}

// Elimination by lowest bits, so that the unit vectors that complete the span are those of the bits left over. Also
// counts, for conflicts, by how much a span meets another.
class LowestBits {
 public:
  bool add(uint64_t vector) {
    while (vector != 0) {
      const uint64_t bit = vector & -vector;
      const uint32_t pivot = lowest_bit(bit);
      if ((used_ & bit) == 0) {
        used_ |= bit;
        rows_[pivot] = vector;
        return true;
      }
      vector ^= rows_[pivot];
    }
    return false;
  }
  uint64_t used() const { return used_; }
  // Forgets what was added since `used` was this.
  void restore(uint64_t used) { used_ = used; }

 private:
  uint64_t used_ = 0;
  uint64_t rows_[kMaxBits];
};

// dim(span(tile) ∩ the span taken in) = rank(tile) - what the tile adds to it.
uint32_t meeting(LowestBits &taken, const VectorList &tile) {
  const uint64_t before = taken.used();
  uint32_t added = 0;
  for (const uint64_t vector : tile) added += taken.add(vector) ? 1 : 0;
  taken.restore(before);
  const uint32_t rank = tile.has_sums() ? rank_of(tile.all()) : static_cast<uint32_t>(std::popcount(tile.units()));
  return rank - added;
}

// Everything after the vector and the tiles are known.
bool arrange(Arena &arena, const Layout &layout, const Bases &source, const Bases &destination,
             const SwizzleOptions &options, const VectorList &vector, const VectorList &source_tile,
             const VectorList &destination_tile, Filling filling, uint32_t kept_reps, Swizzle &out) {
  const uint32_t dims = layout.out_bits();
  const uint32_t bits_log2 = lowest_bit(options.bits_per_element);
  const uint32_t banks_log2 = lowest_bit(options.banks);
  const uint32_t vector_bits_log2 = vector.size() + bits_log2;
  const uint32_t taken = vector.size() + source.blocks.size();
  if (taken > dims) {
    arena.fail(Fault::kUnsupported, "swizzle: the vector and the blocks are more than the tensor");
    return false;
  }
  const uint32_t whole_row = banks_log2 + 5 > vector_bits_log2 ? banks_log2 + 5 - vector_bits_log2 : 0;
  const uint32_t bank_count = std::min(whole_row, dims - taken);
  const uint32_t segment_count = dims - bank_count - taken;

  VectorList of_source = vector;
  VectorList of_destination = vector;
  for (const uint64_t lane : source_tile) of_source.add(lane);
  for (const uint64_t lane : destination_tile) of_destination.add(lane);
  for (const uint64_t block : source.blocks) {
    of_source.add(block);
    of_destination.add(block);
  }
  VectorList segments;
  find_segments(of_source, of_destination, dims, segment_count, segments);

  LowestBits meets;
  for (const uint64_t segment : segments) meets.add(segment);
  out.read_conflicts = (uint64_t{1} << meeting(meets, destination_tile)) - 1;
  out.write_conflicts = (uint64_t{1} << meeting(meets, source_tile)) - 1;
  for (const uint64_t item : vector) meets.add(item);
  for (const uint64_t block : source.blocks) meets.add(block);
  uint64_t banks[kMaxBits];
  uint32_t banks_found = 0;
  for (uint64_t open = ~meets.used() & low_mask(dims); open != 0; open &= open - 1) banks[banks_found++] = open & -open;
  if (taken + segments.size() + banks_found != dims) {
    arena.fail(Fault::kUnsupported, "swizzle: bases that depend on each other leave no memory layout");
    return false;
  }

  // An access of less than 128 bits grows over banks that its registers hold, so those come first.
  if (vector_bits_log2 < 7 && options.banks <= 32) {
    if (filling == Filling::kNobody) {
      const auto in = [&](const VectorList &registers) {
        return std::count_if(banks, banks + banks_found, [&](uint64_t bank) { return registers.has(bank); });
      };
      filling = in(source.registers) > in(destination.registers) ? Filling::kSource : Filling::kDestination;
    }
    const VectorList &first = filling == Filling::kSource ? source.registers : destination.registers;
    uint64_t others[kMaxBits];
    uint32_t front = 0;
    uint32_t back = 0;
    for (uint32_t i = 0; i < banks_found; ++i) {
      if (first.has(banks[i])) {
        banks[front++] = banks[i];
      } else {
        others[back++] = banks[i];
      }
    }
    std::copy_n(others, back, banks + front);
  }

  uint64_t kept[kMaxBits];
  uint64_t reps[kMaxBits];
  uint32_t kept_count = 0;
  uint32_t rep_count = 0;
  for (const uint64_t segment : segments) {
    if (source.registers.has(segment) && destination.registers.has(segment)) {
      if (kept_reps == 0) {
        reps[rep_count++] = segment;
        continue;
      }
      --kept_reps;
    }
    kept[kept_count++] = segment;
  }

  const auto outs = layout.outs();
  Layout *const memory = Layout::make(arena, 5, static_cast<uint32_t>(outs.size()), dims);
  if (memory == nullptr) return false;
  Dim *in = memory->mutable_ins();
  uint64_t *column = memory->mutable_columns();
  const auto put = [&](DimName name, const uint64_t *vectors, uint32_t count) {
    *in++ = {name, static_cast<uint8_t>(count), 0, 0};
    column = std::copy_n(vectors, count, column);
  };
  put(dim::kVector, vector.begin(), vector.size());
  put(dim::kBank, banks, banks_found);
  put(dim::kSegment, kept, kept_count);
  put(dim::kBlock, source.blocks.begin(), source.blocks.size());
  put(dim::kReps, reps, rep_count);
  std::copy(outs.begin(), outs.end(), memory->mutable_outs());
  if (!memory->place_dims(arena)) return false;
  out.memory = memory;
  return true;
}

bool swizzle_plainly(Arena &arena, const Layout &layout, const Bases &source, const Bases &destination,
                     const SwizzleOptions &options, Swizzle &out) {
  const uint32_t bits_log2 = lowest_bit(options.bits_per_element);
  const uint32_t banks_log2 = lowest_bit(options.banks);
  VectorList vector;
  const Filling filling = find_vector(source, destination, bits_log2, vector);
  VectorList source_tile;
  VectorList destination_tile;
  find_tile(source.lanes, options.source_tile, vector.size() + bits_log2, banks_log2, source_tile);
  find_tile(destination.lanes, options.destination_tile, vector.size() + bits_log2, banks_log2, destination_tile);
  out = {};
  return arrange(arena, layout, source, destination, options, vector, source_tile, destination_tile, filling, 0, out);
}

// The contiguous 128 bits that both instructions move: registers of both, then the lanes of the side that has more of
// them in its row, which must be registers of the other or its corresponding lanes.
bool find_common_row(const Bases &wide, const Bases &narrow, const AccessTile &wide_tile, const AccessTile &narrow_tile,
                     uint32_t row_log2, VectorList &row) {
  const uint32_t registers = row_log2 - narrow_tile.contiguous_count;
  intersect(wide.registers, narrow.registers, row);
  if (row.size() < registers) return false;
  row.truncate(registers);
  const uint32_t in_registers = narrow_tile.contiguous_count - wide_tile.contiguous_count;
  for (uint32_t i = 0; i < narrow_tile.contiguous_count; ++i) {
    const uint64_t lane = narrow.lanes[narrow_tile.contiguous[i]];
    if (lane == 0 || row.has(lane)) return false;
    if (i < in_registers) {
      if (!wide.registers.has(lane)) return false;
    } else if (wide.lanes[wide_tile.contiguous[i - in_registers]] != lane) {
      return false;
    }
    row.add(lane);
  }
  return true;
}

// The rows of one wavefront: lanes, and registers where an instruction has less lanes than rows.
bool find_rows(const Bases &bases, const AccessTile &tile, uint32_t rows_log2, const VectorList &row, VectorList &out) {
  uint32_t missing = rows_log2 > tile.address_count ? rows_log2 - tile.address_count : 0;
  for (uint32_t i = 0; i < bases.registers.size() && missing != 0; ++i) {
    if (row.has(bases.registers[i])) continue;
    out.add(bases.registers[i]);
    --missing;
  }
  for (const uint8_t lane : tile.address_lanes()) out.add(bases.lanes[lane]);
  return missing == 0;
}

bool fits_lanes(const AccessTile &tile, size_t lanes) {
  const auto is_there = [lanes](uint8_t lane) { return lane < lanes; };
  return std::all_of(tile.contiguous_lanes().begin(), tile.contiguous_lanes().end(), is_there) &&
         std::all_of(tile.address_lanes().begin(), tile.address_lanes().end(), is_there);
}

}  // namespace

bool optimal_swizzle(Arena &arena, const Layout &source, const Layout &destination, const SwizzleOptions &options,
                     Swizzle &out) {
  if (!check(arena, source, destination, options)) return false;
  Bases of_source;
  Bases of_destination;
  return read_bases(arena, source, "source", of_source) &&
         read_bases(arena, destination, "destination", of_destination) &&
         swizzle_plainly(arena, source, of_source, of_destination, options, out);
}

bool optimal_swizzle_for(Arena &arena, const Layout &source, const Layout &destination, const SwizzleOptions &options,
                         std::span<const AccessTile> source_tiles, std::span<const AccessTile> destination_tiles,
                         Swizzle &out) {
  if (!check(arena, source, destination, options)) return false;
  Bases of_source;
  Bases of_destination;
  if (!read_bases(arena, source, "source", of_source)) return false;
  if (!read_bases(arena, destination, "destination", of_destination)) return false;

  const uint32_t row_log2 = 7 - lowest_bit(options.bits_per_element);
  const uint32_t banks_log2 = lowest_bit(options.banks);
  const uint32_t rows_log2 = banks_log2 > 2 ? banks_log2 - 2 : 0;  // of 128 bits in all banks
  bool found = false;
  Swizzle best;
  uint32_t best_reps = 0;
  for (size_t s = 0; s < source_tiles.size(); ++s) {
    const AccessTile &source_tile = source_tiles[s];
    if (source_tile.contiguous_count > row_log2 || !fits_lanes(source_tile, of_source.lanes.size())) continue;
    for (size_t d = 0; d < destination_tiles.size(); ++d) {
      const AccessTile &destination_tile = destination_tiles[d];
      if (destination_tile.contiguous_count > row_log2 || !fits_lanes(destination_tile, of_destination.lanes.size())) {
        continue;
      }
      VectorList row;
      const bool source_is_wide = source_tile.contiguous_count <= destination_tile.contiguous_count;
      const bool has_row =
          source_is_wide ? find_common_row(of_source, of_destination, source_tile, destination_tile, row_log2, row)
                         : find_common_row(of_destination, of_source, destination_tile, source_tile, row_log2, row);
      VectorList source_rows;
      VectorList destination_rows;
      if (!has_row || !find_rows(of_source, source_tile, rows_log2, row, source_rows) ||
          !find_rows(of_destination, destination_tile, rows_log2, row, destination_rows)) {
        continue;
      }
      // Two repetitions stay in memory for both sides' matrix instructions to move four matrices at once.
      const auto spare = [](const AccessTile &tile) {
        const int lanes = tile.contiguous_count + tile.address_count;
        return tile.contiguous_count == 0 || lanes < 3 ? 0u : static_cast<uint32_t>(lanes - 3);
      };
      Swizzle candidate;
      if (!arrange(arena, source, of_source, of_destination, options, row, source_rows, destination_rows,
                   Filling::kNobody, std::min(spare(source_tile), spare(destination_tile)), candidate)) {
        if (arena.fault() == Fault::kFull) return false;
        continue;
      }
      candidate.source_tile = static_cast<int32_t>(s);
      candidate.destination_tile = static_cast<int32_t>(d);
      const uint64_t conflicts = candidate.read_conflicts + candidate.write_conflicts;
      const uint64_t best_conflicts = best.read_conflicts + best.write_conflicts;
      const uint32_t reps = candidate.memory->find_in(dim::kReps)->bits;
      if (!found || conflicts < best_conflicts || (conflicts == best_conflicts && reps > best_reps)) {
        best = candidate;
        best_reps = reps;
        found = true;
      }
    }
  }
  if (!found) return swizzle_plainly(arena, source, of_source, of_destination, options, out);
  out = best;
  return true;
}

}  // namespace sonde::layout
