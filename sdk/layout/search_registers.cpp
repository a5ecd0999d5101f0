// Register layouts from constraints.
//
// Every constraint but the last names tensor bits for certain registers, lanes or warps; these are placed first. The
// rest of the tensor's bits is dealt out in memory order; only freedom from bank conflicts needs a search, over the sets
// of bits that the lanes may have.
#include <algorithm>
#include <numeric>

#include "layout/matrix.h"
#include "layout/search.h"

namespace sonde::layout {
namespace {

constexpr uint64_t kMostTries = uint64_t{1} << 17;
constexpr uint64_t kOpen = UINT64_MAX;  // a column that is not chosen yet

class RegisterSearch {
 public:
  RegisterSearch(Arena &arena, const RegisterRequest &request) : arena_(arena), request_(request) {}

  const Layout *run() {
    if (!read_request() || !place_fixed() || !place_vector() || !place_contiguous()) return nullptr;
    collect_rest();
    return choose_lanes();
  }

 private:
  enum Side : uint8_t { kRegisters, kLanes, kWarps };

  bool fail(Fault fault, const std::string &text) {
    arena_.fail(fault, text);
    return false;
  }
  bool none(const std::string &text) { return fail(Fault::kNoSolution, "no such layout: " + text); }

  bool is_size(const char *what, uint64_t value) {
    if (is_power_of_two(value)) return true;
    return fail(Fault::kInvalid, std::string(what) + " must be a power of two, not " + std::to_string(value));
  }

  bool read_request() {
    const size_t rank = request_.shape.size();
    if (rank == 0 || rank > dim::kNumbered) return fail(Fault::kInvalid, "the tensor needs 1 to 32 dims");
    for (const uint64_t size : request_.shape) {
      if (!is_size("a tensor dim", size)) return false;
      outs_.push_back({standard_dim(static_cast<uint32_t>(outs_.size())), lowest_bit(size)});
      shifts_.push_back(bits_);
      bits_ += lowest_bit(size);
    }
    if (bits_ > 56) return fail(Fault::kUnsupported, "the tensor has more than 2^56 elements");
    if (!is_size("lanes", request_.lanes) || !is_size("warps", request_.warps)) return false;
    if (!is_size("an element's bits", request_.element_bits) || request_.element_bits > 128) {
      return fail(Fault::kInvalid, "elements have 1 to 128 bits, a power of two");
    }
    if (request_.registers != 0 && !is_size("registers", request_.registers)) return false;
    if (request_.vector_bits != 0 &&
        (!is_size("a vector's bits", request_.vector_bits) || request_.vector_bits < request_.element_bits)) {
      return fail(Fault::kInvalid, "a vector has at least the bits of one element, a power of two");
    }
    if (request_.lane_run != 0 && !is_size("the lanes' run", request_.lane_run)) return false;
    for (const auto *const list : {&request_.contiguous, &request_.warps_per_dim}) {
      if (!list->empty() && list->size() != rank) {
        return fail(Fault::kInvalid, "lists by dim need one number for each of the " + std::to_string(rank) + " dims");
      }
      for (const uint64_t size : *list) {
        if (size != 0 && !is_size("a number by dim", size)) return false;
      }
    }
    std::vector<uint32_t> order = request_.order;
    if (order.empty()) {
      order.resize(rank);
      std::iota(order.rbegin(), order.rend(), 0u);
    }
    std::vector<bool> seen(rank, false);
    for (const uint32_t each : order) {
      if (order.size() != rank || each >= rank || seen[each]) {
        return fail(Fault::kInvalid, "the order must name each of the " + std::to_string(rank) + " dims once");
      }
      seen[each] = true;
      for (uint32_t bit = 0; bit < outs_[each].bits; ++bit)
        memory_order_.push_back(uint64_t{1} << (shifts_[each] + bit));
    }
    columns_[kLanes].assign(lowest_bit(request_.lanes), kOpen);
    columns_[kWarps].assign(lowest_bit(request_.warps), kOpen);
    if (request_.registers != 0) columns_[kRegisters].assign(lowest_bit(request_.registers), kOpen);
    return true;
  }

