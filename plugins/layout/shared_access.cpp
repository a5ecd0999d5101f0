#include "shared_access.h"

#include <algorithm>
#include <bit>

namespace sonde::layout_lint {
namespace {

// Rank over F2.
uint32_t rank_of(std::vector<uint64_t> vectors) {
  uint32_t rank = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (vectors[i] == 0) continue;
    ++rank;
    const uint64_t low = vectors[i] & (0 - vectors[i]);
    for (size_t j = i + 1; j < vectors.size(); ++j) {
      if ((vectors[j] & low) != 0) vectors[j] ^= vectors[i];
    }
  }
  return rank;
}

// The columns of (register, lane, warp) in bytes of the offset; false where another memory is meant.
struct Bytes {
  std::vector<uint64_t> registers, lanes, warps;
};

bool is_offset_only(const sonde_layout_view_t &view, uint32_t offset_dim) {
  for (const sonde_dim_t in : {SONDE_DIM_REGISTER, SONDE_DIM_LANE, SONDE_DIM_WARP}) {
    for (const uint64_t column : columns_of(view, in)) {
      for (uint32_t dim = 0; dim < view.out_count; ++dim) {
        if (dim != offset_dim && part_of(view, column, dim) != 0) return false;
      }
    }
  }
  return true;
}

// A matrix instruction fits: fills `access` and returns true. Offsets are in bytes. A row has bits 0 to 3.
bool matrix_access(const Bytes &bytes, uint32_t element_bits, const SharedOptions &options, SharedAccess &access) {
  constexpr uint64_t kRow = 15;
  const uint64_t element = element_bits / 8;
  if (element_bits > 32 || element_bits < 8 || bytes.lanes.size() != 5) return false;
  std::vector<uint64_t> registers;
  for (const uint64_t column : bytes.registers) {
    if (column != 0) registers.push_back(column);
  }
  const auto erase = [](std::vector<uint64_t> &from, uint64_t what) {
    const auto place = std::find(from.begin(), from.end(), what);
    if (place == from.end()) return false;
    from.erase(place);
    return true;
  };
  const auto stays_off_rows = [](const std::vector<uint64_t> &columns) {
    return std::all_of(columns.begin(), columns.end(), [](uint64_t column) { return (column & kRow) == 0; });
  };
  std::vector<uint64_t> rows;  // columns that choose one of the 8 rows
  std::vector<uint64_t> rest = registers;
  bool is_transposed = false;
  // Straight: a lane's 4 bytes are registers, lanes 0 and 1 choose the 4 bytes within the row.
  bool fits = bytes.lanes[0] == 4 && bytes.lanes[1] == 8;
  for (uint64_t step = element; fits && step < 4; step *= 2) fits = erase(rest, step);
  rows = {bytes.lanes[2], bytes.lanes[3], bytes.lanes[4]};
  fits = fits && stays_off_rows(rest) && stays_off_rows(rows) && stays_off_rows(bytes.warps);
  if (!fits && element_bits == 16) {
    // Transposed: lanes 2 to 4 walk along the row, a register and lanes 0 and 1 choose the row.
    rest = registers;
    fits = !rest.empty() && bytes.lanes[2] == 2 && bytes.lanes[3] == 4 && bytes.lanes[4] == 8;
    if (fits) {
      rows = {rest.front(), bytes.lanes[0], bytes.lanes[1]};
      rest.erase(rest.begin());
      fits = stays_off_rows(rest) && stays_off_rows(rows) && stays_off_rows(bytes.warps);
      is_transposed = true;
    }
  }
  if (!fits) return false;
  // The 8 rows of a tile are served at once when they lie in different groups of four banks.
  std::vector<uint64_t> groups;
  for (const uint64_t row : rows) groups.push_back(row & (options.banks * 4 - 1));
  const uint64_t wavefronts = uint64_t{1} << (rank_of(rows) - rank_of(groups));
  const uint64_t tiles = uint64_t{1} << rest.size();
  constexpr const char *kNames[] = {"ldmatrix", "ldmatrix.trans", "stmatrix", "stmatrix.trans"};
  access.instruction = kNames[(options.is_store ? 2 : 0) + (is_transposed ? 1 : 0)];
  access.vector_bits = 128;
  access.instructions = (tiles + 3) / 4;  // .x4 moves four tiles
  access.wavefronts = tiles * wavefronts;
  access.conflicts = tiles * (wavefronts - 1);
  return true;
}

}  // namespace

SharedAccess shared_access(const Layouts &layouts, const sonde_layout_t *registers, const ir::Type &memory,
                           const sonde_layout_t *memory_layout, const SharedOptions &options) {
  SharedAccess access;
  const auto &service = layouts.layouts();
  const sonde_layout_t *map = nullptr;
  if (memory.encoding.find("padded_shared") != std::string_view::npos) {
    access.reason = "padded shared memory is not linear: its bank conflicts are not counted";
    return access;
  }
  if (service.invert_and_compose(layouts.arena(), registers, memory_layout, 1, &map) != SONDE_OK) {
    access.reason = "the registers do not map to the memory: " + layouts.last_error();
    return access;
  }
  const sonde_layout_view_t view = layouts.view(map);
  uint32_t offset = view.out_count;
  for (uint32_t dim = 0; dim < view.out_count; ++dim) {
    if (view.outs[dim].name == SONDE_DIM_OFFSET) offset = dim;
  }
  if (offset == view.out_count) {
    access.reason = "the memory's layout has no offset";
    return access;
  }
  if (options.has_matrix_instruction && options.element_bits >= 8 && is_offset_only(view, offset)) {
    Bytes bytes;
    const auto fill = [&](std::vector<uint64_t> &to, sonde_dim_t in) {
      for (const uint64_t column : columns_of(view, in)) {
        to.push_back(part_of(view, column, offset) * (options.element_bits / 8));
      }
    };
    fill(bytes.registers, SONDE_DIM_REGISTER);
    fill(bytes.lanes, SONDE_DIM_LANE);
    fill(bytes.warps, SONDE_DIM_WARP);
    if (matrix_access(bytes, options.element_bits, options, access)) return access;
  }
  sonde_bank_access_t banks{};
  banks.struct_size = sizeof(banks);
  if (layouts.plans().bank_access(layouts.arena(), map, SONDE_DIM_OFFSET, std::max(8u, options.element_bits),
                                  options.banks, 0, &banks) != SONDE_OK) {
    access.reason = "bank conflicts cannot be counted: " + layouts.last_error();
    return access;
  }
  access.instruction = options.is_store ? "st.shared" : "ld.shared";
  access.vector_bits = banks.access_bits;
  access.instructions = banks.instructions;
  access.wavefronts = banks.total;
  access.conflicts = banks.conflicts;
  return access;
}

}  // namespace sonde::layout_lint
