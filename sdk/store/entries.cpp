#include "store/entries.h"

#include <utility>

namespace sonde::store {
namespace {

// The n-th element of an array whose elements were longer or shorter for its writer.
template <typename T>
const T &element(const T *first, uint32_t stride, uint32_t index) {
  return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(first) + uint64_t{stride} * index);
}

std::string_view text_of(const char *text) { return text == nullptr ? std::string_view() : std::string_view(text); }

bool field_fits(const sonde_field_t &field, uint32_t fixed_bytes) {
  const bool width = field.width == 1 || field.width == 2 || field.width == 4 || field.width == 8;
  return width && field.offset >= 16 && field.offset <= fixed_bytes && field.width <= fixed_bytes - field.offset;
}

}  // namespace

void write_texts(const FileTexts &texts, Bytes &out) {
  put_text(out, texts.host);
  put_text(out, texts.program);
  put_text(out, texts.command);
  put_text(out, texts.boot);
}

bool read_texts(std::span<const uint8_t> encoded, FileTexts &out) {
  ByteReader in(encoded);
  out.host = in.text();
  out.program = in.text();
  out.command = in.text();
  out.boot = in.text();
  return in.good();
}

bool read_strings(std::span<const uint8_t> encoded, uint64_t count, std::vector<StringEntry> &out) {
  out.clear();
  ByteReader in(encoded);
  uint64_t id = in.varint();
  for (uint64_t index = 0; index < count && in.good(); ++index, ++id) {
    const std::string_view text = in.text();
    if (!in.good() || id > UINT32_MAX) return false;
    out.push_back({static_cast<uint32_t>(id), text});
  }
  return in.good() && in.at_end();
}

const char *StoredSchema::keep(std::string_view text) { return texts_.emplace_back(text).c_str(); }

void write_schema(uint32_t space, const sonde_schema_t &schema, Bytes &out) {
  put_varint(out, space);
  put_text(out, text_of(schema.space));
  put_text(out, text_of(schema.help));
  put_varint(out, schema.type_count);
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    const sonde_record_type_t &type = element(schema.types, schema.type_stride, index);
    put_varint(out, type.type);
    put_varint(out, type.fixed_bytes);
    put_text(out, text_of(type.name));
    put_text(out, text_of(type.help));
    put_varint(out, type.field_count);
    for (uint32_t place = 0; place < type.field_count; ++place) {
      const sonde_field_t &field = element(type.fields, type.field_stride, place);
      put_text(out, text_of(field.name));
      put_varint(out, field.offset);
      put_varint(out, field.width);
      put_varint(out, field.kind);
      put_text(out, text_of(field.unit));
      put_text(out, text_of(field.names));
    }
  }
}

bool read_schemas(std::span<const uint8_t> encoded, uint64_t count, std::vector<StoredSchema> &out) {
  out.clear();
  ByteReader in(encoded);
  for (uint64_t index = 0; index < count && in.good(); ++index) {
    StoredSchema stored;
    stored.space = static_cast<uint32_t>(in.varint_up_to(SONDE_SPACE_COUNT - 1));
    sonde_schema_t &schema = stored.schema_;
    schema.struct_size = sizeof schema;
    schema.space = stored.keep(in.text());
    schema.help = stored.keep(in.text());
    schema.type_stride = sizeof(sonde_record_type_t);
    const uint64_t types = in.varint_up_to(SONDE_TYPE_COUNT);
    for (uint64_t type_index = 0; type_index < types && in.good(); ++type_index) {
      sonde_record_type_t type{};
      type.type = static_cast<uint32_t>(in.varint_up_to(SONDE_TYPE_COUNT - 1));
      type.fixed_bytes = static_cast<uint32_t>(in.varint_up_to(SONDE_RECORD_MAX_BYTES));
      type.name = stored.keep(in.text());
      type.help = stored.keep(in.text());
      type.field_stride = sizeof(sonde_field_t);
      std::vector<sonde_field_t> &fields = stored.fields_.emplace_back();
      for (uint64_t left = in.varint_up_to(SONDE_RECORD_MAX_BYTES); left != 0 && in.good(); --left) {
        sonde_field_t field{};
        field.name = stored.keep(in.text());
        field.offset = static_cast<uint32_t>(in.varint_up_to(SONDE_RECORD_MAX_BYTES));
        field.width = static_cast<uint32_t>(in.varint_up_to(8));
        field.kind = static_cast<uint32_t>(in.varint_up_to(UINT32_MAX));
        field.unit = stored.keep(in.text());
        field.names = stored.keep(in.text());
        if (!in.good() || !field_fits(field, type.fixed_bytes)) return false;
        fields.push_back(field);
      }
      if (type.type == 0 || type.fixed_bytes < 16 || type.fixed_bytes % 8 != 0) return false;
      type.fields = fields.data();
      type.field_count = static_cast<uint32_t>(fields.size());
      stored.types_.push_back(type);
    }
    if (!in.good() || stored.space == 0 || *schema.space == '\0') return false;
    schema.types = stored.types_.data();
    schema.type_count = static_cast<uint32_t>(stored.types_.size());
    out.push_back(std::move(stored));
  }
  return in.good() && in.at_end();
}

