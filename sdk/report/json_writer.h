// A streaming writer of JSON (RFC 8259) that needs no more memory than its depth.
#pragma once

#include <sonde/value.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/output.h"

namespace sonde::report {

// Text is written as valid UTF-8 whatever its bytes are; integers with all their digits; a double so that reading it
// gives the same double, always with a point or exponent; not-a-number and infinities as null.
class JsonWriter {
 public:
  // kLines puts each element on a line of its own, kInline all of it on one line.
  enum class Layout { kLines, kInline };

  explicit JsonWriter(Output &output) : output_(output) {}

  void begin_object(Layout layout = Layout::kLines) { open('{', layout); }
  void end_object() { close('}'); }
  void begin_array(Layout layout = Layout::kLines) { open('[', layout); }
  void end_array() { close(']'); }

  // The name of the next value; only inside an object.
  void key(std::string_view name);

  void text(std::string_view value);
  void integer(int64_t value);
  void integer(uint64_t value);
  void number(double value);
  void boolean(bool value);
  void null();
  // Lists become arrays, bytes a text of hexadecimal digits, handles null.
  void value(const sonde_value_t &value);

  // Key and value in one.
  void member(std::string_view name, std::string_view value) { key(name), text(value); }
  void member(std::string_view name, const char *value) { key(name), text(value); }
  void member(std::string_view name, uint64_t value) { key(name), integer(value); }
  void member(std::string_view name, double value) { key(name), number(value); }

 private:
  struct Level {
    Layout layout;
    bool is_empty;
  };

  void open(char bracket, Layout layout);
  void close(char bracket);
  void before_value();
  void new_line();
  void quoted(std::string_view text);

  Output &output_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace sonde::report
