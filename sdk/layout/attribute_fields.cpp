#include "layout/attribute_fields.h"

#include <algorithm>

namespace sonde::layout::attribute {
namespace {

constexpr auto kRequired = Presence::kRequired;
constexpr auto kShown = Presence::kShown;
constexpr auto kOptional = Presence::kOptional;
constexpr auto kFormer = Presence::kFormer;

constexpr Field kCgaFields[] = {
    {"CTAsPerCGA", Special::kCtasPerCga, kOptional},
    {"CTASplitNum", Special::kCtaSplitNum, kOptional},
    {"CTAOrder", Special::kCtaOrder, kOptional},
    {"CGALayout", Special::kCgaLayout, kOptional},
};

// A table with the cluster's parameters behind it.
template <size_t count>
constexpr auto with_cga(const Field (&fields)[count]) {
  std::array<Field, count + std::size(kCgaFields)> all{};
  std::copy(std::begin(fields), std::end(fields), all.begin());
  std::copy(std::begin(kCgaFields), std::end(kCgaFields), all.begin() + count);
  return all;
}

constexpr auto kBlocked = with_cga({
    {"sizePerThread", &Encoding::size_per_thread, kRequired},
    {"threadsPerWarp", &Encoding::threads_per_warp, kRequired},
    {"warpsPerCTA", &Encoding::warps_per_cta, kRequired},
    {"order", &Encoding::order, kRequired},
});

constexpr Field kSlice[] = {
    {"dim", &Encoding::dim, kRequired},
    {"parent", Special::kParent, kRequired},
};

constexpr auto kNvidiaMma = with_cga({
    {"versionMajor", &Encoding::version_major, kRequired},
    {"versionMinor", &Encoding::version_minor, kShown},
    {"warpsPerCTA", &Encoding::warps_per_cta, kRequired},
    {"instrShape", &Encoding::instruction_shape, kOptional},
    {"version", Special::kVersion, kFormer},
});

constexpr auto kMfma = with_cga({
    {"version", Special::kVersion, kShown},
    {"warpsPerCTA", &Encoding::warps_per_cta, kRequired},
    {"instrShape", &Encoding::instruction_shape, kOptional},
    {"isTransposed", &Encoding::is_transposed, kShown},
    {"tilesPerWarp", &Encoding::tiles_per_warp, kOptional},
    {"elementBitWidth", &Encoding::element_bits, kOptional},
    {"versionMajor", &Encoding::version_major, kFormer},
    {"versionMinor", &Encoding::version_minor, kFormer},
    {"nonKDim", Special::kNonKDim, kFormer},
    {"isTranspose", &Encoding::is_transposed, kFormer},
    {"elementType", Special::kElementType, kFormer},
});

constexpr auto kWmma = with_cga({
    {"version", Special::kVersion, kShown},
    {"isTranspose", &Encoding::is_transposed, kShown},
    {"ctaLayout", Special::kCtaLayout, kOptional},
    {"warpsPerCTA", &Encoding::warps_per_cta, kOptional},
    {"tilesPerWarp", &Encoding::tiles_per_warp, kOptional},
    {"instrShape", &Encoding::instruction_shape, kOptional},
    {"isTransposed", &Encoding::is_transposed, kFormer},
});

constexpr Field kDotOperand[] = {
    {"opIdx", &Encoding::operand_index, kRequired},
    {"parent", Special::kParent, kRequired},
    {"kWidth", &Encoding::k_width, kOptional},
};

constexpr Field kScaleOperand[] = {
    {"opIdx", &Encoding::operand_index, kRequired},
    {"parent", Special::kParent, kRequired},
    {"scaleBlock", &Encoding::scale_block, kOptional},
};

constexpr Field kLinear[] = {
    {"register", &Encoding::register_bases, kRequired},
    {"lane", &Encoding::lane_bases, kRequired},
    {"warp", &Encoding::warp_bases, kRequired},
    {"block", &Encoding::block_bases, kRequired},
};

constexpr auto kSwizzledShared = with_cga({
    {"vec", &Encoding::vec, kRequired},
    {"perPhase", &Encoding::per_phase, kRequired},
    {"maxPhase", &Encoding::max_phase, kRequired},
    {"order", &Encoding::order, kRequired},
    {"hasLeadingOffset", Special::kHasLeadingOffset, kFormer},
});

constexpr auto kNvmmaShared = with_cga({
    {"swizzlingByteWidth", &Encoding::swizzle_bytes, kRequired},
    {"transposed", &Encoding::transposed, kRequired},
    {"elementBitWidth", &Encoding::element_bits, kRequired},
    {"fp4Padded", &Encoding::fp4_padded, kOptional},
    {"rank", &Encoding::rank, kOptional},
});

// Behind the list of paddings.
constexpr auto kPaddedShared = with_cga({
    {"offset", &Encoding::offset_bases, kOptional},
    {"block", &Encoding::block_bases, kOptional},
    {"order", &Encoding::order, kOptional},
    {"shape", &Encoding::full_shape, kOptional},
});

constexpr Field kSharedLinear[] = {
    {"offset", &Encoding::offset_bases, kRequired},
    {"block", &Encoding::block_bases, kOptional},
    {"alignment", &Encoding::alignment, kOptional},
};

constexpr Field kPartitionedShared[] = {
    {"numPartitions", &Encoding::partition_count, kRequired},
    {"numGroups", &Encoding::group_count, kRequired},
    {"partitionDim", &Encoding::dim, kRequired},
    {"partitionLayout", Special::kParent, kRequired},
};

constexpr auto kTensorMemory = with_cga({
    {"blockM", &Encoding::block_m, kRequired},
    {"blockN", &Encoding::block_n, kRequired},
    {"colStride", &Encoding::column_stride, kShown},
    {"fp4Padded", &Encoding::fp4_padded, kOptional},
    {"twoCTAs", &Encoding::two_ctas, kOptional},
    {"unpacked", Special::kUnpacked, kFormer},
    {"CTASplitM", Special::kSplitM, kFormer},
    {"CTASplitN", Special::kSplitN, kFormer},
});

constexpr auto kTensorMemoryScales = with_cga({
    {"blockRepOrder", Special::kBlockRepOrder, kOptional},
    {"CTASplitM", Special::kSplitM, kFormer},
    {"CTASplitN", Special::kSplitN, kFormer},
});

struct KindName {
  std::string_view name;
  EncodingKind kind;
};
constexpr KindName kFormerNames[] = {
    {"mma", EncodingKind::kNvidiaMma},
    {"mfma", EncodingKind::kMfma},
    {"wmma", EncodingKind::kWmma},
    {"shared", EncodingKind::kSwizzledShared},
};

}  // namespace

std::span<const Field> fields_of(EncodingKind kind) {
  switch (kind) {
    case EncodingKind::kBlocked:
      return kBlocked;
    case EncodingKind::kSlice:
      return kSlice;
    case EncodingKind::kNvidiaMma:
      return kNvidiaMma;
    case EncodingKind::kMfma:
      return kMfma;
    case EncodingKind::kWmma:
      return kWmma;
    case EncodingKind::kDotOperand:
      return kDotOperand;
    case EncodingKind::kScaleOperand:
      return kScaleOperand;
    case EncodingKind::kLinear:
    case EncodingKind::kGenericLinear:
      return kLinear;
    case EncodingKind::kSwizzledShared:
    case EncodingKind::kRotatingShared:
      return kSwizzledShared;
    case EncodingKind::kNvmmaShared:
      return kNvmmaShared;
    case EncodingKind::kPaddedShared:
      return kPaddedShared;
    case EncodingKind::kSharedLinear:
      return kSharedLinear;
    case EncodingKind::kPartitionedShared:
      return kPartitionedShared;
    case EncodingKind::kTensorMemory:
      return kTensorMemory;
    case EncodingKind::kTensorMemoryScales:
      return kTensorMemoryScales;
    case EncodingKind::kScaleShared:
    case EncodingKind::kNone:
      break;
  }
  return {};
}

std::optional<EncodingKind> kind_of(std::string_view name) {
  for (auto kind = static_cast<uint8_t>(EncodingKind::kBlocked);
       kind <= static_cast<uint8_t>(EncodingKind::kTensorMemoryScales); ++kind) {
    if (encoding_kind_text(static_cast<EncodingKind>(kind)) == name) return static_cast<EncodingKind>(kind);
  }
  for (const KindName &former : kFormerNames) {
    if (former.name == name) return former.kind;
  }
  return std::nullopt;
}

std::string_view dialect_of(EncodingKind kind) {
  if (kind == EncodingKind::kScaleOperand || kind == EncodingKind::kScaleShared) return "sonde";
  return encoding_space(kind) == EncodingSpace::kTensorMemory ? "ttng" : "ttg";
}

bool is_layout_dialect(std::string_view dialect) {
  return dialect == "ttg" || dialect == "ttng" || dialect == "triton_gpu" || dialect == "triton_nvidia_gpu" ||
         dialect == "sonde";
}

bool is_memory_space(std::string_view name) { return name == "shared_memory" || name == "tensor_memory"; }

bool has_bare_parameters(EncodingKind kind) { return encoding_space(kind) == EncodingSpace::kTensorMemory; }

}  // namespace sonde::layout::attribute
