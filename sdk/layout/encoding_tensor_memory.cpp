// Tensor memory of Blackwell, and the block scales of every vendor's scaled matrix instructions.
//
// A zero basis of a row means that the rows hold copies; one of a column means that the column is not used.
#include <algorithm>

#include "layout/encoding_build.h"

namespace sonde::layout::build {

const Layout *tensor_memory_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  if (shape.size() != 2) {
    return invalid(arena, "tensor memory holds matrices, not tensors of " + std::to_string(shape.size()) + " dims");
  }
  if (encoding.block_m != 64 && encoding.block_m != 128) {
    return invalid(arena, "blockM must be 64 or 128, not " + std::to_string(encoding.block_m));
  }
  if (!check_power(arena, "blockN", encoding.block_n) || !check_power(arena, "colStride", encoding.column_stride)) {
    return nullptr;
  }
  const Layout *const cga = cga_layout(arena, encoding.cga, 2);
  uint64_t per_cta[2];
  if (cga == nullptr || !shape_per_cta(arena, encoding, shape, per_cta)) return nullptr;
  const uint64_t block_n = std::min(encoding.block_n, per_cta[1]);
  const uint32_t n_bits = lowest_bit(block_n);

  Bases rows;
  Bases columns;
  const auto add = [](Bases &bases, uint64_t first, uint64_t end, uint32_t index) {
    for (uint64_t value = first; value < end; value *= 2) {
      bases.push_back(index == 0 ? std::vector<uint64_t>{value, 0} : std::vector<uint64_t>{0, value});
    }
  };
  columns.assign(lowest_bit(encoding.column_stride) + (encoding.fp4_padded ? 1 : 0), {0, 0});
  if (columns.size() + n_bits > kMaxBits) return unsupported(arena, "tensor memory of more than 2^64 columns");
  add(columns, 1, block_n, 1);
  if (encoding.block_m == 128) {
    add(rows, 1, 128, 0);
  } else if (encoding.two_ctas) {
    // Half of the columns goes to the other half of the rows.
    if (columns.empty()) return invalid(arena, "twoCTAs with blockM = 64 needs a blockN of at least 2");
    add(rows, 1, 64, 0);
    rows.push_back(columns.back());
    columns.pop_back();
  } else {
    // 16 rows in each of the 4 sub-partitions of 32; what the other 16 hold depends on the shape.
    add(rows, 1, 16, 0);
    if (per_cta[0] > 64) {
      rows.push_back({64, 0});
    } else if (per_cta[1] > block_n) {
      rows.push_back({0, block_n});
    } else {
      rows.push_back({0, 0});
    }
    add(rows, 16, 64, 0);
  }
  const InBases ins[] = {{dim::kRow, &rows}, {dim::kColumn, &columns}};
  const Layout *const tile = from_bases(arena, ins, 2, "tensor_memory_encoding");
  if (tile == nullptr) return nullptr;
  const uint32_t tile_m = tile->outs()[0].bits;
  const uint32_t tile_n = tile->outs()[1].bits;
  if (lowest_bit(per_cta[0]) < tile_m || lowest_bit(per_cta[1]) < tile_n) {
    return invalid(arena, "a block's part of the tensor is " + text_of(per_cta) + ", smaller than the tile of " +
                              describe(tile->outs()));
  }
  return Chain(arena)
      .times(tile)
      .identity(per_cta[0] >> tile_m, dim::kColumn, standard_dim(0))
      .identity(per_cta[1] >> tile_n, dim::kColumn, standard_dim(1))
      .times(cga)
      .layout();
}

const Layout *tensor_memory_scales_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  if (shape.size() != 2) return invalid(arena, "scales in tensor memory have 2 dims");
  const Layout *const cga = cga_layout(arena, encoding.cga, 2);
  uint64_t per_cta[2];
  if (cga == nullptr || !shape_per_cta(arena, encoding, shape, per_cta)) return nullptr;
  const DimName row = standard_dim(0);
  const DimName k = standard_dim(1);
  uint64_t row_tiles = std::max<uint64_t>(per_cta[0] / 64, 1);
  const uint64_t k_tiles = std::max<uint64_t>(per_cta[1] / 4, 1);
  Chain tile(arena);
  // Each of the 4 sub-partitions of 32 rows has all scales.
  tile.identity(32, dim::kRow, row)
      .zeros(4, dim::kRow, row)
      .identity(4, dim::kColumn, k)
      .identity(2, dim::kColumn, row);
  if (row_tiles > 1) {
    tile.identity(2, dim::kColumn, row);
    row_tiles /= 2;
  }
  if (encoding.k_then_mn) {
    tile.identity(k_tiles, dim::kColumn, k).identity(row_tiles, dim::kColumn, row);
  } else {
    tile.identity(row_tiles, dim::kColumn, row).identity(k_tiles, dim::kColumn, k);
  }
  const Layout *layout = tile.layout();
  if (layout != nullptr) layout = not_larger(arena, *layout, named_sizes(per_cta));
  return Chain(arena).times(layout).times(cga).layout();
}

