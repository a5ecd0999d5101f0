// C function pointers that call a sonde_callback_t.
#pragma once

#include <sonde/reflect.h>

#include "reflect/signature.h"

namespace sonde::reflect {

// See sonde_reflect_service_t.closure. The callback's result is the function's result, or with a status or no result
// the one out parameter; a signature with more results, or with a callback parameter, has no closure. An error of the
// callback is returned where the result is a status; otherwise the result is zero.
Result<sonde_function_t> make_closure(const Signature &signature, sonde_callback_t callback, void *user,
                                      sonde_drop_user_t drop_user);

// Frees it and drops `user`. SONDE_E_NOT_FOUND. Not while it runs.
Result<void> free_closure(sonde_function_t closure);

}  // namespace sonde::reflect
