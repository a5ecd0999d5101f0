// Steps through textual MLIR: white space, words, strings, brackets. Used by the reader in ttgir.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sonde::toolkit::ttgir {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '$'; }

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n' || text.front() == '\r'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// A position in a text. Members that read return an empty view, or false, where their thing does not begin.
class Cursor {
 public:
  explicit Cursor(std::string_view text, size_t position = 0) : text_(text), position_(position) {}

  size_t position() const { return position_; }
  void move_to(size_t position) { position_ = position; }
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  void step(size_t bytes = 1) { position_ += bytes; }
  bool at(std::string_view wanted) const { return text_.substr(position_).starts_with(wanted); }
  std::string_view since(size_t begin) const { return text_.substr(begin, position_ - begin); }

  // Skips white space and comments; true when a line ended in it.
  bool skip_space();
  bool take(std::string_view wanted) {
    if (!at(wanted)) return false;
    position_ += wanted.size();
    return true;
  }
  // A word of letters, digits, '_', '.', '$'.
  std::string_view word();
  // What follows '%': also '-' inside, as in %c-1_i32.
  std::string_view value_name();
  // A string in quotes; its inside, escapes as they stand. The cursor is behind it; false when it does not end.
  bool string(std::string_view *inside);
  // From an opening bracket past the one that closes it; strings and "->" inside are seen as such. False with
  // *fault where brackets do not match or lie deeper than kMostBrackets.
  bool balanced(std::string *fault);

 private:
  std::string_view text_;
  size_t position_;
};

}  // namespace sonde::toolkit::ttgir
