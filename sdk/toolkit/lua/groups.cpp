#include <cstring>
#include <utility>

#include "glue.h"

namespace sonde::lua {
namespace {

constexpr const char *kGroupsClass = "sonde.groups";

// What a row of groups costs outside Lua, about: its totals, its place in the index, its sorted copy.
constexpr int64_t kRowBytes = 256;

struct GroupsBox {
  const Context *context;
  sonde_groups_t *groups;
  sonde_column_t key;
  const sonde_field_t *key_field;  // null for a derived key
  const BatchBox *last_box;        // the batch that was added last is not added again
  uint64_t last_generation;
  int64_t charged;
};

// Pushes groups; the userdata exists before the host's object, so an error in between loses nothing.
GroupsBox *push_groups(lua_State *state, const Context *context, const sonde_column_t &key, const sonde_column_t &value,
                       const char *key_name) {
  auto *const box = static_cast<GroupsBox *>(lua_newuserdatauv(state, sizeof(GroupsBox), 0));
  *box = {};
  box->context = context;
  box->key = key;
  box->key_field = schema_field(*context, key, key_name);
  luaL_setmetatable(state, kGroupsClass);
  if (context->columns->group_open(&key, &value, &box->groups) < 0) raise_last_error(state, *context);
  return box;
}

GroupsBox *check_groups(lua_State *state) {
  auto *const box = static_cast<GroupsBox *>(luaL_checkudata(state, 1, kGroupsClass));
  if (box->context->session == nullptr) luaL_error(state, "the session is closed");
  if (box->groups == nullptr) luaL_error(state, "the groups are closed");
  return box;
}

void add_batch(lua_State *state, GroupsBox &box, const BatchBox &batch) {
  if (batch.batch == nullptr) luaL_error(state, "the batch is over: it may be used inside its callback only");
  if (box.last_box == &batch && box.last_generation == batch.generation) return;
  box.last_box = &batch;
  box.last_generation = batch.generation;
  const sonde_columns_service_t &columns = *box.context->columns;
  if (columns.group_add(box.groups, batch.batch) < 0) raise_last_error(state, *box.context);
  uint64_t count = 0;
  columns.group_count(box.groups, &count);
  const int64_t bytes = static_cast<int64_t>(count) * kRowBytes;
  if (box.context->charge == nullptr || bytes == box.charged) return;
  const bool fits = box.context->charge(box.context->user, bytes - box.charged);
  box.charged = bytes;
  if (!fits) luaL_error(state, "not enough memory: the groups have %I rows", static_cast<lua_Integer>(count));
}

int groups_close(lua_State *state) {
  auto *const box = static_cast<GroupsBox *>(luaL_checkudata(state, 1, kGroupsClass));
  if (box->groups != nullptr) box->context->columns->group_close(box->groups);
  box->groups = nullptr;
  if (box->context->charge != nullptr) box->context->charge(box->context->user, -box->charged);
  box->charged = 0;
  return 0;
}

int groups_add(lua_State *state) {
  GroupsBox *const box = check_groups(state);
  add_batch(state, *box, *static_cast<const BatchBox *>(luaL_checkudata(state, 2, kBatchClass)));
  lua_settop(state, 1);
  return 1;
}

int groups_length(lua_State *state) {
  uint64_t count = 0;
  GroupsBox *const box = check_groups(state);
  box->context->columns->group_count(box->groups, &count);
  lua_pushinteger(state, static_cast<lua_Integer>(count));
  return 1;
}

void push_key(lua_State *state, const GroupsBox &box, const sonde_group_row_t &row) {
  if (box.key.kind == SONDE_KIND_STRING) {
    const char *text = nullptr;
    const Context &context = *box.context;
    if (context.capture->text(context.session, row.source, static_cast<sonde_string_t>(row.key), &text) >= 0) {
      lua_pushstring(state, text);
      return;
    }
  }
  if (box.key.kind == SONDE_KIND_ENUM && box.key_field != nullptr) {
    push_word(state, box.key_field->names, row.key);
    return;
  }
  lua_pushinteger(state, static_cast<lua_Integer>(row.key));
}

void set_number(lua_State *state, const char *name, const sonde_reduction_t &value, int64_t integer, double number) {
  if (value.exact != 0) {
    lua_pushinteger(state, integer);
  } else {
    lua_pushnumber(state, number);
  }
  lua_setfield(state, -2, name);
}

// {key=, source=, count=, sum=, min=, max=, mean=}
void push_row(lua_State *state, const GroupsBox &box, const sonde_group_row_t &row) {
  lua_createtable(state, 0, 7);
  push_key(state, box, row);
  lua_setfield(state, -2, "key");
  lua_pushinteger(state, row.source);
  lua_setfield(state, -2, "source");
  lua_pushinteger(state, static_cast<lua_Integer>(row.value.count));
  lua_setfield(state, -2, "count");
  set_number(state, "sum", row.value, row.value.sum_i64, row.value.sum);
  set_number(state, "min", row.value, row.value.min_i64, row.value.min);
  set_number(state, "max", row.value, row.value.max_i64, row.value.max);
  lua_pushnumber(state, row.value.sum / static_cast<double>(row.value.count));
  lua_setfield(state, -2, "mean");
}

// All rows, sorted by source, then key.
int groups_rows(lua_State *state) {
  const GroupsBox *const box = check_groups(state);
  const sonde_group_row_t *rows = nullptr;
  uint64_t count = 0;
  if (box->context->columns->group_rows(box->groups, &rows, &count) < 0) return raise_last_error(state, *box->context);
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t index = 0; index < count; ++index) {
    push_row(state, *box, rows[index]);
    lua_rawseti(state, -2, static_cast<lua_Integer>(index + 1));
  }
  return 1;
}

double measure(const sonde_group_row_t &row, const char *by) {
  if (std::strcmp(by, "count") == 0) return static_cast<double>(row.value.count);
  if (std::strcmp(by, "max") == 0) return row.value.max;
  if (std::strcmp(by, "mean") == 0) return row.value.sum / static_cast<double>(row.value.count);
  return row.value.sum;
}

// True when `a` stands before `b`: greater measure, then order of rows.
bool before(const sonde_group_row_t *a, const sonde_group_row_t *b, const char *by) {
  const double left = measure(*a, by);
  const double right = measure(*b, by);
  return left != right ? left > right : a < b;
}

// groups:top(n [, "sum"|"count"|"max"|"mean"]): the n greatest, greatest first. A heap of n pointers whose root is the
// least of them.
int groups_top(lua_State *state) {
  const GroupsBox *const box = check_groups(state);
  const lua_Integer wanted = luaL_checkinteger(state, 2);
  static const char *const kMeasures[] = {"sum", "count", "max", "mean", nullptr};
  const char *const by = kMeasures[luaL_checkoption(state, 3, "sum", kMeasures)];
  luaL_argcheck(state, wanted >= 0, 2, "not negative");
  const sonde_group_row_t *rows = nullptr;
  uint64_t count = 0;
  if (box->context->columns->group_rows(box->groups, &rows, &count) < 0) return raise_last_error(state, *box->context);
  const uint64_t size = static_cast<uint64_t>(wanted) < count ? static_cast<uint64_t>(wanted) : count;
  auto **const heap = static_cast<const sonde_group_row_t **>(lua_newuserdatauv(state, (size + 1) * sizeof(void *), 0));
  uint64_t used = 0;
  const auto sink = [&](uint64_t place) {
    for (;;) {
      uint64_t least = place;
      for (const uint64_t child : {2 * place + 1, 2 * place + 2}) {
        if (child < used && before(heap[least], heap[child], by)) least = child;
      }
      if (least == place) return;
      std::swap(heap[place], heap[least]);
      place = least;
    }
  };
  for (uint64_t index = 0; index < count && size != 0; ++index) {
    if (used < size) {
      uint64_t place = used++;
      heap[place] = &rows[index];
      while (place != 0 && before(heap[(place - 1) / 2], heap[place], by)) {
        std::swap(heap[place], heap[(place - 1) / 2]);
        place = (place - 1) / 2;
      }
    } else if (before(&rows[index], heap[0], by)) {
      heap[0] = &rows[index];
      sink(0);
    }
  }
  lua_createtable(state, static_cast<int>(size), 0);
  while (used != 0) {
    push_row(state, *box, *heap[0]);
    lua_rawseti(state, -2, static_cast<lua_Integer>(used));
    heap[0] = heap[--used];
    sink(0);
  }
  return 1;
}

constexpr luaL_Reg kMethods[] = {{"add", groups_add}, {"rows", groups_rows}, {"top", groups_top}, {nullptr, nullptr}};
constexpr luaL_Reg kMetamethods[] = {{"__gc", groups_close}, {"__len", groups_length}, {nullptr, nullptr}};

// Pushes the table under the key at `key` of the table on top, made when absent, in its place.
void descend(lua_State *state, int key) {
  lua_pushvalue(state, key);
  lua_rawget(state, -2);
  if (lua_isnil(state, -1)) {
    lua_pop(state, 1);
    lua_newtable(state);
    lua_pushvalue(state, key);
    lua_pushvalue(state, -2);
    lua_rawset(state, -4);
  }
  lua_remove(state, -2);
}

}  // namespace

