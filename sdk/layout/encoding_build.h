// What the converters of encodings are built from; for encoding*.cpp only.
#pragma once

#include <array>
#include <span>
#include <string>

#include "layout/algebra.h"
#include "layout/encoding.h"
#include "layout/shapes.h"

namespace sonde::layout::build {

using Shape = std::span<const uint64_t>;

inline constexpr uint32_t kMaxRank = dim::kNumbered;

// A list of dims without the heap.
struct DimList {
  std::array<DimName, kMaxRank> names{};
  uint32_t count = 0;

  void add(DimName name) { names[count++] = name; }
  operator std::span<const DimName>() const { return {names.data(), count}; }
};

// dim0 .. dim(rank-1); the last first; as the last but with its first two exchanged.
DimList standard_dims(uint32_t rank);
DimList row_order(uint32_t rank);
DimList column_order(uint32_t rank);
// K, then the other dim of the matrix, then the batch.
DimList operand_order(uint32_t operand_index, uint32_t rank);
inline uint32_t k_dim(uint32_t operand_index, uint32_t rank) { return operand_index == 0 ? rank - 1 : rank - 2; }

// Dims with the log2 of their sizes.
struct SizeList {
  std::array<DimSize, kMaxRank> sizes{};
  uint32_t count = 0;
  operator std::span<const DimSize>() const { return {sizes.data(), count}; }
};
SizeList named_sizes(Shape shape);

inline std::nullptr_t invalid(Arena &arena, std::string text) {
  arena.fail(Fault::kInvalid, std::move(text));
  return nullptr;
}
inline std::nullptr_t unsupported(Arena &arena, std::string text) {
  arena.fail(Fault::kUnsupported, std::move(text));
  return nullptr;
}

// One power of two for each dim; names the parameter in the fault's text.
bool check_sizes(Arena &arena, const char *name, std::span<const uint64_t> values, uint32_t rank);
// Each dim once.
bool check_order(Arena &arena, const char *name, std::span<const uint32_t> order, uint32_t rank);
bool check_power(Arena &arena, const char *name, uint64_t value);
std::string text_of(std::span<const uint64_t> values);

// Rows of one in dim, appended to a list for make_from_bases.
struct InBases {
  DimName in;
  const Bases *rows;
};
// From bases, the out dims (dim0, ...) as small as they allow. `shape` is for the rank.
const Layout *from_bases(Arena &arena, std::span<const InBases> ins, uint32_t rank, const char *what);

// A direct sum that grows to the right. A failed step makes the rest do nothing; layout() is then nullptr.
class Chain {
 public:
  explicit Chain(Arena &arena) : arena_(arena), layout_(make_empty(arena)) {}

  // Each as the factor on the right; a size of 0 stands for the empty layout.
  Chain &identity(uint64_t size, DimName in, DimName out);
  Chain &zeros(uint64_t size, DimName in, DimName out);
  // The dims that both have keep this chain's order.
  Chain &times(const Layout *next);
  // The identity from `in` to the dims of `order` in turn; `sizes` is indexed by dim. Along `zero_dim`, zeros instead.
  Chain &nd(DimName in, Shape sizes, std::span<const DimName> order, DimName zero_dim = 0);
  Chain &order_outs(std::span<const DimName> order);

  const Layout *layout() const { return layout_; }

 private:
  Arena &arena_;
  const Layout *layout_;
};

// The layout of one block, fitted to its part of `shape`, and then of all blocks.
const Layout *combine(Arena &arena, const Layout *cta, const Layout *cga, Shape shape);

// Converters, by family. The shape has been checked.
const Layout *mma_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *mma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *blocked_operand_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *mfma_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *mfma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *wmma_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *wmma_operand_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *scale_operand_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *shared_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *nvmma_shared_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *tensor_memory_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *tensor_memory_scales_layout(Arena &arena, const Encoding &encoding, Shape shape);
const Layout *scale_shared_layout(Arena &arena, Shape shape);

// Where a WMMA warp's tiles lie, in units of tiles: (register, warp) -> dims.
const Layout *wmma_tile_layout(Arena &arena, const Encoding &encoding, uint32_t rank);
// The same for an operand: nothing along K, no register that repeats nothing.
const Layout *wmma_tiles_of_operand(Arena &arena, const Layout *tiles, DimName k);

}  // namespace sonde::layout::build
