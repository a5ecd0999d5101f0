// Shared memory: offset -> element.
//
// A swizzle moves column `c` of row `r` to column c ^ f(r), where f is linear: the basis of row 2^i is (2^i, f(2^i)).
#include <algorithm>

#include "layout/encoding_build.h"

namespace sonde::layout::build {
namespace {

const Layout *block_of_one(Arena &arena, uint32_t rank) { return cga_layout(arena, {}, rank); }

// Rows and columns are the two fastest dims; the others follow without a swizzle.
const Layout *swizzled_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (!check_order(arena, "order", encoding.order, rank) || !check_power(arena, "vec", encoding.vec) ||
      !check_power(arena, "perPhase", encoding.per_phase) || !check_power(arena, "maxPhase", encoding.max_phase)) {
    return nullptr;
  }
  if (encoding.vec > UINT32_MAX || encoding.max_phase > UINT32_MAX) {
    return unsupported(arena, "vec and maxPhase are at most 2^31");
  }
  const Layout *const cga = cga_layout(arena, encoding.cga, rank);
  const bool is_rotating = encoding.kind == EncodingKind::kRotatingShared;
  uint64_t sizes[kMaxRank];
  std::copy(shape.begin(), shape.end(), sizes);
  if (cga == nullptr || (!is_rotating && !shape_per_cta(arena, encoding, shape, {sizes, rank}))) return nullptr;
  if (rank == 1) {
    return combine(arena, Chain(arena).identity(sizes[0], dim::kOffset, standard_dim(0)).layout(), cga, shape);
  }
  const uint32_t column = encoding.order[0];
  const uint32_t row = encoding.order[1];
  const uint32_t column_bits = lowest_bit(sizes[column]);
  const uint32_t row_bits = lowest_bit(sizes[row]);
  uint64_t columns[kMaxBits];
  for (uint32_t i = 0; i < column_bits; ++i) columns[i] = place(1, row_bits + i);
  for (uint32_t i = 0; i < row_bits; ++i) {
    const uint64_t r = uint64_t{1} << i;
    uint64_t phase = r / encoding.per_phase % encoding.max_phase;
    if (is_rotating) phase ^= r / encoding.max_phase / encoding.per_phase % encoding.max_phase;
    columns[column_bits + i] = r | place(encoding.vec * phase % sizes[column], row_bits);
  }
  const DimSize in{dim::kOffset, column_bits + row_bits};
  const DimSize outs[] = {{standard_dim(row), row_bits}, {standard_dim(column), column_bits}};
  Chain memory(arena);
  memory.times(make_layout(arena, {&in, 1}, outs, {columns, in.bits}));
  for (uint32_t i = 2; i < rank; ++i) {
    memory.identity(sizes[encoding.order[i]], dim::kOffset, standard_dim(encoding.order[i]));
  }
  return combine(arena, memory.layout(), cga, shape);
}

// offset and block as they are given.
const Layout *memory_from_bases(Arena &arena, const Encoding &encoding, uint32_t rank) {
  const InBases ins[] = {{dim::kOffset, &encoding.offset_bases}, {dim::kBlock, &encoding.block_bases}};
  return from_bases(arena, ins, rank, encoding_kind_text(encoding.kind).data());
}

const Layout *padded_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (encoding.paddings.empty()) return invalid(arena, "padded_shared needs at least one [interval:+pad]");
  for (const Padding &padding : encoding.paddings) {
    if (!check_power(arena, "an interval", padding.interval) || !check_power(arena, "a pad", padding.pad)) {
      return nullptr;
    }
  }
  if (encoding.order.empty()) return memory_from_bases(arena, encoding, rank);
  if (!check_order(arena, "order", encoding.order, rank)) return nullptr;
  // The attribute's shape, when it has one, must be the tensor's: the caller of this checks it.
  const Shape full = encoding.full_shape.empty() ? shape : Shape(encoding.full_shape);
  if (!check_sizes(arena, "shape", full, rank)) return nullptr;
  uint64_t sizes[kMaxRank];
  if (!shape_per_cta(arena, encoding, full, {sizes, rank})) return nullptr;
  const Layout *const cta =
      Chain(arena).times(identity_nd(arena, dim::kOffset, {sizes, rank}, encoding.order)).layout();
  return combine(arena, cta, cga_layout(arena, encoding.cga, rank), full);
}

