#include "cli/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sonde::cli {
namespace {

using nlohmann::ordered_json;

const sonde_record_type_t &type_at(const sonde_schema_t &schema, uint32_t index) {
  return *reinterpret_cast<const sonde_record_type_t *>(reinterpret_cast<const char *>(schema.types) +
                                                        uint64_t{index} * schema.type_stride);
}

// Little-endian bytes as an unsigned number; width 1, 2, 4 or 8.
uint64_t unsigned_at(const void *record, uint32_t offset, uint32_t width) {
  uint64_t value = 0;
  std::memcpy(&value, static_cast<const char *>(record) + offset, std::min(width, 8u));
  return value;
}

int64_t signed_at(const void *record, uint32_t offset, uint32_t width) {
  const uint32_t unused = 64 - 8 * std::min(width, 8u);
  return static_cast<int64_t>(unsigned_at(record, offset, width) << unused) >> unused;
}

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

// Word `index` of "a|b|c"; "" past the end.
std::string_view word_at(std::string_view words, uint64_t index) {
  while (index > 0) {
    const size_t bar = words.find('|');
    if (bar == std::string_view::npos) return {};
    words.remove_prefix(bar + 1);
    --index;
  }
  return words.substr(0, words.find('|'));
}

ordered_json enum_word(std::string_view names, uint64_t value) {
  const std::string_view word = word_at(names, value);
  return word.empty() ? ordered_json(value) : ordered_json(word);
}

ordered_json flag_words(std::string_view names, uint64_t value) {
  ordered_json words = ordered_json::array();
  for (uint64_t bit = 0; bit < 64; ++bit) {
    if ((value >> bit & 1) == 0) continue;
    const std::string_view word = word_at(names, bit);
    words.push_back(word.empty() ? fmt::format("bit {}", bit) : std::string(word));
  }
  return words;
}

uint32_t element_bytes(uint32_t kind) {
  if (kind == SONDE_KIND_SPAN_BYTES) return 1;
  return kind == SONDE_KIND_SPAN_STRING ? 4 : 8;
}

}  // namespace

RecordReader::RecordReader(const Host &host, sonde_session_t *session)
    : capture_(host.service<sonde_capture_service_t>()), session_(session) {}

const sonde_field_t &field_at(const sonde_record_type_t &type, uint32_t index) {
  return *reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const char *>(type.fields) +
                                                  uint64_t{index} * type.field_stride);
}

const sonde_record_type_t *find_record_type(const sonde_capture_service_t &capture, uint32_t space, uint32_t type) {
  const sonde_schema_t *schema = nullptr;
  if (capture.schema(space, &schema) != SONDE_OK) return nullptr;
  for (uint32_t index = 0; index < schema->type_count; ++index) {
    if (type_at(*schema, index).type == type) return &type_at(*schema, index);
  }
  return nullptr;
}

const sonde_record_type_t *RecordReader::type_of(uint32_t space, uint32_t type) const {
  return find_record_type(capture_, space, type);
}

std::string RecordReader::space_name(uint32_t space) const {
  const sonde_schema_t *schema = nullptr;
  return capture_.schema(space, &schema) == SONDE_OK ? schema->space : fmt::format("space {}", space);
}

std::string RecordReader::type_name(uint32_t space, uint32_t type) const {
  const sonde_record_type_t *const known = type_of(space, type);
  return known != nullptr ? known->name : fmt::format("type {}", type);
}

ordered_json RecordReader::text(const sonde_batch_t &batch, sonde_string_t id) const {
  if (id == 0) return "";
  const char *found = nullptr;
  if (capture_.text(session_, batch.source, id, &found) != SONDE_OK || found == nullptr) {
    return fmt::format("string {} (text lost)", id);
  }
  return found;
}

ordered_json RecordReader::elements(const sonde_record_t *record, sonde_span_t span, uint32_t kind,
                                    const sonde_batch_t &batch) const {
  const uint64_t bytes = element_bytes(kind);
  if (span.count != 0 && uint64_t{span.offset} + span.count * bytes > SONDE_RECORD_BYTES(record)) return nullptr;
  if (kind == SONDE_KIND_SPAN_BYTES) {
    std::string digits;
    for (uint32_t index = 0; index < span.count; ++index) {
      digits += fmt::format("{:02x}", unsigned_at(record, span.offset + index, 1));
    }
    return digits;
  }
  ordered_json list = ordered_json::array();
  for (uint32_t index = 0; index < span.count; ++index) {
    const auto offset = static_cast<uint32_t>(span.offset + index * bytes);
    if (kind == SONDE_KIND_SPAN_STRING) {
      list.push_back(text(batch, static_cast<sonde_string_t>(unsigned_at(record, offset, 4))));
    } else if (kind == SONDE_KIND_SPAN_INT) {
      list.push_back(signed_at(record, offset, 8));
    } else if (kind == SONDE_KIND_SPAN_FLOAT) {
      double value = 0;
      std::memcpy(&value, reinterpret_cast<const char *>(record) + offset, sizeof(value));
      list.push_back(number(value));
    } else {
      list.push_back(unsigned_at(record, offset, 8));
    }
  }
  return list;
}