namespace {

// Scales are [batch,] rows of A or columns of B, then blocks along K, for both operands.
struct ScaleDims {
  uint32_t mn;
  uint32_t k;
};

// Warps of the operand: of B, those along N now lie along the first dim of the matrix.
bool operand_warps(Arena &arena, const Encoding &encoding, uint32_t rank, std::span<uint64_t> warps) {
  const auto &all = encoding.parent->warps_per_cta;
  if (!check_sizes(arena, "warpsPerCTA", all, rank)) return false;
  std::copy(all.begin(), all.end(), warps.begin());
  if (encoding.operand_index == 1) std::swap(warps[rank - 2], warps[rank - 1]);
  return true;
}

DimList operand_warp_order(const Encoding &encoding, uint32_t rank) {
  return encoding.operand_index == 1 ? column_order(rank) : row_order(rank);
}

// A quad of lanes shares a row's scales; of A, its lanes also hold those of row + 8.
const Layout *mma_scales(Arena &arena, const Encoding &encoding, Shape shape, ScaleDims dims) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &mma = *encoding.parent;
  uint64_t warps[kMaxRank];
  if (mma.version_major != 2) {
    return unsupported(arena, "scales of an nvidia_mma of version " + std::to_string(mma.version_major) +
                                  ": only mma.sync (version 2) takes them from registers");
  }
  if (!operand_warps(arena, encoding, rank, {warps, rank})) return nullptr;
  const DimName mn = standard_dim(dims.mn);
  const DimName k = standard_dim(dims.k);
  const bool is_a = encoding.operand_index == 0;
  const DimSize lane{dim::kLane, 5};
  const DimSize outs[] = {{mn, is_a ? 4u : 3u}, {k, 0}};
  const uint64_t columns[] = {is_a ? 8u : 0u, 0, 1, 2, 4};
  Chain tile(arena);
  tile.identity(shape[dims.k], dim::kRegister, k)
      .times(make_layout(arena, {&lane, 1}, outs, columns))
      .nd(dim::kWarp, {warps, rank}, operand_warp_order(encoding, rank), k);
  return combine(arena, tile.layout(), cga_layout(arena, mma.cga, rank), shape);
}

// A lane has the scales of one row, as many along K as its instructions take.
const Layout *mfma_scales(Arena &arena, const Encoding &encoding, Shape shape) {
  const Encoding &mfma = *encoding.parent;
  uint64_t warps[2];
  if (!operand_warps(arena, encoding, 2, warps)) return nullptr;
  if (!mfma.tiles_per_warp.empty() && !check_sizes(arena, "tilesPerWarp", mfma.tiles_per_warp, 2)) return nullptr;
  const uint64_t rows = mfma.instruction_shape.empty() ? 0 : mfma.instruction_shape[0];
  if (rows != 16 && rows != 32) {
    return invalid(
        arena, "instrShape = " + text_of(mfma.instruction_shape) + ": a scaled amd_mfma has 16x16 or 32x32 results");
  }
  const DimName mn = standard_dim(0);
  const DimName k = standard_dim(1);
  const uint64_t k_lanes = 64 / rows;
  const uint64_t tiles = mfma.tiles_per_warp.empty() ? 1 : mfma.tiles_per_warp[encoding.operand_index];
  Chain tile(arena);
  tile.identity(1, dim::kRegister, k)
      .identity(rows, dim::kLane, mn)
      .identity(k_lanes, dim::kLane, k)
      .identity(shape[1] / k_lanes, dim::kRegister, k)
      .identity(tiles, dim::kRegister, mn)
      .order_outs(standard_dims(2))
      .nd(dim::kWarp, warps, operand_warp_order(encoding, 2));
  return combine(arena, tile.layout(), cga_layout(arena, {}, 2), shape);
}

