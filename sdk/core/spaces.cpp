#include "core/spaces.h"

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sonde::core {
namespace {

// A deep copy of a schema whose pointers lead into itself.
struct OwnedSchema {
  sonde_schema_t schema{};
  std::vector<sonde_record_type_t> types;
  std::vector<std::vector<sonde_field_t>> fields;
  std::deque<std::string> texts;

  const char *keep(const char *text) { return texts.emplace_back(text == nullptr ? "" : text).c_str(); }
};

struct Registry {
  std::mutex mutex;
  std::array<std::atomic<const sonde_schema_t *>, SONDE_SPACE_COUNT> schemas{};
  std::vector<std::unique_ptr<OwnedSchema>> owned;  // superseded ones stay: readers may hold them
  uint32_t next = SONDE_SPACE_FIRST_DYNAMIC;
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

const sonde_record_type_t &type_at(const sonde_schema_t &schema, uint32_t index) {
  return *reinterpret_cast<const sonde_record_type_t *>(reinterpret_cast<const uint8_t *>(schema.types) +
                                                        static_cast<size_t>(index) * schema.type_stride);
}

const sonde_field_t &field_at(const sonde_record_type_t &type, uint32_t index) {
  return *reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const uint8_t *>(type.fields) +
                                                  static_cast<size_t>(index) * type.field_stride);
}

const sonde_record_type_t *find_type(const sonde_schema_t &schema, uint32_t number) {
  for (uint32_t i = 0; i < schema.type_count; ++i) {
    if (type_at(schema, i).type == number) return &type_at(schema, i);
  }
  return nullptr;
}

Error bad(const sonde_schema_t &schema, const std::string &what) {
  return {SONDE_E_INVALID,
          "schema of space '" + std::string(schema.space == nullptr ? "?" : schema.space) + "': " + what};
}

Result<void> check_field(const sonde_schema_t &schema, const sonde_record_type_t &type, const sonde_field_t &field) {
  const std::string where =
      std::string("type '") + type.name + "', field '" + (field.name == nullptr ? "?" : field.name) + "': ";
  if (field.name == nullptr || field.name[0] == '\0') return bad(schema, where + "it has no name");
  if (field.kind < SONDE_KIND_UINT || field.kind > SONDE_KIND_SPAN_BYTES)
    return bad(schema, where + "unknown kind " + std::to_string(field.kind));
  const bool wide =
      field.kind == SONDE_KIND_TIME || field.kind == SONDE_KIND_ADDRESS || field.kind >= SONDE_KIND_SPAN_UINT;
  const bool fits = wide                              ? field.width == 8
                    : field.kind == SONDE_KIND_STRING ? field.width == 4
                    : field.kind == SONDE_KIND_FLOAT
                        ? field.width == 4 || field.width == 8
                        : field.width == 1 || field.width == 2 || field.width == 4 || field.width == 8;
  if (!fits) return bad(schema, where + "a width of " + std::to_string(field.width) + " does not fit its kind");
  if (field.offset < 16 || field.offset + field.width > type.fixed_bytes) {
    return bad(schema, where + "lies outside the fixed part (16 to " + std::to_string(type.fixed_bytes) + " bytes)");
  }
  return {};
}

Result<void> check(const sonde_schema_t &schema) {
  if (schema.space == nullptr || schema.space[0] == '\0') return bad(schema, "it has no name");
  if (schema.type_stride < sizeof(sonde_record_type_t)) return bad(schema, "type_stride is too small");
  if (schema.type_count > 0 && schema.types == nullptr) return bad(schema, "types is NULL");
  for (uint32_t i = 0; i < schema.type_count; ++i) {
    const sonde_record_type_t &type = type_at(schema, i);
    if (type.name == nullptr || type.name[0] == '\0') return bad(schema, "a type has no name");
    if (type.type < 1 || type.type >= SONDE_TYPE_COUNT)
      return bad(schema,
                 std::string("type '") + type.name + "': number " + std::to_string(type.type) + " is not in 1 to 63");
    if (type.fixed_bytes < 16 || type.fixed_bytes % 8 != 0)
      return bad(schema, std::string("type '") + type.name + "': fixed_bytes must be a multiple of 8 from 16 on");
    if (find_type(schema, type.type) != &type)
      return bad(schema, std::string("type number ") + std::to_string(type.type) + " is given twice");
    if (type.field_count > 0 && (type.fields == nullptr || type.field_stride < sizeof(sonde_field_t)))
      return bad(schema, std::string("type '") + type.name + "': fields or field_stride is wrong");
    for (uint32_t f = 0; f < type.field_count; ++f) {
      if (auto result = check_field(schema, type, field_at(type, f)); !result) return result;
    }
  }
  return {};
}

bool same_text(const char *left, const char *right) {
  return std::strcmp(left == nullptr ? "" : left, right == nullptr ? "" : right) == 0;
}

// The first difference between the common parts of two schemas of one space, "" when one continues the other.
std::string conflict(const sonde_schema_t &before, const sonde_schema_t &after) {
  for (uint32_t i = 0; i < before.type_count; ++i) {
    const sonde_record_type_t &old_type = type_at(before, i);
    const sonde_record_type_t *const new_type = find_type(after, old_type.type);
    if (new_type == nullptr) continue;
    if (!same_text(old_type.name, new_type->name)) {
      return std::string("type ") + std::to_string(old_type.type) + " is '" + old_type.name + "' and '" +
             new_type->name + "'";
    }
    const uint32_t common = std::min(old_type.field_count, new_type->field_count);
    for (uint32_t f = 0; f < common; ++f) {
      const sonde_field_t &old_field = field_at(old_type, f);
      const sonde_field_t &new_field = field_at(*new_type, f);
      if (!same_text(old_field.name, new_field.name) || old_field.offset != new_field.offset ||
          old_field.width != new_field.width || old_field.kind != new_field.kind ||
          !same_text(old_field.unit, new_field.unit)) {
        return std::string("type '") + old_type.name + "', field " + std::to_string(f) + " is '" + old_field.name +
               "' at " + std::to_string(old_field.offset) + " and '" + new_field.name + "' at " +
               std::to_string(new_field.offset);
      }
    }
  }
  return {};
}

void copy_type(OwnedSchema &owned, const sonde_record_type_t &type) {
  auto &fields = owned.fields.emplace_back();
  for (uint32_t f = 0; f < type.field_count; ++f) {
    sonde_field_t field = field_at(type, f);
    field.name = owned.keep(field.name);
    field.unit = owned.keep(field.unit);
    field.names = owned.keep(field.names);
    fields.push_back(field);
  }
  sonde_record_type_t copy = type;
  copy.name = owned.keep(type.name);
  copy.help = owned.keep(type.help);
  copy.field_stride = sizeof(sonde_field_t);
  owned.types.push_back(copy);
}

// The union of both: the longer variant of each type.
std::unique_ptr<OwnedSchema> merge(const sonde_schema_t *before, const sonde_schema_t &after) {
  auto owned = std::make_unique<OwnedSchema>();
  if (before != nullptr) {
    for (uint32_t i = 0; i < before->type_count; ++i) {
      const sonde_record_type_t &old_type = type_at(*before, i);
      const sonde_record_type_t *const new_type = find_type(after, old_type.type);
      copy_type(*owned, new_type != nullptr && new_type->field_count > old_type.field_count ? *new_type : old_type);
    }
  }
  for (uint32_t i = 0; i < after.type_count; ++i) {
    const sonde_record_type_t &type = type_at(after, i);
    if (before == nullptr || find_type(*before, type.type) == nullptr) copy_type(*owned, type);
  }
  for (size_t i = 0; i < owned->types.size(); ++i) owned->types[i].fields = owned->fields[i].data();
  owned->schema.struct_size = sizeof(sonde_schema_t);
  owned->schema.type_count = static_cast<uint32_t>(owned->types.size());
  owned->schema.space = owned->keep(after.space);
  owned->schema.help = owned->keep(after.help);
  owned->schema.types = owned->types.data();
  owned->schema.type_stride = sizeof(sonde_record_type_t);
  return owned;
}

}  // namespace

Result<uint32_t> register_space(const sonde_schema_t &schema, uint32_t number) {
  if (auto result = check(schema); !result) return result.error();
  Registry &spaces = registry();
  const std::lock_guard lock(spaces.mutex);
  const sonde_schema_t *before = nullptr;
  uint32_t place = number;
  for (uint32_t i = 1; i < SONDE_SPACE_COUNT; ++i) {
    const sonde_schema_t *const known = spaces.schemas[i].load(std::memory_order_relaxed);
    if (known != nullptr && same_text(known->space, schema.space)) {
      before = known;
      place = i;
    }
  }
  if (before != nullptr) {
    const std::string difference = conflict(*before, schema);
    if (!difference.empty()) {
      return Error{SONDE_E_SCHEMA_CONFLICT,
                   std::string("space '") + schema.space + "' is registered already and differs: " + difference};
    }
  }
  if (place == 0) {
    if (spaces.next >= SONDE_SPACE_COUNT) return Error{SONDE_E_FULL, "all 192 numbers for spaces are taken"};
    place = spaces.next++;
  }
  spaces.owned.push_back(merge(before, schema));
  spaces.schemas[place].store(&spaces.owned.back()->schema, std::memory_order_release);
  return place;
}

Result<uint32_t> find_space(std::string_view name) {
  Registry &spaces = registry();
  for (uint32_t i = 1; i < SONDE_SPACE_COUNT; ++i) {
    const sonde_schema_t *const schema = spaces.schemas[i].load(std::memory_order_acquire);
    if (schema != nullptr && name == schema->space) return i;
  }
  return Error{SONDE_E_NOT_FOUND, "no space '" + std::string(name) + "'; there are: " + space_names()};
}

const sonde_schema_t *space_schema(uint32_t number) {
  return number < SONDE_SPACE_COUNT ? registry().schemas[number].load(std::memory_order_acquire) : nullptr;
}

std::string space_names() {
  std::string names;
  for (uint32_t i = 1; i < SONDE_SPACE_COUNT; ++i) {
    const sonde_schema_t *const schema = space_schema(i);
    if (schema == nullptr) continue;
    if (!names.empty()) names += ' ';
    names += schema->space;
  }
  return names;
}

void lock_spaces() { registry().mutex.lock(); }
void unlock_spaces() { registry().mutex.unlock(); }

}  // namespace sonde::core
