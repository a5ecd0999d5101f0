// Methods of layouts that change or ask about their dims.
#include "layouts.h"

namespace sonde::lua {
namespace {

// layout:transpose("out", {"dim1", "dim0"})
int transpose(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  const uint32_t side = check_side(state, 2);
  sonde_dim_t order[kMostDims];
  const uint32_t count = check_dims(state, all, 3, order);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->transpose(all.arena, own, side, order, count, &layout));
  return push_layout(state, all, layout);
}

// layout:reshape("in", {{"a", 4}, {"b", 8}})
int reshape(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  const uint32_t side = check_side(state, 2);
  sonde_layout_dim_t dims[kMostDims];
  const uint32_t count = check_sized_dims(state, all, 3, dims);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->reshape(all.arena, own, side, dims, count, &layout));
  return push_layout(state, all, layout);
}

int flatten(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->flatten(all.arena, check_layout(state, 1), check_side(state, 2), &layout));
  return push_layout(state, all, layout);
}

template <auto member>
int change_dim(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               (all.shapes->*member)(all.arena, check_layout(state, 1), check_side(state, 2), check_dim(state, all, 3),
                                     &layout));
  return push_layout(state, all, layout);
}

// layout:resize("out", "dim0", 8 [, "zero" | "modulo"])
int resize(lua_State *state) {
  static const char *const words[] = {"zero", "modulo", nullptr};
  Layouts &all = layouts_of(state);
  const auto size = static_cast<uint64_t>(luaL_checkinteger(state, 4));
  luaL_argcheck(state, size != 0 && (size & (size - 1)) == 0, 4, "a size must be a power of two");
  uint32_t bits = 0;
  while (size >> bits > 1) ++bits;
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.shapes->resize(all.arena, check_layout(state, 1), check_side(state, 2), check_dim(state, all, 3),
                                  bits, static_cast<uint32_t>(luaL_checkoption(state, 5, "zero", words)), &layout));
  return push_layout(state, all, layout);
}

// layout:rename("out", {x = "y", y = "x"})
int rename(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  const uint32_t side = check_side(state, 2);
  luaL_checktype(state, 3, LUA_TTABLE);
  sonde_dim_t from[kMostDims];
  sonde_dim_t to[kMostDims];
  uint32_t count = 0;
  lua_pushnil(state);
  while (lua_next(state, 3) != 0) {
    if (count == kMostDims) return luaL_error(state, "more than %d dims", static_cast<int>(kMostDims));
    if (lua_type(state, -2) != LUA_TSTRING) return luaL_error(state, "rename: {old = new, ...}");
    from[count] = check_dim(state, all, lua_gettop(state) - 1);
    to[count++] = check_dim(state, all, lua_gettop(state));
    lua_pop(state, 1);
  }
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->rename(all.arena, own, side, from, to, count, &layout));
  return push_layout(state, all, layout);
}

// layout:sublayout({"register"}, {"dim0"})
int sublayout(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_dim_t ins[kMostDims];
  sonde_dim_t outs[kMostDims];
  const uint32_t in_count = check_dims(state, all, 2, ins);
  const uint32_t out_count = check_dims(state, all, 3, outs);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->sublayout(all.arena, own, ins, in_count, outs, out_count, &layout));
  return push_layout(state, all, layout);
}

// layout:quotient({"block"}); nil where the layout is not trivial over these dims
int quotient(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_dim_t dims[kMostDims];
  const uint32_t count = check_dims(state, all, 2, dims);
  const sonde_layout_t *layout = nullptr;
  const sonde_status status = all.shapes->quotient(all.arena, own, dims, count, &layout);
  if (status == SONDE_E_NO_SOLUTION) {
    lua_pushnil(state);
    return 1;
  }
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

int remove_zero_bases(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.shapes->remove_zero_bases(all.arena, check_layout(state, 1), check_dim(state, all, 2), &layout));
  return push_layout(state, all, layout);
}

