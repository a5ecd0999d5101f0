// SONDE_EXPORT gives the same signatures in C and C++, and calls through them reach the functions.
#include <gtest/gtest.h>

#include <map>

#include "exports_c.h"
#include "values.h"

namespace sonde::test {
namespace {

sonde_status all_scalars(int32_t, uint32_t, int64_t, uint64_t, double, const char *, double *, const char **) {
  return SONDE_OK;
}
sonde_status all_views(const uint8_t *, uint64_t, const int64_t *, uint64_t, const double *, uint64_t, int64_t *,
                       double *) {
  return SONDE_OK;
}
sonde_status all_handles(sonde_session_t *, sonde_table_t *, const sonde_config_t *, sonde_results_t *, test_thing_t *,
                         uint64_t *) {
  return SONDE_OK;
}
sonde_status visit(sonde_callback_t, void *, sonde_drop_user_t, int64_t *) { return SONDE_OK; }
uint64_t nothing() { return 0; }
void set_flag(uint64_t *) {}
test_thing_t *same_thing(test_thing_t *thing) { return thing; }
const char *no_text() { return nullptr; }
sonde_status refuse() { return SONDE_E_USER; }

const sonde_export_t kExports[] = {
    SONDE_EXPORT(all_scalars, status, (i32, u32, i64, u64, f64, text, out_f64, out_text), "scalars"),
    SONDE_EXPORT(all_views, status, (bytes, i64s, f64s, out_i64, out_f64), "views"),
    SONDE_EXPORT(all_handles, status, (session, table, config, results, thing, out_u64), "handles"),
    SONDE_EXPORT(visit, status, (callback, out_i64), "callback"),
    SONDE_EXPORT(nothing, u64, (none), "no parameter"),
    SONDE_EXPORT(set_flag, none, (out_u64), "no result"),
    SONDE_EXPORT(same_thing, thing, (thing), "a handle as the result"),
    SONDE_EXPORT(no_text, text, (none), "NULL"),
    SONDE_EXPORT(refuse, status, (none), "an error"),
};

struct Called {
  sonde_status status = SONDE_E_INTERNAL;
  std::vector<sonde_value_t> results;
};

Called call_c(const char *name, std::vector<sonde_value_t> arguments) {
  Called called;
  uint64_t count = 0;
  const sonde_export_t *exports = test_c_exports(&count);
  for (uint64_t index = 0; index < count; ++index) {
    if (std::string_view(exports[index].name) != name) continue;
    const sonde_signature_t *signature = prepared(exports[index].signature);
    called.results.resize(16);
    uint64_t written = 0;
    called.status = reflect_service().call(signature, exports[index].function, arguments.data(), arguments.size(),
                                           called.results.data(), 16, &written);
    called.results.resize(written);
    return called;
  }
  ADD_FAILURE() << "no export " << name;
  return called;
}

TEST(Export, SignaturesAgreeInCAndCpp) {
  uint64_t count = 0;
  const sonde_export_t *exports = test_c_exports(&count);
  ASSERT_EQ(count, std::size(kExports));
  for (uint64_t index = 0; index < count; ++index) {
    EXPECT_STREQ(exports[index].name, kExports[index].name);
    EXPECT_STREQ(exports[index].signature, kExports[index].signature);
  }
}

TEST(Export, SignaturesAreThoseOfTheTable) {
  const std::map<std::string, std::string> expected = {
      {"all_scalars", "e(iIqQds&d&s)"},
      {"all_views", "e(yLD&q&d)"},
      {"all_handles", "e(hShThChRh{thing}&Q)"},
      {"visit", "e(c&q)"},
      {"nothing", "Q(v)"},
      {"set_flag", "v(&Q)"},
      {"same_thing", "h{thing}(h{thing})"},
      {"no_text", "s(v)"},
      {"refuse", "e(v)"},
  };
  for (const sonde_export_t &entry : kExports) EXPECT_EQ(entry.signature, expected.at(entry.name));
}

TEST(Export, ScalarsArrive) {
  const Called called = call_c("all_scalars", {i64(-1), u64(2), i64(-30), u64(400), f64(0.5), text("héllo")});
  ASSERT_EQ(called.status, SONDE_OK) << last_error();
  ASSERT_EQ(called.results.size(), 2u);
  EXPECT_EQ(called.results[0].as.f64, -1 + 2 - 30 + 400 + 0.5);
  EXPECT_STREQ(called.results[1].as.text, "héllo");
  EXPECT_EQ(called.results[1].count, std::strlen("héllo"));
}

TEST(Export, ViewsArrive) {
  const uint8_t bytes[] = {1, 2, 255};
  const int64_t integers[] = {-10, 1000};
  const double numbers[] = {0.25, 0.5};
  const Called called = call_c("all_views", {view(SONDE_VALUE_BYTES, bytes, 3), view(SONDE_VALUE_I64S, integers, 2),
                                             view(SONDE_VALUE_F64S, numbers, 2)});
  ASSERT_EQ(called.status, SONDE_OK) << last_error();
  EXPECT_EQ(called.results[0].as.i64, 258 + 990);
  EXPECT_EQ(called.results[1].as.f64, 0.75);
}

TEST(Export, TextServesAsBytes) {
  const Called called =
      call_c("all_views", {text("AB"), view(SONDE_VALUE_I64S, nullptr, 0), view(SONDE_VALUE_F64S, nullptr, 0)});
  ASSERT_EQ(called.status, SONDE_OK) << last_error();
  EXPECT_EQ(called.results[0].as.i64, 'A' + 'B');
}

// A pointer is 64 bits wide, whatever its high bits are.
TEST(Export, HandlesKeepAllBits) {
  const auto pointer = [](uint64_t bits) { return reinterpret_cast<const void *>(bits); };
  const Called called =
      call_c("all_handles", {handle(pointer(0x0100000000000001)), handle(pointer(0xffff800012345678)),
                             handle(pointer(2)), handle(pointer(4)), handle(pointer(uint64_t{1} << 56))});
  ASSERT_EQ(called.status, SONDE_OK) << last_error();
  EXPECT_EQ(called.results[0].as.u64, 0x0100000000000001 ^ 0xffff800012345678 ^ 2 ^ 4 ^ (uint64_t{1} << 56));
}

TEST(Export, HandleResultsCarryTheirName) {
  int thing = 0;
  const Called called = call_c("same_thing", {handle(&thing)});
  ASSERT_EQ(called.status, SONDE_OK);
  EXPECT_EQ(called.results[0].as.pointer, &thing);
  EXPECT_EQ(call_c("same_thing", {called.results[0]}).status, SONDE_OK);
  sonde_value_t other = called.results[0];
  ++other.count;
  EXPECT_EQ(call_c("same_thing", {other}).status, SONDE_E_TYPE);
  EXPECT_NE(std::string(last_error()).find("argument 1"), std::string::npos);
}

TEST(Export, FunctionsWithoutParametersOrResults) {
  EXPECT_EQ(call_c("nothing", {}).results.at(0).as.u64, UINT64_MAX);
  EXPECT_EQ(call_c("set_flag", {}).results.at(0).as.u64, 7u);
  EXPECT_EQ(call_c("no_text", {}).results.at(0).kind, SONDE_VALUE_NONE);
  EXPECT_EQ(call_c("refuse", {}).status, SONDE_E_USER);
}

}  // namespace
}  // namespace sonde::test
