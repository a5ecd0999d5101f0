// Layouts as Lua objects: the table sonde.layout, the same in scripts and in a stock interpreter.
#pragma once

#include <lua.hpp>

#include <sonde/cute.h>
#include <sonde/host.h>
#include <sonde/layout.h>
#include <sonde/layout_encoding.h>
#include <sonde/layout_modular.h>
#include <sonde/layout_plan.h>
#include <sonde/layout_search.h>
#include <sonde/layout_shape.h>

namespace sonde::lua {

// Pushes the table sonde.layout. Raises an error when the host has no layout services. Once for each lua_State.
void push_layout_library(lua_State *state, const sonde_host_t *host);

// ---- Shared by the files of the library ----

inline constexpr const char *kLayoutClass = "sonde.layout";
inline constexpr const char *kEncodingClass = "sonde.encoding";
inline constexpr uint32_t kMostDims = 64;

// The host's tables and the arena that results pass through.
struct Layouts {
  const sonde_host_t *host;
  const sonde_layout_service_t *layouts;
  const sonde_layout_shape_service_t *shapes;
  const sonde_layout_encoding_service_t *encodings;
  const sonde_layout_plan_service_t *plans;
  const sonde_layout_search_service_t *searches;
  const sonde_cute_service_t *cute;
  const sonde_layout_modular_service_t *modular;
  sonde_layout_arena_t *arena;  // emptied after each call; layouts live in their Lua objects
};

Layouts &layouts_of(lua_State *state);

// Raises the host's last error unless `status` is a success.
void check_status(lua_State *state, const Layouts &all, sonde_status status);

const sonde_layout_t *check_layout(lua_State *state, int index);

// Pushes a copy of a layout of the arena, which the caller empties; or empties it too.
void push_kept(lua_State *state, const Layouts &all, const sonde_layout_t *layout);
int push_layout(lua_State *state, Layouts &all, const sonde_layout_t *layout);

sonde_dim_t check_dim(lua_State *state, const Layouts &all, int index);
// A list of names at `index`; at most kMostDims.
uint32_t check_dims(lua_State *state, const Layouts &all, int index, sonde_dim_t *out);
// A list {{name, size}, ...}; sizes are powers of two.
uint32_t check_sized_dims(lua_State *state, const Layouts &all, int index, sonde_layout_dim_t *out);
// A list of integers.
uint32_t check_integers(lua_State *state, int index, uint64_t *out);
uint32_t check_small_integers(lua_State *state, int index, uint32_t *out);
uint32_t check_side(lua_State *state, int index);

// Functions of the table, and methods of layouts, that each file adds.
extern const luaL_Reg kPlanFunctions[];
extern const luaL_Reg kSearchFunctions[];
extern const luaL_Reg kShapeMethods[];

void register_encodings(lua_State *state);
void push_cute_library(lua_State *state);
void push_modular_function(lua_State *state);

}  // namespace sonde::lua
