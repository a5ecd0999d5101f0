#include "cubin_lines.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace sonde::toolkit {

namespace {

// ELF, as the System V ABI lays it out for 64-bit files.
constexpr uint16_t kMachineCuda = 190;
constexpr uint32_t kSectionSymbols = 2;
constexpr uint32_t kSectionRelocations = 4;
constexpr uint32_t kSectionRelocationsPlain = 9;
constexpr uint32_t kSectionNoBits = 8;
constexpr uint8_t kSymbolFunction = 2;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kSectionBytes = 64;
constexpr size_t kSymbolBytes = 24;

// DWARF line number programs (DWARF 4, section 6.2).
constexpr uint8_t kCopy = 1;
constexpr uint8_t kAdvancePc = 2;
constexpr uint8_t kAdvanceLine = 3;
constexpr uint8_t kSetFile = 4;
constexpr uint8_t kConstAddPc = 8;
constexpr uint8_t kFixedAdvancePc = 9;
constexpr uint8_t kEndSequence = 1;
constexpr uint8_t kSetAddress = 2;
constexpr uint8_t kDefineFile = 3;
// NVIDIA's, in the range for vendors: operands are (context, offset of a name in .debug_str) and (offset of a name).
constexpr uint8_t kInlinedCall = 0x90;
constexpr uint8_t kSetFunctionName = 0x91;

// A cursor that never leaves its bytes: past the end it reads zeros and says so.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> bytes, size_t base = 0) : bytes_(bytes), base_(base) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  size_t offset() const { return base_ + at_; }  // in the section
  size_t left() const { return bytes_.size() - at_; }

  template <typename Number>
  Number fixed() {
    Number value = 0;
    if (left() < sizeof(value)) return fail();
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }

  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; !at_end(); shift += 7) {
      const uint8_t byte = bytes_[at_++];
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return static_cast<uint64_t>(fail());
  }

  int64_t signed_leb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; !at_end();) {
      const uint8_t byte = bytes_[at_++];
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte < 0x80) {
        if (shift < 64 && (byte & 0x40u) != 0) value |= ~uint64_t{0} << shift;
        return static_cast<int64_t>(value);
      }
    }
    return fail();
  }

  std::string text() {
    std::string out;
    while (!at_end()) {
      const char c = static_cast<char>(bytes_[at_++]);
      if (c == '\0') return out;
      out.push_back(c);
    }
    fail();
    return out;
  }

  std::span<const uint8_t> take(uint64_t count) {
    if (count > left()) {
      fail();
      return {};
    }
    const auto out = bytes_.subspan(at_, count);
    at_ += count;
    return out;
  }

 private:
  int fail() {
    failed_ = true;
    at_ = bytes_.size();
    return 0;
  }

  std::span<const uint8_t> bytes_;
  size_t base_;
  size_t at_ = 0;
  bool failed_ = false;
};

template <typename Number>
Number number_at(std::span<const uint8_t> bytes, size_t at) {
  Number value = 0;
  if (at <= bytes.size() && bytes.size() - at >= sizeof(value)) std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::string text_at(std::span<const uint8_t> table, uint64_t at) {
  if (at >= table.size()) return "";
  const auto *begin = reinterpret_cast<const char *>(table.data() + at);
  return std::string(begin, strnlen(begin, table.size() - at));
}

// "_Z3farf" of "$kernel$_Z3farf", the symbol of a function that lies in its kernel's section.
std::string_view plain_name(std::string_view symbol) {
  if (symbol.empty() || symbol.front() != '$') return symbol;
  const size_t last = symbol.rfind('$');
  return symbol.substr(last + 1).empty() ? symbol : symbol.substr(last + 1);
}

}  // namespace

std::string frame_text(const SourceFrame &frame) {
  return frame.file + ":" + std::to_string(frame.line) + "@" + frame.function;
}

// ---- reading -------------------------------------------------------------------------------------------------------

class CubinReader {
 public:
  CubinReader(std::span<const uint8_t> image, CubinLines &out) : image_(image), out_(out) {}

  std::string read() {
    if (std::string error = read_sections(); !error.empty()) return error;
    read_symbols();
    read_relocations();
    Cursor units(line_);
    while (!units.at_end()) {
      const size_t begin = units.offset();
      uint64_t length = units.fixed<uint32_t>();
      const bool wide = length == 0xffffffffu;
      if (wide) length = units.fixed<uint64_t>();
      const size_t program = units.offset();
      const auto unit = units.take(length);
      if (units.failed()) return at(begin) + "a line table longer than its section";
      if (std::string error = read_unit(unit, program, wide); !error.empty()) return at(begin) + error;
    }
    return "";
  }

