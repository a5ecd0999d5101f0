// Encodings, conversion plans and the costs of accesses.
#include <cstring>

#include "glue.h"
#include "layouts.h"

namespace sonde::lua {
namespace {

void set_integer(lua_State *state, const char *name, uint64_t value) {
  lua_pushinteger(state, static_cast<lua_Integer>(value));
  lua_setfield(state, -2, name);
}

uint32_t check_bits(lua_State *state, int index) {
  const lua_Integer bits = luaL_checkinteger(state, index);
  luaL_argcheck(state, bits > 0 && bits <= 128, index, "an element has 1 to 128 bits");
  return static_cast<uint32_t>(bits);
}

// An integer field of the options at `index`; `missing` where there is none.
uint64_t option(lua_State *state, int index, const char *name, uint64_t missing) {
  if (lua_type(state, index) != LUA_TTABLE) return missing;
  uint64_t value = missing;
  switch (lua_getfield(state, index, name)) {
    case LUA_TNIL:
      break;
    case LUA_TBOOLEAN:
      value = lua_toboolean(state, -1) != 0 ? 1 : 0;
      break;
    default:
      if (lua_isinteger(state, -1) == 0 || lua_tointeger(state, -1) < 0) {
        luaL_error(state, "option %s must be an integer from 0 on", name);
      }
      value = static_cast<uint64_t>(lua_tointeger(state, -1));
  }
  lua_pop(state, 1);
  return value;
}

// ---- Encodings ----

struct EncodingBox {
  sonde_encoding_t *encoding;
};

const sonde_encoding_t *check_encoding(lua_State *state, int index) {
  return static_cast<EncodingBox *>(luaL_checkudata(state, index, kEncodingClass))->encoding;
}

// encoding(text [, module]): the attribute; `module` is text with the aliases that it names
int encoding(lua_State *state) {
  const Layouts &all = layouts_of(state);
  size_t length = 0;
  size_t module_length = 0;
  const char *const text = luaL_checklstring(state, 1, &length);
  const char *const module = luaL_optlstring(state, 2, nullptr, &module_length);
  auto *const box = static_cast<EncodingBox *>(lua_newuserdatauv(state, sizeof(EncodingBox), 0));
  box->encoding = nullptr;
  luaL_setmetatable(state, kEncodingClass);
  check_status(state, all,
               all.encodings->parse(text, length, module, module == nullptr ? 0 : module_length, &box->encoding));
  return 1;
}

int encoding_close(lua_State *state) {
  auto *const box = static_cast<EncodingBox *>(luaL_checkudata(state, 1, kEncodingClass));
  if (box->encoding != nullptr) layouts_of(state).encodings->release(box->encoding);
  box->encoding = nullptr;
  return 0;
}

int encoding_text(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_encoding_t *const own = check_encoding(state, 1);
  uint64_t needed = 0;
  check_status(state, all, all.encodings->text(own, nullptr, 0, &needed));
  luaL_Buffer buffer;
  char *const room = luaL_buffinitsize(state, &buffer, needed + 1);
  check_status(state, all, all.encodings->text(own, room, needed + 1, &needed));
  luaL_pushresultsize(&buffer, needed);
  return 1;
}

int encoding_kind(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const char *kind = "";
  check_status(state, all, all.encodings->kind(check_encoding(state, 1), &kind, nullptr));
  lua_pushstring(state, kind);
  return 1;
}

// encoding:layout{128, 64}
int encoding_layout(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_encoding_t *const own = check_encoding(state, 1);
  uint64_t shape[kMostDims];
  const uint32_t rank = check_integers(state, 2, shape);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.encodings->layout(all.arena, own, shape, rank, &layout));
  return push_layout(state, all, layout);
}

int encoding_padded_address(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint64_t address = 0;
  check_status(state, all,
               all.encodings->padded_address(check_encoding(state, 1),
                                             static_cast<uint64_t>(luaL_checkinteger(state, 2)), &address));
  lua_pushinteger(state, static_cast<lua_Integer>(address));
  return 1;
}

// ---- Plans ----

sonde_plan_options_t check_options(lua_State *state, int index) {
  sonde_plan_options_t options{};
  options.struct_size = sizeof(options);
  if (lua_isinteger(state, index) != 0) {
    options.bits_per_element = check_bits(state, index);
    options.most_transpositions = 1;
    return options;
  }
  luaL_checktype(state, index, LUA_TTABLE);
  options.bits_per_element = static_cast<uint32_t>(option(state, index, "bits", 32));
  options.banks = static_cast<uint32_t>(option(state, index, "banks", 0));
  options.most_vector_bits = static_cast<uint32_t>(option(state, index, "most_vector_bits", 0));
  options.most_transpositions = static_cast<uint32_t>(option(state, index, "most_transpositions", 1));
  options.flags = (option(state, index, "store_matrix", 0) != 0 ? SONDE_PLAN_STORE_MATRIX : 0) |
                  (option(state, index, "load_matrix", 0) != 0 ? SONDE_PLAN_LOAD_MATRIX : 0) |
                  (option(state, index, "only_memory", 0) != 0 ? SONDE_PLAN_ONLY_MEMORY : 0);
  return options;
}

void push_access(lua_State *state, const sonde_plan_access_t &access) {
  static const char *const words[] = {"vector", "matrix", "matrix_transposed"};
  lua_createtable(state, 0, 5);
  lua_pushstring(state, words[access.instruction < 3 ? access.instruction : 0]);
  lua_setfield(state, -2, "instruction");
  set_integer(state, "vector_bits", access.vector_bits);
  set_integer(state, "instructions", access.instructions);
  set_integer(state, "wavefronts", access.wavefronts);
  set_integer(state, "conflicts", access.conflicts);
}

// plan(source, destination, bits | {bits =, banks =, store_matrix =, load_matrix =, only_memory =, ...})
int plan(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_plan_options_t options = check_options(state, 3);
  sonde_plan_t result{};
  result.struct_size = sizeof(result);
  check_status(state, all,
               all.plans->plan(all.arena, check_layout(state, 1), check_layout(state, 2), &options, &result));
  lua_createtable(state, 0, 12);
  lua_pushstring(state, result.kind_text);
  lua_setfield(state, -2, "kind");
  set_integer(state, "source_copies", result.source_copies);
  set_integer(state, "destination_copies", result.destination_copies);
  set_integer(state, "shuffles", result.shuffles);
  set_integer(state, "selects", result.selects);
  set_integer(state, "shared_bytes", result.shared_bytes);
  set_integer(state, "repetitions", result.repetitions);
  push_kept(state, all, result.conversion);
  lua_setfield(state, -2, "conversion");
  if (result.memory != nullptr) {
    push_kept(state, all, result.memory);
    lua_setfield(state, -2, "memory");
    push_access(state, result.store);
    lua_setfield(state, -2, "store");
    push_access(state, result.load);
    lua_setfield(state, -2, "load");
  }
  all.layouts->reset(all.arena);
  return 1;
}

// swizzle(source, destination, bits [, banks]): memory, read conflicts, write conflicts
int swizzle(lua_State *state) {
  Layouts &all = layouts_of(state);
  sonde_swizzle_t result{};
  result.struct_size = sizeof(result);
  check_status(state, all,
               all.plans->swizzle(all.arena, check_layout(state, 1), check_layout(state, 2), check_bits(state, 3),
                                  static_cast<uint32_t>(luaL_optinteger(state, 4, 0)), &result));
  push_layout(state, all, result.memory);
  lua_pushinteger(state, static_cast<lua_Integer>(result.read_conflicts));
  lua_pushinteger(state, static_cast<lua_Integer>(result.write_conflicts));
  return 3;
}

// bank_access(map, "offset", bits [, {banks =, simulate = true}])
int bank_access(lua_State *state) {
  const Layouts &all = layouts_of(state);
  sonde_bank_access_t result{};
  result.struct_size = sizeof(result);
  check_status(state, all,
               all.plans->bank_access(all.arena, check_layout(state, 1), check_dim(state, all, 2), check_bits(state, 3),
                                      static_cast<uint32_t>(option(state, 4, "banks", 0)),
                                      static_cast<uint32_t>(option(state, 4, "simulate", 0)), &result));
  all.layouts->reset(all.arena);
  lua_createtable(state, 0, 6);
  set_integer(state, "access_bits", result.access_bits);
  set_integer(state, "instructions", result.instructions);
  set_integer(state, "phases", result.phases);
  set_integer(state, "wavefronts", result.wavefronts);
  set_integer(state, "total", result.total);
  set_integer(state, "conflicts", result.conflicts);
  return 1;
}

// coalescing(layout, {1, 0}, bits [, alignment in bytes]): dims counted from 0, the fastest first
int coalescing(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint32_t order[kMostDims];
  const uint32_t rank = check_small_integers(state, 2, order);
  sonde_coalescing_t result{};
  result.struct_size = sizeof(result);
  check_status(state, all,
               all.plans->coalescing(all.arena, check_layout(state, 1), order, rank, check_bits(state, 3),
                                     static_cast<uint64_t>(luaL_optinteger(state, 4, 128)), &result));
  all.layouts->reset(all.arena);
  lua_createtable(state, 0, 6);
  set_integer(state, "access_bits", result.access_bits);
  set_integer(state, "instructions", result.instructions);
  set_integer(state, "sectors", result.sectors);
  set_integer(state, "lines", result.lines);
  set_integer(state, "fewest_sectors", result.fewest_sectors);
  set_integer(state, "bytes", result.bytes);
  return 1;
}

// vector_width(layout, {1, 0}, bits [, most bits]): elements
int vector_width(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint32_t order[kMostDims];
  const uint32_t rank = check_small_integers(state, 2, order);
  uint64_t elements = 0;
  check_status(state, all,
               all.plans->vector_width(all.arena, check_layout(state, 1), order, rank, check_bits(state, 3),
                                       static_cast<uint32_t>(luaL_optinteger(state, 4, 0)), &elements));
  lua_pushinteger(state, static_cast<lua_Integer>(elements));
  return 1;
}

// owners(layout, {i, j}): {{block =, warp =, lane =, register =}, ...}
int owners(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  sonde_layout_view_t view{};
  check_status(state, all, all.layouts->view(own, &view));
  uint64_t index[kMostDims];
  if (check_integers(state, 2, index) != view.out_count) {
    return luaL_error(state, "owners: one value for each out dim is needed");
  }
  constexpr uint64_t kMost = 4096;
  auto *const found = static_cast<sonde_owner_t *>(lua_newuserdatauv(state, kMost * sizeof(sonde_owner_t), 0));
  uint64_t count = 0;
  const sonde_status status = all.plans->owners(all.arena, own, index, found, kMost, &count);
  if (status == SONDE_E_NO_SOLUTION) count = 0;
  if (status != SONDE_E_NO_SOLUTION) check_status(state, all, status);
  if (count > kMost)
    return luaL_error(state, "owners: %I hold it; at most 4096 are listed", static_cast<lua_Integer>(count));
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t i = 0; i < count; ++i) {
    lua_createtable(state, 0, 4);
    set_integer(state, "block", found[i].block);
    set_integer(state, "warp", found[i].warp);
    set_integer(state, "lane", found[i].lane);
    set_integer(state, "register", found[i].reg);
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

const luaL_Reg kEncodingMethods[] = {
    {"layout", encoding_layout}, {"kind", encoding_kind},
    {"text", encoding_text},     {"padded_address", encoding_padded_address},
    {nullptr, nullptr},
};

const luaL_Reg kEncodingMetamethods[] = {
    {"__gc", encoding_close},
    {"__tostring", encoding_text},
    {nullptr, nullptr},
};

}  // namespace

const luaL_Reg kPlanFunctions[] = {
    {"encoding", encoding},     {"plan", plan},
    {"swizzle", swizzle},       {"bank_access", bank_access},
    {"coalescing", coalescing}, {"vector_width", vector_width},
    {"owners", owners},         {nullptr, nullptr},
};

void register_encodings(lua_State *state) { make_class(state, kEncodingClass, kEncodingMethods, kEncodingMetamethods); }

}  // namespace sonde::lua
