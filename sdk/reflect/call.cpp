#include "reflect/call.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace sonde::reflect {
namespace {

// The arguments of one call, on the stack.
struct Frame {
  uint64_t slots[kMaxArguments];
  uint64_t outs[kMaxParameters];
};

void drop_callbacks(const Signature &signature, const sonde_value_t *arguments, uint64_t argument_count) {
  uint64_t given = 0;
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.is_out) continue;
    if (given == argument_count) return;
    const sonde_value_t &value = arguments[given++];
    if (parameter.code != 'c' || value.kind != SONDE_VALUE_HANDLE || value.as.pointer == nullptr) continue;
    const auto *binding = static_cast<const sonde_callback_binding_t *>(value.as.pointer);
    if (binding->drop_user != nullptr) binding->drop_user(binding->user);
  }
}

// Errors are texts of this thread at once, not values: a call that goes well makes no string.
[[gnu::cold]] sonde_status wrong(const Signature &signature, uint64_t index, sonde_status code, std::string_view what) {
  return fail(code, fmt::format("argument {} of \"{}\": {}", index + 1, signature.text, what));
}

[[gnu::cold]] sonde_status wrong_kind(const Signature &signature, uint64_t index, const Parameter &parameter,
                                      const sonde_value_t &value) {
  const char *expected = parameter.code == 'c' ? "callback" : kind_name(parameter.kind);
  return wrong(signature, index, SONDE_E_TYPE, fmt::format("expected {}, got {}", expected, kind_name(value.kind)));
}

// The integer in `value` when it lies in [least, greatest]; bools count as 0 and 1.
template <typename Integer>
bool to_integer(const sonde_value_t &value, Integer &out, bool &out_of_range) {
  out_of_range = false;
  switch (value.kind) {
    case SONDE_VALUE_BOOL:
      out = static_cast<Integer>(value.as.u64 != 0);
      return true;
    case SONDE_VALUE_I64:
      out_of_range = !std::in_range<Integer>(value.as.i64);
      out = static_cast<Integer>(value.as.i64);
      return true;
    case SONDE_VALUE_U64:
      out_of_range = !std::in_range<Integer>(value.as.u64);
      out = static_cast<Integer>(value.as.u64);
      return true;
    default:
      return false;
  }
}

template <typename Integer>
sonde_status place_integer(const Signature &signature, uint64_t index, const Parameter &parameter,
                           const sonde_value_t &value, uint64_t &slot) {
  Integer integer = 0;
  bool out_of_range = false;
  if (!to_integer(value, integer, out_of_range)) return wrong_kind(signature, index, parameter, value);
  if (out_of_range) {
    const std::string given =
        value.kind == SONDE_VALUE_I64 ? fmt::format("{}", value.as.i64) : fmt::format("{}", value.as.u64);
    return wrong(signature, index, SONDE_E_RANGE,
                 fmt::format("{} lies outside {} to {}", given, std::numeric_limits<Integer>::min(),
                             std::numeric_limits<Integer>::max()));
  }
  slot = 0;
  std::memcpy(&slot, &integer, sizeof(integer));
  return SONDE_OK;
}

// Puts one parameter into its slots; `place` moves past them.
sonde_status place_argument(const Signature &signature, uint64_t index, const Parameter &parameter,
                            const sonde_value_t &value, Frame &frame, uint32_t &place) {
  switch (parameter.code) {
    case 'i':
      return place_integer<int32_t>(signature, index, parameter, value, frame.slots[place++]);
    case 'I':
      return place_integer<uint32_t>(signature, index, parameter, value, frame.slots[place++]);
    case 'q':
      return place_integer<int64_t>(signature, index, parameter, value, frame.slots[place++]);
    case 'Q':
      return place_integer<uint64_t>(signature, index, parameter, value, frame.slots[place++]);
    case 'd': {
      double number = 0;
      if (value.kind == SONDE_VALUE_F64) {
        number = value.as.f64;
      } else if (value.kind == SONDE_VALUE_I64) {
        number = static_cast<double>(value.as.i64);
      } else if (value.kind == SONDE_VALUE_U64) {
        number = static_cast<double>(value.as.u64);
      } else {
        return wrong_kind(signature, index, parameter, value);
      }
      std::memcpy(&frame.slots[place++], &number, sizeof(number));
      return SONDE_OK;
    }
    case 's':
      if (value.kind != SONDE_VALUE_TEXT || value.as.text == nullptr) {
        return wrong_kind(signature, index, parameter, value);
      }
      if (std::memchr(value.as.text, 0, value.count + 1) != value.as.text + value.count) {
        return wrong(signature, index, SONDE_E_INVALID, "the text holds a NUL or does not end with one");
      }
      frame.slots[place++] = reinterpret_cast<uint64_t>(value.as.text);
      return SONDE_OK;
    case 'y':
    case 'L':
    case 'D': {
      const bool text_as_bytes = parameter.code == 'y' && value.kind == SONDE_VALUE_TEXT;
      if (value.kind != parameter.kind && !text_as_bytes) return wrong_kind(signature, index, parameter, value);
      if (value.as.pointer == nullptr && value.count != 0) {
        return wrong(signature, index, SONDE_E_INVALID, fmt::format("no data, but a count of {}", value.count));
      }
      frame.slots[place++] = reinterpret_cast<uint64_t>(value.as.pointer);
      frame.slots[place++] = value.count;
      return SONDE_OK;
    }
    case 'h':
      if (value.kind != SONDE_VALUE_HANDLE) return wrong_kind(signature, index, parameter, value);
      if (value.count != 0 && value.count != parameter.handle_number) {
        return wrong(signature, index, SONDE_E_TYPE,
                     fmt::format("expected a handle {}, got another", parameter.handle));
      }
      if (value.as.pointer == nullptr) return wrong(signature, index, SONDE_E_INVALID, "the handle is null");
      frame.slots[place++] = reinterpret_cast<uint64_t>(value.as.pointer);
      return SONDE_OK;
    default: {  // 'c'
      const sonde_callback_binding_t *binding = nullptr;
      if (value.kind == SONDE_VALUE_HANDLE) {
        binding = static_cast<const sonde_callback_binding_t *>(value.as.pointer);
      } else if (value.kind != SONDE_VALUE_NONE) {
        return wrong_kind(signature, index, parameter, value);
      }
      frame.slots[place++] = binding == nullptr ? 0 : reinterpret_cast<uint64_t>(binding->callback);
      frame.slots[place++] = binding == nullptr ? 0 : reinterpret_cast<uint64_t>(binding->user);
      frame.slots[place++] = binding == nullptr ? 0 : reinterpret_cast<uint64_t>(binding->drop_user);
      return SONDE_OK;
    }
  }
}