// Pieces along one dim go to the partitions in turn, `group_count` times.
const Layout *partitioned_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (encoding.parent == nullptr || encoding_space(encoding.parent->kind) != EncodingSpace::kShared ||
      encoding.parent->kind == EncodingKind::kPartitionedShared) {
    return invalid(arena, "partitioned_shared needs a partitionLayout of shared memory that is not partitioned itself");
  }
  if (!check_power(arena, "numPartitions", encoding.partition_count) ||
      !check_power(arena, "numGroups", encoding.group_count)) {
    return nullptr;
  }
  if (encoding.dim >= rank) {
    return invalid(arena, "partitionDim = " + std::to_string(encoding.dim) + " of a tensor with " +
                              std::to_string(rank) + " dims");
  }
  const uint64_t pieces = uint64_t{encoding.partition_count} * encoding.group_count;
  uint64_t sizes[kMaxRank];
  std::copy(shape.begin(), shape.end(), sizes);
  if (sizes[encoding.dim] < pieces) {
    return invalid(arena, "dim " + std::to_string(encoding.dim) + " of size " + std::to_string(sizes[encoding.dim]) +
                              " cannot be cut into numPartitions * numGroups = " + std::to_string(pieces) + " pieces");
  }
  sizes[encoding.dim] /= pieces;
  const Layout *const piece = encoding_layout(arena, *encoding.parent, {sizes, rank});
  const DimName cut = standard_dim(encoding.dim);
  return Chain(arena)
      .times(piece)
      .identity(encoding.partition_count, dim::kPartition, cut)
      .identity(encoding.group_count, dim::kOffset, cut)
      .layout();
}

}  // namespace

const Layout *shared_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  switch (encoding.kind) {
    case EncodingKind::kPaddedShared:
      return padded_layout(arena, encoding, shape);
    case EncodingKind::kSharedLinear:
      return memory_from_bases(arena, encoding, static_cast<uint32_t>(shape.size()));
    case EncodingKind::kPartitionedShared:
      return partitioned_layout(arena, encoding, shape);
    default:
      return swizzled_layout(arena, encoding, shape);
  }
}

namespace {

// Eight rows of the swizzle's width. With fp4 padding, 8 elements are followed by a hole of 8, which gets the elements
// again: offset bit 3 is a broadcast.
const Layout *core_tile(Arena &arena, const Encoding &encoding) {
  const uint32_t bits = encoding.element_bits;
  const uint32_t vec = 128 / bits;
  const uint32_t per_phase = 128 / encoding.swizzle_bytes;
  const uint32_t max_phase = encoding.swizzle_bytes / 16;
  const uint32_t width = 8 * encoding.swizzle_bytes / bits;
  const auto packed = [&](uint64_t column) { return encoding.fp4_padded ? column / 16 * 8 + column % 8 : column; };
  uint64_t columns[kMaxBits];
  uint32_t count = 0;
  for (uint32_t c = 1; c < width; c *= 2) columns[count++] = place(packed(c), 3);
  for (uint32_t r = 1; r < 8; r *= 2) {
    const uint64_t moved = uint64_t{vec} * (r / per_phase % max_phase);
    columns[count++] = r | place(packed(moved), 3);
  }
  const DimSize in{dim::kOffset, count};
  const DimSize outs[] = {{standard_dim(0), 3}, {standard_dim(1), count - 3 - (encoding.fp4_padded ? 1 : 0)}};
  return make_layout(arena, {&in, 1}, outs, {columns, count});
}

// What one copy of the tensor memory accelerator (TMA) brings: at most 256 a dim, and along the contiguous dim exactly
// the swizzle's width.
bool copied_block(Arena &arena, const Encoding &encoding, uint32_t contiguous, std::span<uint64_t> sizes) {
  if (encoding.fp4_padded) {
    if (sizes[contiguous] > UINT64_MAX / 2) {
      unsupported(arena, "a shape of more than 2^63 elements");
      return false;
    }
    sizes[contiguous] *= 2;
  }
  for (uint64_t &size : sizes) size = std::min<uint64_t>(size, 256);
  if (encoding.swizzle_bytes != 0) {
    const uint64_t width = uint64_t{8} * encoding.swizzle_bytes / encoding.element_bits;
    if (sizes[contiguous] < width) {
      invalid(arena, "a block's part of dim " + std::to_string(contiguous) + " has " +
                         std::to_string(sizes[contiguous]) + " elements; swizzlingByteWidth = " +
                         std::to_string(encoding.swizzle_bytes) + " needs at least " + std::to_string(width));
      return false;
    }
    sizes[contiguous] = width;
  }
  if (encoding.fp4_padded) sizes[contiguous] /= 2;
  return true;
}

}  // namespace