// 16 lanes have the scales; the others take those of the warp's next tile, when it has one.
const Layout *wmma_scales(Arena &arena, const Encoding &encoding, Shape shape, ScaleDims dims) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const Encoding &wmma = *encoding.parent;
  if (encoding.scale_block != 16 && encoding.scale_block != 32) {
    return invalid(arena, "a scale stands for 16 or 32 elements, not " + std::to_string(encoding.scale_block));
  }
  if (!wmma.warps_per_cta.empty() && !check_sizes(arena, "warpsPerCTA", wmma.warps_per_cta, rank)) return nullptr;
  if (!wmma.tiles_per_warp.empty() && !check_sizes(arena, "tilesPerWarp", wmma.tiles_per_warp, rank)) return nullptr;
  const DimName mn = standard_dim(dims.mn);
  const DimName k = standard_dim(dims.k);
  const uint64_t width = encoding.scale_block == 32 ? 4 : 8;
  Chain tile(arena);
  tile.identity(width, dim::kRegister, k)
      .identity(16, dim::kLane, mn)
      .zeros(2, dim::kLane, mn)
      .identity(shape[dims.k] / width, dim::kRegister, k);
  if (rank == 3) tile.identity(1, dim::kRegister, standard_dim(0)).identity(1, dim::kLane, standard_dim(0));
  tile.order_outs(standard_dims(rank));
  if (tile.layout() == nullptr) return nullptr;
  const uint32_t next_tile = tile.layout()->find_in(dim::kRegister)->bits;

  const Layout *tiles = wmma_tile_layout(arena, wmma, rank);
  if (tiles != nullptr && encoding.operand_index == 1) {
    uint32_t order[3] = {0, 1, 2};
    std::swap(order[rank - 2], order[rank - 1]);
    tiles = transpose_tensor(arena, *tiles, {order, rank});
  }
  tile.times(wmma_tiles_of_operand(arena, tiles, k));
  const Layout *const layout = combine(arena, tile.layout(), cga_layout(arena, wmma.cga, rank), shape);
  if (layout == nullptr) return nullptr;
  const Dim &registers = *layout->find_in(dim::kRegister);
  if (registers.bits <= next_tile) return layout;

  // That register becomes the lane that held copies.
  DimSize ins[4];
  DimSize outs[kMaxRank];
  uint64_t columns[kMaxBits];
  uint32_t in_count = 0;
  uint32_t count = 0;
  const uint64_t moved = layout->columns_of(registers)[next_tile];
  for (const Dim &in : layout->ins()) {
    const bool is_register = in.name == dim::kRegister;
    ins[in_count++] = {in.name, is_register ? in.bits - 1u : in.bits};
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      if (is_register && bit == next_tile) continue;
      columns[count++] = in.name == dim::kLane && bit == 4 ? moved : layout->columns_of(in)[bit];
    }
  }
  for (uint32_t i = 0; i < rank; ++i) outs[i] = {layout->outs()[i].name, layout->outs()[i].bits};
  return make_layout(arena, {ins, in_count}, {outs, rank}, {columns, count});
}

}  // namespace

const Layout *scale_operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (encoding.parent == nullptr) return invalid(arena, "a scale operand needs a parent");
  if (encoding.operand_index > 1) {
    return invalid(arena, "opIdx must be 0 or 1, not " + std::to_string(encoding.operand_index));
  }
  const bool is_mfma = encoding.parent->kind == EncodingKind::kMfma;
  if (rank != 2 && (is_mfma || rank != 3)) {
    return invalid(arena, "scales of " + std::string(encoding_kind_text(encoding.parent->kind)) + " have 2 dims" +
                              (is_mfma ? "" : ", or 3 with a batch") + ", not " + std::to_string(rank));
  }
  const ScaleDims dims{rank - 2, rank - 1};
  switch (encoding.parent->kind) {
    case EncodingKind::kNvidiaMma:
      return mma_scales(arena, encoding, shape, dims);
    case EncodingKind::kMfma:
      return mfma_scales(arena, encoding, shape);
    case EncodingKind::kWmma:
      return wmma_scales(arena, encoding, shape, dims);
    default:
      return invalid(arena, "a scale operand's parent must be nvidia_mma, amd_mfma or amd_wmma, not " +
                                std::string(encoding_kind_text(encoding.parent->kind)));
  }
}

}  // namespace sonde::layout::build
