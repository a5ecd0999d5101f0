#include "ttgir_text.h"

#include <charconv>

#include "ttgir.h"

namespace sonde::toolkit::ttgir {
namespace {

// 0: the word is no number type. MLIR: i8, si8, ui8, f16, bf16, tf32, f8E4M3FN, f4E2M1FN, index.
uint32_t scalar_bits(std::string_view word) {
  if (word == "index") return 64;
  if (word == "tf32") return 32;  // stored in 32 bits
  size_t begin = 0;
  if (word.starts_with("si") || word.starts_with("ui") || word.starts_with("bf")) {
    begin = 2;
  } else if (word.starts_with("i") || word.starts_with("f")) {
    begin = 1;
  } else {
    return 0;
  }
  uint32_t bits = 0;
  const auto [end, fault] = std::from_chars(word.data() + begin, word.data() + word.size(), bits);
  if (fault != std::errc() || end == word.data() + begin || bits == 0 || bits > (1u << 24)) return 0;
  const bool has_format = word.front() == 'f' && (bits == 8 || bits == 6 || bits == 4);  // f8E4M3FN
  return end == word.data() + word.size() || has_format ? bits : 0;
}

// Cuts "128x64x" from the front: false when a size is past 2^62.
bool take_shape(std::string_view &text, std::vector<int64_t> &shape, bool ends_with_x) {
  for (;;) {
    size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    const bool is_dynamic = length == 0 && text.starts_with("?");
    if (is_dynamic) length = 1;
    if (length == 0) return true;
    const bool has_x = length < text.size() && text[length] == 'x';
    if (!has_x && ends_with_x) return true;
    int64_t size = -1;
    if (!is_dynamic) {
      const auto [end, fault] = std::from_chars(text.data(), text.data() + length, size);
      if (fault != std::errc() || size > (int64_t{1} << 62)) return false;
    }
    shape.push_back(size);
    text.remove_prefix(length + (has_x ? 1 : 0));
    if (!has_x) return true;
  }
}

// Cuts the text up to the next comma that lies in no bracket.
std::string_view take_part(std::string_view &text) {
  Cursor cursor(text);
  std::string ignored;
  while (!cursor.at_end() && cursor.peek() != ',') {
    std::string_view inside;
    const char c = cursor.peek();
    if (c == '"') {
      if (!cursor.string(&inside)) break;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      if (!cursor.balanced(&ignored)) break;
    } else {
      cursor.step();
    }
  }
  const size_t end = cursor.at_end() || cursor.peek() != ',' ? text.size() : cursor.position();
  const std::string_view part = trimmed(text.substr(0, end));
  text.remove_prefix(end < text.size() ? end + 1 : text.size());
  return part;
}

Type read_type(std::string_view text, int depth) {
  Type type;
  type.text = text = trimmed(text);
  if (const uint32_t bits = scalar_bits(text); bits != 0) {
    type.kind = TypeKind::kScalar;
    type.element = text;
    type.element_bits = bits;
    return type;
  }
  const size_t open = text.find('<');
  if (open == std::string_view::npos || text.back() != '>' || depth > 4) return type;
  const std::string_view head = text.substr(0, open);
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const auto ends_with = [&](std::string_view word) { return head.starts_with('!') && head.ends_with(word); };

  if (ends_with(".ptr")) {
    type.kind = TypeKind::kPointer;
    type.element = text;
    type.element_bits = 64;
    type.pointee = take_part(inside);
    type.pointee_bits = read_type(type.pointee, depth + 1).element_bits;
    return type;
  }
  if (ends_with(".tensordesc")) {
    Type block = read_type(take_part(inside), depth + 1);
    if (block.kind != TypeKind::kTensor) return type;
    block.text = text;
    block.kind = TypeKind::kDescriptor;
    return block;
  }
  const bool is_tensor = head == "tensor";
  if (!is_tensor && !ends_with(".memdesc") && !head.empty()) return type;
  const auto unknown = [&] {
    Type other;
    other.text = text;
    return other;
  };
  if (!take_shape(inside, type.shape, true)) return unknown();
  type.element = take_part(inside);
  const Type element = read_type(type.element, depth + 1);
  if (element.kind != TypeKind::kScalar && element.kind != TypeKind::kPointer) {
    return unknown();
  }
  type.kind = is_tensor ? TypeKind::kTensor : TypeKind::kMemory;
  type.element_bits = element.element_bits;
  type.pointee = element.pointee;
  type.pointee_bits = element.pointee_bits;
  type.encoding = take_part(inside);
  if (is_tensor) return type;
  type.memory_space = take_part(inside);
  while (!inside.empty()) {
    std::string_view part = take_part(inside);
    if (part == "mutable") {
      type.is_mutable = true;
    } else {
      take_shape(part, type.allocation, false);
    }
  }
  return type;
}

}  // namespace

bool Cursor::skip_space() {
  bool ended_line = false;
  for (;;) {
    const char c = peek();
    if (c == '\n') {
      ended_line = true;
      step();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      step();
    } else if (c == '/' && peek(1) == '/') {
      while (!at_end() && peek() != '\n') step();
    } else {
      return ended_line;
    }
  }
}

std::string_view Cursor::word() {
  const size_t begin = position_;
  while (is_word(peek())) step();
  return since(begin);
}

std::string_view Cursor::value_name() {
  const size_t begin = position_;
  while (is_word(peek()) || (peek() == '-' && peek(1) != '>')) step();
  return since(begin);
}

bool Cursor::string(std::string_view *inside) {
  if (peek() != '"') return false;
  const size_t begin = position_ + 1;
  for (size_t i = begin; i < text_.size(); ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == '"') {
      *inside = text_.substr(begin, i - begin);
      position_ = i + 1;
      return true;
    }
  }
  return false;
}

