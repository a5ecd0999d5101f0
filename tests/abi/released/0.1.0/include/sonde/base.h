// Words that every header of the binary interface uses.
//
// Rules of the interface: functions return sonde_status; out parameters come last; no struct passes by value; no
// variable arguments, bit-fields, C enum types, `long`, or C++ types; sizes are 64-bit; nobody frees the other
// side's memory; strings are UTF-8, NUL-terminated, and live as stated beside them. Each function states where it
// may be called, in brackets:
//   [control]      one thread at a time per object, never from a delivery callback of the same object
//   [app-thread]   any thread of the program that is measured
//   [delivery]     only inside a delivery callback
//   [any]          every thread, at any time, concurrently
//   [signal-safe]  as [any], and inside a signal handler
#ifndef SONDE_BASE_H
#define SONDE_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <sonde/version.h>

#ifdef __cplusplus
#define SONDE_EXTERN_C extern "C"
#define SONDE_BEGIN_DECLS extern "C" {
#define SONDE_END_DECLS }
#define SONDE_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define SONDE_EXTERN_C extern
#define SONDE_BEGIN_DECLS
#define SONDE_END_DECLS
#define SONDE_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif

// Marks a symbol that a shared object shows to its loader.
#define SONDE_EXPORTED __attribute__((visibility("default")))

// Size of a struct up to and including `member`: what a caller that uses nothing after `member` needs.
#define SONDE_NEED(type, member) ((uint32_t)(offsetof(type, member) + sizeof(((type *)0)->member)))

// True when the table or struct behind `pointer` (which begins with struct_size) reaches past `member`.
#define SONDE_HAS(pointer, type, member) ((pointer)->struct_size >= SONDE_NEED(type, member))

// 0 is success, negative values are errors, see status.h.
typedef int32_t sonde_status;

// A function whose real type a signature string describes.
typedef void (*sonde_function_t)(void);

// Releases the `user` pointer of a registration, exactly once, when no call can use it any more. A registration that
// returns an error does not take `user`, and drops nothing.
typedef void (*sonde_drop_user_t)(void *user);

// Objects of the host. Opaque; a pointer is valid until the function that ends it, named beside its maker.
typedef struct sonde_session_t sonde_session_t;
typedef struct sonde_config_t sonde_config_t;
typedef struct sonde_table_t sonde_table_t;
typedef struct sonde_results_t sonde_results_t;

#endif
