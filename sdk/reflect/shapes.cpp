#include "reflect/shapes.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace sonde::reflect {
namespace {

template <char Letter>
auto type_of_letter() {
  if constexpr (Letter == 'i') return int32_t{};
  if constexpr (Letter == 'I') return uint32_t{};
  if constexpr (Letter == 'q') return int64_t{};
  if constexpr (Letter == 'Q') return uint64_t{};
  if constexpr (Letter == 'd') return double{};
  if constexpr (Letter == 'p') return static_cast<void *>(nullptr);
}

template <typename Type>
Type from_slot(uint64_t slot) {
  Type value;
  std::memcpy(&value, &slot, sizeof(value));
  return value;
}

template <typename Type>
uint64_t to_slot(Type value) {
  if constexpr (std::is_integral_v<Type>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    uint64_t slot = 0;
    std::memcpy(&slot, &value, sizeof(value));
    return slot;
  }
}

// A string as a template argument.
template <size_t Size>
struct Letters {
  char text[Size];
  constexpr Letters(const char (&given)[Size]) {
    for (size_t index = 0; index < Size; ++index) text[index] = given[index];
  }
};

template <Letters Shape>
struct Compiled {
  static constexpr size_t kArguments = sizeof(Shape.text) - 4;  // less result, parentheses and NUL

  static uint64_t call(sonde_function_t function, const uint64_t *slots) {
    return apply(function, slots, std::make_index_sequence<kArguments>());
  }

  template <size_t... Index>
  static uint64_t apply(sonde_function_t function, [[maybe_unused]] const uint64_t *slots,
                        std::index_sequence<Index...>) {
    using Returned = decltype(type_of_letter<Shape.text[0]>());
    using Function = Returned (*)(decltype(type_of_letter<Shape.text[2 + Index]>())...);
    const Function typed = reinterpret_cast<Function>(function);
    if constexpr (std::is_void_v<Returned>) {
      typed(from_slot<decltype(type_of_letter<Shape.text[2 + Index]>())>(slots[Index])...);
      return 0;
    } else {
      return to_slot(typed(from_slot<decltype(type_of_letter<Shape.text[2 + Index]>())>(slots[Index])...));
    }
  }
};

struct Entry {
  std::string_view shape;
  Trampoline trampoline;
};

template <Letters Shape>
constexpr Entry entry() {
  return {std::string_view(Shape.text, sizeof(Shape.text) - 1), &Compiled<Shape>::call};
}

// Getters of a session (status, session, outs), questions about an index or a text, setters, callbacks, and pure
// functions of one or two numbers.
constexpr std::array kEntries = {
    entry<"i()">(),     entry<"i(p)">(),    entry<"i(pp)">(),  entry<"i(ppp)">(),  entry<"i(pppp)">(),
    entry<"i(pQ)">(),   entry<"i(pq)">(),   entry<"i(pd)">(),  entry<"i(pI)">(),   entry<"i(pQp)">(),
    entry<"i(pqp)">(),  entry<"i(pdp)">(),  entry<"i(pIp)">(), entry<"i(pQpp)">(), entry<"i(ppQ)">(),
    entry<"i(ppQp)">(), entry<"i(Qp)">(),   entry<"i(qp)">(),  entry<"i(dp)">(),   entry<"q(q)">(),
    entry<"q(qq)">(),   entry<"Q(Q)">(),    entry<"Q(QQ)">(),  entry<"Q(p)">(),    entry<"d(d)">(),
    entry<"d(dd)">(),   entry<"p(p)">(),    entry<"v(p)">(),   entry<"v()">(),     entry<"Q()">(),
    entry<"i(ppqp)">(), entry<"i(pqpp)">(),
};

constexpr auto kShapes = [] {
  std::array<std::string_view, kEntries.size() + 1> shapes = {};
  for (size_t index = 0; index < kEntries.size(); ++index) shapes[index] = kEntries[index].shape;
  return shapes;
}();

}  // namespace

Trampoline find_trampoline(std::string_view shape) {
  for (const Entry &known : kEntries) {
    if (known.shape == shape) return known.trampoline;
  }
  return nullptr;
}

const std::string_view *compiled_shapes() { return kShapes.data(); }

}  // namespace sonde::reflect
