// A tensor's encoding as a compiler writes it down, and the linear layout that it stands for.
//
// An encoding has few parameters and no shape; together with a shape it is a layout. Worked example, a blocked encoding
// of 2 x 2 elements a thread, 4 x 8 threads a warp, 2 x 1 warps, the last dim fastest, on a tensor of 16 x 16:
//   register 1 -> (0, 1)   register 2 -> (1, 0)   lane 1 -> (0, 2)  ...  lane 16 -> (4, 0)   warp 1 -> (8, 0)
// Where the tensor is larger, the registers repeat (memory: the offsets); where it is smaller, what lies past its end
// becomes 0: several threads then hold the same element.
//
// The rules are those of Triton 3.3 to 3.6, whose parameter names the messages use. Out dims are dim0, dim1, ...; in
// dims are (register, lane, warp, block), (offset, block), (offset, block, partition) or (row, col, block).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "layout/layout.h"
#include "layout/padding.h"

namespace sonde::layout {

enum class EncodingKind : uint8_t {
  kNone,
  // Registers.
  kBlocked,
  kSlice,         // of `parent`, without its dim `dim`
  kNvidiaMma,     // result of mma.sync (version 2) and wgmma (version 3)
  kMfma,          // result of AMD's matrix instructions, wave64
  kWmma,          // the same, wave32; versions 1 (gfx11), 2 (gfx12), 3 (gfx1250)
  kDotOperand,    // operand A (0) or B (1) of `parent`: kNvidiaMma, kMfma, kWmma, or kBlocked for scalar code
  kScaleOperand,  // block scales of operand A (0) or B (1) of `parent`: kNvidiaMma (SM 12.0), kMfma or kWmma
  kLinear,
  kGenericLinear,  // linear whose bases may have several bits set
  // Shared memory, in elements.
  kSwizzledShared,
  kRotatingShared,  // AMD
  kNvmmaShared,
  kPaddedShared,
  kSharedLinear,
  kPartitionedShared,  // `parent` for each partition
  kScaleShared,        // block scales as tcgen05.cp copies them to tensor memory
  // Tensor memory of Blackwell, rows (lanes) and columns.
  kTensorMemory,
  kTensorMemoryScales,
};

// The name in attribute texts without its dialect: "blocked", "nvidia_mma", ...; "none" for kNone.
std::string_view encoding_kind_text(EncodingKind kind);

enum class EncodingSpace : uint8_t { kRegisters, kShared, kTensorMemory };
EncodingSpace encoding_space(EncodingKind kind);

using Bases = std::vector<std::vector<uint64_t>>;  // one row for each input bit, lowest first; one value for each dim

// How the blocks (CTAs) of a cluster (CGA) share a tensor: not at all, by splits, or by the bases of `block` in units of
// a block's part. One block when everything is empty.
struct CgaLayout {
  std::vector<uint64_t> ctas_per_cga;   // CTAsPerCGA, for each dim
  std::vector<uint64_t> cta_split_num;  // CTASplitNum: parts along each dim; the other blocks of the dim get copies
  std::vector<uint32_t> cta_order;      // CTAOrder: the dim along which consecutive blocks lie first
  Bases block;                          // CGALayout

  bool is_single() const { return ctas_per_cga.empty() && block.empty(); }
  bool operator==(const CgaLayout &) const = default;
};

// Which fields a kind reads stands beside them; the others are not looked at. Lists have a value for each dim of the
// tensor unless it says otherwise; sizes are powers of two.
struct Encoding {
  EncodingKind kind = EncodingKind::kNone;
  std::shared_ptr<const Encoding> parent;  // slice, dot and scale operands, partitioned shared

  // blocked, MMA kinds (warps), shared kinds (order)
  std::vector<uint64_t> size_per_thread;
  std::vector<uint64_t> threads_per_warp;
  std::vector<uint64_t> warps_per_cta;
  std::vector<uint32_t> order;  // fastest dim first
  CgaLayout cga;                // every kind but slices, operands, scale shared and those given by bases

  uint32_t dim = 0;            // slice: the dim without; partitioned shared: the dim that is cut
  uint32_t operand_index = 0;  // dot and scale operands
  uint32_t k_width = 0;        // dot operands: consecutive elements along K in a thread; 0 for blocked parents
  uint32_t version_major = 0;  // MMA kinds
  uint32_t version_minor = 0;

