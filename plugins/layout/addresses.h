// What can be proved about the values of a module's integer and pointer tensors: how neighbours differ.
//
// Sources are the text alone: tt.divisibility, tt.contiguity and tt.constancy attributes, constants, tt.make_range, and
// the operations on them (splat, expand_dims, broadcast, arithmetic, addptr, loops). Whatever is not proved is 1 or
// absent, never guessed. Numbers are powers of two.
//
// Example: tt.addptr(tt.splat(%x), tt.make_range(0, 64)) with %x: !tt.ptr<f16> {tt.divisibility = 16} has contiguity
// [64], divisibility [16] bytes, constancy [1], stride [2] bytes.
#pragma once

#include <sonde/toolkit/ttgir.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sonde::layout_lint {

namespace ir = toolkit::ttgir;

// Along one dim of a tensor (a scalar has one dim of size 1).
struct DimFact {
  uint64_t size = 1;
  // Groups of this many elements, beginning at multiples of it, hold consecutive integers (pointers: neighbours of the
  // pointee's size).
  uint64_t contiguity = 1;
  // Divides the first element of every such group, at any place in the other dims. Pointers: in bytes.
  uint64_t divisibility = 1;
  // Groups of this many elements are equal.
  uint64_t constancy = 1;
  // value(i + 1) - value(i), the same for all i. Pointers: in bytes.
  std::optional<int64_t> stride;
};

struct Fact {
  std::vector<DimFact> dims;
  std::optional<int64_t> constant;  // all elements have this value
  uint64_t unit = 1;                // bytes of a pointer's pointee, otherwise 1
  uint32_t lost_at = ir::kNone;     // operation behind which neighbours are not related any more

  bool is_uniform() const;  // all elements are equal
};

// Facts of all values of a module, found in a few passes over it: loops are repeated until nothing changes.
class Addresses {
 public:
  static constexpr uint64_t kMost = uint64_t{1} << 40;  // stands for "any power of two": the divisor of 0
  static constexpr int kMostPasses = 32;                // then loop-carried values are taken as unknown

  explicit Addresses(const ir::Module &module);

  const Fact &of(uint32_t value) const { return facts_[value]; }

 private:
  void pass(bool gives_up);
  void visit(uint32_t index);
  Fact result_of(const ir::Operation &operation);
  Fact unknown_of(uint32_t value, uint32_t lost_at = ir::kNone) const;
  Fact arithmetic(const ir::Operation &operation, Fact result) const;
  void apply_hints(std::string_view attributes, Fact &fact) const;
  void set(uint32_t value, Fact fact);
  void meet(uint32_t value, const Fact &other, bool gives_up);

  const ir::Module &module_;
  std::vector<Fact> facts_;
  std::vector<bool> is_known_;  // facts_ was set in some pass
  std::vector<uint32_t> block_begins_, blocks_;
  bool gives_up_ = false;
  bool has_changed_ = false;
};

}  // namespace sonde::layout_lint
