// Short ways to make values, and the service under test.
#pragma once

#include <sonde/reflect.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "core/services.h"
#include "reflect/reflect.h"

namespace sonde::test {

inline const sonde_reflect_service_t &reflect_service() {
  reflect::install();
  return service<sonde_reflect_service_t>(SONDE_REFLECT_SERVICE);
}

inline sonde_value_t i64(int64_t number) {
  sonde_value_t value = {};
  value.kind = SONDE_VALUE_I64;
  value.as.i64 = number;
  return value;
}
inline sonde_value_t u64(uint64_t number) {
  sonde_value_t value = {};
  value.kind = SONDE_VALUE_U64;
  value.as.u64 = number;
  return value;
}
inline sonde_value_t f64(double number) {
  sonde_value_t value = {};
  value.kind = SONDE_VALUE_F64;
  value.as.f64 = number;
  return value;
}
inline sonde_value_t text(const char *words) {
  sonde_value_t value = {};
  value.kind = SONDE_VALUE_TEXT;
  value.count = std::strlen(words);
  value.as.text = words;
  return value;
}
inline sonde_value_t view(uint32_t kind, const void *data, uint64_t count) {
  sonde_value_t value = {};
  value.kind = kind;
  value.count = count;
  value.as.pointer = data;
  return value;
}
inline sonde_value_t handle(const void *pointer, uint64_t number = 0) {
  return view(SONDE_VALUE_HANDLE, pointer, number);
}

inline const sonde_signature_t *prepared(const char *signature) {
  const sonde_signature_t *out = nullptr;
  if (reflect_service().prepare(signature, &out) < 0) return nullptr;
  return out;
}

}  // namespace sonde::test