  std::string name_of(uint64_t column) const {
    std::string text = "(";
    for (size_t i = 0; i < outs_.size(); ++i) {
      if (i != 0) text += ", ";
      text += std::to_string(field(column, shifts_[i], outs_[i].bits));
    }
    return text + ")";
  }
  static const char *side_name(Side side) { return side == kRegisters ? "register" : side == kLanes ? "lane" : "warp"; }
  std::string slot_name(Side side, size_t bit) const {
    return std::string(side_name(side)) + " bit " + std::to_string(bit);
  }

  // The slot is there; registers grow as long as their number is free.
  bool has_slot(Side side, size_t bit) {
    if (bit < columns_[side].size()) return true;
    if (side != kRegisters || request_.registers != 0) {
      return none("there is no " + slot_name(side, bit) + "; there are " + std::to_string(columns_[side].size()));
    }
    columns_[side].resize(bit + 1, kOpen);
    return true;
  }

  bool place(Side side, size_t bit, uint64_t column, const char *why) {
    if (!has_slot(side, bit)) return false;
    uint64_t &slot = columns_[side][bit];
    if (slot == column) return true;
    if (slot != kOpen) {
      return none(slot_name(side, bit) + " is " + name_of(slot) + ", but " + why + " needs " + name_of(column) +
                  " there");
    }
    if (column != 0 && !placed_.add(column)) {
      return none(std::string(why) + " needs " + name_of(column) + " at " + slot_name(side, bit) +
                  ", but other columns make it already");
    }
    slot = column;
    return true;
  }

  bool place_fixed() {
    for (const FixedBasis &basis : request_.fixed) {
      Side side = kRegisters;
      if (basis.in == dim::kLane) {
        side = kLanes;
      } else if (basis.in == dim::kWarp) {
        side = kWarps;
      } else if (basis.in != dim::kRegister) {
        return fail(Fault::kInvalid,
                    "fixed bases are of register, lane or warp, not " + std::string(dim_text(basis.in)));
      }
      if (basis.values.size() != outs_.size() || basis.bit > 56) {
        return fail(Fault::kInvalid, "a fixed basis needs one value for each tensor dim, and a bit below 57");
      }
      uint64_t column = 0;
      for (size_t i = 0; i < outs_.size(); ++i) {
        if (basis.values[i] >= request_.shape[i]) {
          return fail(Fault::kInvalid, "a fixed basis has " + std::to_string(basis.values[i]) + " in dim" +
                                           std::to_string(i) + ", which has " + std::to_string(request_.shape[i]) +
                                           " values");
        }
        column |= layout::place(basis.values[i], shifts_[i]);
      }
      if (!place(side, basis.bit, column, "a fixed basis")) return false;
      mixed_ = mixed_ || std::popcount(column) > 1;
    }
    return true;
  }

  // Registers, then lanes, along the memory order.
  bool place_vector() {
    const uint64_t elements = std::max<uint64_t>(request_.vector_bits / request_.element_bits, 1);
    const uint64_t run = std::max(request_.lane_run, elements);
    if (lowest_bit(run) > bits_) {
      return none("a run of " + std::to_string(run) + " elements is longer than the tensor");
    }
    vector_ = lowest_bit(elements);
    for (uint32_t bit = 0; bit < vector_; ++bit) {
      if (!place(kRegisters, bit, memory_order_[bit], "the vector")) return false;
    }
    for (uint32_t bit = vector_; bit < lowest_bit(run); ++bit) {
      if (!place(kLanes, bit - vector_, memory_order_[bit], "the lanes' run")) return false;
    }
    return true;
  }

