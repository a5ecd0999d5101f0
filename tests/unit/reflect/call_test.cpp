#include "reflect/call.h"

#include <gtest/gtest.h>

#include <limits>

#include "values.h"

namespace sonde::test {
namespace {

template <typename Function>
sonde_function_t erased(Function *function) {
  return reinterpret_cast<sonde_function_t>(function);
}

sonde_value_t call_one(const char *signature, sonde_function_t function, std::vector<sonde_value_t> arguments,
                       sonde_status expected = SONDE_OK) {
  sonde_value_t result = {};
  uint64_t count = 0;
  const sonde_status status =
      reflect_service().call(prepared(signature), function, arguments.data(), arguments.size(), &result, 1, &count);
  EXPECT_EQ(status, expected) << last_error();
  EXPECT_EQ(count, expected == SONDE_OK ? 1u : 0u);
  return result;
}

int32_t same_i(int32_t value) { return value; }
uint32_t same_I(uint32_t value) { return value; }
int64_t same_q(int64_t value) { return value; }
uint64_t same_Q(uint64_t value) { return value; }
double same_d(double value) { return value; }

TEST(Call, ExtremesOfEveryWidthSurvive) {
  for (const int64_t value : {int64_t{INT32_MIN}, int64_t{-1}, int64_t{0}, int64_t{INT32_MAX}}) {
    EXPECT_EQ(call_one("i(i)", erased(same_i), {i64(value)}).as.i64, value);
  }
  for (const uint64_t value : {uint64_t{0}, uint64_t{0x80000000}, uint64_t{UINT32_MAX}}) {
    EXPECT_EQ(call_one("I(I)", erased(same_I), {u64(value)}).as.u64, value);
  }
  for (const int64_t value : {INT64_MIN, int64_t{-1}, (int64_t{1} << 53) + 1, INT64_MAX}) {
    EXPECT_EQ(call_one("q(q)", erased(same_q), {i64(value)}).as.i64, value);
  }
  for (const uint64_t value : {uint64_t{0xffff800012345678}, (uint64_t{1} << 53) + 1, UINT64_MAX}) {
    EXPECT_EQ(call_one("Q(Q)", erased(same_Q), {u64(value)}).as.u64, value);
  }
  for (const double value : {-0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max(),
                             -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(call_one("d(d)", erased(same_d), {f64(value)}).as.f64),
              std::bit_cast<uint64_t>(value));
  }
}

TEST(Call, ValuesOutsideAWidthAreRefused) {
  call_one("i(i)", erased(same_i), {i64(int64_t{INT32_MAX} + 1)}, SONDE_E_RANGE);
  EXPECT_STREQ(last_error(), "argument 1 of \"i(i)\": 2147483648 lies outside -2147483648 to 2147483647");
  call_one("i(i)", erased(same_i), {i64(int64_t{INT32_MIN} - 1)}, SONDE_E_RANGE);
  call_one("I(I)", erased(same_I), {i64(-1)}, SONDE_E_RANGE);
  call_one("I(I)", erased(same_I), {u64(uint64_t{UINT32_MAX} + 1)}, SONDE_E_RANGE);
  call_one("q(q)", erased(same_q), {u64(uint64_t{INT64_MAX} + 1)}, SONDE_E_RANGE);
  call_one("Q(Q)", erased(same_Q), {i64(-1)}, SONDE_E_RANGE);
}

TEST(Call, IntegersServeAsDoubles) {
  EXPECT_EQ(call_one("d(d)", erased(same_d), {i64(-3)}).as.f64, -3.0);
  EXPECT_EQ(call_one("d(d)", erased(same_d), {u64(3)}).as.f64, 3.0);
}

TEST(Call, WrongKindsAreRefusedByName) {
  call_one("q(q)", erased(same_q), {f64(1)}, SONDE_E_TYPE);
  EXPECT_STREQ(last_error(), "argument 1 of \"q(q)\": expected i64, got f64");
  call_one("d(d)", erased(same_d), {text("1")}, SONDE_E_TYPE);
  call_one("q(q)", erased(same_q), {sonde_value_t{}}, SONDE_E_TYPE);
  sonde_value_t unknown = {};
  unknown.kind = 77;
  call_one("q(q)", erased(same_q), {unknown}, SONDE_E_TYPE);
}

TEST(Call, CountsOfArgumentsAndResultsAreChecked) {
  call_one("q(q)", erased(same_q), {}, SONDE_E_INVALID);
  call_one("q(q)", erased(same_q), {i64(1), i64(2)}, SONDE_E_INVALID);
  sonde_value_t argument = i64(1);
  uint64_t count = 9;
  EXPECT_EQ(reflect_service().call(prepared("q(q)"), erased(same_q), &argument, 1, nullptr, 0, &count),
            SONDE_E_INVALID);
  sonde_value_t result = {};
  EXPECT_EQ(reflect_service().call(prepared("q(q)"), erased(same_q), &argument, 1, &result, 0, &count), SONDE_E_RANGE);
  EXPECT_EQ(reflect_service().call(prepared("q(q)"), nullptr, &argument, 1, &result, 1, &count), SONDE_E_INVALID);
  EXPECT_EQ(reflect_service().call(nullptr, erased(same_q), &argument, 1, &result, 1, &count), SONDE_E_INVALID);
}

uint64_t length(const char *words) { return std::strlen(words); }

TEST(Call, TextWithANulInsideIsRefused) {
  EXPECT_EQ(call_one("Q(s)", erased(length), {text("abc")}).as.u64, 3u);
  sonde_value_t cut = text("abc");
  cut.as.text = "a\0c";
  call_one("Q(s)", erased(length), {cut}, SONDE_E_INVALID);
  call_one("Q(s)", erased(length), {sonde_value_t{}}, SONDE_E_TYPE);
}

sonde_status positive() { return 5; }
sonde_status failing(uint64_t *out) {
  *out = 1;
  return SONDE_E_BUSY;
}

TEST(Call, NegativeStatusIsReturnedAndPositiveIsSuccess) {
  uint64_t count = 0;
  EXPECT_EQ(reflect_service().call(prepared("e()"), erased(positive), nullptr, 0, nullptr, 0, &count), SONDE_OK);
  sonde_value_t result = {};
  EXPECT_EQ(reflect_service().call(prepared("e(&Q)"), erased(failing), nullptr, 0, &result, 1, &count), SONDE_E_BUSY);
  EXPECT_EQ(count, 0u);
}

// ---- Callbacks ----

int drops = 0;
void count_drop(void *) { ++drops; }
sonde_status twice(void *, const sonde_value_t *arguments, uint64_t, sonde_value_t *result) {
  *result = i64(2 * arguments[0].as.i64);
  return SONDE_OK;
}
sonde_status apply(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, int64_t value, int64_t *out) {
  if (callback == nullptr) {
    *out = -1;
    return SONDE_OK;
  }
  const sonde_value_t argument = i64(value);
  sonde_value_t result = {};
  const sonde_status status = callback(user, &argument, 1, &result);
  *out = result.as.i64;
  drop_user(user);
  return status;
}

TEST(Call, CallbacksAreCalledAndDroppedOnce) {
  drops = 0;
  const sonde_callback_binding_t binding = {twice, nullptr, count_drop};
  EXPECT_EQ(call_one("e(cq&q)", erased(apply), {handle(&binding), i64(21)}).as.i64, 42);
  EXPECT_EQ(drops, 1);
}

TEST(Call, CallbacksAreDroppedWhenTheCallIsNotMade) {
  drops = 0;
  const sonde_callback_binding_t binding = {twice, nullptr, count_drop};
  call_one("e(cq&q)", erased(apply), {handle(&binding), text("21")}, SONDE_E_TYPE);
  EXPECT_EQ(drops, 1);
  call_one("e(cq&q)", erased(apply), {handle(&binding)}, SONDE_E_INVALID);
  EXPECT_EQ(drops, 2);
}

TEST(Call, NoneIsNoCallback) { EXPECT_EQ(call_one("e(cq&q)", erased(apply), {sonde_value_t{}, i64(1)}).as.i64, -1); }

}  // namespace
}  // namespace sonde::test
