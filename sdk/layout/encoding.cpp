#include "layout/encoding.h"

#include <algorithm>

#include "layout/encoding_build.h"
#include "layout/queries.h"

namespace sonde::layout {
namespace {

using namespace build;

// Sizes that have a linear layout; `rank` at most 32.
bool check_shape(Arena &arena, Shape shape) {
  if (shape.empty() || shape.size() > kMaxRank) {
    arena.fail(shape.empty() ? Fault::kInvalid : Fault::kUnsupported,
               "a tensor has 1 to 32 dims, not " + std::to_string(shape.size()));
    return false;
  }
  uint32_t bits = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!is_power_of_two(shape[i])) {
      unsupported(arena, "dim " + std::to_string(i) + " of the shape is " + std::to_string(shape[i]) +
                             "; only powers of two have a linear layout");
      return false;
    }
    bits += lowest_bit(shape[i]);
  }
  if (bits > kMaxBits) unsupported(arena, "a shape of more than 2^64 elements");
  return bits <= kMaxBits;
}

const Layout *convert(Arena &arena, const Encoding &encoding, Shape shape);

const Layout *blocked_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  if (!check_sizes(arena, "sizePerThread", encoding.size_per_thread, rank) ||
      !check_sizes(arena, "threadsPerWarp", encoding.threads_per_warp, rank) ||
      !check_sizes(arena, "warpsPerCTA", encoding.warps_per_cta, rank) ||
      !check_order(arena, "order", encoding.order, rank)) {
    return nullptr;
  }
  DimList order;
  for (const uint32_t index : encoding.order) order.add(standard_dim(index));
  const Layout *const cta = Chain(arena)
                                .nd(dim::kRegister, encoding.size_per_thread, order)
                                .nd(dim::kLane, encoding.threads_per_warp, order)
                                .nd(dim::kWarp, encoding.warps_per_cta, order)
                                .layout();
  return combine(arena, cta, cga_layout(arena, encoding.cga, rank), shape);
}

const Layout *slice_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  if (encoding.parent == nullptr) return invalid(arena, "a slice needs a parent");
  if (encoding_space(encoding.parent->kind) != EncodingSpace::kRegisters) {
    return invalid(arena, "a slice of " + std::string(encoding_kind_text(encoding.parent->kind)) +
                              ": only encodings of registers have slices");
  }
  if (encoding.dim > shape.size()) {
    return invalid(arena, "a slice without dim " + std::to_string(encoding.dim) + " has at least as many dims; the " +
                              "shape has " + std::to_string(shape.size()));
  }
  if (shape.size() == kMaxRank) return unsupported(arena, "a slice whose parent has more than 32 dims");
  uint64_t sizes[kMaxRank];
  std::copy(shape.begin(), shape.begin() + encoding.dim, sizes);
  sizes[encoding.dim] = 1;
  std::copy(shape.begin() + encoding.dim, shape.end(), sizes + encoding.dim + 1);
  const Layout *const parent = convert(arena, *encoding.parent, {sizes, shape.size() + 1});
  const Layout *const rest = parent == nullptr ? nullptr : remove_tensor_dim(arena, *parent, encoding.dim);
  return rest == nullptr ? nullptr : remove_zero_bases(arena, *rest, dim::kRegister);
}