  bool place_contiguous() {
    for (size_t i = 0; i < request_.contiguous.size(); ++i) {
      const uint64_t count = std::max<uint64_t>(request_.contiguous[i], 1);
      if (count > request_.shape[i]) {
        return none("dim" + std::to_string(i) + " has " + std::to_string(request_.shape[i]) + " elements, fewer than " +
                    std::to_string(count));
      }
      for (uint32_t bit = 0; bit < lowest_bit(count); ++bit) {
        const uint64_t column = uint64_t{1} << (shifts_[i] + bit);
        auto &registers = columns_[kRegisters];
        if (std::find(registers.begin(), registers.end(), column) != registers.end()) continue;
        const auto open = std::find(registers.begin(), registers.end(), kOpen);
        if (!place(kRegisters, static_cast<size_t>(open - registers.begin()), column, "contiguity in a thread")) {
          return false;
        }
      }
    }
    return true;
  }

  // Tensor bits that nothing has yet, in memory order. Beside fixed bases of several bits there are more candidates than
  // places: any of those bits may be the one left out.
  void collect_rest() {
    Elimination all = placed_;
    for (const uint64_t unit : memory_order_) {
      if (all.add(unit)) rest_.push_back(unit);
      if (!placed_.contains(unit)) candidates_.push_back(unit);
    }
  }

  size_t open_slots(Side side) const {
    return static_cast<size_t>(std::count(columns_[side].begin(), columns_[side].end(), kOpen));
  }

  // Open slots of the lanes that are served in one phase; conflicts depend on what those have, and on nothing else.
  size_t open_phase_slots() const {
    const auto &lanes = columns_[kLanes];
    const uint32_t access = std::max({request_.vector_bits, request_.element_bits, 32u});
    const uint64_t served = std::max<uint64_t>(uint64_t{request_.banks} * 32 / access, 1);
    const size_t phase = request_.memory == nullptr ? lanes.size() : std::min<size_t>(lanes.size(), log2_floor(served));
    return static_cast<size_t>(std::count(lanes.begin(), lanes.begin() + static_cast<std::ptrdiff_t>(phase), kOpen));
  }

  // Sets of the remaining bits for the lanes, and which of them the lanes of a phase have: earlier bits in memory first,
  // as many as possible first.
  const Layout *choose_lanes() {
    const size_t open = open_slots(kLanes);
    const size_t open_phase = open_phase_slots();
    const size_t elsewhere = request_.registers == 0 ? rest_.size() : open_slots(kWarps) + open_slots(kRegisters);
    if (rest_.size() > open + elsewhere) {
      too_few_places();
      return nullptr;
    }
    if (!has_room_for_warps()) return nullptr;
    uint64_t tries = 0;
    for (size_t count = std::min(open, rest_.size());; --count) {
      for (auto chosen = first_set(count); !chosen.empty() || count == 0;) {
        for (size_t phase = std::min(count, open_phase);; --phase) {
          for (auto low = first_set(phase); count - phase <= open - open_phase;) {
            if (++tries > kMostTries) {
              fail(Fault::kUnsupported, "more than 2^17 ways to give bits to the lanes");
              return nullptr;
            }
            if (const Layout *const layout = finish(chosen, low)) return layout;
            if (arena_.fault() != Fault::kNoSolution) return nullptr;
            if (!next_set(low, count)) break;
          }
          if (phase == 0) break;
        }
        if (!next_set(chosen, candidates_.size())) break;
      }
      if (count == 0 || rest_.size() - count + 1 > elsewhere) break;
    }
    fail(unsure_ ? Fault::kUnsupported : Fault::kNoSolution, reason_);
    return nullptr;
  }

  // Whether the warps by dim fit when the lanes have nothing.
  bool has_room_for_warps() {
    size_t missing = 0;
    for (size_t i = 0; i < request_.warps_per_dim.size(); ++i) {
      const uint64_t mask = layout::place(low_mask(outs_[i].bits), shifts_[i]);
      const size_t wanted = lowest_bit(std::max<uint64_t>(request_.warps_per_dim[i], 1));
      const size_t have = warps_along(columns_[kWarps], mask);
      const auto more = static_cast<size_t>(
          std::count_if(rest_.begin(), rest_.end(), [&](uint64_t unit) { return (unit & mask) != 0; }));
      if (have > wanted || have + more < wanted) {
        return no_warps(std::to_string(request_.warps_per_dim[i]) + " warps along dim" + std::to_string(i) +
                        " do not fit beside the other constraints");
      }
      missing += wanted - have;
    }
    if (missing <= open_slots(kWarps)) return true;
    return none("the warps by dim are more than the " + std::to_string(request_.warps) + " there are");
  }