bool Cursor::balanced(std::string *fault) {
  std::string closing;
  std::string_view ignored;
  do {
    const char c = peek();
    if (at_end()) {
      *fault = std::string("a '") + closing.back() + "' was expected before the end";
      return false;
    }
    switch (c) {
      case '"':
        if (!string(&ignored)) {
          *fault = "a string that ends";
          return false;
        }
        continue;
      case '<':
        closing += '>';
        break;
      case '(':
        closing += ')';
        break;
      case '[':
        closing += ']';
        break;
      case '{':
        closing += '}';
        break;
      case '-':
        if (peek(1) == '>') step();
        break;
      case '>':
        // ">=" of an affine set closes nothing.
        if (closing.back() == '>' && peek(1) != '=') closing.pop_back();
        break;
      case ')':
      case ']':
      case '}':
        if (closing.back() != c) {
          *fault = std::string("a '") + closing.back() + "' was expected";
          return false;
        }
        closing.pop_back();
        break;
      default:
        break;
    }
    if (closing.size() > kMostBrackets) {
      *fault = "at most 1000 brackets inside each other";
      return false;
    }
    step();
  } while (!closing.empty());
  return true;
}

bool Type::is_static() const {
  for (const int64_t size : shape) {
    if (size < 0) return false;
  }
  return true;
}

uint64_t Type::elements() const {
  uint64_t product = 1;
  for (const int64_t size : shape) {
    if (size < 0) return 0;
    if (size != 0 && product > (uint64_t{1} << 63) / static_cast<uint64_t>(size)) return 0;
    product *= static_cast<uint64_t>(size);
  }
  return product;
}

Type read_type(std::string_view text) { return read_type(text, 0); }

std::optional<std::string_view> find_attribute(std::string_view dictionary, std::string_view name) {
  while (!dictionary.empty()) {
    const std::string_view entry = take_part(dictionary);
    Cursor cursor(entry);
    std::string_view key;
    if (cursor.peek() == '"') {
      if (!cursor.string(&key)) return std::nullopt;
    } else {
      key = cursor.value_name();
    }
    if (key != name) continue;
    cursor.skip_space();
    if (!cursor.take("=")) return std::string_view();
    return trimmed(entry.substr(cursor.position()));
  }
  return std::nullopt;
}

std::optional<int64_t> integer_of(std::string_view text) {
  text = trimmed(text);
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) text = trimmed(text.substr(0, colon));
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<int64_t>> dense_integers_of(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with("dense<")) return std::nullopt;
  Cursor cursor(text, 5);
  std::string ignored;
  if (!cursor.balanced(&ignored)) return std::nullopt;
  std::string_view inside = trimmed(text.substr(6, cursor.position() - 7));
  const bool is_list = inside.starts_with('[') && inside.ends_with(']');
  if (is_list) inside = inside.substr(1, inside.size() - 2);
  std::vector<int64_t> numbers;
  while (!inside.empty()) {
    const auto number = integer_of(take_part(inside));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

}  // namespace sonde::toolkit::ttgir