const Layout *nvmma_shared_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const uint32_t swizzle = encoding.swizzle_bytes;
  const uint32_t bits = encoding.element_bits;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) {
    return invalid(arena, "swizzlingByteWidth must be 0, 32, 64 or 128, not " + std::to_string(swizzle));
  }
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
    return invalid(arena, "elementBitWidth must be 8, 16, 32 or 64, not " + std::to_string(bits));
  }
  if (encoding.fp4_padded && bits != 8) return invalid(arena, "fp4Padded needs elementBitWidth = 8");
  if (encoding.rank != 0 && encoding.rank != rank) {
    return invalid(
        arena, "rank = " + std::to_string(encoding.rank) + ", but the tensor has " + std::to_string(rank) + " dims");
  }
  const Layout *const cga = cga_layout(arena, encoding.cga, rank);
  uint64_t per_cta[kMaxRank];
  if (cga == nullptr || !shape_per_cta(arena, encoding, shape, {per_cta, rank})) return nullptr;
  uint64_t block[kMaxRank];
  std::copy(per_cta, per_cta + rank, block);
  if (!copied_block(arena, encoding, encoding.transposed ? 0 : rank - 1, {block, rank})) return nullptr;

  if (swizzle == 0) {
    Chain memory(arena);
    if (encoding.transposed) memory.identity(block[0], dim::kOffset, standard_dim(0));
    for (uint32_t i = rank; i-- > (encoding.transposed ? 1u : 0u);) {
      memory.identity(block[i], dim::kOffset, standard_dim(i));
    }
    return combine(arena, memory.layout(), cga, shape);
  }
  if (rank < 2) return invalid(arena, "an nvmma_shared with a swizzle needs at least 2 dims");

  // The block as a matrix whose columns are contiguous: its last dim beside the others or, transposed, the others beside
  // the last. With more than two dims the columns of the latter hold more than the contiguous dim; the cut below then
  // spreads the tile's rows over the last dim, as in Triton.
  uint64_t turned[kMaxRank];  // the block with the contiguous dim last
  std::copy(block, block + rank, turned);
  if (encoding.transposed) std::rotate(turned, turned + 1, turned + rank);
  uint32_t row_bits = 0;
  uint32_t column_bits = lowest_bit(block[rank - 1]);
  for (uint32_t i = 0; i + 1 < rank; ++i) row_bits += lowest_bit(block[i]);
  if (encoding.transposed) std::swap(row_bits, column_bits);
  if (row_bits < 3) {
    return invalid(arena, "an nvmma_shared with a swizzle needs at least 8 rows; a block has " +
                              std::to_string(uint64_t{1} << row_bits));
  }
  const DimSize matrix[] = {{standard_dim(0), row_bits}, {standard_dim(1), column_bits}};
  const Layout *layout = core_tile(arena, encoding);
  if (layout != nullptr) layout = not_smaller(arena, *layout, matrix);
  if (layout != nullptr) layout = reshape_tensor(arena, *layout, {turned, rank});
  if (layout != nullptr && encoding.transposed) {
    uint32_t order[kMaxRank];
    order[0] = rank - 1;
    for (uint32_t i = 1; i < rank; ++i) order[i] = i - 1;
    layout = transpose_tensor(arena, *layout, {order, rank});
  }
  return combine(arena, layout, cga, shape);
}

const Layout *scale_shared_layout(Arena &arena, Shape shape) {
  if (shape.size() != 2 || shape[0] < 128 || shape[1] < 4) {
    return invalid(arena, "scale_shared needs 2 dims of at least 128 x 4");
  }
  // Groups of 4 scales along K; of 128 rows, row r + 32 lies beside row r.
  const uint32_t groups = lowest_bit(shape[1]) - 2;
  const uint32_t row_bits = lowest_bit(shape[0]);
  uint64_t columns[kMaxBits];
  uint32_t count = 0;
  const auto add = [&](uint32_t first, uint32_t bits) {
    for (uint32_t i = 0; i < bits; ++i) columns[count++] = uint64_t{1} << (first + i);
  };
  add(row_bits, 2);
  add(5, 2);
  add(0, 5);
  add(row_bits + 2, groups);
  add(7, row_bits - 7);
  const DimSize in{dim::kOffset, count};
  const DimSize outs[] = {{standard_dim(0), row_bits}, {standard_dim(1), groups + 2}};
  const Layout *const cta = make_layout(arena, {&in, 1}, outs, {columns, count});
  return combine(arena, cta, block_of_one(arena, 2), shape);
}

}  // namespace sonde::layout::build
