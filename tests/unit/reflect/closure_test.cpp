#include <gtest/gtest.h>

#include <vector>

#include "values.h"

namespace sonde::test {
namespace {

struct Recorder {
  std::vector<sonde_value_t> seen;
  sonde_value_t answer = {};
  sonde_status status = SONDE_OK;
  int dropped = 0;
};

sonde_status record(void *user, const sonde_value_t *arguments, uint64_t count, sonde_value_t *result) {
  auto &recorder = *static_cast<Recorder *>(user);
  recorder.seen.assign(arguments, arguments + count);
  *result = recorder.answer;
  return recorder.status;
}
void drop(void *user) { ++static_cast<Recorder *>(user)->dropped; }

template <typename Function>
Function *closure(const char *signature, Recorder &recorder) {
  sonde_function_t out = nullptr;
  EXPECT_EQ(reflect_service().closure(prepared(signature), record, &recorder, drop, &out), SONDE_OK) << last_error();
  return reinterpret_cast<Function *>(out);
}

template <typename Function>
void release(Function *function) {
  EXPECT_EQ(reflect_service().free_closure(reinterpret_cast<sonde_function_t>(function)), SONDE_OK) << last_error();
}

TEST(Closure, PassesEveryKindOfArgument) {
  Recorder recorder;
  recorder.answer = u64(UINT64_MAX);
  using Function = uint64_t(int32_t, uint32_t, int64_t, uint64_t, double, const char *, const uint8_t *, uint64_t,
                            const double *, uint64_t, void *);
  auto *function = closure<Function>("Q(iIqQdsyDh{thing})", recorder);
  const uint8_t bytes[] = {1, 2, 3};
  const double numbers[] = {0.5};
  int thing = 0;
  EXPECT_EQ(function(INT32_MIN, UINT32_MAX, INT64_MIN, UINT64_MAX, -0.5, "words", bytes, 3, numbers, 1, &thing),
            UINT64_MAX);
  ASSERT_EQ(recorder.seen.size(), 9u);
  EXPECT_EQ(recorder.seen[0].as.i64, INT32_MIN);
  EXPECT_EQ(recorder.seen[1].as.u64, UINT32_MAX);
  EXPECT_EQ(recorder.seen[2].as.i64, INT64_MIN);
  EXPECT_EQ(recorder.seen[3].as.u64, UINT64_MAX);
  EXPECT_EQ(recorder.seen[4].as.f64, -0.5);
  EXPECT_STREQ(recorder.seen[5].as.text, "words");
  EXPECT_EQ(recorder.seen[6].as.pointer, bytes);
  EXPECT_EQ(recorder.seen[6].count, 3u);
  EXPECT_EQ(recorder.seen[7].kind, SONDE_VALUE_F64S);
  EXPECT_EQ(recorder.seen[8].as.pointer, &thing);
  release(function);
  EXPECT_EQ(recorder.dropped, 1);
}

TEST(Closure, ResultsOfEveryWidth) {
  Recorder recorder;
  recorder.answer = i64(-7);
  auto *narrow = closure<int32_t()>("i()", recorder);
  EXPECT_EQ(narrow(), -7);
  release(narrow);
  recorder.answer = f64(2.5);
  auto *number = closure<double(double)>("d(d)", recorder);
  EXPECT_EQ(number(1), 2.5);
  release(number);
  recorder.answer = text("answer");
  auto *words = closure<const char *()>("s()", recorder);
  EXPECT_STREQ(words(), "answer");
  release(words);
  auto *nothing = closure<void(int64_t)>("v(q)", recorder);
  nothing(4);
  EXPECT_EQ(recorder.seen.at(0).as.i64, 4);
  release(nothing);
}

TEST(Closure, FillsOneOutParameterAndReturnsErrors) {
  Recorder recorder;
  recorder.answer = i64(99);
  auto *function = closure<sonde_status(int64_t, int64_t *)>("e(q&q)", recorder);
  int64_t out = 0;
  EXPECT_EQ(function(1, &out), SONDE_OK);
  EXPECT_EQ(out, 99);
  recorder.status = SONDE_E_USER;
  out = 5;
  EXPECT_EQ(function(1, &out), SONDE_E_USER);
  EXPECT_EQ(out, 5);
  release(function);
}

TEST(Closure, ErrorsBecomeZeroWhereThereIsNoStatus) {
  Recorder recorder;
  recorder.answer = i64(99);
  recorder.status = SONDE_E_USER;
  auto *function = closure<int64_t()>("q()", recorder);
  EXPECT_EQ(function(), 0);
  release(function);
}

TEST(Closure, IsRefusedWhereItCannotAnswer) {
  sonde_function_t out = nullptr;
  const sonde_reflect_service_t &reflect = reflect_service();
  EXPECT_EQ(reflect.closure(prepared("q(&q)"), record, nullptr, nullptr, &out), SONDE_E_INVALID);
  EXPECT_EQ(reflect.closure(prepared("e(c)"), record, nullptr, nullptr, &out), SONDE_E_INVALID);
  EXPECT_EQ(reflect.closure(prepared("e()"), nullptr, nullptr, nullptr, &out), SONDE_E_INVALID);
  EXPECT_EQ(out, nullptr);
}

TEST(Closure, IsFreedOnce) {
  Recorder recorder;
  auto *function = closure<void()>("v()", recorder);
  release(function);
  EXPECT_EQ(reflect_service().free_closure(reinterpret_cast<sonde_function_t>(function)), SONDE_E_NOT_FOUND);
  EXPECT_EQ(recorder.dropped, 1);
}

}  // namespace
}  // namespace sonde::test
