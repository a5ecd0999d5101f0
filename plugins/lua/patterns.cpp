#include "patterns.h"

#include <cctype>
#include <cstring>
#include <initializer_list>

#include "script.h"

namespace sonde::lua {

// ---- Matching ----

void Matcher::step(uint64_t cost) {
  steps_ += cost;
  if (steps_ < 4096) return;
  steps_ = 0;
  if (Script::of(state_).deadline().expired()) luaL_error(state_, "the deadline passed inside a pattern");
}

const char *Matcher::match_at(const char *place) {
  captures_ = 0;
  depth_ = 0;
  return match(place, pattern_);
}

const char *Matcher::end_of_item(const char *item) {
  const char letter = *item++;
  if (letter == '%') {
    if (item == pattern_end_) luaL_error(state_, "malformed pattern (ends with '%%')");
    return item + 1;
  }
  if (letter != '[') return item;
  if (item != pattern_end_ && *item == '^') ++item;
  // The first letter of a set is itself, also when it is ']'.
  do {
    if (item == pattern_end_) luaL_error(state_, "malformed pattern (missing ']')");
    if (*item++ == '%') {
      if (item == pattern_end_) luaL_error(state_, "malformed pattern (missing ']')");
      ++item;
    }
  } while (item == pattern_end_ || *item != ']');
  return item + 1;
}

bool Matcher::in_class(unsigned char letter, unsigned char name) {
  bool inside = false;
  switch (std::tolower(name)) {
    case 'a':
      inside = std::isalpha(letter) != 0;
      break;
    case 'c':
      inside = std::iscntrl(letter) != 0;
      break;
    case 'd':
      inside = std::isdigit(letter) != 0;
      break;
    case 'g':
      inside = std::isgraph(letter) != 0;
      break;
    case 'l':
      inside = std::islower(letter) != 0;
      break;
    case 'p':
      inside = std::ispunct(letter) != 0;
      break;
    case 's':
      inside = std::isspace(letter) != 0;
      break;
    case 'u':
      inside = std::isupper(letter) != 0;
      break;
    case 'w':
      inside = std::isalnum(letter) != 0;
      break;
    case 'x':
      inside = std::isxdigit(letter) != 0;
      break;
    default:
      return name == letter;
  }
  return inside != (std::isupper(name) != 0);
}

// `set` points at '[', `set_end` past ']'.
bool Matcher::in_set(unsigned char letter, const char *set, const char *set_end) const {
  const char *item = set + 1;
  const char *const last = set_end - 1;
  const bool negated = *item == '^';
  if (negated) ++item;
  while (item < last) {
    if (*item == '%') {
      if (in_class(letter, static_cast<unsigned char>(item[1]))) return !negated;
      item += 2;
    } else if (item + 2 < last && item[1] == '-') {
      if (static_cast<unsigned char>(item[0]) <= letter && letter <= static_cast<unsigned char>(item[2])) {
        return !negated;
      }
      item += 3;
    } else {
      if (static_cast<unsigned char>(*item) == letter) return !negated;
      ++item;
    }
  }
  return negated;
}

bool Matcher::fits(const char *place, const char *item, const char *after) {
  if (place >= subject_end_) return false;
  const auto letter = static_cast<unsigned char>(*place);
  switch (*item) {
    case '.':
      return true;
    case '%':
      return in_class(letter, static_cast<unsigned char>(item[1]));
    case '[':
      return in_set(letter, item, after);
    default:
      return static_cast<unsigned char>(*item) == letter;
  }
}

int Matcher::closing_capture() {
  for (int index = captures_ - 1; index >= 0; --index) {
    if (capture_[index].length == kOpen) return index;
  }
  return luaL_error(state_, "invalid pattern capture");
}

int Matcher::checked_capture(int number) {
  if (number < 0 || number >= captures_ || capture_[number].length == kOpen) {
    luaL_error(state_, "invalid capture index %%%d in pattern", number + 1);
  }
  return number;
}

// `item` points at %b.
const char *Matcher::match_balanced(const char *place, const char *item) {
  if (pattern_end_ - item < 4) luaL_error(state_, "malformed pattern (missing arguments to '%%b')");
  const char open = item[2];
  const char close = item[3];
  if (place >= subject_end_ || *place != open) return nullptr;
  int64_t nesting = 1;
  for (const char *at = place + 1; at < subject_end_; ++at) {
    step(1);
    if (*at == close) {
      if (--nesting == 0) return at + 1;
    } else if (*at == open) {
      ++nesting;
    }
  }
  return nullptr;
}

// `item` points at the set after %f. The place before the subject and the one after it hold '\0'.
const char *Matcher::match_frontier(const char *place, const char *item) {
  if (item == pattern_end_ || *item != '[') luaL_error(state_, "missing '[' after '%%f' in pattern");
  const char *const after = end_of_item(item);
  const unsigned char before = place == subject_ ? 0 : static_cast<unsigned char>(place[-1]);
  const unsigned char here = place == subject_end_ ? 0 : static_cast<unsigned char>(*place);
  return !in_set(before, item, after) && in_set(here, item, after) ? after : nullptr;
}

const char *Matcher::match_again(const char *place, int capture) {
  const Capture &earlier = capture_[checked_capture(capture)];
  const size_t length = earlier.length == kPosition ? 0 : static_cast<size_t>(earlier.length);
  step(length / 8);
  const bool same =
      static_cast<size_t>(subject_end_ - place) >= length && std::memcmp(earlier.begin, place, length) == 0;
  return same ? place + length : nullptr;
}

// As many as possible, then fewer.
const char *Matcher::match_repeated(const char *place, const char *item, const char *after) {
  ptrdiff_t count = 0;
  while (fits(place + count, item, after)) ++count;
  step(static_cast<uint64_t>(count));
  for (; count >= 0; --count) {
    step(1);
    if (const char *const end = match(place + count, after + 1)) return end;
  }
  return nullptr;
}

// As few as possible, then more.
const char *Matcher::match_shortest(const char *place, const char *item, const char *after) {
  for (;;) {
    step(1);
    if (const char *const end = match(place, after + 1)) return end;
    if (!fits(place, item, after)) return nullptr;
    ++place;
  }
}

const char *Matcher::match(const char *place, const char *item) {
  if (++depth_ > kMaxDepth) luaL_error(state_, "pattern too complex");
  const char *end = nullptr;
  for (;;) {
    step(1);
    if (item == pattern_end_) {
      end = place;
      break;
    }
    if (*item == '(') {
      const bool position = item + 1 < pattern_end_ && item[1] == ')';
      if (captures_ >= kMaxCaptures) luaL_error(state_, "too many captures");
      capture_[captures_++] = {place, position ? kPosition : kOpen};
      end = match(place, item + (position ? 2 : 1));
      if (end == nullptr) --captures_;
      break;
    }
    if (*item == ')') {
      const int index = closing_capture();
      capture_[index].length = place - capture_[index].begin;
      end = match(place, item + 1);
      if (end == nullptr) capture_[index].length = kOpen;
      break;
    }
    if (*item == '$' && item + 1 == pattern_end_) {
      end = place == subject_end_ ? place : nullptr;
      break;
    }
    if (*item == '%' && item + 1 < pattern_end_) {
      const char kind = item[1];
      if (kind == 'b') {
        place = match_balanced(place, item);
        if (place == nullptr) break;
        item += 4;
        continue;
      }
      if (kind == 'f') {
        item = match_frontier(place, item + 2);
        if (item == nullptr) break;
        continue;
      }
      if (kind >= '0' && kind <= '9') {
        place = match_again(place, kind - '1');
        if (place == nullptr) break;
        item += 2;
        continue;
      }
    }
    const char *const after = end_of_item(item);
    const char suffix = after < pattern_end_ ? *after : '\0';
    if (suffix == '*') {
      end = match_repeated(place, item, after);
      break;
    }
    if (suffix == '+') {
      end = fits(place, item, after) ? match_repeated(place + 1, item, after) : nullptr;
      break;
    }
    if (suffix == '-') {
      end = match_shortest(place, item, after);
      break;
    }
    if (suffix == '?') {
      if (fits(place, item, after)) {
        end = match(place + 1, after + 1);
        if (end != nullptr) break;
      }
      item = after + 1;
      continue;
    }
    if (!fits(place, item, after)) break;
    ++place;
    item = after;
  }
  --depth_;
  return end;
}

void Matcher::push_capture(int index, const char *begin, const char *end) {
  if (index >= captures_) {
    if (index != 0) luaL_error(state_, "invalid capture index %%%d", index + 1);
    lua_pushlstring(state_, begin, static_cast<size_t>(end - begin));
    return;
  }
  const Capture &capture = capture_[index];
  if (capture.length == kOpen) luaL_error(state_, "unfinished capture");
  if (capture.length == kPosition) {
    lua_pushinteger(state_, capture.begin - subject_ + 1);
  } else {
    lua_pushlstring(state_, capture.begin, static_cast<size_t>(capture.length));
  }
}

int Matcher::push_captures(const char *begin, const char *end, bool whole) {
  const int count = captures_ == 0 && whole ? 1 : captures_;
  luaL_checkstack(state_, count, "too many captures");
  for (int index = 0; index < count; ++index) push_capture(index, begin, end);
  return count;
}

// ---- The library ----

namespace {

struct Text {
  const char *data;
  size_t length;
};

Text check_text(lua_State *state, int argument) {
  Text text = {};
  text.data = luaL_checklstring(state, argument, &text.length);
  return text;
}

// Where a search begins, from 0; past the end when the given place is.
size_t start_of(lua_State *state, int argument, size_t length) {
  const lua_Integer given = luaL_optinteger(state, argument, 1);
  if (given > 0) return static_cast<size_t>(given) - 1;
  if (given == 0 || given < -static_cast<lua_Integer>(length)) return 0;
  return length - static_cast<size_t>(-given);
}

bool has_specials(const Text &pattern) {
  for (size_t index = 0; index < pattern.length; ++index) {
    if (std::strchr("^$*+?.([%-", pattern.data[index]) != nullptr && pattern.data[index] != '\0') return true;
  }
  return false;
}

int search(lua_State *state, bool find) {
  const Text subject = check_text(state, 1);
  const Text pattern = check_text(state, 2);
  const size_t start = start_of(state, 3, subject.length);
  if (start > subject.length) {
    lua_pushnil(state);
    return 1;
  }
  if (find && (lua_toboolean(state, 4) != 0 || !has_specials(pattern))) {
    const void *const found = pattern.length == 0
                                  ? subject.data + start
                                  : memmem(subject.data + start, subject.length - start, pattern.data, pattern.length);
    if (found == nullptr) {
      lua_pushnil(state);
      return 1;
    }
    const ptrdiff_t offset = static_cast<const char *>(found) - subject.data;
    lua_pushinteger(state, offset + 1);
    lua_pushinteger(state, offset + static_cast<ptrdiff_t>(pattern.length));
    return 2;
  }
  const bool anchored = pattern.length != 0 && pattern.data[0] == '^';
  Matcher matcher(state, subject.data, subject.length, pattern.data + anchored, pattern.length - anchored);
  for (const char *place = subject.data + start; place <= subject.data + subject.length; ++place) {
    const char *const end = matcher.match_at(place);
    if (end != nullptr) {
      if (!find) return matcher.push_captures(place, end, true);
      lua_pushinteger(state, place - subject.data + 1);
      lua_pushinteger(state, end - subject.data);
      return 2 + matcher.push_captures(place, end, false);
    }
    if (anchored) break;
  }
  lua_pushnil(state);
  return 1;
}

int find(lua_State *state) { return search(state, true); }
int match(lua_State *state) { return search(state, false); }

// Upvalues: subject, pattern, offset of the next search, end of the last match (-1: none).
int gmatch_next(lua_State *state) {
  Text subject = {};
  Text pattern = {};
  subject.data = lua_tolstring(state, lua_upvalueindex(1), &subject.length);
  pattern.data = lua_tolstring(state, lua_upvalueindex(2), &pattern.length);
  const lua_Integer first = lua_tointeger(state, lua_upvalueindex(3));
  const lua_Integer last_end = lua_tointeger(state, lua_upvalueindex(4));
  Matcher matcher(state, subject.data, subject.length, pattern.data, pattern.length);
  for (lua_Integer offset = first; offset <= static_cast<lua_Integer>(subject.length); ++offset) {
    const char *const place = subject.data + offset;
    const char *const end = matcher.match_at(place);
    if (end == nullptr || end - subject.data == last_end) continue;
    lua_pushinteger(state, end - subject.data);
    lua_pushvalue(state, -1);
    lua_replace(state, lua_upvalueindex(3));
    lua_replace(state, lua_upvalueindex(4));
    return matcher.push_captures(place, end, true);
  }
  return 0;
}

int gmatch(lua_State *state) {
  const Text subject = check_text(state, 1);
  check_text(state, 2);
  size_t start = start_of(state, 3, subject.length);
  if (start > subject.length) start = subject.length + 1;
  lua_settop(state, 2);
  lua_pushinteger(state, static_cast<lua_Integer>(start));
  lua_pushinteger(state, -1);
  lua_pushcclosure(state, gmatch_next, 4);
  return 1;
}

// Adds the text that a match is replaced by.
void add_replacement(lua_State *state, luaL_Buffer *out, Matcher &matcher, const char *begin, const char *end,
                     int kind) {
  if (kind == LUA_TSTRING || kind == LUA_TNUMBER) {
    Text words = {};
    words.data = lua_tolstring(state, 3, &words.length);
    for (size_t index = 0; index < words.length; ++index) {
      if (words.data[index] != '%') {
        luaL_addchar(out, words.data[index]);
        continue;
      }
      ++index;
      const char next = index < words.length ? words.data[index] : '\0';
      if (next == '%') {
        luaL_addchar(out, '%');
      } else if (next == '0') {
        luaL_addlstring(out, begin, static_cast<size_t>(end - begin));
      } else if (next >= '1' && next <= '9') {
        matcher.push_capture(next - '1', begin, end);
        luaL_tolstring(state, -1, nullptr);
        lua_remove(state, -2);
        luaL_addvalue(out);
      } else {
        luaL_error(state, "invalid use of '%%' in replacement string");
      }
    }
    return;
  }
  if (kind == LUA_TFUNCTION) {
    lua_pushvalue(state, 3);
    const int count = matcher.push_captures(begin, end, true);
    lua_call(state, count, 1);
  } else {
    matcher.push_capture(0, begin, end);
    lua_gettable(state, 3);
  }
  if (lua_toboolean(state, -1) == 0) {
    lua_pop(state, 1);
    luaL_addlstring(out, begin, static_cast<size_t>(end - begin));
  } else if (lua_isstring(state, -1) != 0) {
    luaL_addvalue(out);
  } else {
    luaL_error(state, "invalid replacement value (a %s)", luaL_typename(state, -1));
  }
}

int gsub(lua_State *state) {
  const Text subject = check_text(state, 1);
  const Text pattern = check_text(state, 2);
  const int kind = lua_type(state, 3);
  luaL_argexpected(state, kind == LUA_TNUMBER || kind == LUA_TSTRING || kind == LUA_TFUNCTION || kind == LUA_TTABLE, 3,
                   "string/function/table");
  const lua_Integer most = luaL_optinteger(state, 4, static_cast<lua_Integer>(subject.length) + 1);
  const bool anchored = pattern.length != 0 && pattern.data[0] == '^';
  const char *const subject_end = subject.data + subject.length;
  Matcher matcher(state, subject.data, subject.length, pattern.data + anchored, pattern.length - anchored);
  luaL_Buffer out;
  luaL_buffinit(state, &out);
  const char *place = subject.data;
  const char *last_end = nullptr;
  lua_Integer count = 0;
  while (count < most) {
    const char *const end = matcher.match_at(place);
    if (end != nullptr && end != last_end) {
      ++count;
      add_replacement(state, &out, matcher, place, end, kind);
      place = last_end = end;
    } else if (place < subject_end) {
      luaL_addchar(&out, *place);
      ++place;
    } else {
      break;
    }
    if (anchored) break;
  }
  luaL_addlstring(&out, place, static_cast<size_t>(subject_end - place));
  luaL_pushresult(&out);
  lua_pushinteger(state, count);
  return 2;
}

// string.rep of nothing takes no memory, so no cap would end it. Upvalue 1: the original.
int rep(lua_State *state) {
  const Text text = check_text(state, 1);
  size_t separator = 0;
  luaL_optlstring(state, 3, "", &separator);
  if (text.length == 0 && separator == 0) {
    luaL_checkinteger(state, 2);
    lua_pushliteral(state, "");
    return 1;
  }
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

}  // namespace

void open_patterns(lua_State *state) {
  for (const luaL_Reg &function :
       {luaL_Reg{"find", find}, luaL_Reg{"match", match}, luaL_Reg{"gmatch", gmatch}, luaL_Reg{"gsub", gsub}}) {
    lua_pushcfunction(state, function.func);
    lua_setfield(state, -2, function.name);
  }
  lua_getfield(state, -1, "rep");
  lua_pushcclosure(state, rep, 1);
  lua_setfield(state, -2, "rep");
}

}  // namespace sonde::lua