int reshape_tensor(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  uint64_t shape[kMostDims];
  const uint32_t rank = check_integers(state, 2, shape);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->reshape_tensor(all.arena, own, shape, rank, &layout));
  return push_layout(state, all, layout);
}

int transpose_tensor(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  uint32_t order[kMostDims];
  const uint32_t rank = check_small_integers(state, 2, order);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->transpose_tensor(all.arena, own, order, rank, &layout));
  return push_layout(state, all, layout);
}

// layout:permute("register", {2, 0, 1}): bits counted from 0
int permute(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  const sonde_dim_t in = check_dim(state, all, 2);
  uint32_t permutation[kMostDims];
  const uint32_t count = check_small_integers(state, 3, permutation);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.shapes->permute(all.arena, own, in, permutation, count, &layout));
  return push_layout(state, all, layout);
}

int is_trivial_over(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_dim_t dims[kMostDims];
  const uint32_t count = check_dims(state, all, 2, dims);
  uint32_t answer = 0;
  check_status(state, all, all.shapes->is(own, SONDE_LAYOUT_IS_TRIVIAL_OVER, dims, count, nullptr, 0, &answer));
  lua_pushboolean(state, answer != 0 ? 1 : 0);
  return 1;
}

// layout:is_zero({"lane"}, {"dim0"})
int is_zero(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_dim_t ins[kMostDims];
  sonde_dim_t outs[kMostDims];
  const uint32_t in_count = check_dims(state, all, 2, ins);
  const uint32_t out_count = check_dims(state, all, 3, outs);
  uint32_t answer = 0;
  check_status(state, all, all.shapes->is(own, SONDE_LAYOUT_IS_ZERO, ins, in_count, outs, out_count, &answer));
  lua_pushboolean(state, answer != 0 ? 1 : 0);
  return 1;
}

// layout:free_masks(): {register = 0, lane = 4, ...}
int free_masks(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_layout_view_t view{};
  check_status(state, all, all.layouts->view(own, &view));
  uint64_t masks[kMostDims];
  check_status(state, all, all.shapes->free_masks(own, masks));
  lua_createtable(state, 0, static_cast<int>(view.in_count));
  for (uint32_t i = 0; i < view.in_count; ++i) {
    const char *name = "";
    all.layouts->dim_name(view.ins[i].name, &name);
    lua_pushinteger(state, static_cast<lua_Integer>(masks[i]));
    lua_setfield(state, -2, name);
  }
  return 1;
}

int consecutive(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint64_t value = 0;
  check_status(state, all, all.shapes->consecutive(check_layout(state, 1), &value));
  lua_pushinteger(state, static_cast<lua_Integer>(value));
  return 1;
}

int contiguous(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint64_t value = 0;
  check_status(state, all, all.shapes->contiguous(check_layout(state, 1), check_dim(state, all, 2), &value));
  lua_pushinteger(state, static_cast<lua_Integer>(value));
  return 1;
}

}  // namespace

const luaL_Reg kShapeMethods[] = {
    {"transpose", transpose},
    {"reshape", reshape},
    {"flatten", flatten},
    {"squeeze", change_dim<&sonde_layout_shape_service_t::squeeze>},
    {"unsqueeze", change_dim<&sonde_layout_shape_service_t::unsqueeze>},
    {"resize", resize},
    {"rename", rename},
    {"sublayout", sublayout},
    {"quotient", quotient},
    {"remove_zero_bases", remove_zero_bases},
    {"reshape_tensor", reshape_tensor},
    {"transpose_tensor", transpose_tensor},
    {"permute", permute},
    {"is_trivial_over", is_trivial_over},
    {"is_zero", is_zero},
    {"free_masks", free_masks},
    {"consecutive", consecutive},
    {"contiguous", contiguous},
    {nullptr, nullptr},
};

}  // namespace sonde::lua
