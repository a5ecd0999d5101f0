// Service sonde.reflect/1: calling functions by their signature string, and the other way round.
//
// Signatures are those of export.h: result, then parameters in parentheses. Prepared signatures are cached for the
// life of the process; the common shapes are called without libffi.
#ifndef SONDE_REFLECT_H
#define SONDE_REFLECT_H

#include <sonde/base.h>
#include <sonde/export.h>
#include <sonde/value.h>

SONDE_BEGIN_DECLS

#define SONDE_REFLECT_SERVICE "sonde.reflect/1"

// A prepared signature.
typedef struct sonde_signature_t sonde_signature_t;

// One parameter as a caller sees it. A view (y, L, D) or callback is one parameter here though it is two or three
// in C; an out parameter is a result.
typedef struct sonde_parameter_t {
  uint32_t struct_size;
  uint32_t kind;           // SONDE_VALUE_*; for a callback SONDE_VALUE_NONE and code 'c'
  uint32_t code;           // the letter
  uint32_t is_out;         // 1: a result
  const char *handle;      // for handles "S", "T", "{name}", otherwise ""
  uint64_t handle_number;  // for handles: what `count` of a HANDLE value of this name holds; otherwise 0
} sonde_parameter_t;

typedef struct sonde_reflect_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // SONDE_E_PARSE names the position.
  // [any]
  sonde_status (*prepare)(const char *signature, const sonde_signature_t **out);

  // Parameters in order; SONDE_E_RANGE past the last. Index UINT64_MAX is the result.
  // [any]
  sonde_status (*parameter)(const sonde_signature_t *signature, uint64_t index, sonde_parameter_t *out);

  // Calls `function`. `arguments` are the parameters that are not out, in order; a callback is given as a HANDLE to
  // a sonde_callback_binding_t. `results` receives the function's result (unless it is a status or none), then the
  // out parameters; *count is how many. A negative status result is returned as such.
  // SONDE_E_TYPE, SONDE_E_RANGE and SONDE_E_INVALID name the argument; then the function was not called, and `user`
  // of every callback given was dropped. NONE for a callback passes null pointers.
  // [any]
  sonde_status (*call)(const sonde_signature_t *signature, sonde_function_t function, const sonde_value_t *arguments,
                       uint64_t argument_count, sonde_value_t *results, uint64_t capacity, uint64_t *count);

  // A C function pointer of the given signature that calls `callback`. For foreign interfaces without a user
  // pointer; where there is one, a callback needs no closure. Free with free_closure, then `user` is dropped.
  // SONDE_E_INVALID: more than one result, or a callback parameter.
  // [any]
  sonde_status (*closure)(const sonde_signature_t *signature, sonde_callback_t callback, void *user,
                          sonde_drop_user_t drop_user, sonde_function_t *out);

  // [any]
  sonde_status (*free_closure)(sonde_function_t closure);
} sonde_reflect_service_t;

// What stands behind a callback argument of `call`.
typedef struct sonde_callback_binding_t {
  sonde_callback_t callback;
  void *user;
  sonde_drop_user_t drop_user;
} sonde_callback_binding_t;

SONDE_END_DECLS

#endif
