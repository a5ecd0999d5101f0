// AMD's matrix instructions: MFMA (wave64) and WMMA (wave32), results and operands.
#include <algorithm>

#include "layout/encoding_build.h"

namespace sonde::layout::build {
namespace {

constexpr uint64_t kMfmaLanes = 64;

// Dims of a matrix, [batch,] rows, columns.
struct MatrixDims {
  uint32_t m;
  uint32_t n;
  bool has_batch;
};

bool matrix_dims(Arena &arena, const char *what, uint32_t rank, MatrixDims &dims) {
  if (rank != 2 && rank != 3) {
    invalid(arena, std::string(what) + " needs 2 dims, or 3 with a batch, not " + std::to_string(rank));
    return false;
  }
  dims = {rank - 2, rank - 1, rank == 3};
  return true;
}

bool check_mfma(Arena &arena, const Encoding &mfma, uint32_t rank) {
  if (!check_sizes(arena, "warpsPerCTA", mfma.warps_per_cta, rank)) return false;
  if (!mfma.tiles_per_warp.empty() && !check_sizes(arena, "tilesPerWarp", mfma.tiles_per_warp, rank)) return false;
  const auto &shape = mfma.instruction_shape;
  const uint64_t m = shape.size() < 2 ? 0 : shape[0];
  const uint64_t n = shape.size() < 2 ? 0 : shape[1];
  const bool is_known = (m == n && (m == 4 || m == 16 || m == 32)) || (m == 4 && n == 64) || (m == 64 && n == 4);
  if (!is_known) {
    invalid(arena, "instrShape = " + text_of(shape) + " of amd_mfma: M x N is 4x4, 4x64, 16x16, 32x32 or 64x4");
    return false;
  }
  if (m == 64 && !mfma.is_transposed) {
    invalid(arena, "amd_mfma of 64x4 must have isTransposed = true");
    return false;
  }
  return true;
}

uint64_t tiles_along(const Encoding &encoding, uint32_t index) {
  return encoding.tiles_per_warp.empty() ? 1 : encoding.tiles_per_warp[index];
}

}  // namespace

const Layout *mfma_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  MatrixDims dims{};
  if (!matrix_dims(arena, "amd_mfma", rank, dims) || !check_mfma(arena, encoding, rank)) return nullptr;
  const DimName row = standard_dim(dims.m);
  const DimName column = standard_dim(dims.n);
  const uint64_t m = encoding.instruction_shape[0];
  const uint64_t n = encoding.instruction_shape[1];
  const uint64_t height = encoding.element_bits == 64 ? 1 : 4;

  // A lane holds `height` elements along one dim; the lanes lie along the other first.
  const DimName held = encoding.is_transposed ? column : row;
  const DimName other = encoding.is_transposed ? row : column;
  const uint64_t lanes = encoding.is_transposed ? m : n;
  Chain tile(arena);
  tile.identity(height, dim::kRegister, held)
      .identity(lanes, dim::kLane, other)
      .identity(kMfmaLanes / lanes, dim::kLane, held)
      .identity(m * n / (kMfmaLanes * height), dim::kRegister, held);
  DimList order;
  order.add(column);
  order.add(row);
  tile.order_outs(order);

  // All of N comes before the tiles along M, which makes the layout depend on the shape beyond its repetitions.
  const uint64_t warps_n = encoding.warps_per_cta[dims.n];
  const uint64_t tiles_n = tiles_along(encoding, dims.n);
  tile.identity(tiles_n, dim::kRegister, column)
      .identity(warps_n, dim::kWarp, column)
      .identity(shape[dims.n] / n / warps_n / tiles_n, dim::kRegister, column)
      .identity(tiles_along(encoding, dims.m), dim::kRegister, row)
      .identity(encoding.warps_per_cta[dims.m], dim::kWarp, row);
  if (dims.has_batch) {
    tile.identity(1, dim::kRegister, standard_dim(0))
        .identity(1, dim::kLane, standard_dim(0))
        .identity(encoding.warps_per_cta[0], dim::kWarp, standard_dim(0));
  }
  return combine(arena, tile.layout(), cga_layout(arena, encoding.cga, rank), shape);
}

const Layout *mfma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &mfma = *encoding.parent;
  MatrixDims dims{};
  if (!matrix_dims(arena, "an operand of amd_mfma", rank, dims) || !check_mfma(arena, mfma, rank) ||
      !check_power(arena, "kWidth", encoding.k_width)) {
    return nullptr;
  }
  const bool is_a = encoding.operand_index == 0;
  const uint64_t m = mfma.instruction_shape[0];
  const uint64_t n = mfma.instruction_shape[1];
  const uint64_t lanes = is_a ? m : n;
  const uint32_t k_index = k_dim(encoding.operand_index, rank);
  const uint32_t other_index = is_a ? dims.m : dims.n;
  const DimName k = standard_dim(k_index);
  const DimName other = standard_dim(other_index);

  Chain tile(arena);
  tile.identity(encoding.k_width, dim::kRegister, k)
      .identity(lanes, dim::kLane, other)
      .identity(kMfmaLanes / lanes, dim::kLane, k);
  uint64_t k_tile = kMfmaLanes / lanes * encoding.k_width;
  // The operand of 64x4 and 4x64 that has 64 rows or columns is 64x64.
  if (is_a ? m == 64 && n == 4 : m == 4 && n == 64) {
    tile.identity(16, dim::kRegister, k);
    k_tile *= 16;
  }
  if (shape[k_index] > k_tile) tile.identity(shape[k_index] / k_tile, dim::kRegister, k);
  tile.identity(tiles_along(mfma, other_index), dim::kRegister, other);
  DimList order;
  order.add(k);
  order.add(other);
  tile.order_outs(order);
  if (dims.has_batch) tile.identity(1, dim::kRegister, standard_dim(0)).identity(1, dim::kLane, standard_dim(0));
  // Warps along K hold copies: all of K is covered, so their bits lie past it.
  tile.nd(dim::kWarp, mfma.warps_per_cta, row_order(rank));
  return combine(arena, tile.layout(), encoding_cga_layout(arena, encoding, rank), shape);
}