  // Which bits the warps may have depends on the one left out beside a fixed basis of several; not all are tried.
  bool no_warps(const std::string &why) {
    if (!mixed_) return none(why);
    return fail(Fault::kUnsupported, why + " as far as they were tried");
  }

  static size_t warps_along(const std::vector<uint64_t> &warps, uint64_t mask) {
    return static_cast<size_t>(std::count_if(warps.begin(), warps.end(),
                                             [&](uint64_t column) { return column != kOpen && (column & mask) != 0; }));
  }

  static std::vector<size_t> first_set(size_t count) {
    std::vector<size_t> chosen(count);
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    return chosen;
  }

  // The next set of as many of `all`; false after the last one.
  static bool next_set(std::vector<size_t> &chosen, size_t all) {
    for (size_t i = chosen.size(); i-- > 0;) {
      if (chosen[i] + (chosen.size() - i) >= all) continue;
      ++chosen[i];
      for (size_t j = i + 1; j < chosen.size(); ++j) chosen[j] = chosen[j - 1] + 1;
      return true;
    }
    return false;
  }

  bool too_few_places() {
    return none(std::to_string(request_.registers) + " registers, " + std::to_string(request_.lanes) + " lanes and " +
                std::to_string(request_.warps) + " warps do not hold the tensor's 2^" + std::to_string(bits_) +
                " elements under the constraints");
  }

  const Layout *reject(const std::string &why) {
    // Of the first choice, the most natural one.
    if (reason_.empty()) reason_ = (why.starts_with("no such layout") ? "" : "no such layout: ") + why;
    arena_.fail(Fault::kNoSolution, why);
    return nullptr;
  }

  // `chosen` of the rest for the lanes; `low` of them for those of a phase.
  const Layout *finish(const std::vector<size_t> &chosen, const std::vector<size_t> &low) {
    std::vector<uint64_t> columns[3] = {columns_[0], columns_[1], columns_[2]};
    std::vector<uint64_t> left;
    Elimination all = placed_;
    for (const size_t index : chosen) {
      if (!all.add(candidates_[index])) return reject("the lanes' bits depend on the fixed bases");
    }
    for (const uint64_t unit : memory_order_) {
      if (all.add(unit)) left.push_back(unit);
    }
    const auto fill = [&](Side side, uint64_t column) {
      *std::find(columns[side].begin(), columns[side].end(), kOpen) = column;
    };
    for (const size_t index : low) fill(kLanes, candidates_[chosen[index]]);
    for (size_t zeros = open_phase_slots() - low.size(); zeros > 0; --zeros) fill(kLanes, 0);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (std::find(low.begin(), low.end(), i) == low.end()) fill(kLanes, candidates_[chosen[i]]);
    }

