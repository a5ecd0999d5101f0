// Lua's patterns, matched so that the deadline holds: a matcher in C backtracks for minutes over a line of text, and no
// hook reaches it there. This one looks at the clock every few thousand steps.
//
// Syntax and results are those of section 6.4.1 of the Lua 5.4 manual.
#pragma once

#include <lua.hpp>

#include <cstddef>
#include <cstdint>

namespace sonde::lua {

class Matcher {
 public:
  static constexpr int kMaxCaptures = 32;

  Matcher(lua_State *state, const char *subject, size_t subject_length, const char *pattern, size_t pattern_length)
      : state_(state),
        subject_(subject),
        subject_end_(subject + subject_length),
        pattern_(pattern),
        pattern_end_(pattern + pattern_length) {}

  // End of a match that begins exactly at `place`, or null. Raises an error for a malformed pattern, and past the
  // deadline.
  const char *match_at(const char *place);

  int capture_count() const { return captures_; }
  // Pushes the captures of the last match; where there are none and `whole` is true, the whole match.
  int push_captures(const char *begin, const char *end, bool whole);
  // Pushes capture `index` (from 0); 0 without captures is the whole match.
  void push_capture(int index, const char *begin, const char *end);

 private:
  struct Capture {
    const char *begin;
    ptrdiff_t length;  // kOpen: not closed yet; kPosition: its value is the position
  };
  static constexpr ptrdiff_t kOpen = -1;
  static constexpr ptrdiff_t kPosition = -2;
  static constexpr int kMaxDepth = 200;

  void step(uint64_t cost);
  const char *match(const char *place, const char *item);
  const char *match_repeated(const char *place, const char *item, const char *after);
  const char *match_shortest(const char *place, const char *item, const char *after);
  const char *match_balanced(const char *place, const char *item);
  const char *match_again(const char *place, int capture);
  const char *match_frontier(const char *place, const char *item);
  bool fits(const char *place, const char *item, const char *after);
  const char *end_of_item(const char *item);
  bool in_set(unsigned char letter, const char *set, const char *set_end) const;
  static bool in_class(unsigned char letter, unsigned char name);
  int closing_capture();
  int checked_capture(int number);

  lua_State *state_;
  const char *subject_;
  const char *subject_end_;
  const char *pattern_;
  const char *pattern_end_;
  int captures_ = 0;
  int depth_ = 0;
  uint64_t steps_ = 0;  // since the clock was looked at; about one for each letter read
  Capture capture_[kMaxCaptures];
};

}  // namespace sonde::lua
