#include "global_access.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace sonde::layout_lint {
namespace {

constexpr int64_t kSectorBytes = 32;
// Requests looked at one by one; the rest of a very large tensor repeats them.
constexpr uint64_t kMostInstructions = 256;

// Out dims by their first appearance among registers, lanes and warps; then the last dims first.
std::vector<uint32_t> order_of(const sonde_layout_view_t &view) {
  std::vector<uint32_t> order;
  const auto add = [&](uint32_t dim) {
    if (std::find(order.begin(), order.end(), dim) == order.end()) order.push_back(dim);
  };
  for (const sonde_dim_t in : {SONDE_DIM_REGISTER, SONDE_DIM_LANE, SONDE_DIM_WARP}) {
    for (const uint64_t column : columns_of(view, in)) {
      for (uint32_t dim = 0; dim < view.out_count; ++dim) {
        if (part_of(view, column, dim) != 0) add(dim);
      }
    }
  }
  for (uint32_t dim = view.out_count; dim-- > 0;) add(dim);
  return order;
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Byte ranges within one group of addresses whose distances are known.
using Ranges = std::set<std::pair<int64_t, int64_t>>;  // begin, bytes

uint64_t sectors_at(const Ranges &ranges, int64_t base) {
  std::set<int64_t> sectors;
  for (const auto &[begin, bytes] : ranges) {
    const int64_t last = floor_divide(base + begin + bytes - 1, kSectorBytes);
    for (int64_t sector = floor_divide(base + begin, kSectorBytes); sector <= last; ++sector) sectors.insert(sector);
  }
  return sectors.size();
}

uint64_t different_bytes(const Ranges &ranges) {
  int64_t end = INT64_MIN, total = 0;
  for (const auto &[begin, bytes] : ranges) {
    const int64_t from = std::max(begin, end);
    total += std::max<int64_t>(0, begin + bytes - from);
    end = std::max(end, begin + bytes);
  }
  return static_cast<uint64_t>(total);
}

// Where an element lies: a group whose own place is not known, and the distance from its beginning.
void locate(const sonde_layout_view_t &view, const Fact &address, uint64_t flat, std::vector<uint64_t> &group,
            int64_t &bytes) {
  group.clear();
  bytes = 0;
  for (uint32_t d = 0; d < view.out_count; ++d) {
    const uint64_t index = part_of(view, flat, d);
    const DimFact &dim = address.dims[d];
    if (dim.stride) {
      bytes += *dim.stride * static_cast<int64_t>(index);
      group.push_back(0);
    } else if (dim.contiguity > 1) {
      bytes += static_cast<int64_t>(index % dim.contiguity * address.unit);
      group.push_back(index / dim.contiguity);
    } else {
      group.push_back(index / dim.constancy);
    }
  }
}

}  // namespace

GlobalAccess global_access(const Layouts &layouts, const sonde_layout_t *layout, uint32_t element_bits,
                           const Fact &address, const Fact *mask, uint64_t most_elements) {
  GlobalAccess access;
  const sonde_layout_view_t view = layouts.view(layout);
  if (address.dims.size() != view.out_count || view.out_count == 0) {
    access.reason = "the addresses have another rank than the layout";
    return access;
  }
  const std::vector<uint32_t> order = order_of(view);
  const uint32_t fast = order[0];
  const DimFact &along = address.dims[fast];
  const uint64_t element_bytes = std::max(1u, element_bits / 8);
  std::vector<uint64_t> contiguous(view.out_count, 1);
  if (layouts.shapes().contiguous_per_thread(layout, contiguous.data()) != SONDE_OK) contiguous[fast] = 1;

  access.thread_contiguous = contiguous[fast];
  access.proved_contiguous = std::min(std::max<uint64_t>(1, along.divisibility / element_bytes), along.contiguity);
  uint64_t vector = std::min(
      {access.thread_contiguous, access.proved_contiguous, std::max<uint64_t>(1, 128 / std::max(8u, element_bits))});
  if (mask != nullptr && fast < mask->dims.size()) {
    access.mask_contiguous = mask->dims[fast].constancy;
    vector = std::min(vector, access.mask_contiguous);
  }
  if (most_elements != 0) vector = std::min(vector, most_elements);
  access.vector_bits = vector * element_bytes * 8;

  // The registers of one access are those that count along the fastest dim; the others number the instructions.
  std::vector<uint64_t> others;
  for (const uint64_t column : columns_of(view, SONDE_DIM_REGISTER)) {
    const uint64_t part = part_of(view, column, fast);
    const bool is_alone = part != 0 && column == part << view.outs[fast].shift;
    if (column != 0 && !(is_alone && std::has_single_bit(part) && part < vector)) others.push_back(column);
  }
  const std::vector<uint64_t> lanes = columns_of(view, SONDE_DIM_LANE);
  const std::vector<uint64_t> warps = columns_of(view, SONDE_DIM_WARP);
  const auto zeros = [](const std::vector<uint64_t> &columns) {
    return uint64_t{1} << std::count(columns.begin(), columns.end(), uint64_t{0});
  };
  access.lane_copies = zeros(lanes);
  access.warp_copies = zeros(warps);
  access.instructions = uint64_t{1} << others.size();

  if (along.size > 1 && !along.stride && along.contiguity == 1 && along.constancy == 1) {
    access.reason = "nothing is proved of how the addresses along dim " + std::to_string(fast) + " differ";
    return access;
  }
  access.is_known = true;
  const auto sum_of = [](const std::vector<uint64_t> &columns, uint64_t bits) {
    uint64_t sum = 0;
    for (size_t i = 0; i < columns.size(); ++i) sum ^= columns[i] & (0 - (bits >> i & 1));
    return sum;
  };
  const uint64_t looked = std::min(access.instructions, kMostInstructions);
  const auto alignment = static_cast<int64_t>(std::min<uint64_t>(along.divisibility, kSectorBytes));
  uint64_t all = 0;
  std::vector<uint64_t> group;
  for (uint64_t instruction = 0; instruction < looked; ++instruction) {
    std::map<std::vector<uint64_t>, Ranges> groups;
    for (uint64_t lane = 0; lane < uint64_t{1} << lanes.size(); ++lane) {
      int64_t bytes = 0;
      locate(view, address, view.offset ^ sum_of(others, instruction) ^ sum_of(lanes, lane), group, bytes);
      groups[group].insert({bytes, static_cast<int64_t>(vector * element_bytes)});
    }
    uint64_t fewest = 0, most = 0, wanted = 0;
    for (const auto &[key, ranges] : groups) {
      uint64_t least = UINT64_MAX, greatest = 0;
      for (int64_t base = 0; base < kSectorBytes; base += alignment) {
        const uint64_t sectors = sectors_at(ranges, base);
        least = std::min(least, sectors);
        greatest = std::max(greatest, sectors);
      }
      fewest += least;
      most += greatest;
      wanted += different_bytes(ranges);
    }
    all += fewest;
    if (fewest > access.sectors) {
      access.sectors = fewest;
      access.wanted_bytes = wanted;
    }
    access.sectors_most = std::max(access.sectors_most, most);
  }
  access.all_sectors = all * (access.instructions / looked) * ((uint64_t{1} << warps.size()) / access.warp_copies);
  return access;
}

}  // namespace sonde::layout_lint
