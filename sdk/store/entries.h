// The small parts of a capture file: texts of the header, strings, schemas, the ledger, the index.
//
// The `encoded` bytes of chunks are what is inside the block that their payload consists of (FORMAT.md).
#pragma once

#include <sonde/ledger.h>
#include <sonde/schema.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/bytes.h"

namespace sonde::store {

// Who made the file; the texts behind the file header.
struct FileTexts {
  std::string host;
  std::string program;
  std::string command;
  std::string boot;
};
void write_texts(const FileTexts &texts, Bytes &out);
bool read_texts(std::span<const uint8_t> encoded, FileTexts &out);

// A chunk of strings: ids rise by one from the first. `put_text` of each follows the first id (varint).
struct StringEntry {
  uint32_t id;
  std::string_view text;  // into the encoded bytes
};
bool read_strings(std::span<const uint8_t> encoded, uint64_t count, std::vector<StringEntry> &out);

// A schema that owns what it points to. It may be moved, not copied.
class StoredSchema {
 public:
  StoredSchema() = default;
  StoredSchema(StoredSchema &&) noexcept = default;
  StoredSchema &operator=(StoredSchema &&) noexcept = default;
  StoredSchema(const StoredSchema &) = delete;
  StoredSchema &operator=(const StoredSchema &) = delete;

  uint32_t space = 0;  // its number in the file
  const sonde_schema_t &schema() const { return schema_; }

 private:
  friend bool read_schemas(std::span<const uint8_t>, uint64_t, std::vector<StoredSchema> &);

  const char *keep(std::string_view text);

  sonde_schema_t schema_{};
  std::deque<std::string> texts_;
  std::deque<std::vector<sonde_field_t>> fields_;
  std::vector<sonde_record_type_t> types_;
};
void write_schema(uint32_t space, const sonde_schema_t &schema, Bytes &out);
bool read_schemas(std::span<const uint8_t> encoded, uint64_t count, std::vector<StoredSchema> &out);

// The ledger so far; a later one replaces an earlier one.
void write_losses(std::span<const sonde_loss_t> rows, Bytes &out);
bool read_losses(std::span<const uint8_t> encoded, uint64_t count, std::vector<sonde_loss_t> &out);

// What the index of a complete file says of one chunk.
struct IndexEntry {
  uint64_t offset = 0;  // of the chunk's header
  uint64_t bytes = 0;   // header, payload and zeros
  uint32_t type = 0;
  uint64_t record_bytes = 0;
  uint64_t record_count = 0;
  int64_t first_ns = 0;  // least and greatest time of its records, ns since 1970; 0 for other types
  int64_t last_ns = 0;
};
struct Index {
  int64_t stop_ns = 0;  // when the file was finished, ns since 1970
  std::vector<IndexEntry> entries;
};
void write_index(const Index &index, Bytes &out);
bool read_index(std::span<const uint8_t> encoded, uint64_t count, Index &out);

}  // namespace sonde::store
