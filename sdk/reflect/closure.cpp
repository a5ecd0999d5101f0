#include "reflect/closure.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sonde::reflect {
namespace {

struct Closure {
  const Signature *signature;
  sonde_callback_t callback;
  void *user;
  sonde_drop_user_t drop_user;
  ffi_closure *memory;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<sonde_function_t, Closure *> closures;
};

Registry &registry() {
  static Registry *const kept = new Registry;  // closures may be called while the process ends
  return *kept;
}

template <typename Type>
Type read(const void *place) {
  Type value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

// One parameter as a value; `place` is its first argument in libffi's array.
sonde_value_t to_value(const Parameter &parameter, void **place) {
  sonde_value_t value = {};
  value.kind = parameter.kind;
  switch (parameter.code) {
    case 'i':
      value.as.i64 = read<int32_t>(place[0]);
      break;
    case 'I':
      value.as.u64 = read<uint32_t>(place[0]);
      break;
    case 's':
      value.as.text = read<const char *>(place[0]);
      if (value.as.text == nullptr) {
        value.kind = SONDE_VALUE_NONE;
      } else {
        value.count = std::strlen(value.as.text);
      }
      break;
    case 'y':
    case 'L':
    case 'D':
      value.as.pointer = read<const void *>(place[0]);
      value.count = read<uint64_t>(place[1]);
      break;
    case 'h':
      value.as.pointer = read<const void *>(place[0]);
      value.count = parameter.handle_number;
      break;
    default:
      value.as.u64 = read<uint64_t>(place[0]);
      break;
  }
  return value;
}

// The bits of `value` as `parameter` wants them; zero when the kinds do not fit.
uint64_t to_bits(const Parameter &parameter, const sonde_value_t &value) {
  const bool integer = value.kind == SONDE_VALUE_I64 || value.kind == SONDE_VALUE_U64 || value.kind == SONDE_VALUE_BOOL;
  switch (parameter.code) {
    case 'i':
      return integer ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value.as.i64))) : 0;
    case 'I':
      return integer ? static_cast<uint32_t>(value.as.u64) : 0;
    case 'q':
    case 'Q':
      return integer ? value.as.u64 : 0;
    case 'd': {
      double number = 0;
      if (value.kind == SONDE_VALUE_F64) number = value.as.f64;
      if (value.kind == SONDE_VALUE_I64) number = static_cast<double>(value.as.i64);
      if (value.kind == SONDE_VALUE_U64) number = static_cast<double>(value.as.u64);
      return std::bit_cast<uint64_t>(number);
    }
    case 's':
      return value.kind == SONDE_VALUE_TEXT ? reinterpret_cast<uint64_t>(value.as.text) : 0;
    case 'h':
      return value.kind == SONDE_VALUE_HANDLE ? reinterpret_cast<uint64_t>(value.as.pointer) : 0;
    default:
      return 0;
  }
}

void run(ffi_cif *, void *returned, void **arguments, void *user) {
  const Closure &closure = *static_cast<Closure *>(user);
  const Signature &signature = *closure.signature;
  sonde_value_t values[kMaxParameters] = {};
  uint64_t given = 0;
  uint32_t place = 0;
  const Parameter *out = nullptr;
  uint64_t *out_place = nullptr;
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.is_out) {
      out = &parameter;
      out_place = read<uint64_t *>(arguments[place++]);
      continue;
    }
    values[given++] = to_value(parameter, arguments + place);
    place += std::string_view("yLD").find(parameter.code) != std::string_view::npos ? 2 : 1;
  }
  sonde_value_t result = {};
  const sonde_status status = closure.callback(closure.user, values, given, &result);
  if (out != nullptr && out_place != nullptr && status >= 0) {
    const uint64_t bits = to_bits(*out, result);
    std::memcpy(out_place, &bits, sizeof(bits));  // every out parameter is 8 bytes wide
  }
  if (signature.result.code == 'v') return;
  uint64_t bits = 0;
  if (signature.result.code == 'e') {
    bits = static_cast<uint64_t>(static_cast<int64_t>(status));
  } else if (status >= 0) {
    bits = to_bits(signature.result, result);
  }
  std::memcpy(returned, &bits, sizeof(bits));  // libffi gives at least a register's width
}

}  // namespace

Result<sonde_function_t> make_closure(const Signature &signature, sonde_callback_t callback, void *user,
                                      sonde_drop_user_t drop_user) {
  if (callback == nullptr) return Error{SONDE_E_INVALID, "a closure needs a callback"};
  if (signature.out_count > 1) {
    return Error{SONDE_E_INVALID,
                 fmt::format("\"{}\" gives {} results; a closure can give one", signature.text, signature.out_count)};
  }
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.code == 'c') {
      return Error{SONDE_E_INVALID, fmt::format("\"{}\": a closure cannot receive a callback", signature.text)};
    }
  }
  void *code = nullptr;
  auto *memory = static_cast<ffi_closure *>(ffi_closure_alloc(sizeof(ffi_closure), &code));
  if (memory == nullptr) return Error{SONDE_E_FULL, "no memory for a closure (is executable memory forbidden?)"};
  auto closure = std::make_unique<Closure>(Closure{&signature, callback, user, drop_user, memory});
  if (ffi_prep_closure_loc(memory, &signature.cif, run, closure.get(), code) != FFI_OK) {
    ffi_closure_free(memory);
    return Error{SONDE_E_INTERNAL, fmt::format("libffi makes no closure of shape {}", signature.shape)};
  }
  const auto function = reinterpret_cast<sonde_function_t>(code);
  Registry &known = registry();
  std::lock_guard lock(known.mutex);
  known.closures.emplace(function, closure.release());
  return function;
}

Result<void> free_closure(sonde_function_t function) {
  std::unique_ptr<Closure> closure;
  {
    Registry &known = registry();
    std::lock_guard lock(known.mutex);
    const auto found = known.closures.find(function);
    if (found == known.closures.end()) return Error{SONDE_E_NOT_FOUND, "no closure lies at this address"};
    closure.reset(found->second);
    known.closures.erase(found);
  }
  ffi_closure_free(closure->memory);
  if (closure->drop_user != nullptr) closure->drop_user(closure->user);
  return {};
}

}  // namespace sonde::reflect
