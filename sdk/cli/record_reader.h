// Reading any record through its schema: what `dump` shows.
#pragma once

#include <sonde/sonde.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sonde::cli {

// A record with names and values. Integers keep all digits, enums and flags become words, strings are resolved; a
// field of kind TIME stands raw and, as <name>_ns, in ns since 1970. A field that the record does not reach is null.
class RecordReader {
 public:
  RecordReader(const Host &host, sonde_session_t *session);

  // {"source", "stream", "space", "type", "time_ns", "time", "repair" if any, "fields": {...}}
  nlohmann::ordered_json read(const Record &record, const sonde_batch_t &batch) const;

  // The type's schema, NULL when the capture did not bring one.
  const sonde_record_type_t *type_of(uint32_t space, uint32_t type) const;
  std::string space_name(uint32_t space) const;
  std::string type_name(uint32_t space, uint32_t type) const;

 private:
  nlohmann::ordered_json field(const sonde_record_t *record, const sonde_field_t &field,
                               const sonde_batch_t &batch) const;
  nlohmann::ordered_json elements(const sonde_record_t *record, sonde_span_t span, uint32_t kind,
                                  const sonde_batch_t &batch) const;
  nlohmann::ordered_json text(const sonde_batch_t &batch, sonde_string_t id) const;

  const sonde_capture_service_t &capture_;
  sonde_session_t *session_;
};

// The schema of a type; NULL where there is none.
const sonde_record_type_t *find_record_type(const sonde_capture_service_t &capture, uint32_t space, uint32_t type);

// Field `index` of a type, by the stride of whoever wrote the schema.
const sonde_field_t &field_at(const sonde_record_type_t &type, uint32_t index);

// The reason of a repair in words.
std::string_view repair_words(uint32_t reason);

// JSON on one line; bytes that are not UTF-8 become U+FFFD.
std::string one_line(const nlohmann::ordered_json &value);

}  // namespace sonde::cli
