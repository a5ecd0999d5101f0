#include "layout/conflicts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "layout/matrix.h"

namespace sonde::layout {
namespace {

constexpr uint32_t kWordLog2 = 5;  // bits of a bank
constexpr uint32_t kMostSimulatedBits = 24;

bool check(Arena &arena, const Layout &map, DimName offset, uint32_t bits, const SharedMemory &memory) {
  if (map.find_out(offset) == nullptr) {
    arena.fail(Fault::kInvalid, "bank conflicts: the map has no out dim " + std::string(dim_text(offset)));
    return false;
  }
  if (!is_power_of_two(bits) || bits > 128 || !is_power_of_two(memory.banks) || memory.banks > 64) {
    arena.fail(Fault::kInvalid, "bank conflicts: elements of " + std::to_string(bits) + " bits in " +
                                    std::to_string(memory.banks) +
                                    " banks; powers of two up to 128 and 64 are expected");
    return false;
  }
  return true;
}

// The lane bits of one phase of an access of 2^words_log2 words.
uint64_t phase_lanes(uint32_t lane_bits, uint32_t words_log2, const SharedMemory &memory) {
  if (memory.phase_lanes != 0) return memory.phase_lanes & low_mask(lane_bits);
  const uint32_t banks_log2 = lowest_bit(memory.banks);
  return low_mask(std::min(lane_bits, banks_log2 > words_log2 ? banks_log2 - words_log2 : 0));
}

uint32_t words_log2_of(uint64_t access_bits) { return std::max(log2_floor(access_bits), kWordLog2) - kWordLog2; }

// A value of the map as the word that it lies in and the memory (the other out dims) that has the word.
class Words {
 public:
  Words(const Layout &map, const Dim &offset, uint32_t bits_per_element)
      : offset_(offset),
        above_(low_mask(map.out_bits()) & ~low_mask(offset.shift + offset.bits)),
        below_(low_mask(offset.shift)),
        shift_(static_cast<int32_t>(lowest_bit(bits_per_element)) - static_cast<int32_t>(kWordLog2)) {}

  uint64_t element(uint64_t value) const { return offset_.of(value); }
  uint64_t word(uint64_t value) const {
    return shift_ >= 0 ? place(element(value), static_cast<uint32_t>(shift_)) : element(value) >> -shift_;
  }
  uint64_t memory(uint64_t value) const {
    return (value & below_) | (offset_.bits >= 64 ? 0 : (value & above_) >> offset_.bits);
  }

 private:
  Dim offset_;
  uint64_t above_;
  uint64_t below_;
  int32_t shift_;
};

// rank(U) - rank(U mod banks) of the space that the words of some lanes and a vector of 2^words_log2 words span: the
// dimension of what is in U and in bank 0 of the first memory.
uint32_t extra_bits(const Words &words, std::span<const uint64_t> lanes, uint64_t lane_mask, uint32_t words_log2,
                    uint32_t banks_log2) {
  // A vector is (place, row): the place is the bank and the memory, the row which of the bank's words. Rows of vectors
  // whose places cancel span what is sought.
  uint64_t places[kMaxBits];
  uint64_t rows[kMaxBits];
  uint32_t count = 0;
  uint64_t left[2 * kMaxBits];
  uint32_t left_count = 0;
  const uint64_t bank_mask = low_mask(banks_log2);
  const auto take = [&](uint64_t word, uint64_t memory) {
    uint64_t own_place = (word & bank_mask) | memory << banks_log2;
    uint64_t row = word >> banks_log2;
    for (uint32_t i = 0; i < count; ++i) {
      if ((own_place >> highest_bit(places[i]) & 1) == 0) continue;
      own_place ^= places[i];
      row ^= rows[i];
    }
    if (own_place != 0) {
      places[count] = own_place;
      rows[count++] = row;
    } else if (row != 0) {
      left[left_count++] = row;
    }
  };
  for (uint64_t rest = lane_mask; rest != 0; rest &= rest - 1) {
    const uint64_t value = lanes[lowest_bit(rest)];
    take(words.word(value), words.memory(value));
  }
  for (uint32_t i = 0; i < words_log2; ++i) take(uint64_t{1} << i, 0);
  return rank_of({left, left_count});
}

// Distinct words of one phase, by place; the most that one bank has to serve.
class Phase {
 public:
  explicit Phase(uint32_t banks) : banks_(banks) {}
  void ask(uint64_t memory, uint64_t word) { asked_.push_back({memory, word % banks_, word}); }
  uint64_t wavefronts() {
    std::sort(asked_.begin(), asked_.end());
    asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
    uint64_t most = 0;
    uint64_t run = 0;
    for (size_t i = 0; i < asked_.size(); ++i) {
      const bool same = i != 0 && asked_[i][0] == asked_[i - 1][0] && asked_[i][1] == asked_[i - 1][1];
      run = same ? run + 1 : 1;
      most = std::max(most, run);
    }
    asked_.clear();
    return most;
  }

