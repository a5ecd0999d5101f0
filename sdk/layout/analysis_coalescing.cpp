#include "layout/analysis_coalescing.h"

#include <algorithm>
#include <vector>

#include "layout/analysis.h"
#include "layout/instruction_tiles.h"
#include "layout/matrix.h"
#include "layout/shapes.h"

namespace sonde::layout {
namespace {

constexpr uint32_t kSectorLog2 = 8;  // bits
constexpr uint32_t kLineLog2 = 10;
constexpr uint32_t kMostBits = 24;

// The widest vector as an access whose address is that of each instruction.
bool find_access(Arena &arena, const Layout &offsets, uint32_t bits, const GlobalMemory &memory, SharedAccess &access) {
  if (offsets.outs().size() != 1 || offsets.find_in(dim::kRegister) == nullptr) {
    arena.fail(Fault::kInvalid, "global access: an in dim register and one out dim are expected, not " +
                                    describe(offsets.ins()) + " and " + describe(offsets.outs()));
    return false;
  }
  if (!is_power_of_two(bits) || bits > 128 || !is_power_of_two(memory.base_alignment)) {
    arena.fail(Fault::kInvalid, "global access: the element's bits and the alignment must be powers of two");
    return false;
  }
  const Layout *const without_broadcasts = remove_zero_bases(arena, offsets, dim::kRegister);
  if (without_broadcasts == nullptr) return false;
  InstructionLimits limits;
  limits.most_vector_bits = static_cast<uint32_t>(
      std::min<uint64_t>(memory.most_vector_bits, std::min<uint64_t>(memory.base_alignment, 16) * 8));
  return divide_by_instruction(arena, *without_broadcasts, offsets.outs()[0].name, bits, SharedInstruction::kVector,
                               false, limits, access);
}

// rank of the span of lanes and vector, looked at without the lowest bits of the bit address.
class BitRank {
 public:
  BitRank(uint32_t bits_log2, uint32_t dropped)
      : shift_(static_cast<int32_t>(bits_log2) - static_cast<int32_t>(dropped)) {}
  void add(uint64_t element) {
    elimination_.add(shift_ >= 0 ? place(element, static_cast<uint32_t>(shift_)) : element >> -shift_);
  }
  uint64_t size() const { return uint64_t{1} << elimination_.rank(); }