 private:
  struct Section {
    std::string name;
    uint32_t type = 0;
    uint32_t link = 0;
    uint32_t info = 0;
    std::span<const uint8_t> bytes;
  };
  struct State {
    uint64_t address = 0;
    uint64_t file = 1;
    uint64_t line = 1;
    uint64_t context = 0;
    uint64_t function = 0;
    uint32_t section = 0;  // that the addresses count in; 0: unknown
  };

  static std::string at(size_t offset) { return ".debug_line + " + std::to_string(offset) + ": "; }

  std::string read_sections() {
    if (image_.size() < kHeaderBytes || std::memcmp(image_.data(), "\177ELF\2\1", 6) != 0) {
      return "not a 64-bit little-endian ELF file";
    }
    if (const auto machine = number_at<uint16_t>(image_, 18); machine != kMachineCuda) {
      return "ELF machine " + std::to_string(machine) + " where 190 (NVIDIA CUDA) was expected";
    }
    const auto table = number_at<uint64_t>(image_, 40);
    const auto entry = number_at<uint16_t>(image_, 58);
    uint64_t count = number_at<uint16_t>(image_, 60);
    uint64_t names = number_at<uint16_t>(image_, 62);
    if (table > image_.size() || entry < kSectionBytes) return "the section table lies outside the file";
    // More sections than 16 bits count: the first one's fields hold the numbers.
    if (count == 0) count = number_at<uint64_t>(image_, table + 32);
    if (names == 0xffff) names = number_at<uint32_t>(image_, table + 40);
    if (count > (image_.size() - table) / entry || names >= count) return "the section table lies outside the file";
    sections_.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      const size_t header = table + i * entry;
      Section &section = sections_[i];
      section.type = number_at<uint32_t>(image_, header + 4);
      const auto offset = number_at<uint64_t>(image_, header + 24);
      const auto bytes = number_at<uint64_t>(image_, header + 32);
      section.link = number_at<uint32_t>(image_, header + 40);
      section.info = number_at<uint32_t>(image_, header + 44);
      if (section.type == kSectionNoBits || i == 0) continue;
      if (offset > image_.size() || bytes > image_.size() - offset) {
        return "section " + std::to_string(i) + " lies outside the file";
      }
      section.bytes = image_.subspan(offset, bytes);
    }
    for (uint64_t i = 0; i < count; ++i) {
      Section &section = sections_[i];
      section.name = text_at(sections_[names].bytes, number_at<uint32_t>(image_, table + i * entry));
      if (section.name == ".debug_line") {
        line_ = section.bytes;
        line_index_ = static_cast<uint32_t>(i);
      }
      if (section.name == ".debug_str") strings_ = section.bytes;
    }
    return "";
  }

  void read_symbols() {
    for (const Section &section : sections_) {
      if (section.type != kSectionSymbols || section.link >= sections_.size()) continue;
      const auto names = sections_[section.link].bytes;
      for (size_t i = 0; i + kSymbolBytes <= section.bytes.size(); i += kSymbolBytes) {
        const uint8_t info = number_at<uint8_t>(section.bytes, i + 4);
        const auto index = number_at<uint16_t>(section.bytes, i + 6);
        symbol_sections_.push_back(index);
        if ((info & 15u) != kSymbolFunction || index >= sections_.size()) continue;
        CubinLines::Function function;
        function.name = text_at(names, number_at<uint32_t>(section.bytes, i));
        function.section = index;
        function.offset = number_at<uint64_t>(section.bytes, i + 8);
        function.bytes = number_at<uint64_t>(section.bytes, i + 16);
        const auto place = static_cast<uint32_t>(out_.functions_.size());
        out_.by_name_.emplace(function.name, place);
        out_.by_name_.emplace(std::string(plain_name(function.name)), place);
        out_.functions_.push_back(std::move(function));
      }
      return;  // an ELF file has one symbol table
    }
  }

  // Which section the address at an offset of .debug_line counts in.
  void read_relocations() {
    for (const Section &section : sections_) {
      const bool addends = section.type == kSectionRelocations;
      if (section.info != line_index_ || (!addends && section.type != kSectionRelocationsPlain)) continue;
      const size_t entry = addends ? 24 : 16;
      for (size_t i = 0; i + entry <= section.bytes.size(); i += entry) {
        const auto symbol = number_at<uint64_t>(section.bytes, i + 8) >> 32;
        if (symbol >= symbol_sections_.size()) continue;
        const uint64_t addend = addends ? number_at<uint64_t>(section.bytes, i + 16) : 0;
        relocations_[number_at<uint64_t>(section.bytes, i)] = {symbol_sections_[symbol], addend};
      }
    }
  }

  uint32_t file(const std::string &folder, const std::string &name) {
    std::string path = name.empty() || name.front() == '/' || folder.empty() ? name : folder + "/" + name;
    const auto [place, fresh] = file_ids_.try_emplace(path, static_cast<uint32_t>(out_.files_.size()));
    if (fresh) out_.files_.push_back(std::move(path));
    return place->second;
  }

  uint32_t name(uint64_t offset) {
    std::string text = text_at(strings_, offset);
    const auto [place, fresh] = name_ids_.try_emplace(text, static_cast<uint32_t>(out_.names_.size()));
    if (fresh) out_.names_.push_back(std::move(text));
    return place->second;
  }

  void read_file(Cursor &table, const std::string &first, std::vector<uint32_t> &files) {
    const uint64_t folder = table.unsigned_leb();
    table.unsigned_leb();  // time of change
    table.unsigned_leb();  // length
    files.push_back(file(folder < folders_.size() ? folders_[folder] : "", first));
  }

  std::string read_unit(std::span<const uint8_t> unit, size_t base, bool wide) {
    Cursor cursor(unit, base);
    const auto version = cursor.fixed<uint16_t>();
    if (version < 2 || version > 4) {
      return "a line table of DWARF version " + std::to_string(version) + ", versions 2 to 4 are read";
    }
    const uint64_t header_bytes = wide ? cursor.fixed<uint64_t>() : cursor.fixed<uint32_t>();
    const size_t header_base = cursor.offset();
    Cursor header(cursor.take(header_bytes), header_base);
    if (cursor.failed()) return "a header longer than its table";
    const uint64_t step = header.fixed<uint8_t>();
    if (version >= 4) header.fixed<uint8_t>();  // operations of an instruction: 1 on these machines
    header.fixed<uint8_t>();                    // default of is_stmt
    const int64_t line_base = header.fixed<int8_t>();
    const uint64_t line_range = header.fixed<uint8_t>();
    const uint64_t first_special = header.fixed<uint8_t>();
    if (line_range == 0 || first_special == 0) return "a line range of 0";
    std::vector<uint8_t> operands(first_special, 0);
    for (uint64_t i = 1; i < first_special; ++i) operands[i] = header.fixed<uint8_t>();
    folders_ = {""};
    for (std::string folder = header.text(); !folder.empty(); folder = header.text()) folders_.push_back(folder);
    std::vector<uint32_t> files;
    for (std::string first = header.text(); !first.empty(); first = header.text()) read_file(header, first, files);
    if (header.failed()) return "a header that ends within a field";

    State state;
    CubinLines::Sequence sequence;
    const auto advance = [&](uint64_t operations) { state.address += operations * step; };
    const auto add_row = [&] {
      CubinLines::Row row = {};
      row.address = state.address;
      row.file = state.file >= 1 && state.file <= files.size() ? files[state.file - 1] : UINT32_MAX;
      row.line = static_cast<uint32_t>(state.line);
      row.context = static_cast<uint32_t>(state.context);
      row.function = state.context != 0 ? name(state.function) : 0;
      sequence.rows.push_back(row);
    };
    while (!cursor.at_end()) {
      const auto code = cursor.fixed<uint8_t>();
      if (code >= first_special) {
        const uint64_t special = code - first_special;
        advance(special / line_range);
        state.line += static_cast<uint64_t>(line_base + static_cast<int64_t>(special % line_range));
        add_row();
      } else if (code == 0) {
        const uint64_t bytes = cursor.unsigned_leb();
        const size_t extended_base = cursor.offset();
        Cursor extended(cursor.take(bytes), extended_base);
        if (cursor.failed()) return "an extended opcode that leaves its table";
        switch (extended.fixed<uint8_t>()) {
          case kEndSequence:
            finish(state, sequence);
            state = {};
            sequence = {};
            break;
          case kSetAddress: {
            const size_t place = extended.offset();
            state.address = extended.left() >= 8 ? extended.fixed<uint64_t>() : extended.fixed<uint32_t>();
            if (const auto found = relocations_.find(place); found != relocations_.end()) {
              state.section = found->second.section;
              state.address += found->second.addend;
            }
            break;
          }
          case kDefineFile: {
            const std::string first = extended.text();
            read_file(extended, first, files);
            break;
          }
          case kInlinedCall:
            state.context = extended.unsigned_leb();
            state.function = extended.unsigned_leb();
            break;
          case kSetFunctionName:
            state.function = extended.unsigned_leb();
            break;
          default:
            break;  // of a vendor that we do not know; its length is known
        }
      } else if (code == kCopy) {
        add_row();
      } else if (code == kAdvancePc) {
        advance(cursor.unsigned_leb());
      } else if (code == kAdvanceLine) {
        state.line += static_cast<uint64_t>(cursor.signed_leb());
      } else if (code == kSetFile) {
        state.file = cursor.unsigned_leb();
      } else if (code == kConstAddPc) {
        advance((255 - first_special) / line_range);
      } else if (code == kFixedAdvancePc) {
        state.address += cursor.fixed<uint16_t>();
      } else {
        for (uint8_t i = 0; i < operands[code]; ++i) cursor.unsigned_leb();
      }
      if (cursor.failed()) return "an opcode that ends within an operand";
    }
    return "";
  }

  void finish(const State &state, CubinLines::Sequence &sequence) {
    if (sequence.rows.empty() || state.section == 0) return;  // a sequence without a section describes nothing
    sequence.end = state.address;
    sequence.order.resize(sequence.rows.size());
    for (uint32_t i = 0; i < sequence.order.size(); ++i) sequence.order[i] = i;
    const auto address = [&](uint32_t index) { return sequence.rows[index].address; };
    std::stable_sort(sequence.order.begin(), sequence.order.end(),
                     [&](uint32_t a, uint32_t b) { return address(a) < address(b); });
    // Of rows at one address the last holds; the others only name places that it was inlined into.
    size_t kept = 0;
    for (size_t i = 0; i < sequence.order.size(); ++i) {
      if (i + 1 < sequence.order.size() && address(sequence.order[i]) == address(sequence.order[i + 1])) continue;
      sequence.order[kept++] = sequence.order[i];
    }
    sequence.order.resize(kept);
    sequence.begin = address(sequence.order.front());
    out_.sequences_[state.section].push_back(std::move(sequence));
  }

  std::span<const uint8_t> image_;
  CubinLines &out_;
  std::vector<Section> sections_;
  std::vector<uint32_t> symbol_sections_;
  struct Relocation {
    uint32_t section;
    uint64_t addend;
  };
  std::unordered_map<uint64_t, Relocation> relocations_;  // by offset in .debug_line
  std::span<const uint8_t> line_;
  uint32_t line_index_ = UINT32_MAX;
  std::span<const uint8_t> strings_;
  std::vector<std::string> folders_;
  std::unordered_map<std::string, uint32_t> file_ids_;
  std::unordered_map<std::string, uint32_t> name_ids_;
};

