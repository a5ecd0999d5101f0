#include <cstring>
#include <initializer_list>

#include "glue.h"

namespace sonde::lua {
namespace {

// User values of a batch object.
constexpr int kColumns = 1;  // cache: field -> column, and type -> cache of that type
constexpr int kGroups = 2;   // see groups.cpp
constexpr int kFields = 3;   // see rows.cpp

BatchBox *check_batch(lua_State *state) {
  auto *const box = static_cast<BatchBox *>(luaL_checkudata(state, 1, kBatchClass));
  if (box->batch == nullptr) luaL_error(state, "the batch is over: it may be used inside its callback only");
  return box;
}

// Stack: batch, field [, type].
sonde_reduction_t reduce(lua_State *state) {
  const BatchBox *const box = check_batch(state);
  luaL_checktype(state, 2, LUA_TSTRING);
  lua_settop(state, 3);
  lua_getiuservalue(state, 1, kColumns);
  const sonde_column_t *const column = find_column(state, *box, 4, 2, 3);
  sonde_reduction_t reduction = {};
  reduction.struct_size = sizeof(reduction);
  if (box->context->columns->reduce(box->batch, column, &reduction) < 0) raise_last_error(state, *box->context);
  return reduction;
}

int push_result(lua_State *state, const sonde_reduction_t &reduction, int64_t integer, double number) {
  if (reduction.exact != 0) {
    lua_pushinteger(state, integer);
  } else {
    lua_pushnumber(state, number);
  }
  return 1;
}

int batch_sum(lua_State *state) {
  const sonde_reduction_t reduction = reduce(state);
  return push_result(state, reduction, reduction.sum_i64, reduction.sum);
}

int batch_min(lua_State *state) {
  const sonde_reduction_t reduction = reduce(state);
  if (reduction.count == 0) return 0;
  return push_result(state, reduction, reduction.min_i64, reduction.min);
}

int batch_max(lua_State *state) {
  const sonde_reduction_t reduction = reduce(state);
  if (reduction.count == 0) return 0;
  return push_result(state, reduction, reduction.max_i64, reduction.max);
}

int batch_mean(lua_State *state) {
  const sonde_reduction_t reduction = reduce(state);
  if (reduction.count == 0) return 0;
  lua_pushnumber(state, reduction.sum / static_cast<double>(reduction.count));
  return 1;
}

// Records of a type. Every record has `time`, so its column names space and type.
int batch_count(lua_State *state) {
  const BatchBox *const box = check_batch(state);
  lua_settop(state, 2);
  lua_pushliteral(state, "time");
  lua_getiuservalue(state, 1, kColumns);
  const sonde_column_t *const column = find_column(state, *box, 4, 3, 2);
  const sonde_batch_t *const batch = box->batch;
  int64_t count = 0;
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    count += record->space == column->space && record->type == column->type;
  }
  lua_pushinteger(state, count);
  return 1;
}

// Array of a column's values.
int batch_gather(lua_State *state) {
  const BatchBox *const box = check_batch(state);
  luaL_checktype(state, 2, LUA_TSTRING);
  lua_settop(state, 3);
  lua_getiuservalue(state, 1, kColumns);
  const sonde_column_t *const column = find_column(state, *box, 4, 2, 3);
  const sonde_columns_service_t *const columns = box->context->columns;
  uint64_t count = 0;
  if (columns->gather_i64(box->batch, column, nullptr, 0, &count) < 0) raise_last_error(state, *box->context);
  void *const values = lua_newuserdatauv(state, count == 0 ? 1 : count * 8, 0);
  const bool floating = column->kind == SONDE_KIND_FLOAT;
  const sonde_status status =
      floating ? columns->gather_f64(box->batch, column, static_cast<double *>(values), count, &count)
               : columns->gather_i64(box->batch, column, static_cast<int64_t *>(values), count, &count);
  if (status < 0) raise_last_error(state, *box->context);
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t index = 0; index < count; ++index) {
    if (floating) {
      lua_pushnumber(state, static_cast<const double *>(values)[index]);
    } else {
      lua_pushinteger(state, static_cast<const int64_t *>(values)[index]);
    }
    lua_rawseti(state, -2, static_cast<lua_Integer>(index + 1));
  }
  return 1;
}

// batch:text(id)
int batch_text(lua_State *state) {
  const BatchBox *const box = check_batch(state);
  const lua_Integer id = luaL_checkinteger(state, 2);
  luaL_argcheck(state, id >= 0 && id <= UINT32_MAX, 2, "not the id of a string");
  const char *text = nullptr;
  const sonde_status status =
      box->context->capture->text(box->batch->session, box->batch->source, static_cast<sonde_string_t>(id), &text);
  if (status < 0) return raise_last_error(state, *box->context);
  lua_pushstring(state, text);
  return 1;
}

struct Property {
  const char *name;
  int64_t (*get)(const sonde_batch_t &batch);
};