    if (!request_.warps_per_dim.empty()) {
      for (size_t i = 0; i < outs_.size(); ++i) {
        const size_t wanted = lowest_bit(std::max<uint64_t>(request_.warps_per_dim[i], 1));
        const uint64_t mask = layout::place(low_mask(outs_[i].bits), shifts_[i]);
        size_t have = warps_along(columns[kWarps], mask);
        for (auto at = left.begin(); have < wanted && at != left.end();) {
          const bool room = std::find(columns[kWarps].begin(), columns[kWarps].end(), kOpen) != columns[kWarps].end();
          if ((*at & mask) == 0 || !room) {
            ++at;
            continue;
          }
          fill(kWarps, *at);
          at = left.erase(at);
          ++have;
        }
        if (have != wanted) {
          unsure_ = mixed_;
          return reject(std::to_string(request_.warps_per_dim[i]) + " warps along dim" + std::to_string(i) +
                        " do not fit beside the other constraints");
        }
      }
    } else {
      while (!left.empty() &&
             std::find(columns[kWarps].begin(), columns[kWarps].end(), kOpen) != columns[kWarps].end()) {
        fill(kWarps, left.front());
        left.erase(left.begin());
      }
    }
    auto &registers = columns[kRegisters];
    for (const uint64_t column : left) {
      const auto open = std::find(registers.begin(), registers.end(), kOpen);
      if (open != registers.end()) {
        *open = column;
      } else if (request_.registers == 0) {
        registers.push_back(column);
      } else {
        too_few_places();
        return reject(arena_.text());
      }
    }
    std::vector<uint64_t> flat;
    std::vector<DimSize> ins;
    const DimName names[] = {dim::kRegister, dim::kLane, dim::kWarp};
    for (const Side side : {kRegisters, kLanes, kWarps}) {
      ins.push_back({names[side], static_cast<uint32_t>(columns[side].size())});
      for (const uint64_t column : columns[side]) flat.push_back(column == kOpen ? 0 : column);
    }
    const Layout *const layout = make_layout(arena_, ins, outs_, flat);
    return layout != nullptr && meets(*layout) ? layout : nullptr;
  }

  // Every constraint again, on the layout itself.
  bool meets(const Layout &layout) {
    if (!is_surjective(layout)) return reject("some elements would be held by no thread") != nullptr;
    const auto registers = layout.columns_of(*layout.find_in(dim::kRegister));
    const auto lanes = layout.columns_of(*layout.find_in(dim::kLane));
    bool kept = std::equal(memory_order_.begin(), memory_order_.begin() + vector_, registers.begin());
    const uint32_t run = request_.lane_run == 0 ? 0 : lowest_bit(request_.lane_run);
    for (uint32_t bit = vector_; bit < run; ++bit) kept = kept && lanes[bit - vector_] == memory_order_[bit];
    for (size_t i = 0; i < request_.contiguous.size(); ++i) {
      for (uint64_t step = 1; step < request_.contiguous[i]; step *= 2) {
        kept = kept && std::count(registers.begin(), registers.end(), step << shifts_[i]) != 0;
      }
    }
    for (const FixedBasis &basis : request_.fixed) {
      uint64_t column = 0;
      for (size_t i = 0; i < outs_.size(); ++i) column |= layout::place(basis.values[i], shifts_[i]);
      kept = kept && layout.columns_of(*layout.find_in(basis.in))[basis.bit] == column;
    }
    if (!kept) return fail(Fault::kUnsupported, "the layout found does not keep its constraints");
    if (request_.memory == nullptr) return true;
    WarpAccess access;
    if (!warp_access(arena_, layout, *request_.memory, request_.element_bits, request_.vector_bits, request_.banks,
                     access)) {
      if (arena_.fault() == Fault::kNoSolution) reject(arena_.text());
      return false;
    }
    const uint64_t vector = low_mask(vector_);
    if ((access.registers & vector) != vector) {
      return reject("the memory's lowest offsets are not the vector of consecutive elements") != nullptr;
    }
    if (access.wavefronts == 1) return true;
    return reject("accesses to the memory take " + std::to_string(access.wavefronts) +
                  " wavefronts, whichever bits the lanes have") != nullptr;
  }

  Arena &arena_;
  const RegisterRequest &request_;
  std::vector<DimSize> outs_;
  std::vector<uint32_t> shifts_;  // of the dims in a column
  uint32_t bits_ = 0;             // of the tensor
  uint32_t vector_ = 0;           // register bits of one access
  std::vector<uint64_t> memory_order_;
  std::vector<uint64_t> columns_[3];
  Elimination placed_;
  std::vector<uint64_t> rest_;        // completes what is placed
  std::vector<uint64_t> candidates_;  // each of which is independent of what is placed
  bool mixed_ = false;                // a fixed basis has several bits
  bool unsure_ = false;
  std::string reason_;
};

}  // namespace

const Layout *find_register_layout(Arena &arena, const RegisterRequest &request) {
  return RegisterSearch(arena, request).run();
}

}  // namespace sonde::layout
