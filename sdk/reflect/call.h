// Calling a function through its prepared signature.
#pragma once

#include <sonde/reflect.h>

#include "reflect/signature.h"

namespace sonde::reflect {

// See sonde_reflect_service_t.call. [any]
sonde_status call(const Signature &signature, sonde_function_t function, const sonde_value_t *arguments,
                  uint64_t argument_count, sonde_value_t *results, uint64_t capacity, uint64_t *count);

// Word for a kind, for messages: "i64", "text", "handle", ...
const char *kind_name(uint32_t kind);

}  // namespace sonde::reflect
