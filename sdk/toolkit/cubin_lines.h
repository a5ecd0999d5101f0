// From an instruction of an NVIDIA code object (a cubin) to the source lines it came from.
//
// A cubin is an ELF file (machine EM_CUDA, 190) in which every function has a section of its own, so an address means
// nothing without its section: the line table's relocations say which one a sequence of rows describes. Compilers put
// line tables in with -lineinfo (nvcc) and by default (Triton). Inlined code is told by two extended opcodes of
// NVIDIA's: "this row was inlined from row N of its sequence, into function F".
//
// Read: DWARF versions 2 to 4, 64-bit little-endian ELF. Everything in the image is checked before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::toolkit {

struct SourceFrame {
  std::string file;      // folder and name as the compiler wrote them
  uint32_t line = 0;     // from 1
  std::string function;  // as the compiler names it (mangled names stay mangled), "" when it did not say

  bool operator==(const SourceFrame &) const = default;
};

// "file:line@function", as sonde.object.call_path writes frames.
std::string frame_text(const SourceFrame &frame);

class CubinLines {
 public:
  struct Function {
    std::string name;
    uint32_t section = 0;
    uint64_t offset = 0;  // of its first instruction in the section
    uint64_t bytes = 0;
  };

  // Reads an image; nothing of it is kept. On failure `error` says what was expected where. A cubin without line
  // tables is read all the same: has_lines() is false then.
  static std::optional<CubinLines> read(std::span<const uint8_t> image, std::string &error);

  bool has_lines() const { return !sequences_.empty(); }

  // In order of the image's symbol table; those that a kernel contains ("$kernel$function") are among them.
  const std::vector<Function> &functions() const { return functions_; }

  // The source of the instruction `pc` bytes behind the begin of `function`: its own frame first, then the places
  // it was inlined into, outermost last. Empty when the function is not here or has no line there.
  // Cost O(log rows of the function).
  std::vector<SourceFrame> find(std::string_view function, uint64_t pc) const;

 private:
  struct Row {
    uint64_t address;  // in its section
    uint32_t file;     // index into files_
    uint32_t line;
    uint32_t context;   // 1 + index of the row it was inlined into, in the same sequence; 0: not inlined
    uint32_t function;  // index into names_ of the inlined function; 0: the function itself
  };
  struct Sequence {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::vector<Row> rows;        // as the table has them: contexts count in this order
    std::vector<uint32_t> order;  // indices of rows in order of address, of equal ones the last only
  };
  friend class CubinReader;

  const Function *function_at(uint32_t section, uint64_t address) const;

  std::vector<Function> functions_;
  std::map<std::string, uint32_t, std::less<>> by_name_;
  std::map<uint32_t, std::vector<Sequence>> sequences_;  // by section
  std::vector<std::string> files_;
  std::vector<std::string> names_ = {""};
};

}  // namespace sonde::toolkit
