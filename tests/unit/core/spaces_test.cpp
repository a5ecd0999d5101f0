// Spaces and schemas: registration rules, and that the built-in schemas describe the structs.
#include "core/spaces.h"

#include <sonde/spaces/device.h>
#include <sonde/spaces/memory.h>

#include <set>

#include "support.h"

namespace sonde::test {
namespace {

sonde_field_t field(const char *name, uint32_t offset, uint32_t width, uint32_t kind) {
  return {name, offset, width, kind, 0, "", ""};
}

sonde_status add(const char *space, const std::vector<sonde_field_t> &fields, uint32_t bytes, uint32_t *out,
                 uint32_t type = 1) {
  const sonde_record_type_t record = {
      type, bytes, "thing", "", fields.data(), static_cast<uint32_t>(fields.size()), sizeof(sonde_field_t)};
  const sonde_schema_t schema = {sizeof(sonde_schema_t), 1, space, "", &record, sizeof(sonde_record_type_t), 0};
  return api().capture.register_space(&schema, out);
}

TEST(Spaces, BuiltInOnesHaveTheirNumbers) {
  for (const auto &[name, number] : std::vector<std::pair<const char *, uint32_t>>{{"sonde.session", 1},
                                                                                   {"sonde.host", 2},
                                                                                   {"sonde.device", 3},
                                                                                   {"sonde.memory", 4},
                                                                                   {"sonde.object", 5},
                                                                                   {"sonde.framework", 6}}) {
    uint32_t found = 0;
    ASSERT_EQ(api().capture.find_space(name, &found), SONDE_OK);
    EXPECT_EQ(found, number);
  }
}

// Every byte of a built-in record's fixed part is a field of its schema, except words named reserved.
TEST(Spaces, BuiltInSchemasCoverTheStructs) {
  for (uint32_t number = 1; number <= 6; ++number) {
    const sonde_schema_t *schema = nullptr;
    ASSERT_EQ(api().capture.schema(number, &schema), SONDE_OK);
    for (uint32_t t = 0; t < schema->type_count; ++t) {
      const sonde_record_type_t &type = schema->types[t];
      std::set<uint32_t> covered;
      for (uint32_t f = 0; f < type.field_count; ++f) {
        for (uint32_t byte = 0; byte < type.fields[f].width; ++byte) {
          EXPECT_TRUE(covered.insert(type.fields[f].offset + byte).second)
              << schema->space << "." << type.name << " fields overlap";
        }
      }
      EXPECT_EQ(type.fixed_bytes % 8, 0u);
      EXPECT_GE(covered.size() + 4, type.fixed_bytes - 16)
          << schema->space << "." << type.name << " has bytes without a field";
    }
  }
}

TEST(Spaces, TheSameSchemaTwiceIsOneSpace) {
  uint32_t first = 0;
  uint32_t second = 0;
  ASSERT_EQ(add("test.same", {field("a", 16, 8, SONDE_KIND_UINT)}, 24, &first), SONDE_OK);
  ASSERT_EQ(add("test.same", {field("a", 16, 8, SONDE_KIND_UINT)}, 24, &second), SONDE_OK);
  EXPECT_EQ(first, second);
  EXPECT_GE(first, SONDE_SPACE_FIRST_DYNAMIC);
}

TEST(Spaces, AContinuationIsTakenFromEitherSide) {
  uint32_t number = 0;
  ASSERT_EQ(add("test.grow", {field("a", 16, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_OK);
  ASSERT_EQ(add("test.grow", {field("a", 16, 8, SONDE_KIND_UINT), field("b", 24, 8, SONDE_KIND_FLOAT)}, 32, &number),
            SONDE_OK);
  ASSERT_EQ(add("test.grow", {field("a", 16, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_OK)
      << "an older writer still fits";
  const sonde_schema_t *schema = nullptr;
  ASSERT_EQ(api().capture.schema(number, &schema), SONDE_OK);
  ASSERT_EQ(schema->type_count, 1u);
  EXPECT_EQ(schema->types[0].field_count, 2u) << "the longer variant stays";
  ASSERT_EQ(add("test.grow", {field("c", 16, 4, SONDE_KIND_UINT)}, 24, &number, 2), SONDE_OK) << "a new type may come";
}

TEST(Spaces, AConflictNamesTheField) {
  uint32_t number = 0;
  ASSERT_EQ(add("test.conflict", {field("bytes", 16, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_OK);
  EXPECT_EQ(add("test.conflict", {field("count", 16, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_E_SCHEMA_CONFLICT);
  EXPECT_NE(TestSession::last().find("'bytes' at 16 and 'count' at 16"), std::string::npos) << TestSession::last();
  EXPECT_EQ(add("test.conflict", {field("bytes", 16, 8, SONDE_KIND_FLOAT)}, 24, &number), SONDE_E_SCHEMA_CONFLICT);
}

TEST(Spaces, ImpossibleFieldsAreRefused) {
  uint32_t number = 0;
  EXPECT_EQ(add("test.bad", {field("a", 8, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_E_INVALID) << "inside the header";
  EXPECT_EQ(add("test.bad", {field("a", 24, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_E_INVALID) << "past the end";
  EXPECT_EQ(add("test.bad", {field("a", 16, 3, SONDE_KIND_UINT)}, 24, &number), SONDE_E_INVALID) << "odd width";
  EXPECT_EQ(add("test.bad", {field("a", 16, 4, SONDE_KIND_TIME)}, 24, &number), SONDE_E_INVALID) << "narrow time";
  EXPECT_EQ(add("test.bad", {field("a", 16, 8, 99)}, 24, &number), SONDE_E_INVALID) << "unknown kind";
  EXPECT_EQ(add("test.bad", {field("", 16, 8, SONDE_KIND_UINT)}, 24, &number), SONDE_E_INVALID) << "no name";
  EXPECT_EQ(add("test.bad", {}, 20, &number), SONDE_E_INVALID) << "not whole words";
  EXPECT_EQ(add("test.bad", {}, 16, &number, 64), SONDE_E_INVALID) << "type out of range";
  EXPECT_EQ(api().capture.find_space("test.bad", &number), SONDE_E_NOT_FOUND) << "nothing of it remains";
}

}  // namespace
}  // namespace sonde::test
