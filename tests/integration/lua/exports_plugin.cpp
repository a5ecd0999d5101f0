// A plugin whose functions exercise what scripts may call.
#include <sonde/plugin.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

namespace {

const sonde_host_t *host = nullptr;

struct Counter {
  int64_t value;
};

uint64_t same_u64(uint64_t value) { return value; }
int64_t add(int64_t a, int64_t b) { return a + b; }
int32_t narrow(int32_t value) { return value; }
double half(double value) { return value / 2; }

sonde_status has_session(sonde_session_t *session, uint64_t *out) {
  *out = session != nullptr ? 1 : 0;
  return SONDE_OK;
}

sonde_status greet(const char *name, const char **out) {
  thread_local char text[128];
  std::strcpy(text, "hello ");
  std::strncat(text, name, 100);
  *out = text;
  return SONDE_OK;
}

sonde_status refuse(sonde_session_t *) { return host->set_error(SONDE_E_BUSY, "the device is taken"); }

Counter *new_counter(int64_t first) { return new Counter{first}; }
int64_t next_of(Counter *counter) { return counter->value++; }
Counter *high_handle(uint64_t bits) { return reinterpret_cast<Counter *>(bits); }
uint64_t bits_of(Counter *counter) { return reinterpret_cast<uint64_t>(counter); }

struct Other {
  int unused;
};
Other *new_other() { return new Other{0}; }

sonde_status totals(const int64_t *integers, uint64_t integer_count, const double *numbers, uint64_t number_count,
                    int64_t *integer_sum, double *number_sum) {
  *integer_sum = 0;
  *number_sum = 0;
  for (uint64_t index = 0; index < integer_count; ++index) *integer_sum += integers[index];
  for (uint64_t index = 0; index < number_count; ++index) *number_sum += numbers[index];
  return SONDE_OK;
}

sonde_value_t number(int64_t value) {
  sonde_value_t out = {};
  out.kind = SONDE_VALUE_I64;
  out.as.i64 = value;
  return out;
}

// Sum of callback(1) to callback(count).
sonde_status sum_of(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, int64_t count, int64_t *out) {
  *out = 0;
  sonde_status status = SONDE_OK;
  for (int64_t index = 1; index <= count && status >= 0; ++index) {
    const sonde_value_t argument = number(index);
    sonde_value_t result = {};
    status = callback(user, &argument, 1, &result);
    *out += result.as.i64;
  }
  if (drop_user != nullptr) drop_user(user);
  return status;
}

// Calls the callback from another thread and returns its status.
sonde_status from_elsewhere(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, int64_t *out) {
  std::thread([&] {
    const sonde_value_t argument = number(1);
    sonde_value_t result = {};
    *out = callback(user, &argument, 1, &result);
  }).join();
  drop_user(user);
  return SONDE_OK;
}

sonde_callback_t kept = nullptr;
void *kept_user = nullptr;
sonde_drop_user_t kept_drop = nullptr;

sonde_status keep(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user) {
  kept = callback;
  kept_user = user;
  kept_drop = drop_user;
  return SONDE_OK;
}

// Calls what keep kept; its status.
sonde_status call_kept(int64_t *out) {
  const sonde_value_t argument = number(1);
  sonde_value_t result = {};
  *out = kept(kept_user, &argument, 1, &result);
  return SONDE_OK;
}

sonde_status drop_kept() {
  kept_drop(kept_user);
  return SONDE_OK;
}

#define SONDE_TYPE_counter Counter *
#define SONDE_CODE_counter "h{counter}"
#define SONDE_TYPE_other Other *
#define SONDE_CODE_other "h{other}"

const sonde_export_t exports[] = {
    SONDE_EXPORT(same_u64, u64, (u64), "the value"),
    SONDE_EXPORT(add, i64, (i64, i64), "the sum"),
    SONDE_EXPORT(narrow, i32, (i32), "the value"),
    SONDE_EXPORT(half, f64, (f64), "half the value"),
    SONDE_EXPORT(has_session, status, (session, out_u64), "1 with a session"),
    SONDE_EXPORT(greet, status, (text, out_text), "a greeting"),
    SONDE_EXPORT(refuse, status, (session), "fails"),
    SONDE_EXPORT(new_counter, counter, (i64), "a counter"),
    SONDE_EXPORT(next_of, i64, (counter), "its next value"),
    SONDE_EXPORT(high_handle, counter, (u64), "a handle with these bits"),
    SONDE_EXPORT(bits_of, u64, (counter), "the bits of a handle"),
    SONDE_EXPORT(new_other, other, (none), "a handle of another kind"),
    SONDE_EXPORT(totals, status, (i64s, f64s, out_i64, out_f64), "two sums"),
    SONDE_EXPORT(sum_of, status, (callback, i64, out_i64), "sum of the callback's results"),
    SONDE_EXPORT(from_elsewhere, status, (callback, out_i64), "status of a call on another thread"),
    SONDE_EXPORT(keep, status, (callback), "keeps a callback"),
    SONDE_EXPORT(call_kept, status, (out_i64), "status of a call of the kept callback"),
    SONDE_EXPORT(drop_kept, status, (none), "drops the kept callback"),
};

sonde_status init(const sonde_host_t *given) {
  host = given;
  return SONDE_OK;
}

}  // namespace

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "test_exports",
    "1.0.0",
    "functions for tests",
    "",
    exports,
    static_cast<uint32_t>(std::size(exports)),
    sizeof(sonde_export_t),
    nullptr,
    0,
    sizeof(sonde_option_t),
    init,
    nullptr,
    nullptr,
};