constexpr Property kProperties[] = {
    {"stream", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.stream); }},
    {"source", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.source); }},
    {"sequence", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.sequence); }},
    {"records", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.count); }},
    {"bytes", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.bytes); }},
    {"repairs", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.repair_count); }},
    {"first_ns", [](const sonde_batch_t &batch) { return sonde_clock_ns(batch.clock, batch.first_time); }},
    {"last_ns", [](const sonde_batch_t &batch) { return sonde_clock_ns(batch.clock, batch.last_time); }},
    {"lost_ring", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.lost_ring); }},
    {"lost_overwritten", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.lost_overwritten); }},
    {"lost_queue", [](const sonde_batch_t &batch) { return static_cast<int64_t>(batch.lost_queue); }},
};

// Upvalue 1: the methods.
int batch_index(lua_State *state) {
  auto *const box = static_cast<BatchBox *>(luaL_checkudata(state, 1, kBatchClass));
  lua_pushvalue(state, 2);
  if (lua_rawget(state, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  const char *const name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "";
  for (const Property &property : kProperties) {
    if (std::strcmp(property.name, name) != 0) continue;
    if (box->batch == nullptr) {
      return luaL_error(state, "the batch is over: it may be used inside its callback only");
    }
    lua_pushinteger(state, property.get(*box->batch));
    return 1;
  }
  return luaL_error(state, "a batch has no \"%s\"", name);
}

constexpr luaL_Reg kMethods[] = {
    {"count", batch_count}, {"sum", batch_sum},       {"min", batch_min},   {"max", batch_max},   {"mean", batch_mean},
    {"group", batch_group}, {"gather", batch_gather}, {"rows", batch_rows}, {"text", batch_text}, {nullptr, nullptr},
};

}  // namespace

void register_batches(lua_State *state) {
  make_class(state, kBatchClass, nullptr, nullptr);
  luaL_getmetatable(state, kBatchClass);
  lua_newtable(state);
  luaL_setfuncs(state, kMethods, 0);
  lua_pushcclosure(state, batch_index, 1);
  lua_setfield(state, -2, "__index");
  lua_pop(state, 1);
}

BatchBox *push_batch(lua_State *state, const Context *context, const char *space, const char *type) {
  luaL_checkstack(state, 4, nullptr);
  auto *const box = static_cast<BatchBox *>(lua_newuserdatauv(state, sizeof(BatchBox), kFields));
  *box = {};
  box->context = context;
  std::strncpy(box->space, space, kNameBytes - 1);
  std::strncpy(box->type, type, kNameBytes - 1);
  for (const int value : {kColumns, kGroups, kFields}) {
    lua_newtable(state);
    lua_setiuservalue(state, -2, value);
  }
  luaL_setmetatable(state, kBatchClass);
  return box;
}

void set_batch(BatchBox *box, const sonde_batch_t *batch) {
  box->batch = batch;
  ++box->generation;
}

void split_type(lua_State *state, const char *space, const char *word, char *space_out, char *type_out) {
  const char *const dot = std::strrchr(word, '.');
  const size_t space_length = dot == nullptr ? std::strlen(space) : static_cast<size_t>(dot - word);
  const char *const type = dot == nullptr ? word : dot + 1;
  if (space_length >= kNameBytes || std::strlen(type) >= kNameBytes) {
    luaL_error(state, "the name of the type is too long");
  }
  std::memcpy(space_out, dot == nullptr ? space : word, space_length);
  space_out[space_length] = '\0';
  std::strcpy(type_out, type);
}

const sonde_column_t *find_column(lua_State *state, const BatchBox &box, int cache, int field, int type) {
  const int top = lua_gettop(state);
  luaL_checkstack(state, 8, nullptr);
  const bool named = type != 0 && !lua_isnoneornil(state, type);
  if (named) {
    luaL_checktype(state, type, LUA_TSTRING);
    // Types lie one level down, so that a field may have the name of a type.
    lua_rawgetp(state, cache, &box);
    if (lua_isnil(state, -1)) {
      lua_pop(state, 1);
      lua_newtable(state);
      lua_pushvalue(state, -1);
      lua_rawsetp(state, cache, &box);
    }
    lua_pushvalue(state, type);
    lua_rawget(state, -2);
    if (lua_isnil(state, -1)) {
      lua_pop(state, 1);
      lua_newtable(state);
      lua_pushvalue(state, type);
      lua_pushvalue(state, -2);
      lua_rawset(state, -4);
    }
    cache = lua_gettop(state);
  }
  lua_pushvalue(state, field);
  lua_rawget(state, cache);
  const auto *column = static_cast<const sonde_column_t *>(lua_touserdata(state, -1));
  if (column == nullptr) {
    char space_name[kNameBytes];
    char type_name[kNameBytes];
    const char *const word = named ? lua_tostring(state, type) : box.type;
    if (word[0] == '\0') {
      luaL_error(state, "the subscription has several types: name one, as in batch:sum(field, \"kernel\")");
    }
    split_type(state, box.space, word, space_name, type_name);
    sonde_column_t found = {};
    found.struct_size = sizeof(found);
    if (box.context->columns->find(space_name, type_name, lua_tostring(state, field), &found) < 0) {
      raise_last_error(state, *box.context);
    }
    lua_pushvalue(state, field);
    auto *const kept = static_cast<sonde_column_t *>(lua_newuserdatauv(state, sizeof(found), 0));
    *kept = found;
    column = kept;
    lua_rawset(state, cache);
  }
  lua_settop(state, top);
  return column;
}

}  // namespace sonde::lua
