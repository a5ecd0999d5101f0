// NVIDIA's matrix instructions: results, operands, and operands of scalar code.
#include <algorithm>

#include "layout/encoding_build.h"

namespace sonde::layout::build {
namespace {

// What the warps' part of the checks has in common: one warp count for each dim.
bool check_mma(Arena &arena, const Encoding &mma, uint32_t rank) {
  if (rank < 2) {
    invalid(arena, "nvidia_mma needs at least 2 dims");
    return false;
  }
  if (mma.version_major != 2 && mma.version_major != 3) {
    unsupported(arena, "nvidia_mma of version " + std::to_string(mma.version_major) +
                           ": only versions 2 (mma.sync) and 3 (wgmma) have a layout");
    return false;
  }
  if (!check_sizes(arena, "warpsPerCTA", mma.warps_per_cta, rank)) return false;
  const size_t values = mma.instruction_shape.size();
  if (mma.version_major == 2 ? values != rank && values != 2 : values < 2 || rank != 2) {
    invalid(arena, "instrShape = " + text_of(mma.instruction_shape) + " does not fit an nvidia_mma of version " +
                       std::to_string(mma.version_major) + " with " + std::to_string(rank) + " dims");
    return false;
  }
  return true;
}

// M and N of one instruction, for wgmma of one of its four warps.
struct Tile {
  uint64_t m;
  uint64_t n;
};
Tile tile_of(const Encoding &mma) {
  const auto &shape = mma.instruction_shape;
  if (mma.version_major == 3) return {shape[0], shape[1]};
  return {shape[shape.size() - 2], shape[shape.size() - 1]};
}

// The tile of outer x inner elements: `width` registers and 4 lanes along `inner`, 8 lanes along `outer`, then the
// registers that fill it. `order` begins with inner and outer.
Chain mma_tile(Arena &arena, uint64_t outer, uint64_t inner, uint64_t width, const DimList &order) {
  Chain tile(arena);
  for (const DimName name : std::span<const DimName>(order)) tile.identity(1, dim::kRegister, name);
  const DimName inner_dim = order.names[0];
  const DimName outer_dim = order.names[1];
  tile.identity(width, dim::kRegister, inner_dim)
      .identity(4, dim::kLane, inner_dim)
      .identity(8, dim::kLane, outer_dim)
      .identity(outer / 8, dim::kRegister, outer_dim)
      .identity(inner / 4 / width, dim::kRegister, inner_dim);
  return tile;
}

DimList warp_order(const Encoding &mma, uint32_t rank) {
  return mma.version_major == 3 ? column_order(rank) : row_order(rank);
}

}  // namespace

const Layout *mma_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (!check_mma(arena, encoding, rank)) return nullptr;
  const Tile tile = tile_of(encoding);
  if (!is_power_of_two(tile.m) || tile.m < 8 || !is_power_of_two(tile.n) || tile.n < 8) {
    return invalid(
        arena, "instrShape = " + text_of(encoding.instruction_shape) + ": M and N must be powers of two of at least 8");
  }
  const Layout *const cta = mma_tile(arena, tile.m, tile.n, 2, row_order(rank))
                                .nd(dim::kWarp, encoding.warps_per_cta, warp_order(encoding, rank))
                                .layout();
  return combine(arena, cta, cga_layout(arena, encoding.cga, rank), shape);
}

const Layout *mma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &mma = *encoding.parent;
  const bool is_a = encoding.operand_index == 0;
  if (!check_mma(arena, mma, rank) || !check_power(arena, "kWidth", encoding.k_width)) return nullptr;
  if (mma.version_major == 3 && !is_a) {
    return invalid(arena, "operand B (opIdx = 1) of an nvidia_mma of version 3 comes from shared memory");
  }
  const uint64_t m = tile_of(mma).m;
  if (!is_power_of_two(m) || m < 8) {
    return invalid(arena,
                   "instrShape = " + text_of(mma.instruction_shape) + ": M must be a power of two of at least 8");
  }
  // m8n8k4 of double precision has half the K of the others.
  const uint64_t k = uint64_t{encoding.k_width} * (m == 8 ? 4 : 8);
  const DimName k_name = standard_dim(k_dim(encoding.operand_index, rank));
  const Layout *const cta =
      mma_tile(arena, is_a ? m : 8, k, encoding.k_width, operand_order(encoding.operand_index, rank))
          .nd(dim::kWarp, mma.warps_per_cta, warp_order(mma, rank), k_name)
          .layout();
  return combine(arena, cta, encoding_cga_layout(arena, encoding, rank), shape);
}

// A thread has all of K, for its part of the other dim.
const Layout *blocked_operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &blocked = *encoding.parent;
  if (!check_sizes(arena, "sizePerThread", blocked.size_per_thread, rank) ||
      !check_sizes(arena, "threadsPerWarp", blocked.threads_per_warp, rank) ||
      !check_sizes(arena, "warpsPerCTA", blocked.warps_per_cta, rank) ||
      !check_order(arena, "order", blocked.order, rank)) {
    return nullptr;
  }
  DimList order;
  for (const uint32_t index : blocked.order) order.add(standard_dim(index));
  const uint32_t k = k_dim(encoding.operand_index, rank);
  uint64_t sizes[kMaxRank];
  std::copy(blocked.size_per_thread.begin(), blocked.size_per_thread.end(), sizes);
  sizes[k] = shape[k];
  const Layout *const cta = Chain(arena)
                                .nd(dim::kRegister, {sizes, rank}, order)
                                .nd(dim::kLane, blocked.threads_per_warp, order, standard_dim(k))
                                .nd(dim::kWarp, blocked.warps_per_cta, order, standard_dim(k))
                                .layout();
  return combine(arena, cta, encoding_cga_layout(arena, encoding, rank), shape);
}

}  // namespace sonde::layout::build
