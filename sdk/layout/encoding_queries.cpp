// What is asked of an encoding's parameters, and the choices of shared memory.
#include <algorithm>

#include "layout/encoding_build.h"

namespace sonde::layout {

using namespace build;

uint32_t encoding_rank(const Encoding &encoding) {
  const auto size = [](size_t count) { return static_cast<uint32_t>(count); };
  const auto of_bases = [&](std::initializer_list<const Bases *> lists) {
    for (const Bases *list : lists) {
      if (!list->empty()) return size(list->front().size());
    }
    return 0u;
  };
  switch (encoding.kind) {
    case EncodingKind::kNone:
      return 0;
    case EncodingKind::kSlice: {
      const uint32_t parent = encoding.parent == nullptr ? 0 : encoding_rank(*encoding.parent);
      return parent == 0 ? 0 : parent - 1;
    }
    case EncodingKind::kDotOperand:
    case EncodingKind::kPartitionedShared:
      return encoding.parent == nullptr ? 0 : encoding_rank(*encoding.parent);
    case EncodingKind::kScaleOperand:
      return encoding.parent == nullptr ? 0 : encoding_rank(*encoding.parent);
    case EncodingKind::kNvidiaMma:
    case EncodingKind::kMfma:
      return size(encoding.warps_per_cta.size());
    case EncodingKind::kWmma:
      if (!encoding.warps_per_cta.empty()) return size(encoding.warps_per_cta.size());
      return of_bases({&encoding.warp_bases, &encoding.register_bases});
    case EncodingKind::kLinear:
    case EncodingKind::kGenericLinear:
      return of_bases({&encoding.register_bases, &encoding.lane_bases, &encoding.warp_bases, &encoding.block_bases});
    case EncodingKind::kSharedLinear:
      return of_bases({&encoding.offset_bases, &encoding.block_bases});
    case EncodingKind::kPaddedShared:
      if (!encoding.order.empty()) return size(encoding.order.size());
      return of_bases({&encoding.offset_bases, &encoding.block_bases});
    case EncodingKind::kBlocked:
    case EncodingKind::kSwizzledShared:
    case EncodingKind::kRotatingShared:
      return size(encoding.order.size());
    case EncodingKind::kNvmmaShared:
      if (encoding.rank != 0) return encoding.rank;
      if (!encoding.cga.ctas_per_cga.empty()) return size(encoding.cga.ctas_per_cga.size());
      return of_bases({&encoding.cga.block});
    case EncodingKind::kScaleShared:
    case EncodingKind::kTensorMemory:
    case EncodingKind::kTensorMemoryScales:
      return 2;
  }
  return 0;
}

const Layout *cga_layout(Arena &arena, const CgaLayout &cga, uint32_t rank) {
  if (rank == 0 || rank > kMaxRank) return unsupported(arena, "a tensor has 1 to 32 dims");
  if (!cga.block.empty()) {
    const InBases in{dim::kBlock, &cga.block};
    return from_bases(arena, {&in, 1}, rank, "CGALayout");
  }
  Chain blocks(arena);
  if (cga.is_single()) {
    for (uint32_t i = 0; i < rank; ++i) blocks.identity(1, dim::kBlock, standard_dim(i));
    return blocks.layout();
  }
  if (!check_sizes(arena, "CTAsPerCGA", cga.ctas_per_cga, rank) ||
      !check_sizes(arena, "CTASplitNum", cga.cta_split_num, rank) ||
      !check_order(arena, "CTAOrder", cga.cta_order, rank)) {
    return nullptr;
  }
  for (const uint32_t index : cga.cta_order) {
    const uint64_t ctas = cga.ctas_per_cga[index];
    const uint64_t parts = cga.cta_split_num[index];
    if (parts > ctas) {
      return invalid(arena, "CTASplitNum = " + text_of(cga.cta_split_num) +
                                " has more parts than CTAsPerCGA = " + text_of(cga.ctas_per_cga) + " has blocks");
    }
    blocks.identity(parts, dim::kBlock, standard_dim(index)).zeros(ctas / parts, dim::kBlock, standard_dim(index));
  }
  return blocks.order_outs(standard_dims(rank)).layout();
}

const Layout *encoding_cga_layout(Arena &arena, const Encoding &encoding, uint32_t rank) {
  switch (encoding.kind) {
    case EncodingKind::kSlice: {
      if (encoding.parent == nullptr || encoding.dim > rank)
        return invalid(arena, "a slice needs a parent with its dim");
      const Layout *const parent = encoding_cga_layout(arena, *encoding.parent, rank + 1);
      return parent == nullptr ? nullptr : remove_tensor_dim(arena, *parent, encoding.dim);
    }
    case EncodingKind::kDotOperand: {
      if (encoding.parent == nullptr || rank < 2) return invalid(arena, "a dot operand needs a parent and 2 dims");
      const Layout *const parent = encoding_cga_layout(arena, *encoding.parent, rank);
      if (parent == nullptr) return nullptr;
      // Every block needs all of K.
      return resize_out(arena, *parent, standard_dim(k_dim(encoding.operand_index, rank)), 0, Resize::kZero);
    }
    case EncodingKind::kScaleOperand:
      if (encoding.parent == nullptr) return invalid(arena, "a scale operand needs a parent");
      if (encoding.parent->kind == EncodingKind::kMfma) return cga_layout(arena, {}, rank);
      return cga_layout(arena, encoding.parent->cga, rank);
    case EncodingKind::kScaleShared:
      return cga_layout(arena, {}, rank);
    case EncodingKind::kPartitionedShared:
      if (encoding.parent == nullptr) return invalid(arena, "partitioned_shared needs a partitionLayout");
      return encoding_cga_layout(arena, *encoding.parent, rank);
    case EncodingKind::kLinear:
    case EncodingKind::kGenericLinear:
    case EncodingKind::kSharedLinear:
    case EncodingKind::kPaddedShared: {
      if (encoding.kind == EncodingKind::kPaddedShared && !encoding.order.empty()) break;
      // Any value of a basis but the lowest is a part of the tensor's size; only which dims are split counts.
      const Bases &bases = encoding.block_bases;
      Chain blocks(arena);
      for (uint32_t i = 0; i < rank; ++i) blocks.identity(1, dim::kBlock, standard_dim(i));
      for (const auto &row : bases) {
        if (row.size() != rank) return invalid(arena, "basis " + text_of(row) + " of block has other dims");
        uint32_t first = 0;
        while (first < rank && row[first] == 0) ++first;
        if (first == rank) {
          blocks.zeros(2, dim::kBlock, standard_dim(0));
        } else {
          blocks.identity(2, dim::kBlock, standard_dim(first));
        }
      }
      return blocks.layout();
    }
    default:
      break;
  }
  return cga_layout(arena, encoding.cga, rank);
}

bool shape_per_cta(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape,
                   std::span<uint64_t> result) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (result.size() != shape.size()) {
    invalid(arena, "shape_per_cta: the result needs a value for each dim");
    return false;
  }
  const Layout *const blocks = encoding_cga_layout(arena, encoding, rank);
  if (blocks == nullptr) return false;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint32_t bits = blocks->find_out(standard_dim(i))->bits;
    const uint64_t parts = bits >= 64 ? shape[i] : std::min(shape[i], uint64_t{1} << bits);
    result[i] = parts == 0 ? 0 : shape[i] / parts;
  }
  return true;
}