 private:
  int32_t shift_;
  Elimination elimination_;
};

uint64_t bytes_of(uint64_t elements, uint32_t bits) { return (elements * bits + 7) / 8; }

void finish(GlobalAccess &access) { access.fewest_sectors = (access.wanted_bytes + kSectorBytes - 1) / kSectorBytes; }

uint64_t count_different(std::vector<uint64_t> &values) {
  std::sort(values.begin(), values.end());
  return static_cast<uint64_t>(std::unique(values.begin(), values.end()) - values.begin());
}

}  // namespace

bool global_access(Arena &arena, const Layout &offsets, uint32_t bits_per_element, const GlobalMemory &memory,
                   GlobalAccess &out) {
  SharedAccess access;
  if (!find_access(arena, offsets, bits_per_element, memory, access)) return false;
  if (memory.base_alignment < kLineBytes) {
    // Sectors and lines depend on where in a line the memory begins.
    bool is_first = true;
    for (uint64_t base = 0; base < kLineBytes; base += memory.base_alignment) {
      GlobalAccess at_base;
      if (!simulate_global_access(arena, offsets, bits_per_element, base, memory, at_base)) return false;
      if (is_first) out = at_base;
      is_first = false;
      out.sectors = std::max(out.sectors, at_base.sectors);
      out.lines = std::max(out.lines, at_base.lines);
      out.sectors_in_all = std::max(out.sectors_in_all, at_base.sectors_in_all);
      out.different_sectors = std::max(out.different_sectors, at_base.different_sectors);
    }
    return true;
  }
  const Layout &address = *access.address;
  const uint32_t bits_log2 = lowest_bit(bits_per_element);
  BitRank elements(bits_log2, bits_log2);
  BitRank sectors(bits_log2, kSectorLog2);
  BitRank lines(bits_log2, kLineLog2);
  const auto add = [&](uint64_t value) {
    elements.add(value);
    sectors.add(value);
    lines.add(value);
  };
  for (uint32_t bit = 0; uint64_t{bits_per_element} << bit < access.vector_bits; ++bit) add(uint64_t{1} << bit);
  if (const Dim *const lane = address.find_in(dim::kLane)) {
    for (const uint64_t column : address.columns_of(*lane)) add(column);
  }
  out = {};
  out.access_bits = access.vector_bits;
  out.instructions = access.instructions;
  out.sectors = sectors.size();
  out.lines = lines.size();
  out.wanted_bytes = bytes_of(elements.size(), bits_per_element);
  out.sectors_in_all = out.sectors * out.instructions;
  for (const uint64_t column : address.columns_of(*address.find_in(dim::kRegister))) sectors.add(column);
  out.different_sectors = sectors.size();
  finish(out);
  return true;
}

bool simulate_global_access(Arena &arena, const Layout &offsets, uint32_t bits_per_element, uint64_t base_bytes,
                            const GlobalMemory &memory, GlobalAccess &out) {
  SharedAccess access;
  if (!find_access(arena, offsets, bits_per_element, memory, access)) return false;
  const Layout &address = *access.address;
  if (address.in_bits() > kMostBits) {
    arena.fail(Fault::kUnsupported, "global access: more than 2^24 elements are not simulated");
    return false;
  }
  const Dim *const lane_dim = address.find_in(dim::kLane);
  const Dim &registers = *address.find_in(dim::kRegister);
  const uint64_t lane_mask = lane_dim == nullptr ? 0 : lane_dim->mask();
  const uint64_t others = low_mask(address.in_bits()) & ~registers.mask() & ~lane_mask;
  out = {};
  out.is_simulated = true;
  out.access_bits = access.vector_bits;
  out.instructions = access.instructions;
  std::vector<uint64_t> sectors;
  std::vector<uint64_t> lines;
  std::vector<uint64_t> starts;
  std::vector<uint64_t> of_warp;
  uint64_t warp = 0;
  do {
    uint64_t in_all = 0;
    of_warp.clear();
    for (uint64_t instruction = 0; instruction < access.instructions; ++instruction) {
      sectors.clear();
      lines.clear();
      starts.clear();
      uint64_t lane = 0;
      do {
        const uint64_t element = address.apply(registers.at(instruction) | lane | warp);
        const uint64_t first = element * bits_per_element + base_bytes * 8;
        const uint64_t last = first + access.vector_bits - 1;
        starts.push_back(first);
        for (uint64_t sector = first >> kSectorLog2; sector <= last >> kSectorLog2; ++sector) sectors.push_back(sector);
        for (uint64_t line = first >> kLineLog2; line <= last >> kLineLog2; ++line) lines.push_back(line);
        lane = (lane - lane_mask) & lane_mask;
      } while (lane != 0);
      of_warp.insert(of_warp.end(), sectors.begin(), sectors.end());
      const uint64_t different = count_different(sectors);
      in_all += different;
      out.sectors = std::max(out.sectors, different);
      out.lines = std::max(out.lines, count_different(lines));
      // Vectors of a linear map lie apart or are the same.
      out.wanted_bytes = std::max(out.wanted_bytes, (count_different(starts) * access.vector_bits + 7) / 8);
    }
    out.sectors_in_all = std::max(out.sectors_in_all, in_all);
    out.different_sectors = std::max(out.different_sectors, count_different(of_warp));
    warp = (warp - others) & others;
  } while (warp != 0);
  finish(out);
  return true;
}

}  // namespace sonde::layout
