#include "core/services.h"
#include "reflect/call.h"
#include "reflect/closure.h"
#include "reflect/reflect.h"
#include "reflect/signature.h"

#include <fmt/format.h>

namespace sonde::reflect {
namespace {

const Signature &inside(const sonde_signature_t *signature) { return *reinterpret_cast<const Signature *>(signature); }

sonde_status service_prepare(const char *signature, const sonde_signature_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (signature == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "prepare: signature and out are needed");
    *out = nullptr;
    Result<const Signature *> prepared = prepare(signature);
    if (!prepared) return fail(prepared.error());
    *out = reinterpret_cast<const sonde_signature_t *>(*prepared);
    return SONDE_OK;
  });
}

sonde_status service_parameter(const sonde_signature_t *signature, uint64_t index, sonde_parameter_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (signature == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "parameter: signature and out are needed");
    if (!SONDE_HAS(out, sonde_parameter_t, handle)) {
      return fail(SONDE_E_INVALID, "parameter: set struct_size of the result first");
    }
    const Signature &known = inside(signature);
    if (index != UINT64_MAX && index >= known.parameters.size()) {
      return fail(SONDE_E_RANGE,
                  fmt::format("\"{}\" has {} parameters, no index {}", known.text, known.parameters.size(), index));
    }
    const Parameter &parameter = index == UINT64_MAX ? known.result : known.parameters[index];
    out->kind = parameter.kind;
    out->code = static_cast<uint32_t>(parameter.code);
    out->is_out = parameter.is_out ? 1 : 0;
    out->handle = parameter.handle.c_str();
    if (SONDE_HAS(out, sonde_parameter_t, handle_number)) out->handle_number = parameter.handle_number;
    return SONDE_OK;
  });
}

sonde_status service_call(const sonde_signature_t *signature, sonde_function_t function, const sonde_value_t *arguments,
                          uint64_t argument_count, sonde_value_t *results, uint64_t capacity, uint64_t *count) {
  return at_boundary([&]() -> sonde_status {
    if (signature == nullptr) return fail(SONDE_E_INVALID, "call: a signature is needed");
    return call(inside(signature), function, arguments, argument_count, results, capacity, count);
  });
}

sonde_status service_closure(const sonde_signature_t *signature, sonde_callback_t callback, void *user,
                             sonde_drop_user_t drop_user, sonde_function_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (signature == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "closure: signature and out are needed");
    *out = nullptr;
    Result<sonde_function_t> made = make_closure(inside(signature), callback, user, drop_user);
    if (!made) return fail(made.error());
    *out = *made;
    return SONDE_OK;
  });
}

sonde_status service_free_closure(sonde_function_t closure) {
  return at_boundary([&]() -> sonde_status {
    Result<void> freed = free_closure(closure);
    return freed ? SONDE_OK : fail(freed.error());
  });
}

constexpr sonde_reflect_service_t kService = {
    sizeof(sonde_reflect_service_t),
    0,
    service_prepare,
    service_parameter,
    service_call,
    service_closure,
    service_free_closure,
};

}  // namespace

void install() { add_service(SONDE_REFLECT_SERVICE, &kService); }

}  // namespace sonde::reflect