const Layout *wmma_tile_layout(Arena &arena, const Encoding &encoding, uint32_t rank) {
  if (!encoding.register_bases.empty() || !encoding.warp_bases.empty()) {
    const InBases ins[] = {{dim::kRegister, &encoding.register_bases}, {dim::kWarp, &encoding.warp_bases}};
    return from_bases(arena, ins, rank, "ctaLayout");
  }
  Chain tiles(arena);
  for (uint32_t i = rank; i-- > 0;) {
    const uint64_t warps = encoding.warps_per_cta.empty() ? 1 : encoding.warps_per_cta[i];
    tiles.identity(tiles_along(encoding, i), dim::kRegister, standard_dim(i))
        .identity(warps, dim::kWarp, standard_dim(i));
  }
  return tiles.order_outs(standard_dims(rank)).layout();
}

const Layout *wmma_tiles_of_operand(Arena &arena, const Layout *tiles, DimName k) {
  if (tiles != nullptr) tiles = resize_out(arena, *tiles, k, 0, Resize::kZero);
  return tiles == nullptr ? nullptr : remove_zero_bases(arena, *tiles, dim::kRegister);
}

namespace {

// M, N and K of the instruction.
struct WmmaShape {
  uint64_t m = 16;
  uint64_t n = 16;
  uint64_t k = 16;
};

bool check_wmma(Arena &arena, const Encoding &wmma, uint32_t rank, WmmaShape &instruction) {
  MatrixDims dims{};
  if (!matrix_dims(arena, "amd_wmma", rank, dims)) return false;
  if (wmma.version_major < 1 || wmma.version_major > 3) {
    invalid(arena, "amd_wmma has versions 1 to 3, not " + std::to_string(wmma.version_major));
    return false;
  }
  if (!wmma.warps_per_cta.empty() && !check_sizes(arena, "warpsPerCTA", wmma.warps_per_cta, rank)) return false;
  if (!wmma.tiles_per_warp.empty() && !check_sizes(arena, "tilesPerWarp", wmma.tiles_per_warp, rank)) return false;
  const auto &shape = wmma.instruction_shape;
  if (!shape.empty()) {
    if (shape.size() != 3) {
      invalid(arena, "instrShape = " + text_of(shape) + " of amd_wmma must be M, N and K");
      return false;
    }
    instruction = {shape[0], shape[1], shape[2]};
  }
  const bool is_known = instruction.n == 16 && (instruction.m == 16 || (instruction.m == 32 && wmma.version_major > 1));
  if (!is_known || !is_power_of_two(instruction.k)) {
    invalid(arena, "instrShape = " + text_of(shape) + " of amd_wmma of version " + std::to_string(wmma.version_major) +
                       ": M x N is 16x16, from version 2 on also 32x16, and K a power of two");
    return false;
  }
  return true;
}

}  // namespace

const Layout *wmma_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  WmmaShape instruction;
  if (!check_wmma(arena, encoding, rank, instruction)) return nullptr;
  // Lanes lie along the first of these dims, a lane's registers along the second.
  const DimList threads = encoding.is_transposed ? column_order(rank) : row_order(rank);
  const DimName across = threads.names[0];
  const DimName held = threads.names[1];
  Chain tile(arena);
  if (encoding.version_major == 1) {
    // The two halves of a wave hold even and odd rows.
    tile.identity(1, dim::kRegister, across)
        .identity(16, dim::kLane, across)
        .identity(2, dim::kLane, held)
        .identity(8, dim::kRegister, held);
  } else {
    tile.identity(8, dim::kRegister, held)
        .identity(16, dim::kLane, across)
        .identity(2, dim::kLane, held)
        .identity(instruction.m == 32 ? 2 : 1, dim::kRegister, held);
  }
  if (rank == 3) tile.identity(1, dim::kRegister, standard_dim(0)).identity(1, dim::kLane, standard_dim(0));
  tile.order_outs(standard_dims(rank)).times(wmma_tile_layout(arena, encoding, rank)).order_outs(row_order(rank));
  return combine(arena, tile.layout(), cga_layout(arena, encoding.cga, rank), shape);
}

const Layout *wmma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &wmma = *encoding.parent;
  WmmaShape instruction;
  if (!check_wmma(arena, wmma, rank, instruction) || !check_power(arena, "kWidth", encoding.k_width)) return nullptr;
  const DimList order = operand_order(encoding.operand_index, rank);
  const DimName k = order.names[0];
  const DimName other = order.names[1];
  // Transposed, the instruction gets its operands exchanged: 32 is then N.
  const bool is_long = instruction.m == 32 && (encoding.operand_index == 0) != wmma.is_transposed;
  Chain tile(arena);
  tile.identity(encoding.k_width, dim::kRegister, k).identity(16, dim::kLane, other);
  if (wmma.version_major == 1) {
    tile.zeros(2, dim::kLane, k);
  } else {
    tile.identity(2, dim::kLane, k);
  }
  tile.identity(instruction.k / 2 / encoding.k_width, dim::kRegister, k);
  if (is_long) tile.identity(2, dim::kRegister, other);
  tile.times(wmma_tiles_of_operand(arena, wmma_tile_layout(arena, wmma, rank), k)).order_outs(order);
  return combine(arena, tile.layout(), encoding_cga_layout(arena, encoding, rank), shape);
}

}  // namespace sonde::layout::build
