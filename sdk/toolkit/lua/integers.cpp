// Unsigned 64-bit integers in Lua: a Lua integer carries the same 64 bits, and from 2^63 on it reads as negative.
#include <cinttypes>
#include <cstdio>

#include "glue.h"

namespace sonde::lua {
namespace {

uint64_t check(lua_State *state, int argument) { return static_cast<uint64_t>(luaL_checkinteger(state, argument)); }

int u64_text(lua_State *state) {
  char text[24];
  std::snprintf(text, sizeof(text), "%" PRIu64, check(state, 1));
  lua_pushstring(state, text);
  return 1;
}

int u64_hex(lua_State *state) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, check(state, 1));
  lua_pushstring(state, text);
  return 1;
}

int u64_less(lua_State *state) {
  lua_pushboolean(state, check(state, 1) < check(state, 2));
  return 1;
}

// The nearest float.
int u64_number(lua_State *state) {
  lua_pushnumber(state, static_cast<double>(check(state, 1)));
  return 1;
}

int u64_divide(lua_State *state) {
  const uint64_t divisor = check(state, 2);
  luaL_argcheck(state, divisor != 0, 2, "division by zero");
  lua_pushinteger(state, static_cast<lua_Integer>(check(state, 1) / divisor));
  lua_pushinteger(state, static_cast<lua_Integer>(check(state, 1) % divisor));
  return 2;
}

// Decimal, or hexadecimal after 0x; nil when it is not one or does not fit.
int u64_parse(lua_State *state) {
  size_t length = 0;
  const char *const text = luaL_checklstring(state, 1, &length);
  const bool hexadecimal = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const uint64_t base = hexadecimal ? 16 : 10;
  uint64_t value = 0;
  const size_t first = hexadecimal ? 2 : 0;
  for (size_t index = first; index < length; ++index) {
    const char letter = text[index];
    uint64_t digit = 16;
    if (letter >= '0' && letter <= '9') digit = static_cast<uint64_t>(letter - '0');
    if (letter >= 'a' && letter <= 'f') digit = static_cast<uint64_t>(letter - 'a' + 10);
    if (letter >= 'A' && letter <= 'F') digit = static_cast<uint64_t>(letter - 'A' + 10);
    if (digit >= base || value > (UINT64_MAX - digit) / base) return 0;
    value = value * base + digit;
  }
  if (length == first) return 0;
  lua_pushinteger(state, static_cast<lua_Integer>(value));
  return 1;
}

constexpr luaL_Reg kFunctions[] = {
    {"text", u64_text},     {"hex", u64_hex},     {"less", u64_less}, {"number", u64_number},
    {"divide", u64_divide}, {"parse", u64_parse}, {nullptr, nullptr},
};

}  // namespace

void push_u64_library(lua_State *state) {
  lua_newtable(state);
  luaL_setfuncs(state, kFunctions, 0);
}

}  // namespace sonde::lua
