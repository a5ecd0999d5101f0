// Published functions in C, one for each word, and their table.
#include "exports_c.h"

static sonde_status all_scalars(int32_t a, uint32_t b, int64_t c, uint64_t d, double e, const char *text, double *sum,
                                const char **echo) {
  *sum = (double)a + (double)b + (double)c + (double)d + e;
  *echo = text;
  return SONDE_OK;
}

static sonde_status all_views(const uint8_t *bytes, uint64_t byte_count, const int64_t *integers,
                              uint64_t integer_count, const double *numbers, uint64_t number_count,
                              int64_t *integer_sum, double *number_sum) {
  *integer_sum = 0;
  *number_sum = 0;
  for (uint64_t index = 0; index < byte_count; ++index) *integer_sum += bytes[index];
  for (uint64_t index = 0; index < integer_count; ++index) *integer_sum += integers[index];
  for (uint64_t index = 0; index < number_count; ++index) *number_sum += numbers[index];
  return SONDE_OK;
}

static sonde_status all_handles(sonde_session_t *session, sonde_table_t *table, const sonde_config_t *config,
                                sonde_results_t *results, test_thing_t *thing, uint64_t *mixed) {
  *mixed = (uint64_t)(uintptr_t)session ^ (uint64_t)(uintptr_t)table ^ (uint64_t)(uintptr_t)config ^
           (uint64_t)(uintptr_t)results ^ (uint64_t)(uintptr_t)thing;
  return SONDE_OK;
}

static sonde_status visit(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, int64_t *out) {
  sonde_value_t argument = {SONDE_VALUE_I64, 0, 0, {20}};
  sonde_value_t result = {SONDE_VALUE_NONE, 0, 0, {0}};
  const sonde_status status = callback(user, &argument, 1, &result);
  *out = result.as.i64;
  if (drop_user != NULL) drop_user(user);
  return status;
}

static uint64_t nothing(void) { return UINT64_MAX; }
static void set_flag(uint64_t *out) { *out = 7; }
static test_thing_t *same_thing(test_thing_t *thing) { return thing; }
static const char *no_text(void) { return NULL; }
static sonde_status refuse(void) { return SONDE_E_USER; }

static const sonde_export_t exports[] = {
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

const sonde_export_t *test_c_exports(uint64_t *count) {
  *count = sizeof(exports) / sizeof(exports[0]);
  return exports;
}
