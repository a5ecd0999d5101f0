#include "report/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "report/utf8.h"

namespace sonde::report {

void JsonWriter::new_line() {
  output_.put('\n');
  for (size_t depth = 0; depth < levels_.size(); ++depth) output_.put(' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level &level = levels_.back();
  if (!level.is_empty) output_.put(',');
  if (level.layout == Layout::kLines) {
    new_line();
  } else if (!level.is_empty) {
    output_.put(' ');
  }
  level.is_empty = false;
}

void JsonWriter::open(char bracket, Layout layout) {
  before_value();
  output_.put(bracket);
  // What is inside one line stays on it.
  const bool inside_line = !levels_.empty() && levels_.back().layout == Layout::kInline;
  levels_.push_back({inside_line ? Layout::kInline : layout, true});
}

void JsonWriter::close(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.layout == Layout::kLines && !level.is_empty) new_line();
  output_.put(bracket);
}

void JsonWriter::key(std::string_view name) {
  before_value();
  quoted(name);
  output_.put(": ");
  after_key_ = true;
}

void JsonWriter::quoted(std::string_view text) {
  output_.put('"');
  size_t copied = 0;  // bytes of `text` that are written
  for (size_t position = 0; position < text.size();) {
    const CodePoint point = decode_utf8(text, position);
    std::string replacement;
    if (!point.valid) {
      append_utf8(replacement, kReplacement);
    } else if (point.value == '"' || point.value == '\\') {
      replacement = {'\\', static_cast<char>(point.value)};
    } else if (point.value < 0x20 || point.value == 0x7F) {
      replacement = fmt::format("\\u{:04x}", point.value);
    }
    if (!replacement.empty()) {
      output_.put(text.substr(copied, position - copied));
      output_.put(replacement);
      copied = position + point.bytes;
    }
    position += point.bytes;
  }
  output_.put(text.substr(copied));
  output_.put('"');
}

void JsonWriter::text(std::string_view value) {
  before_value();
  quoted(value);
}

void JsonWriter::integer(int64_t value) {
  before_value();
  output_.put(fmt::format("{}", value));
}

void JsonWriter::integer(uint64_t value) {
  before_value();
  output_.put(fmt::format("{}", value));
}

void JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  std::string digits = fmt::format("{}", value);  // the shortest that reads back the same
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  output_.put(digits);
}

void JsonWriter::boolean(bool value) {
  before_value();
  output_.put(value ? "true" : "false");
}

void JsonWriter::null() {
  before_value();
  output_.put("null");
}

void JsonWriter::value(const sonde_value_t &value) {
  switch (value.kind) {
    case SONDE_VALUE_I64:
      return integer(value.as.i64);
    case SONDE_VALUE_U64:
      return integer(value.as.u64);
    case SONDE_VALUE_F64:
      return number(value.as.f64);
    case SONDE_VALUE_TEXT:
      return text({value.as.text, value.count});
    case SONDE_VALUE_BOOL:
      return boolean(value.as.u64 != 0);
    case SONDE_VALUE_BYTES: {
      std::string digits;
      const auto *const bytes = static_cast<const uint8_t *>(value.as.pointer);
      for (uint64_t index = 0; index < value.count; ++index) digits += fmt::format("{:02x}", bytes[index]);
      return text(digits);
    }
    case SONDE_VALUE_I64S:
    case SONDE_VALUE_F64S:
      begin_array(Layout::kInline);
      for (uint64_t index = 0; index < value.count; ++index) {
        if (value.kind == SONDE_VALUE_I64S) {
          integer(static_cast<const int64_t *>(value.as.pointer)[index]);
        } else {
          number(static_cast<const double *>(value.as.pointer)[index]);
        }
      }
      return end_array();
    default:
      return null();
  }
}

}  // namespace sonde::report
