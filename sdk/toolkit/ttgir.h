// A reader of TTIR and TTGIR: the text of a module as Triton dumps it (textual MLIR).
//
// It reads the grammar of MLIR, not the dialects, so operations that it has never heard of are kept like all others:
//
//   %a_58 = ttg.local_load %a_50 token %t {x = 1 : i32} : !ttg.memdesc<32x16xbf16, #shared, #smem> -> tensor<...> loc(#loc88)
//
// becomes an Operation with name "ttg.local_load", two operands, the attributes "x = 1 : i32", the type of its result,
// and the source line behind #loc88. Views point into the text, which must outlive the module. Time is linear in the
// text. Any input gives a module or an error with its place; nesting is bounded (kMostRegions, kMostBrackets).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::toolkit::ttgir {

inline constexpr uint32_t kNone = UINT32_MAX;
inline constexpr uint32_t kMostRegions = 200;    // inside each other
inline constexpr uint32_t kMostBrackets = 1000;  // inside each other
inline constexpr uint32_t kMostFrames = 64;      // of a call chain; callers beyond are left out

// A place in the text, counted from 1; columns are bytes.
struct Place {
  uint32_t line = 0;
  uint32_t column = 0;
};

struct Error {
  Place place;
  std::string text;  // what was expected
};

// A line of the program that was compiled. Line 0: unknown.
struct Location {
  std::string_view file;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string_view name;    // of "name"(...), usually the variable; "" without
  uint32_t caller = kNone;  // location of the call that inlining removed
};

enum class TypeKind : uint8_t {
  kOther,       // anything else: tokens, tuples, functions, what could not be read
  kScalar,      // i32, bf16, index
  kPointer,     // !tt.ptr<f16>
  kTensor,      // tensor<128x64xf16, #blocked>, also of pointers
  kMemory,      // !ttg.memdesc<64x32xf16, #shared, #smem, mutable, 3x64x32>
  kDescriptor,  // !tt.tensordesc<tensor<16x16xf32, #shared>>; shape, element and encoding of the block
};

struct Type {
  std::string_view text;
  TypeKind kind = TypeKind::kOther;
  std::vector<int64_t> shape;       // -1: not known statically
  std::string_view element;         // "f16", "!tt.ptr<f16>"; a scalar's own text
  uint32_t element_bits = 0;        // 0: unknown; 64 for pointers and index
  std::string_view pointee;         // of pointers and tensors of pointers: "f16"
  uint32_t pointee_bits = 0;        // 0: unknown or no pointer
  std::string_view encoding;        // "#blocked", "#ttg.slice<{...}>", "" without
  std::string_view memory_space;    // of kMemory: "#smem"
  std::vector<int64_t> allocation;  // of kMemory, the whole that this is a part of; empty: the shape
  bool is_mutable = false;          // of kMemory

  bool is_static() const;     // every dim is known
  uint64_t elements() const;  // product of the shape; 1 for scalars, 0 when unknown or past 2^63
};

// An SSA value: a result of an operation or an argument of a block.
struct Value {
  std::string_view name;        // without '%'
  uint32_t type = kNone;        // of Module::types
  uint32_t operation = kNone;   // that defines it, or whose region's argument it is; kNone: nothing does
  uint32_t number = 0;          // of the result or argument
  uint32_t block = kNone;       // of an argument
  uint32_t initial = kNone;     // of "%x = %initial" in a loop's head: that value
  std::string_view attributes;  // of a function's argument: "tt.divisibility = 16 : i32"
  uint32_t location = kNone;    // of an argument

  bool is_argument() const { return block != kNone; }
  bool is_defined() const { return operation != kNone; }
};

struct Block {
  uint32_t operation = kNone;  // whose region it is in
  uint32_t region = 0;         // of that operation
  std::string_view label;      // "bb0", "" for an unlabelled entry
  uint32_t first_argument = 0;
  uint32_t argument_count = 0;
};