void write_losses(std::span<const sonde_loss_t> rows, Bytes &out) {
  for (const sonde_loss_t &row : rows) {
    put_varint(out, row.stream);
    put_varint(out, row.cause);
    put_varint(out, row.records);
    put_varint(out, row.bytes);
  }
}

bool read_losses(std::span<const uint8_t> encoded, uint64_t count, std::vector<sonde_loss_t> &out) {
  out.clear();
  ByteReader in(encoded);
  for (uint64_t index = 0; index < count && in.good(); ++index) {
    sonde_loss_t row{};
    row.stream = in.varint();
    row.cause = static_cast<uint32_t>(in.varint_up_to(UINT32_MAX));
    row.records = in.varint();
    row.bytes = in.varint();
    out.push_back(row);
  }
  return in.good() && in.at_end();
}

void write_index(const Index &index, Bytes &out) {
  put(out, index.stop_ns);
  uint64_t offset = 0;
  int64_t time = 0;
  for (const IndexEntry &entry : index.entries) {
    put_varint(out, (entry.offset - offset) / 8);
    put_varint(out, entry.bytes / 8);
    put_varint(out, entry.type);
    put_varint(out, entry.record_bytes / 8);
    put_varint(out, entry.record_count);
    offset = entry.offset + entry.bytes;
    if (entry.record_bytes == 0) continue;
    put_varint(out, zigzag(static_cast<uint64_t>(entry.first_ns) - static_cast<uint64_t>(time)));
    put_varint(out, zigzag(static_cast<uint64_t>(entry.last_ns) - static_cast<uint64_t>(entry.first_ns)));
    time = entry.first_ns;
  }
}

bool read_index(std::span<const uint8_t> encoded, uint64_t count, Index &out) {
  out.entries.clear();
  ByteReader in(encoded);
  out.stop_ns = in.get<int64_t>();
  uint64_t offset = 0;
  uint64_t time = 0;
  constexpr uint64_t kWords = INT64_MAX / 16;  // no sum below can overflow
  for (uint64_t index = 0; index < count && in.good(); ++index) {
    IndexEntry entry;
    entry.offset = offset + in.varint_up_to(kWords) * 8;
    entry.bytes = in.varint_up_to(kWords) * 8;
    entry.type = static_cast<uint32_t>(in.varint_up_to(UINT32_MAX));
    entry.record_bytes = in.varint_up_to(kWords) * 8;
    entry.record_count = in.varint();
    offset = entry.offset + entry.bytes;
    if (offset > INT64_MAX / 2) return false;
    if (entry.record_bytes != 0) {
      time += unzigzag(in.varint());
      entry.first_ns = static_cast<int64_t>(time);
      entry.last_ns = static_cast<int64_t>(time + unzigzag(in.varint()));
    }
    out.entries.push_back(entry);
  }
  return in.good() && in.at_end();
}

}  // namespace sonde::store