void register_groups(lua_State *state) { make_class(state, kGroupsClass, kMethods, kMetamethods); }

int batch_group(lua_State *state) {
  auto *const box = static_cast<BatchBox *>(luaL_checkudata(state, 1, kBatchClass));
  if (box->batch == nullptr) return luaL_error(state, "the batch is over: it may be used inside its callback only");
  luaL_checktype(state, 2, LUA_TSTRING);
  luaL_checktype(state, 3, LUA_TSTRING);
  lua_settop(state, 4);
  if (lua_isnil(state, 4)) {
    if (box->type[0] == '\0') {
      return luaL_error(state,
                        "the subscription has several types: name one, as in batch:group(key, value, \"kernel\")");
    }
    lua_pushboolean(state, 1);  // stands for the batch's own type in the keys below
    lua_replace(state, 4);
  }
  const bool own = lua_isboolean(state, 4);
  lua_getiuservalue(state, 1, 2);
  descend(state, 4);
  descend(state, 2);
  lua_pushvalue(state, 3);
  lua_rawget(state, 5);
  if (lua_isnil(state, -1)) {
    lua_pop(state, 1);
    lua_getiuservalue(state, 1, 1);
    const sonde_column_t *const key = find_column(state, *box, 6, 2, own ? 0 : 4);
    const sonde_column_t *const value = find_column(state, *box, 6, 3, own ? 0 : 4);
    push_groups(state, box->context, *key, *value, lua_tostring(state, 2));
    lua_pushvalue(state, 3);
    lua_pushvalue(state, -2);
    lua_rawset(state, 5);
  }
  auto *const groups = static_cast<GroupsBox *>(luaL_checkudata(state, -1, kGroupsClass));
  add_batch(state, *groups, *box);
  return 1;
}

int new_groups(lua_State *state) {
  const auto *const context = static_cast<const Context *>(lua_touserdata(state, lua_upvalueindex(1)));
  const char *const key_name = luaL_checkstring(state, 1);
  const char *const value_name = luaL_checkstring(state, 2);
  char space[kNameBytes];
  char type[kNameBytes];
  split_type(state, "", luaL_checkstring(state, 3), space, type);
  luaL_argcheck(state, space[0] != '\0', 3, "name space and type, as in \"sonde.device.kernel\"");
  sonde_column_t key = {};
  sonde_column_t value = {};
  key.struct_size = value.struct_size = sizeof(sonde_column_t);
  if (context->columns->find(space, type, key_name, &key) < 0 ||
      context->columns->find(space, type, value_name, &value) < 0) {
    return raise_last_error(state, *context);
  }
  push_groups(state, context, key, value, key_name);
  return 1;
}

}  // namespace sonde::lua