struct Operation {
  std::string_view name;        // "tt.load", "module"
  std::string_view symbol;      // first "@name", without '@' and quotes; of a function its name
  std::string_view attributes;  // inside of the braces: "axis = 0 : i32"
  std::string_view properties;  // inside of "<{...}>"
  std::string_view text;        // the whole, with regions
  Place place;                  // of its first byte
  uint32_t location = kNone;    // of Module::locations
  uint32_t parent = kNone;      // operation whose region it is in
  uint32_t block = kNone;
  uint32_t end = 0;           // past the last operation in its regions
  uint32_t function = kNone;  // enclosing "*.func"
  uint32_t region_count = 0;
  uint32_t loop_depth = 0;  // loops (scf.for, scf.while, ...) around it
  // Ranges of Module's pools; read them through Module.
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  Range results, operands, types, result_types, successors;
};

class Module {
 public:
  // Reads `text`; nothing and *error where it is no module.
  static std::optional<Module> read(std::string_view text, Error *error);

  // Operations in the order of the text; those in regions follow their parent.
  const std::vector<Operation> &operations() const { return operations_; }
  const std::vector<Value> &values() const { return values_; }
  const std::vector<Block> &blocks() const { return blocks_; }
  const std::vector<Type> &types() const { return types_; }
  const std::vector<Location> &locations() const { return locations_; }
  std::string_view text() const { return text_; }

  const Operation &operation(uint32_t index) const { return operations_[index]; }
  const Value &value(uint32_t index) const { return values_[index]; }

  std::span<const uint32_t> results(const Operation &operation) const { return pool(operation.results); }
  std::span<const uint32_t> operands(const Operation &operation) const { return pool(operation.operands); }
  // Types as written, before and after "->" or "to"; a type that both sides share stands before.
  std::span<const uint32_t> types(const Operation &operation) const { return pool(operation.types); }
  std::span<const uint32_t> result_types(const Operation &operation) const { return pool(operation.result_types); }
  // Labels of the blocks that it may branch to.
  std::span<const std::string_view> successors(const Operation &operation) const;
  // Operations that use a value, once for each use, in order.
  std::span<const uint32_t> users(uint32_t value) const;

  // Null when unknown.
  const Type *type_of(uint32_t value) const;
  const Operation *definition(uint32_t value) const;  // null for arguments

  // What "#blocked" or "!type" stands for, "" when there is no such alias.
  std::string_view alias(std::string_view name) const;

  // Its source line. Where inlining left a chain of calls: the innermost frame in `file`, or the innermost known one.
  Location location_of(const Operation &operation, std::string_view file = {}) const;
  // "standard.py:263:15 < kernels.py:1133:21", innermost first; "" when there is no chain.
  std::string call_path(const Operation &operation) const;

  Place place_of(size_t offset) const;

 private:
  friend class Reader;
  std::span<const uint32_t> pool(Operation::Range range) const {
    return std::span<const uint32_t>(pool_).subspan(range.first, range.count);
  }

  std::string_view text_;
  std::vector<Operation> operations_;
  std::vector<Value> values_;
  std::vector<Block> blocks_;
  std::vector<Type> types_;
  std::vector<Location> locations_;
  std::vector<uint32_t> pool_;
  std::vector<std::string_view> labels_;
  std::vector<uint32_t> use_begins_, uses_;
  std::vector<size_t> line_begins_;
  std::deque<std::string> derived_;  // texts of types that are not written out
  std::unordered_map<std::string_view, std::string_view> aliases_;
};

// --- Pieces of text ---

// Reads one type; kind kOther where it is none that is known here.
Type read_type(std::string_view text);

// The value of `name` in the inside of an attribute dictionary: of "end = 4 : i32, start = 0 : i32" and "start" it is
// "0 : i32". A name without value has "". Nothing when it is not there.
std::optional<std::string_view> find_attribute(std::string_view dictionary, std::string_view name);

// "16 : i32", "-1", "true": the number; dense<64> : tensor<1xi32> and dense<[1, 64]>: the numbers, one for all dims
// or one for each. Nothing for anything else.
std::optional<int64_t> integer_of(std::string_view text);
std::optional<std::vector<int64_t>> dense_integers_of(std::string_view text);

}  // namespace sonde::toolkit::ttgir