  std::vector<uint64_t> instruction_shape;  // MMA kinds: M, N[, K]; of version 2 [1,] M, N
  bool is_transposed = false;               // MFMA, WMMA
  std::vector<uint64_t> tiles_per_warp;     // MFMA, WMMA; empty: one
  uint32_t element_bits = 0;                // MFMA: of the result, 0 is 32; NVMMA shared: of an element
  uint32_t scale_block = 32;                // scale operands of WMMA: elements along K that share a scale, 16 or 32

  uint64_t vec = 1;  // swizzled and rotating shared
  uint64_t per_phase = 1;
  uint64_t max_phase = 1;

  uint32_t swizzle_bytes = 0;  // NVMMA shared: 0, 32, 64 or 128
  bool transposed = false;     // NVMMA shared: the first dim is the contiguous one
  bool fp4_padded = false;     // NVMMA shared, tensor memory
  uint32_t rank = 0;           // NVMMA shared: 0, or what the attribute says

  std::vector<Padding> paddings;     // padded shared
  std::vector<uint64_t> full_shape;  // padded shared with `order`; empty: the tensor's

  Bases register_bases;    // linear, generic linear; WMMA: where a warp's tiles lie, in tiles
  Bases lane_bases;        // linear, generic linear
  Bases warp_bases;        // as register_bases
  Bases block_bases;       // linear kinds, shared linear, padded shared
  Bases offset_bases;      // shared linear, padded shared
  uint64_t alignment = 0;  // shared linear: bytes; no part of the map

  uint32_t partition_count = 1;  // partitioned shared
  uint32_t group_count = 1;      // partitioned shared: pieces of each partition

  uint64_t block_m = 0;  // tensor memory
  uint64_t block_n = 0;
  uint64_t column_stride = 1;
  bool two_ctas = false;
  bool k_then_mn = false;  // tensor memory scales: repetitions along K come first
};

// Parents are compared by what they say.
bool operator==(const Encoding &a, const Encoding &b);

// The layout of a tensor of `shape`; nullptr with
//   kUnsupported  a size that is no power of two, more than 32 dims, more than 64 bits, or an instruction generation
//                 that has no layout;
//   kInvalid      parameters that contradict themselves or the shape; the text names the parameter.
// Of padded shared memory this is the linear part: element `o` of it lies at padded_address(paddings, o).
const Layout *encoding_layout(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape);

// --- The questions that need the parameters ---

// Dims that the encoding prescribes; 0 when any number fits.
uint32_t encoding_rank(const Encoding &encoding);

// The linear layout of a cluster's blocks: block -> parts along `rank` dims. nullptr as encoding_layout.
const Layout *cga_layout(Arena &arena, const CgaLayout &cga, uint32_t rank);

// The blocks layout that counts for an encoding: a slice's is its parent's without the dim, an operand's is its parent's
// undivided along K.
const Layout *encoding_cga_layout(Arena &arena, const Encoding &encoding, uint32_t rank);

// shape / min(shape, parts) for each dim: what one block holds; `result` has shape.size() values.
bool shape_per_cta(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape, std::span<uint64_t> result);

// Registers of a thread, duplicates included; 0 with the arena's fault set where encoding_layout fails, and for memory.
uint64_t total_elements_per_thread(Arena &arena, const Encoding &encoding, std::span<const uint64_t> shape);

// --- Choices of shared memory ---

// The swizzle from which ldmatrix and its kind read `operand` (a dot operand of an NVIDIA MMA) without conflicts;
// `order` is that of the memory, fastest dim first. kind is kSwizzledShared, or kNone with the arena's fault set.
Encoding swizzle_for_operand(Arena &arena, const Encoding &operand, std::span<const uint64_t> shape,
                             std::span<const uint32_t> order, uint32_t element_bits, bool needs_transposition);

// The widest NVMMA swizzle, in bytes, that a block's part of `shape` has room for: 128, 64, 32, or 0 when even that is
// too wide or there are fewer than 8 rows. `order` as above; `shape` is one block's.
uint32_t default_swizzle_bytes(std::span<const uint64_t> shape, std::span<const uint32_t> order, uint32_t element_bits);

}  // namespace sonde::layout
