#include <sonde/toolkit/names.h>

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>

namespace sonde::toolkit {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool starts_at(std::string_view text, size_t position, std::string_view word) {
  return text.compare(position, word.size(), word) == 0;
}

bool ends_with_operator(std::string_view text) {
  constexpr std::string_view word = "operator";
  if (!text.ends_with(word)) return false;
  return text.size() == word.size() || text[text.size() - word.size() - 1] == ':' ||
         text[text.size() - word.size() - 1] == ' ';
}

// Position after the bracket that closes the one at `open`, or npos. Arrows and comparison operators inside template
// arguments do not occur unparenthesised in demangled names, except "->" which is skipped.
size_t after_closing(std::string_view text, size_t open) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') {
      ++depth;
    } else if (c == '>' || c == ')' || c == '}' || c == ']') {
      if (c == '>' && i > 0 && text[i - 1] == '-') continue;
      if (--depth == 0) return i + 1;
    }
  }
  return std::string_view::npos;
}

// Length of the operator symbol that follows "operator" at `position`, 0 when it is a conversion or a word.
size_t operator_symbol(std::string_view text, size_t position) {
  if (starts_at(text, position, "()") || starts_at(text, position, "[]")) return 2;
  size_t end = position;
  while (end < text.size() && std::string_view("<>=!+-*/%^&|~,").find(text[end]) != std::string_view::npos) ++end;
  // "operator<<int>" is operator< with an argument list, "operator<< <int>" has a blank between.
  size_t length = end - position;
  if (length >= 2 && text[position] == '<' && end < text.size() && text[end] != '(' && text[end] != ' ') --length;
  return length;
}

// The library's demangler gives up on symbols beyond about 1,000 bytes, which template-heavy kernels exceed. Their
// name still stands readable at the front: length-prefixed parts, inside N...E when nested. Reads up to the first
// template argument list; "" when there is no such name.
std::string leading_name(std::string_view mangled) {
  size_t at = mangled.find("_Z") + 2;
  if (at < mangled.size() && mangled[at] == 'N') ++at;
  while (at < mangled.size() && (mangled[at] == 'K' || mangled[at] == 'V' || mangled[at] == 'L')) ++at;
  std::string out;
  while (at < mangled.size()) {
    if (starts_at(mangled, at, "St")) {
      out += "std";
      at += 2;
    } else if (std::isdigit(static_cast<unsigned char>(mangled[at])) != 0) {
      size_t length = 0;
      for (; at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0; ++at) {
        length = length * 10 + static_cast<size_t>(mangled[at] - '0');
        if (length > mangled.size()) return "";
      }
      if (length == 0 || at + length > mangled.size()) return "";
      const std::string_view part = mangled.substr(at, length);
      if (!out.empty()) out += "::";
      out += part.starts_with("_GLOBAL__N_") ? kAnonymous : part;
      at += length;
    } else {
      if (mangled[at] == 'I' && !out.empty()) out += "<...>";
      break;
    }
  }
  return out;
}

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("__Z"); }

}  // namespace

std::string demangle(std::string_view name) {
  if (!is_mangled(name)) return std::string(name);
  const std::string text(name.starts_with("__Z") ? name.substr(1) : name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && demangled ? std::string(demangled.get()) : std::string(name);
}

std::string shorten_kernel_name(std::string_view name) {
  const std::string text = demangle(name);
  if (is_mangled(text)) {
    const std::string leading = leading_name(text);
    return leading.empty() ? text : leading;
  }
  std::string out;
  size_t name_begin = 0;  // in out: after the last blank that separates a return type
  bool is_function = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (starts_at(text, i, kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size();
    } else if (ends_with_operator(out) && operator_symbol(text, i) != 0) {
      const size_t length = operator_symbol(text, i);
      out.append(text, i, length);
      i += length;
      if (starts_at(text, i, " <")) ++i;  // the blank only keeps the symbol and the bracket apart
    } else if (c == '<') {
      const size_t after = after_closing(text, i);
      if (after == std::string::npos) return text;
      out += "<...>";
      is_function = true;
      i = after;
    } else if (c == '(') {
      // Parameters follow a name directly; "Memcpy HtoD (Pageable)" is not a function.
      if (out.empty() || out.back() == ' ' || after_closing(text, i) == std::string::npos) return text;
      is_function = true;
      break;
    } else if (c == '{' || c == '[') {
      const size_t after = after_closing(text, i);
      if (after == std::string::npos) return text;
      out.append(text, i, after - i);
      i = after;
    } else {
      out += c;
      if (c == ' ' && !ends_with_operator(std::string_view(out).substr(0, out.size() - 1))) name_begin = out.size();
      ++i;
    }
  }
  if (!is_function || name_begin >= out.size()) return text;
  const char first = out[name_begin];
  const bool is_identifier = first == '_' || first == ':' || first == '~' || first == '(' || first == '{' ||
                             std::isalpha(static_cast<unsigned char>(first)) != 0;
  if (!is_identifier) return text;
  return out.substr(name_begin);
}

std::string ellipsize(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const auto is_continuation = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u; };
  size_t head = (limit - 3 + 1) / 2;
  while (head > 0 && is_continuation(head)) --head;
  size_t tail = text.size() - (limit - 3) / 2;
  while (tail < text.size() && is_continuation(tail)) ++tail;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(tail));
}

}  // namespace sonde::toolkit
