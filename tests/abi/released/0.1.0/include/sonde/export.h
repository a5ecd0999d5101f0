// Publishing functions so that Lua, Python and the command line can call them.
//
// SONDE_EXPORT(function, result, (parameters...), "help") makes one entry of a plugin's export table. Result and
// parameters are words from the list below. The compiler checks the function's type against them, so the signature
// string cannot differ from the function.
//
//   static const sonde_export_t exports[] = {
//     SONDE_EXPORT(kernel_count, status, (session, out_u64), "kernels seen"),
//   };
//
// word      C parameters                                         signature
// status    sonde_status (as a result: negative raises an error) e
// none      void (as a result, or as the only parameter)         v
// i32 u32   int32_t, uint32_t                                    i I
// i64 u64   int64_t, uint64_t                                    q Q
// f64       double                                               d
// text      const char *, UTF-8                                  s
// bytes     const uint8_t *, uint64_t count                      y
// i64s f64s const int64_t * or const double *, uint64_t count    L D
// session table config results   handles of the host             hS hT hC hR
// out_i64 out_u64 out_f64 out_text   pointer to a result         &q &Q &d &s (text owned by the plugin, valid until
//                                                                its next call on the same thread)
// callback  sonde_callback_t, void *user, sonde_drop_user_t      c
//
// A plugin adds a handle of its own by defining SONDE_TYPE_<word> as the pointer type and SONDE_CODE_<word> as
// "h{name}".
#ifndef SONDE_EXPORT_H
#define SONDE_EXPORT_H

#include <sonde/base.h>
#include <sonde/value.h>

SONDE_BEGIN_DECLS

// A function value handed to an export. `result` may be NULL. Called only on the thread that the export documents.
typedef sonde_status (*sonde_callback_t)(void *user, const sonde_value_t *arguments, uint64_t count,
                                         sonde_value_t *result);

typedef struct sonde_export_t {
  const char *name;
  const char *signature;
  const char *help;  // one line
  sonde_function_t function;
} sonde_export_t;

#define SONDE_TYPE_status sonde_status
#define SONDE_CODE_status "e"
#define SONDE_TYPE_none void
#define SONDE_CODE_none "v"
#define SONDE_TYPE_i32 int32_t
#define SONDE_CODE_i32 "i"
#define SONDE_TYPE_u32 uint32_t
#define SONDE_CODE_u32 "I"
#define SONDE_TYPE_i64 int64_t
#define SONDE_CODE_i64 "q"
#define SONDE_TYPE_u64 uint64_t
#define SONDE_CODE_u64 "Q"
#define SONDE_TYPE_f64 double
#define SONDE_CODE_f64 "d"
#define SONDE_TYPE_text const char *
#define SONDE_CODE_text "s"
#define SONDE_TYPE_bytes const uint8_t *, uint64_t
#define SONDE_CODE_bytes "y"
#define SONDE_TYPE_i64s const int64_t *, uint64_t
#define SONDE_CODE_i64s "L"
#define SONDE_TYPE_f64s const double *, uint64_t
#define SONDE_CODE_f64s "D"
#define SONDE_TYPE_session sonde_session_t *
#define SONDE_CODE_session "hS"
#define SONDE_TYPE_table sonde_table_t *
#define SONDE_CODE_table "hT"
#define SONDE_TYPE_config const sonde_config_t *
#define SONDE_CODE_config "hC"
#define SONDE_TYPE_results sonde_results_t *
#define SONDE_CODE_results "hR"
#define SONDE_TYPE_out_i64 int64_t *
#define SONDE_CODE_out_i64 "&q"
#define SONDE_TYPE_out_u64 uint64_t *
#define SONDE_CODE_out_u64 "&Q"
#define SONDE_TYPE_out_f64 double *
#define SONDE_CODE_out_f64 "&d"
#define SONDE_TYPE_out_text const char **
#define SONDE_CODE_out_text "&s"
#define SONDE_TYPE_callback sonde_callback_t, void *, sonde_drop_user_t
#define SONDE_CODE_callback "c"

// Machinery: applies a prefix to up to eight words.
#define SONDE_CAT_(a, b) a##b
#define SONDE_CAT(a, b) SONDE_CAT_(a, b)
#define SONDE_COUNT_(a, b, c, d, e, f, g, h, n, ...) n
#define SONDE_COUNT(...) SONDE_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SONDE_TYPES_1(a) SONDE_TYPE_##a
#define SONDE_TYPES_2(a, b) SONDE_TYPE_##a, SONDE_TYPE_##b
#define SONDE_TYPES_3(a, ...) SONDE_TYPE_##a, SONDE_TYPES_2(__VA_ARGS__)
#define SONDE_TYPES_4(a, ...) SONDE_TYPE_##a, SONDE_TYPES_3(__VA_ARGS__)
#define SONDE_TYPES_5(a, ...) SONDE_TYPE_##a, SONDE_TYPES_4(__VA_ARGS__)
#define SONDE_TYPES_6(a, ...) SONDE_TYPE_##a, SONDE_TYPES_5(__VA_ARGS__)
#define SONDE_TYPES_7(a, ...) SONDE_TYPE_##a, SONDE_TYPES_6(__VA_ARGS__)
#define SONDE_TYPES_8(a, ...) SONDE_TYPE_##a, SONDE_TYPES_7(__VA_ARGS__)
#define SONDE_TYPES(...) SONDE_CAT(SONDE_TYPES_, SONDE_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define SONDE_CODES_1(a) SONDE_CODE_##a
#define SONDE_CODES_2(a, b) SONDE_CODE_##a SONDE_CODE_##b
#define SONDE_CODES_3(a, ...) SONDE_CODE_##a SONDE_CODES_2(__VA_ARGS__)
#define SONDE_CODES_4(a, ...) SONDE_CODE_##a SONDE_CODES_3(__VA_ARGS__)
#define SONDE_CODES_5(a, ...) SONDE_CODE_##a SONDE_CODES_4(__VA_ARGS__)
#define SONDE_CODES_6(a, ...) SONDE_CODE_##a SONDE_CODES_5(__VA_ARGS__)
#define SONDE_CODES_7(a, ...) SONDE_CODE_##a SONDE_CODES_6(__VA_ARGS__)
#define SONDE_CODES_8(a, ...) SONDE_CODE_##a SONDE_CODES_7(__VA_ARGS__)
#define SONDE_CODES(...) SONDE_CAT(SONDE_CODES_, SONDE_COUNT(__VA_ARGS__))(__VA_ARGS__)

// The function converted to sonde_function_t, an error when its type is not exactly `pointer_type`.
#ifdef __cplusplus
SONDE_END_DECLS
template <typename Expected, typename Given>
inline sonde_function_t sonde_checked_function(Given *function) {
  Expected exact = function;  // an error here: the words of SONDE_EXPORT differ from the function's parameters
  return reinterpret_cast<sonde_function_t>(exact);
}
SONDE_BEGIN_DECLS
#define SONDE_CHECKED_FUNCTION(pointer_type, function) sonde_checked_function<pointer_type>(&function)
#else
#define SONDE_CHECKED_FUNCTION(pointer_type, function) _Generic(&function, pointer_type : (sonde_function_t)(function))
#endif

#define SONDE_EXPORT(function, result, parameters, help)                                  \
  {                                                                                       \
#function, SONDE_CODE_##result "(" SONDE_CODES parameters ")", help,                  \
        SONDE_CHECKED_FUNCTION(SONDE_TYPE_##result (*)(SONDE_TYPES parameters), function) \
  }

SONDE_END_DECLS

#endif