// Repetitions along the dims in the order in which the registers touch them; registers past the shape go.
const Layout *linear_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  const auto rank = static_cast<uint32_t>(shape.size());
  const InBases ins[] = {{dim::kRegister, &encoding.register_bases},
                         {dim::kLane, &encoding.lane_bases},
                         {dim::kWarp, &encoding.warp_bases},
                         {dim::kBlock, &encoding.block_bases}};
  const bool is_generic = encoding.kind == EncodingKind::kGenericLinear;
  const char *const what = is_generic ? "generic_linear" : "linear";
  const Layout *layout = from_bases(arena, ins, rank, what);
  if (layout == nullptr) return nullptr;
  if (!is_generic && !is_permutation_with_broadcasts(*layout)) {
    return invalid(arena,
                   "linear: every basis must be 0 or a power of two along one dim, and no two the same; only "
                   "generic_linear may combine them");
  }
  uint32_t rest[kMaxRank];
  for (uint32_t i = 0; i < rank; ++i) rest[i] = rank - 1 - i;
  DimList order;
  for (const uint32_t index : order_per_dim(*layout, dim::kRegister, {rest, rank})) order.add(standard_dim(index));
  const SizeList sizes = named_sizes(shape);
  layout = transpose(arena, *layout, Side::kOut, order);
  if (layout != nullptr) layout = not_smaller(arena, *layout, sizes);
  if (layout != nullptr) layout = not_larger(arena, *layout, sizes, false);
  return layout == nullptr ? nullptr : transpose(arena, *layout, Side::kOut, standard_dims(rank));
}

const Layout *operand_layout(Arena &arena, const Encoding &encoding, Shape shape) {
  if (encoding.parent == nullptr) return invalid(arena, "a dot operand needs a parent");
  if (shape.size() < 2) return invalid(arena, "a dot operand has at least 2 dims");
  if (encoding.operand_index > 1) {
    return invalid(arena, "opIdx must be 0 or 1, not " + std::to_string(encoding.operand_index));
  }
  switch (encoding.parent->kind) {
    case EncodingKind::kBlocked:
      return blocked_operand_layout(arena, encoding, shape);
    case EncodingKind::kNvidiaMma:
      return mma_operand_layout(arena, encoding, shape);
    case EncodingKind::kMfma:
      return mfma_operand_layout(arena, encoding, shape);
    case EncodingKind::kWmma:
      return wmma_operand_layout(arena, encoding, shape);
    default:
      return invalid(arena, "a dot operand of " + std::string(encoding_kind_text(encoding.parent->kind)) +
                                ": the parent must be blocked, nvidia_mma, amd_mfma or amd_wmma");
  }
}

const Layout *convert(Arena &arena, const Encoding &encoding, Shape shape) {
  switch (encoding.kind) {
    case EncodingKind::kNone:
      return invalid(arena, "there is no encoding");
    case EncodingKind::kBlocked:
      return blocked_layout(arena, encoding, shape);
    case EncodingKind::kSlice:
      return slice_layout(arena, encoding, shape);
    case EncodingKind::kNvidiaMma:
      return mma_layout(arena, encoding, shape);
    case EncodingKind::kMfma:
      return mfma_layout(arena, encoding, shape);
    case EncodingKind::kWmma:
      return wmma_layout(arena, encoding, shape);
    case EncodingKind::kDotOperand:
      return operand_layout(arena, encoding, shape);
    case EncodingKind::kScaleOperand:
      return scale_operand_layout(arena, encoding, shape);
    case EncodingKind::kLinear:
    case EncodingKind::kGenericLinear:
      return linear_layout(arena, encoding, shape);
    case EncodingKind::kNvmmaShared:
      return nvmma_shared_layout(arena, encoding, shape);
    case EncodingKind::kScaleShared:
      return scale_shared_layout(arena, shape);
    case EncodingKind::kSwizzledShared:
    case EncodingKind::kRotatingShared:
    case EncodingKind::kPaddedShared:
    case EncodingKind::kSharedLinear:
    case EncodingKind::kPartitionedShared:
      return shared_layout(arena, encoding, shape);
    case EncodingKind::kTensorMemory:
      return tensor_memory_layout(arena, encoding, shape);
    case EncodingKind::kTensorMemoryScales:
      return tensor_memory_scales_layout(arena, encoding, shape);
  }
  return invalid(arena, "there is no such kind of encoding");
}

