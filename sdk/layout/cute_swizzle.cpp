#include "layout/cute_swizzle.h"

#include <charconv>
#include <new>
#include <numeric>

#include "layout/bits.h"

namespace sonde::layout {
namespace {

const CuteComposed *with_layout(Arena &arena, const CuteComposed &composed, const CuteLayout *layout) {
  return layout == nullptr ? nullptr : make_cute_composed(arena, composed.swizzle(), composed.offset(), *layout);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes a number off the front of the text.
template <typename T>
bool take_number(std::string_view &text, T &value) {
  text = trimmed(text);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  text = trimmed(text);
  return true;
}

bool take(std::string_view &text, std::string_view token) {
  text = trimmed(text);
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  text = trimmed(text);
  return true;
}

}  // namespace

bool check_swizzle(Arena &arena, const CuteSwizzle &swizzle) {
  const int64_t distance = swizzle.shift < 0 ? -int64_t{swizzle.shift} : swizzle.shift;
  if (swizzle.bits <= distance && int64_t{swizzle.bits} + swizzle.base + distance <= 62) return true;
  arena.fail(Fault::kInvalid,
             to_string(swizzle) + " must shift by at least as many bits as it moves, and stay within 62 bits");
  return false;
}

const CuteComposed *make_cute_composed(Arena &arena, const CuteSwizzle &swizzle, int64_t offset,
                                       const CuteLayout &layout) {
  if (!check_swizzle(arena, swizzle)) return nullptr;
  const Int128 lowest = static_cast<Int128>(offset) + layout.lowest();
  const Int128 highest = static_cast<Int128>(offset) + layout.highest();
  if (lowest < 0 || highest >= (Int128{1} << 62)) {
    arena.fail(Fault::kInvalid, "the offset " + std::to_string(offset) + " takes indices of " + to_string(layout) +
                                    " below 0 or past 2^62");
    return nullptr;
  }
  void *const room = arena.allocate(sizeof(CuteComposed));
  return room == nullptr ? nullptr : ::new (room) CuteComposed(swizzle, offset, layout);
}

const CuteComposed *parse_cute_composed(Arena &arena, std::string_view text) {
  const std::string_view whole = text;
  CuteSwizzle swizzle;
  int64_t offset = 0;
  const auto wrong = [&]() -> const CuteComposed * {
    arena.fail(Fault::kParse, "expected `Sw<B,M,S> o offset o shape:stride`, found `" + std::string(whole) + "`");
    return nullptr;
  };
  text = trimmed(text);
  if (take(text, "Sw<") || take(text, "S<") || take(text, "Swizzle<")) {
    if (!take_number(text, swizzle.bits) || !take(text, ",") || !take_number(text, swizzle.base) || !take(text, ",") ||
        !take_number(text, swizzle.shift) || !take(text, ">") || !take(text, "o")) {
      return wrong();
    }
  }
  if (std::string_view rest = text; take_number(rest, offset) && take(rest, "o")) {
    text = rest;
  } else {
    offset = 0;
  }
  const CuteLayout *const layout = parse_cute(arena, text);
  return layout == nullptr ? nullptr : make_cute_composed(arena, swizzle, offset, *layout);
}

std::string to_string(const CuteSwizzle &swizzle) {
  return "Sw<" + std::to_string(swizzle.bits) + "," + std::to_string(swizzle.base) + "," +
         std::to_string(swizzle.shift) + ">";
}

std::string to_string(const CuteComposed &composed) {
  return to_string(composed.swizzle()) + " o " + std::to_string(composed.offset()) + " o " +
         to_string(composed.layout());
}

const CuteComposed *compose(Arena &arena, const CuteComposed &composed, const CuteTiler &tiler) {
  return with_layout(arena, composed, compose(arena, composed.layout(), tiler));
}

const CuteComposed *zipped_divide(Arena &arena, const CuteComposed &composed, const CuteTiler &tiler) {
  return with_layout(arena, composed, zipped_divide(arena, composed.layout(), tiler));
}

const CuteComposed *slice(Arena &arena, const CuteComposed &composed, const CuteTuple &coordinate) {
  const CuteSlice part = slice(arena, composed.layout(), coordinate);
  if (part.layout == nullptr) return nullptr;
  return make_cute_composed(arena, composed.swizzle(), composed.offset() + part.offset, *part.layout);
}

const CuteComposed *recast(Arena &arena, const CuteComposed &composed, uint32_t old_bits, uint32_t new_bits) {
  const CuteLayout *const layout = recast(arena, composed.layout(), old_bits, new_bits);
  if (layout == nullptr) return nullptr;
  const uint32_t common = std::gcd(old_bits, new_bits);
  const int64_t finer = old_bits / common;
  const int64_t coarser = new_bits / common;
  int64_t offset = 0;
  if (__builtin_mul_overflow(composed.offset(), finer, &offset) || offset % coarser != 0) {
    arena.fail(Fault::kNoSolution, "the offset " + std::to_string(composed.offset()) + " is none of elements of " +
                                       std::to_string(new_bits) + " bits");
    return nullptr;
  }
  CuteSwizzle swizzle = composed.swizzle();
  if (swizzle.bits != 0) {
    const bool powers =
        is_power_of_two(static_cast<uint64_t>(finer)) && is_power_of_two(static_cast<uint64_t>(coarser));
    const uint32_t up = powers ? lowest_bit(static_cast<uint64_t>(finer)) : 0;
    const uint32_t down = powers ? lowest_bit(static_cast<uint64_t>(coarser)) : 0;
    if (!powers || swizzle.base + up < down) {
      arena.fail(Fault::kNoSolution, to_string(swizzle) + " on elements of " + std::to_string(old_bits) +
                                         " bits is no swizzle of elements of " + std::to_string(new_bits) + " bits");
      return nullptr;
    }
    swizzle.base = swizzle.base + up - down;
  }
  return make_cute_composed(arena, swizzle, offset / coarser, *layout);
}

}  // namespace sonde::layout
