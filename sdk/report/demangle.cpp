#include "report/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "report/utf8.h"

namespace sonde::report {
namespace {

constexpr std::string_view kPrefix = "_Z";

// Beyond this a demangled text is not a help: substitutions can blow up a short name without limit.
constexpr size_t kLongestDemangled = 256 * 1024;

// Reads <source-name>s from the front of a mangled name: the qualified name up to the first thing that is not one.
class QualifiedName {
 public:
  explicit QualifiedName(std::string_view mangled) : rest_(mangled.substr(kPrefix.size())) {}

  // "" when not even one name can be read.
  std::string read() {
    take('L');
    const bool is_nested = take('N');
    while (take('K') || take('V') || take('r') || take('O') || take('R')) {
    }
    if (take("St")) append("std");
    while (read_source_name() && is_nested) {
      // Template arguments between names cannot be skipped without parsing types, so they end the reading.
    }
    if (result_.empty()) return {};
    if (take('I')) result_ += "<…>";
    if (is_nested && !take('E') && !rest_.empty()) result_ += result_.back() == '>' ? "" : "…";
    return std::move(result_);
  }

 private:
  bool take(char expected) {
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take(std::string_view expected) {
    if (rest_.substr(0, expected.size()) != expected) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  bool read_source_name() {
    std::string_view ahead = rest_;
    if (!ahead.empty() && ahead.front() == 'L') ahead.remove_prefix(1);  // internal linkage
    size_t length = 0;
    size_t digits = 0;
    while (digits < ahead.size() && ahead[digits] >= '0' && ahead[digits] <= '9') {
      length = length * 10 + static_cast<size_t>(ahead[digits] - '0');
      if (length > ahead.size()) return false;
      ++digits;
    }
    if (digits == 0 || length == 0 || digits + length > ahead.size()) return false;
    const std::string_view name = ahead.substr(digits, length);
    append(name.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : name);
    rest_ = ahead.substr(digits + length);
    return true;
  }

  void append(std::string_view part) {
    if (!result_.empty()) result_ += "::";
    result_ += part;
  }

  std::string_view rest_;
  std::string result_;
};

// Position of the '(' that opens the parameter list of a demangled function, npos when there is none.
size_t parameter_list(std::string_view name) {
  size_t depth = 0;
  size_t end = name.size();
  while (end > 0 && name[end - 1] != ')') {
    // Only qualifiers of a member function and clone marks may follow the list.
    if (name[end - 1] == '>') return std::string_view::npos;
    --end;
  }
  for (size_t position = end; position-- > 0;) {
    if (name[position] == ')') ++depth;
    if (name[position] == '(' && --depth == 0) return position == 0 ? std::string_view::npos : position;
  }
  return std::string_view::npos;
}

}  // namespace

std::string demangle(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  if (status == 0 && readable != nullptr) {
    const std::string_view text = readable.get();
    if (text.size() <= kLongestDemangled) return std::string(text);
  }
  std::string qualified = QualifiedName(name).read();
  return qualified.empty() ? std::string(name) : qualified;
}

std::string shorten_name(std::string_view name, size_t width) {
  std::string readable = printable(demangle(name));
  if (display_width(readable) <= width) return readable;
  if (name.starts_with(kPrefix)) {
    if (const size_t list = parameter_list(readable); list != std::string_view::npos) readable.resize(list);
    if (readable.starts_with("void ")) readable.erase(0, 5);
  }
  return shorten_middle(readable, width);
}

}  // namespace sonde::report