ordered_json RecordReader::field(const sonde_record_t *record, const sonde_field_t &field,
                                 const sonde_batch_t &batch) const {
  switch (field.kind) {
    case SONDE_KIND_INT:
      return signed_at(record, field.offset, field.width);
    case SONDE_KIND_FLOAT: {
      if (field.width == 4) {
        float value = 0;
        std::memcpy(&value, reinterpret_cast<const char *>(record) + field.offset, sizeof(value));
        return number(value);
      }
      double value = 0;
      std::memcpy(&value, reinterpret_cast<const char *>(record) + field.offset, sizeof(value));
      return number(value);
    }
    case SONDE_KIND_STRING:
      return text(batch, static_cast<sonde_string_t>(unsigned_at(record, field.offset, field.width)));
    case SONDE_KIND_ENUM:
      return enum_word(field.names, unsigned_at(record, field.offset, field.width));
    case SONDE_KIND_FLAGS:
      return flag_words(field.names, unsigned_at(record, field.offset, field.width));
    case SONDE_KIND_SPAN_UINT:
    case SONDE_KIND_SPAN_INT:
    case SONDE_KIND_SPAN_FLOAT:
    case SONDE_KIND_SPAN_STRING:
    case SONDE_KIND_SPAN_BYTES: {
      sonde_span_t span{};
      std::memcpy(&span, reinterpret_cast<const char *>(record) + field.offset, sizeof(span));
      return elements(record, span, field.kind, batch);
    }
    default:
      return unsigned_at(record, field.offset, field.width);
  }
}

ordered_json RecordReader::read(const Record &record, const sonde_batch_t &batch) const {
  const sonde_record_t *const header = record.header();
  ordered_json shown;
  shown["source"] = batch.source;
  shown["stream"] = batch.stream;
  shown["space"] = space_name(header->space);
  shown["type"] = type_name(header->space, header->type);
  shown["time_ns"] = record.time_ns();
  shown["time"] = header->time;
  const sonde_record_type_t *const type = type_of(header->space, header->type);
  ordered_json fields = ordered_json::object();
  if (type == nullptr) {
    // Without a schema only the bytes can be shown.
    fields["bytes"] =
        elements(header, {sizeof(sonde_record_t), SONDE_RECORD_BYTES(header) - 16}, SONDE_KIND_SPAN_BYTES, batch);
  }
  for (uint32_t index = 0; type != nullptr && index < type->field_count; ++index) {
    const sonde_field_t &known = field_at(*type, index);
    const bool is_there = known.offset + known.width <= uint32_t{header->fixed8} * 8;
    fields[known.name] = is_there ? field(header, known, batch) : ordered_json(nullptr);
    if (known.kind != SONDE_KIND_TIME) continue;
    const uint64_t raw = is_there ? unsigned_at(header, known.offset, 8) : 0;
    const bool is_end = std::string_view(known.name) == "end";
    const int64_t ns = is_end ? record.interval(raw).end_ns : sonde_clock_ns(batch.clock, raw);
    fields[std::string(known.name) + "_ns"] = is_there ? ordered_json(ns) : ordered_json(nullptr);
    if (is_end && record.interval(raw).repair != 0) shown["repair"] = repair_words(record.interval(raw).repair);
  }
  shown["fields"] = std::move(fields);
  return shown;
}

std::string_view repair_words(uint32_t reason) {
  switch (reason) {
    case SONDE_REPAIR_ZERO:
      return "zero";
    case SONDE_REPAIR_REVERSED:
      return "reversed";
    case SONDE_REPAIR_SENTINEL:
      return "sentinel";
    case SONDE_REPAIR_OUTSIDE:
      return "outside the session";
    default:
      return "unknown reason";
  }
}

std::string one_line(const ordered_json &value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace sonde::cli