std::optional<CubinLines> CubinLines::read(std::span<const uint8_t> image, std::string &error) {
  CubinLines out;
  error = CubinReader(image, out).read();
  if (!error.empty()) return std::nullopt;
  return out;
}

// ---- looking up ----------------------------------------------------------------------------------------------------

const CubinLines::Function *CubinLines::function_at(uint32_t section, uint64_t address) const {
  const Function *best = nullptr;  // the smallest that holds the address: a kernel holds the functions it calls
  for (const Function &function : functions_) {
    if (function.section != section || address < function.offset || address - function.offset >= function.bytes) {
      continue;
    }
    if (best == nullptr || function.bytes < best->bytes) best = &function;
  }
  return best;
}

std::vector<SourceFrame> CubinLines::find(std::string_view name, uint64_t pc) const {
  std::vector<SourceFrame> frames;
  const auto named = by_name_.find(name);
  if (named == by_name_.end()) return frames;
  const Function &function = functions_[named->second];
  if (pc >= function.bytes) return frames;
  const auto found = sequences_.find(function.section);
  if (found == sequences_.end()) return frames;
  const uint64_t address = function.offset + pc;
  for (const Sequence &sequence : found->second) {
    if (address < sequence.begin || address >= sequence.end) continue;
    const auto after =
        std::upper_bound(sequence.order.begin(), sequence.order.end(), address,
                         [&](uint64_t value, uint32_t index) { return value < sequence.rows[index].address; });
    const Function *const outer = function_at(function.section, address);
    uint32_t index = *std::prev(after);
    for (;;) {
      const Row &row = sequence.rows[index];
      SourceFrame frame;
      if (row.file < files_.size()) frame.file = files_[row.file];
      frame.line = row.line;
      frame.function = row.context != 0 ? names_[row.function] : std::string(plain_name(outer ? outer->name : name));
      frames.push_back(std::move(frame));
      // A context names an earlier row; anything else would never end.
      if (row.context == 0 || row.context - 1 >= index) break;
      index = row.context - 1;
    }
    return frames;
  }
  return frames;
}

}  // namespace sonde::toolkit