uint64_t total_elements_per_thread(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape) {
  const Layout *const layout = encoding_layout(arena, encoding, shape);
  if (layout == nullptr) return 0;
  const Dim *const registers = layout->find_in(dim::kRegister);
  if (registers == nullptr) {
    invalid(arena, std::string(encoding_kind_text(encoding.kind)) + " lies in memory, not in registers");
    return 0;
  }
  if (registers->bits >= 64) {
    unsupported(arena, "2^64 registers");
    return 0;
  }
  return uint64_t{1} << registers->bits;
}

Encoding swizzle_for_operand(Arena &arena, const Encoding &operand, std::span<const uint64_t> shape,
                             std::span<const uint32_t> order, uint32_t element_bits, bool needs_transposition) {
  Encoding shared;
  const auto rank = static_cast<uint32_t>(shape.size());
  if (operand.kind != EncodingKind::kDotOperand || operand.parent == nullptr ||
      operand.parent->kind != EncodingKind::kNvidiaMma || operand.operand_index > 1) {
    invalid(arena, "a swizzle is chosen for a dot operand of an nvidia_mma");
    return shared;
  }
  if (rank < 2 || rank > kMaxRank) {
    invalid(arena, "a dot operand has 2 to 32 dims, not " + std::to_string(rank));
    return shared;
  }
  const bool has_width = element_bits >= 4 && element_bits <= 64;
  if (!has_width) invalid(arena, "elements of " + std::to_string(element_bits) + " bits: 4 to 64 are supported");
  uint64_t per_cta[kMaxRank];
  if (!has_width || !check_order(arena, "order", order, rank) || !check_power(arena, "kWidth", operand.k_width) ||
      !check_power(arena, "the element's bits", element_bits) ||
      !shape_per_cta(arena, operand, shape, {per_cta, rank})) {
    return shared;
  }
  const uint64_t inner = std::clamp<uint64_t>(per_cta[order[0]], 1, 1024);
  const uint64_t per_phase = std::max<uint64_t>(1024 / (element_bits * inner), 1);
  // Of one 8x8 matrix of ldmatrix: `vec` elements along the fast dim, `stride` rows of them.
  uint64_t stride = element_bits == 64 ? 4 : 8;
  uint64_t vec = uint64_t{4} * operand.k_width;
  if (needs_transposition) std::swap(vec, stride);
  if (order[0] != k_dim(operand.operand_index, rank)) std::swap(vec, stride);
  const uint64_t phases = std::max<uint64_t>(std::min(stride, 1024 / (vec * element_bits)), 1);
  shared.kind = EncodingKind::kSwizzledShared;
  shared.vec = vec;
  shared.per_phase = per_phase;
  shared.max_phase = std::max<uint64_t>(phases / per_phase, 1);
  shared.order.assign(order.begin(), order.end());
  return shared;
}

uint32_t default_swizzle_bytes(std::span<const uint64_t> shape, std::span<const uint32_t> order,
                               uint32_t element_bits) {
  if (shape.size() < 2 || order.empty() || order[0] >= shape.size()) return 0;
  uint64_t rows = 1;  // no more than 8 are needed
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    if (i != order[0]) rows = std::min<uint64_t>(rows * std::min<uint64_t>(shape[i], 8), 8);
  }
  if (rows < 8) return 0;
  for (const uint32_t bytes : {128u, 64u, 32u}) {
    // In bits, modulo: the sizes are powers of two or not.
    if (shape[order[0]] % (uint64_t{bytes} * 8) * element_bits % (uint64_t{bytes} * 8) == 0) return bytes;
  }
  return 0;
}

}  // namespace sonde::layout
