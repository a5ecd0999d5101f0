#include "ttgir_locations.h"

#include <charconv>
#include <string>

#include "ttgir_text.h"

namespace sonde::toolkit::ttgir {
namespace {

bool take_number(std::string_view &text, uint32_t *out) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (fault != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Where " at " separates callee and caller: outside of brackets and strings.
size_t separator(std::string_view text) {
  Cursor cursor(text);
  std::string ignored;
  std::string_view inside;
  while (!cursor.at_end()) {
    const char c = cursor.peek();
    if (c == '"') {
      if (!cursor.string(&inside)) return std::string_view::npos;
    } else if (c == '(' || c == '[' || c == '<') {
      if (!cursor.balanced(&ignored)) return std::string_view::npos;
    } else if (cursor.at(" at ")) {
      return cursor.position();
    } else {
      cursor.step();
    }
  }
  return std::string_view::npos;
}

}  // namespace

uint32_t LocationTable::resolve(std::string_view text, int depth) {
  text = trimmed(text);
  if (depth > kMostNesting) return kNone;
  const auto [place, is_new] = known_.try_emplace(text, kNone);  // kNone while it is being looked at: ends cycles
  if (!is_new) return place->second;
  const uint32_t frame = resolve_new(text, depth);
  known_[text] = frame;
  return frame;
}

uint32_t LocationTable::resolve_new(std::string_view text, int depth) {
  if (text.starts_with('#')) {
    const auto alias = aliases_.find(text);
    if (alias == aliases_.end()) return kNone;
    std::string_view meaning = trimmed(alias->second);
    if (!meaning.starts_with("loc(") || !meaning.ends_with(')')) return kNone;
    return resolve(meaning.substr(4, meaning.size() - 5), depth + 1);
  }
  if (text.starts_with('"')) return quoted(text, depth);
  if (text.starts_with("callsite(") && text.ends_with(')')) {
    text = text.substr(9, text.size() - 10);
    const size_t at = separator(text);
    if (at == std::string_view::npos) return kNone;
    const uint32_t callee = resolve(text.substr(0, at), depth + 1);
    return joined(callee, resolve(text.substr(at + 4), depth + 1));
  }
  if (text.starts_with("fused")) {
    // Several origins of one operation: the first that is known.
    Cursor cursor(text, 5);
    std::string ignored;
    if (cursor.peek() == '<' && !cursor.balanced(&ignored)) return kNone;
    if (cursor.peek() != '[' || !text.ends_with(']')) return kNone;
    std::string_view list = text.substr(cursor.position() + 1, text.size() - cursor.position() - 2);
    while (!list.empty()) {
      Cursor item(list);
      std::string_view inside;
      while (!item.at_end() && item.peek() != ',') {
        const char c = item.peek();
        if (c == '"' ? !item.string(&inside) : (c == '(' || c == '[' || c == '<') && !item.balanced(&ignored)) {
          return kNone;
        }
        if (c != '"' && c != '(' && c != '[' && c != '<') item.step();
      }
      const uint32_t frame = resolve(list.substr(0, item.position()), depth + 1);
      if (frame != kNone && frames_[frame].line != 0) return frame;
      list.remove_prefix(item.at_end() ? list.size() : item.position() + 1);
    }
  }
  return kNone;
}

// "file.py":12:3, "file.py":12:3 to :14:2, "name"(loc) or "name".
uint32_t LocationTable::quoted(std::string_view text, int depth) {
  Cursor cursor(text);
  Location frame;
  std::string_view inside;
  if (!cursor.string(&inside)) return kNone;
  std::string_view rest = trimmed(text.substr(cursor.position()));
  if (rest.starts_with(':')) {
    rest.remove_prefix(1);
    if (!take_number(rest, &frame.line) || !rest.starts_with(':')) return kNone;
    rest.remove_prefix(1);
    if (!take_number(rest, &frame.column)) return kNone;
    frame.file = inside;
  } else {
    if (rest.starts_with('(') && rest.ends_with(')')) {
      const uint32_t child = resolve(rest.substr(1, rest.size() - 2), depth + 1);
      if (child != kNone) frame = frames_[child];
    }
    frame.name = inside;
  }
  frames_.push_back(frame);
  return static_cast<uint32_t>(frames_.size() - 1);
}

uint32_t LocationTable::joined(uint32_t callee, uint32_t caller) {
  if (callee == kNone) return caller;
  if (caller == kNone) return callee;
  std::vector<uint32_t> chain;
  for (uint32_t frame = callee; frame != kNone && chain.size() < kMostFrames; frame = frames_[frame].caller) {
    chain.push_back(frame);
  }
  uint32_t next = caller;
  for (size_t i = chain.size(); i-- > 0;) {
    Location frame = frames_[chain[i]];
    frame.caller = next;
    frames_.push_back(frame);
    next = static_cast<uint32_t>(frames_.size() - 1);
  }
  return next;
}

}  // namespace sonde::toolkit::ttgir