 private:
  uint32_t banks_;
  std::vector<std::array<uint64_t, 3>> asked_;  // memory, bank, word
};

}  // namespace

bool bank_access_of(Arena &arena, const SharedAccess &access, DimName offset, uint32_t bits_per_element,
                    const SharedMemory &memory, BankAccess &out) {
  if (!check(arena, *access.address, offset, bits_per_element, memory)) return false;
  const Layout &address = *access.address;
  const Dim &place_dim = *address.find_out(offset);
  if (address.out_bits() - place_dim.bits > kMaxBits - 6) {
    arena.fail(Fault::kUnsupported, "bank conflicts: more than 58 bits beside the offset");
    return false;
  }
  const bool is_matrix = access.matrices != 0;
  const uint64_t request_bits = is_matrix ? 128 : access.vector_bits;  // that a lane points to
  const Dim *const lane = address.find_in(dim::kLane);
  const uint32_t lane_bits = lane == nullptr ? 0 : lane->bits;
  const uint32_t asking = is_matrix ? access.row_bits + log2_floor(access.matrices) : lane_bits;
  const uint32_t words_log2 = words_log2_of(request_bits);
  SharedMemory model = memory;
  if (is_matrix) model.phase_lanes = 0;
  const uint64_t together = phase_lanes(asking, words_log2, model);
  const Words words(address, place_dim, bits_per_element);
  const auto lanes = lane == nullptr ? std::span<const uint64_t>{} : address.columns_of(*lane);
  const uint32_t extra = extra_bits(words, lanes, together, words_log2, lowest_bit(memory.banks));
  out = {};
  out.access_bits = access.vector_bits;
  out.instructions = access.instructions;
  out.phases = uint64_t{1} << (asking - static_cast<uint32_t>(std::popcount(together)));
  out.wavefronts = out.phases << extra;
  out.total = out.wavefronts * out.instructions;
  out.conflicts_per_phase = (uint64_t{1} << extra) - 1;
  return true;
}

bool bank_access(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element, const SharedMemory &memory,
                 BankAccess &out, uint32_t most_vector_bits) {
  if (!check(arena, map, offset, bits_per_element, memory)) return false;
  SharedAccess access;
  InstructionLimits limits;
  limits.most_vector_bits = most_vector_bits;
  return divide_by_instruction(arena, map, offset, bits_per_element, SharedInstruction::kVector, false, limits,
                               access) &&
         bank_access_of(arena, access, offset, bits_per_element, memory, out);
}

uint64_t simulate_wavefronts(std::span<const uint64_t> bit_addresses, uint64_t access_bits,
                             const SharedMemory &memory) {
  const auto lane_bits = static_cast<uint32_t>(std::bit_width(bit_addresses.size()) - 1);
  const uint64_t together = phase_lanes(lane_bits, words_log2_of(access_bits), memory);
  Phase phase(memory.banks);
  uint64_t total = 0;
  const uint64_t apart = low_mask(lane_bits) & ~together;
  uint64_t first = 0;
  do {  // over the lanes that have 0 in the bits of a phase
    uint64_t lane = 0;
    do {
      const uint64_t address = bit_addresses[first | lane];
      for (uint64_t word = address >> kWordLog2; word <= (address + access_bits - 1) >> kWordLog2; ++word) {
        phase.ask(0, word);
      }
      lane = (lane - together) & together;
    } while (lane != 0);
    total += phase.wavefronts();
    first = (first - apart) & apart;
  } while (first != 0);
  return total;
}

bool simulate_bank_access(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element,
                          const SharedMemory &memory, std::span<const Padding> paddings, BankAccess &out,
                          uint32_t most_vector_bits) {
  if (!check(arena, map, offset, bits_per_element, memory)) return false;
  if (map.in_bits() > kMostSimulatedBits) {
    arena.fail(Fault::kUnsupported, "bank conflicts: more than 2^24 elements are not simulated");
    return false;
  }
  // A vector must not run over a pad.
  InstructionLimits limits;
  limits.most_vector_bits = most_vector_bits;
  for (const Padding &padding : paddings) {
    if (padding.interval == 0) {
      arena.fail(Fault::kInvalid, "bank conflicts: a padding interval of 0");
      return false;
    }
    if (padding.pad == 0) continue;
    const uint64_t whole = uint64_t{1} << std::min(lowest_bit(padding.interval), lowest_bit(padding.pad));
    limits.most_vector_bits = static_cast<uint32_t>(
        std::min<uint64_t>(limits.most_vector_bits, std::max<uint64_t>(whole * bits_per_element, bits_per_element)));
  }
  SharedAccess access;
  if (!divide_by_instruction(arena, map, offset, bits_per_element, SharedInstruction::kVector, false, limits, access)) {
    return false;
  }
  const Layout &address = *access.address;
  const Dim *const lane_dim = address.find_in(dim::kLane);
  const uint32_t lane_bits = lane_dim == nullptr ? 0 : lane_dim->bits;
  const Dim &registers = *address.find_in(dim::kRegister);
  const uint64_t others =
      low_mask(address.in_bits()) & ~registers.mask() & ~(lane_dim == nullptr ? 0 : lane_dim->mask());
  const uint64_t together = phase_lanes(lane_bits, words_log2_of(access.vector_bits), memory);
  const uint64_t apart = low_mask(lane_bits) & ~together;
  const Words words(address, *address.find_out(offset), bits_per_element);

  out = {};
  out.access_bits = access.vector_bits;
  out.instructions = access.instructions;
  out.phases = uint64_t{1} << std::popcount(apart);
  Phase phase(memory.banks);
  uint64_t warp = 0;
  do {
    uint64_t of_warp = 0;
    for (uint64_t instruction = 0; instruction < access.instructions; ++instruction) {
      uint64_t of_instruction = 0;
      uint64_t first = 0;
      do {
        uint64_t lane = 0;
        do {
          const uint64_t lane_part = lane_dim == nullptr ? 0 : lane_dim->at(first | lane);
          const uint64_t value = address.apply(registers.at(instruction) | lane_part | warp);
          const uint64_t bit = padded_address(paddings, words.element(value)) * bits_per_element;
          for (uint64_t word = bit >> kWordLog2; word <= (bit + access.vector_bits - 1) >> kWordLog2; ++word) {
            phase.ask(words.memory(value), word);
          }
          lane = (lane - together) & together;
        } while (lane != 0);
        const uint64_t wavefronts = phase.wavefronts();
        of_instruction += wavefronts;
        out.conflicts_per_phase = std::max(out.conflicts_per_phase, wavefronts - 1);
        first = (first - apart) & apart;
      } while (first != 0);
      out.wavefronts = std::max(out.wavefronts, of_instruction);
      of_warp += of_instruction;
    }
    out.total = std::max(out.total, of_warp);
    warp = (warp - others) & others;
  } while (warp != 0);
  return true;
}

std::optional<uint64_t> wavefronts_by_span(const Layout &memory, const Layout &registers, uint32_t bits_per_element,
                                           uint32_t banks) {
  const Dim *const vector = memory.find_in(dim::kVector);
  const Dim *const segment = memory.find_in(dim::kSegment);
  const Dim *const lane = registers.find_in(dim::kLane);
  if (vector == nullptr || segment == nullptr || lane == nullptr) return std::nullopt;
  const uint64_t vector_bits = uint64_t{bits_per_element} << vector->bits;
  if (vector_bits < 32) return std::nullopt;
  uint64_t fixed[kMaxBits];
  uint32_t count = 0;
  for (const uint64_t column : memory.columns_of(*vector)) fixed[count++] = column;
  for (const uint64_t column : memory.columns_of(*segment)) fixed[count++] = column;
  SharedMemory model;
  model.banks = banks;
  const auto together =
      static_cast<uint32_t>(std::popcount(phase_lanes(lane->bits, words_log2_of(vector_bits), model)));
  uint64_t shared[kMaxBits];
  const uint32_t meeting = intersection_basis({fixed, count}, registers.columns_of(*lane).subspan(0, together), shared);
  return uint64_t{1} << (lane->bits - together + meeting);
}

}  // namespace sonde::layout