sonde_status place_arguments(const Signature &signature, const sonde_value_t *arguments, uint64_t argument_count,
                             Frame &frame) {
  if (argument_count != signature.in_count) {
    return fail(SONDE_E_INVALID,
                fmt::format("\"{}\" takes {} arguments, got {}", signature.text, signature.in_count, argument_count));
  }
  uint32_t place = 0;
  uint64_t given = 0;
  uint32_t out = 0;
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.is_out) {
      frame.outs[out] = 0;
      frame.slots[place++] = reinterpret_cast<uint64_t>(&frame.outs[out++]);
      continue;
    }
    const sonde_status placed = place_argument(signature, given, parameter, arguments[given], frame, place);
    if (placed < 0) return placed;
    ++given;
  }
  return SONDE_OK;
}

uint64_t call_through_ffi(const Signature &signature, sonde_function_t function, uint64_t *slots) {
  void *pointers[kMaxArguments];
  for (uint32_t index = 0; index < signature.argument_count; ++index) pointers[index] = &slots[index];
  uint64_t returned = 0;
  ffi_call(&signature.cif, function, &returned, pointers);
  return returned;
}

sonde_value_t to_value(const Parameter &parameter, uint64_t bits) {
  sonde_value_t value = {};
  value.kind = parameter.kind;
  switch (parameter.code) {
    case 'i':
      value.as.i64 = static_cast<int32_t>(static_cast<uint32_t>(bits));
      break;
    case 'I':
      value.as.u64 = static_cast<uint32_t>(bits);
      break;
    case 's':
      value.as.text = reinterpret_cast<const char *>(bits);
      if (value.as.text == nullptr) {
        value.kind = SONDE_VALUE_NONE;
      } else {
        value.count = std::strlen(value.as.text);
      }
      break;
    case 'h':
      value.as.pointer = reinterpret_cast<const void *>(bits);
      value.count = parameter.handle_number;
      if (value.as.pointer == nullptr) value.kind = SONDE_VALUE_NONE;
      break;
    default:  // q, Q and d fill the slot
      value.as.u64 = bits;
      break;
  }
  return value;
}

}  // namespace

const char *kind_name(uint32_t kind) {
  constexpr const char *kNames[] = {"nothing", "i64", "u64", "f64", "text", "bool", "bytes", "i64s", "f64s", "handle"};
  return kind < std::size(kNames) ? kNames[kind] : "a value of unknown kind";
}

sonde_status call(const Signature &signature, sonde_function_t function, const sonde_value_t *arguments,
                  uint64_t argument_count, sonde_value_t *results, uint64_t capacity, uint64_t *count) {
  if (count != nullptr) *count = 0;
  Frame frame;
  sonde_status placed = SONDE_OK;
  if (function == nullptr || (arguments == nullptr && argument_count != 0)) {
    placed = fail(SONDE_E_INVALID, "no function, or no arguments where some are counted");
  } else if (signature.out_count != 0 && (results == nullptr || count == nullptr)) {
    placed = fail(SONDE_E_INVALID, fmt::format("\"{}\" gives {} results, there is no place for them", signature.text,
                                               signature.out_count));
  } else if (capacity < signature.out_count) {
    placed = fail(SONDE_E_RANGE, fmt::format("\"{}\" gives {} results, there is room for {}", signature.text,
                                             signature.out_count, capacity));
  } else {
    placed = place_arguments(signature, arguments, argument_count, frame);
  }
  if (placed < 0) {
    if (arguments != nullptr) drop_callbacks(signature, arguments, argument_count);
    return placed;
  }

  const uint64_t returned = signature.trampoline != nullptr ? signature.trampoline(function, frame.slots)
                                                            : call_through_ffi(signature, function, frame.slots);
  uint64_t written = 0;
  if (signature.result.code == 'e') {
    const auto status = static_cast<sonde_status>(static_cast<uint32_t>(returned));
    if (status < 0) return status;
  } else if (signature.result.code != 'v') {
    results[written++] = to_value(signature.result, returned);
  }
  uint32_t out = 0;
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.is_out) results[written++] = to_value(parameter, frame.outs[out++]);
  }
  if (count != nullptr) *count = written;
  return SONDE_OK;
}

}  // namespace sonde::reflect