// The factors that a layout was built from go; it moves to where they began.
const Layout *keep_only(Arena &arena, const Arena::Mark &scratch, const Layout &layout) {
  DimSize ins[kMaxDims];
  DimSize outs[kMaxDims];
  uint64_t columns[kMaxBits];
  uint32_t in_count = 0;
  uint32_t out_count = 0;
  for (const Dim &in : layout.ins()) ins[in_count++] = {in.name, in.bits};
  for (const Dim &out : layout.outs()) outs[out_count++] = {out.name, out.bits};
  const uint32_t bits = layout.in_bits();
  std::copy(layout.columns().begin(), layout.columns().end(), columns);
  arena.release(scratch);
  return make_layout(arena, {ins, in_count}, {outs, out_count}, {columns, bits});
}

}  // namespace

const Layout *encoding_layout(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape) {
  if (!check_shape(arena, shape)) return nullptr;
  const Arena::Mark scratch = arena.mark();
  const Layout *const layout = convert(arena, encoding, shape);
  if (layout == nullptr) {
    arena.release(scratch);
    return nullptr;
  }
  for (uint32_t i = 0; i < shape.size(); ++i) {
    const Dim *const out = layout->find_out(standard_dim(i));
    if (out != nullptr && out->bits == lowest_bit(shape[i])) continue;
    return invalid(arena, std::string(encoding_kind_text(encoding.kind)) + " describes " + describe(layout->outs()) +
                              ", not a tensor of " + text_of(shape));
  }
  return keep_only(arena, scratch, *layout);
}

std::string_view encoding_kind_text(EncodingKind kind) {
  switch (kind) {
    case EncodingKind::kNone:
      return "none";
    case EncodingKind::kBlocked:
      return "blocked";
    case EncodingKind::kSlice:
      return "slice";
    case EncodingKind::kNvidiaMma:
      return "nvidia_mma";
    case EncodingKind::kMfma:
      return "amd_mfma";
    case EncodingKind::kWmma:
      return "amd_wmma";
    case EncodingKind::kDotOperand:
      return "dot_op";
    case EncodingKind::kScaleOperand:
      return "scale_op";
    case EncodingKind::kLinear:
      return "linear";
    case EncodingKind::kGenericLinear:
      return "generic_linear";
    case EncodingKind::kSwizzledShared:
      return "swizzled_shared";
    case EncodingKind::kRotatingShared:
      return "amd_rotating_shared";
    case EncodingKind::kNvmmaShared:
      return "nvmma_shared";
    case EncodingKind::kPaddedShared:
      return "padded_shared";
    case EncodingKind::kSharedLinear:
      return "shared_linear";
    case EncodingKind::kPartitionedShared:
      return "partitioned_shared";
    case EncodingKind::kScaleShared:
      return "scale_shared";
    case EncodingKind::kTensorMemory:
      return "tensor_memory_encoding";
    case EncodingKind::kTensorMemoryScales:
      return "tensor_memory_scales_encoding";
  }
  return "none";
}

EncodingSpace encoding_space(EncodingKind kind) {
  if (kind >= EncodingKind::kTensorMemory) return EncodingSpace::kTensorMemory;
  return kind >= EncodingKind::kSwizzledShared ? EncodingSpace::kShared : EncodingSpace::kRegisters;
}

bool operator==(const Encoding &a, const Encoding &b) {
  const auto fields = [](const Encoding &e) {
    return std::tie(e.kind, e.size_per_thread, e.threads_per_warp, e.warps_per_cta, e.order, e.cga, e.dim,
                    e.operand_index, e.k_width, e.version_major, e.version_minor, e.instruction_shape, e.is_transposed,
                    e.tiles_per_warp, e.element_bits, e.scale_block, e.vec, e.per_phase, e.max_phase, e.swizzle_bytes,
                    e.transposed, e.fp4_padded, e.rank, e.paddings, e.full_shape, e.register_bases, e.lane_bases,
                    e.warp_bases, e.block_bases, e.offset_bases, e.alignment, e.partition_count, e.group_count,
                    e.block_m, e.block_n, e.column_stride, e.two_ctas, e.k_then_mn);
  };
  if (fields(a) != fields(b)) return false;
  if (a.parent == b.parent) return true;
  return a.parent != nullptr && b.parent != nullptr && *a.parent == *b.parent;
}

}  // namespace sonde::layout
