// sonde.call and sonde.plugin: calling what plugins publish, under the grants of the configuration.
#include <cstring>
#include <new>

#include "script.h"

namespace sonde::lua {
namespace {

constexpr const char *kBoundClass = "sonde.function";
constexpr const char *kHandleClass = "sonde.handle";
constexpr const char *kProxies = "sonde.plugins";  // registry: id -> proxy
constexpr uint32_t kMaxParameters = 16;

struct BoundParameter {
  char code;  // of the signature; for handles of the host S, C or T in place of 'h'
  uint64_t handle_number;
  const char *handle;
};

// A published function made ready to be called.
struct Bound {
  sonde_function_t function;
  const sonde_signature_t *signature;
  uint32_t parameter_count;  // in order, without out parameters
  uint32_t result_count;
  const char *plugin;
  const char *name;
  BoundParameter parameters[kMaxParameters];
};

struct HandleBox {
  void *pointer;
  uint64_t number;
};

// ---- Callbacks ----

// What native code holds as `user`. It may outlive the script.
struct CallbackRecord {
  std::shared_ptr<CallbackHome> home;
  int reference;
};

void push_argument(lua_State *state, const sonde_value_t &value) {
  if (value.kind == SONDE_VALUE_HANDLE && value.as.pointer != nullptr) {
    auto *const box = static_cast<HandleBox *>(lua_newuserdatauv(state, sizeof(HandleBox), 0));
    *box = {const_cast<void *>(value.as.pointer), value.count};
    luaL_setmetatable(state, kHandleClass);
  } else if (value.kind == SONDE_VALUE_I64S || value.kind == SONDE_VALUE_F64S) {
    lua_createtable(state, static_cast<int>(value.count), 0);
    for (uint64_t index = 0; index < value.count; ++index) {
      if (value.kind == SONDE_VALUE_I64S) {
        lua_pushinteger(state, static_cast<const int64_t *>(value.as.pointer)[index]);
      } else {
        lua_pushnumber(state, static_cast<const double *>(value.as.pointer)[index]);
      }
      lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
    }
  } else {
    push_value(state, value);
  }
}

struct CallbackCall {
  int reference;
  const sonde_value_t *arguments;
  uint64_t count;
  sonde_value_t *result;
  char *text;  // room for a text result
  size_t text_bytes;
};

// Runs under lua_pcall with a CallbackCall as light userdata.
int protected_callback(lua_State *state) {
  auto &call = *static_cast<CallbackCall *>(lua_touserdata(state, 1));
  luaL_checkstack(state, static_cast<int>(call.count) + 8, "callback");
  lua_rawgeti(state, LUA_REGISTRYINDEX, call.reference);
  for (uint64_t index = 0; index < call.count; ++index) push_argument(state, call.arguments[index]);
  lua_call(state, static_cast<int>(call.count), 1);
  if (call.result == nullptr) return 0;
  *call.result = {};
  switch (lua_type(state, -1)) {
    case LUA_TBOOLEAN:
      call.result->kind = SONDE_VALUE_BOOL;
      call.result->as.u64 = lua_toboolean(state, -1) != 0 ? 1 : 0;
      break;
    case LUA_TNUMBER:
      call.result->kind = lua_isinteger(state, -1) != 0 ? SONDE_VALUE_I64 : SONDE_VALUE_F64;
      if (call.result->kind == SONDE_VALUE_I64) {
        call.result->as.i64 = lua_tointeger(state, -1);
      } else {
        call.result->as.f64 = lua_tonumber(state, -1);
      }
      break;
    case LUA_TSTRING: {
      size_t length = 0;
      const char *const text = lua_tolstring(state, -1, &length);
      if (length >= call.text_bytes) {
        return luaL_error(state, "a callback's text may have %d bytes", static_cast<int>(call.text_bytes - 1));
      }
      std::memcpy(call.text, text, length + 1);
      call.result->kind = SONDE_VALUE_TEXT;
      call.result->count = length;
      call.result->as.text = call.text;
      break;
    }
    default:
      break;
  }
  return 0;
}

sonde_status run_callback(void *user, const sonde_value_t *arguments, uint64_t count, sonde_value_t *result) {
  auto &record = *static_cast<CallbackRecord *>(user);
  Script *script = nullptr;
  {
    // On another thread the script may end at any time, but not while this lock is held; on its own it cannot.
    std::lock_guard lock(record.home->mutex);
    script = record.home->script;
    if (script != nullptr && (!script->is_running_here() || script->running() == nullptr)) script = nullptr;
  }
  if (script == nullptr) {
    record.home->refused.fetch_add(1);
    return SONDE_E_THREAD;
  }
  // Text of a result lives until this thread's next callback.
  thread_local char text[4096];
  lua_State *const state = script->running();
  if (lua_checkstack(state, 8) == 0) return SONDE_E_FULL;
  CallbackCall call = {record.reference, arguments, count, result, text, sizeof(text)};
  lua_pushcfunction(state, protected_callback);
  lua_pushlightuserdata(state, &call);
  if (lua_pcall(state, 1, 0, 0) == LUA_OK) return SONDE_OK;
  const char *const message = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : "error in a callback";
  const sonde_status status = script->context().host->set_error(SONDE_E_USER, message);
  lua_pop(state, 1);
  return status;
}

// [any]: native code lets the callback go.
void drop_callback(void *user) {
  auto *const record = static_cast<CallbackRecord *>(user);
  {
    std::lock_guard lock(record->home->mutex);
    if (record->home->script != nullptr) {
      try {
        record->home->dropped.push_back(record->reference);
      } catch (const std::bad_alloc &) {
        // The function stays in the registry until the script ends.
      }
    }
  }
  delete record;
}

CallbackRecord *new_callback(lua_State *state, int reference) {
  try {
    return new CallbackRecord{Script::of(state).callbacks(), reference};
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

// ---- Arguments ----

int bad_argument(lua_State *state, const Bound &bound, int argument, const char *expected) {
  const char *const given = luaL_typename(state, argument);
  return luaL_error(state, "%s.%s, argument %d: expected %s, got %s", bound.plugin, bound.name, argument, expected,
                    given);
}

// Copies a Lua list into a userdata on the stack.
void read_list(lua_State *state, const Bound &bound, int argument, bool floating, sonde_value_t &value) {
  if (lua_type(state, argument) != LUA_TTABLE) bad_argument(state, bound, argument, "a list of numbers");
  const lua_Unsigned count = lua_rawlen(state, argument);
  void *const data = lua_newuserdatauv(state, count == 0 ? 8 : count * 8, 0);
  for (lua_Unsigned index = 0; index < count; ++index) {
    lua_rawgeti(state, argument, static_cast<lua_Integer>(index) + 1);
    int fits = lua_type(state, -1) == LUA_TNUMBER;
    if (floating) {
      static_cast<double *>(data)[index] = lua_tonumber(state, -1);
    } else if (fits != 0) {
      static_cast<int64_t *>(data)[index] = lua_tointegerx(state, -1, &fits);
    }
    if (fits == 0) {
      luaL_error(state, "%s.%s, argument %d: element %I is no %s", bound.plugin, bound.name, argument,
                 static_cast<lua_Integer>(index) + 1, floating ? "number" : "integer");
    }
    lua_pop(state, 1);
  }
  value.kind = floating ? SONDE_VALUE_F64S : SONDE_VALUE_I64S;
  value.count = count;
  value.as.pointer = data;
}

// Everything but callbacks. Values that Lua owns stay on the stack.
void read_argument(lua_State *state, const Bound &bound, const BoundParameter &parameter, int argument,
                   sonde_value_t &value) {
  const int type = lua_type(state, argument);
  switch (parameter.code) {
    case 'i':
    case 'I':
    case 'q':
    case 'Q': {
      int fits = type == LUA_TNUMBER;
      if (fits != 0) value.as.i64 = lua_tointegerx(state, argument, &fits);
      if (fits == 0) bad_argument(state, bound, argument, "an integer");
      value.kind = parameter.code == 'Q' ? SONDE_VALUE_U64 : SONDE_VALUE_I64;  // Q: the same 64 bits
      return;
    }
    case 'd':
      if (type != LUA_TNUMBER) bad_argument(state, bound, argument, "a number");
      value.kind = SONDE_VALUE_F64;
      value.as.f64 = lua_tonumber(state, argument);
      return;
    case 's':
    case 'y': {
      if (type != LUA_TSTRING) bad_argument(state, bound, argument, "text");
      size_t length = 0;
      value.as.text = lua_tolstring(state, argument, &length);
      value.kind = parameter.code == 's' ? SONDE_VALUE_TEXT : SONDE_VALUE_BYTES;
      value.count = length;
      return;
    }
    case 'L':
    case 'D':
      read_list(state, bound, argument, parameter.code == 'D', value);
      return;
    default: {  // 'h' or 'T'
      value.kind = SONDE_VALUE_HANDLE;
      if (parameter.code == 'T') {
        value.as.pointer = to_table(state, argument);
        if (value.as.pointer == nullptr) bad_argument(state, bound, argument, "a table made by sonde.table");
        return;
      }
      const auto *const box = static_cast<const HandleBox *>(luaL_testudata(state, argument, kHandleClass));
      if (box == nullptr || box->number != parameter.handle_number) {
        luaL_error(state, "%s.%s, argument %d: expected a handle %s", bound.plugin, bound.name, argument,
                   parameter.handle);
      }
      value.as.pointer = box->pointer;
      value.count = box->number;
      return;
    }
  }
}

bool is_implicit(const BoundParameter &parameter) { return parameter.code == 'S' || parameter.code == 'C'; }

// Upvalue 1: the Bound. The session, and the script's options as a config, are given without being written.
// Benchmark: tests/bench/lua_call.cpp.
int call_bound(lua_State *state) {
  const auto &bound = *static_cast<const Bound *>(lua_touserdata(state, lua_upvalueindex(1)));
  Script &script = Script::of(state);
  sonde_value_t values[kMaxParameters];
  sonde_callback_binding_t bindings[kMaxParameters];
  const int given = lua_gettop(state);
  int argument = 0;
  bool has_callbacks = false;
  for (uint32_t index = 0; index < bound.parameter_count; ++index) {
    const BoundParameter &parameter = bound.parameters[index];
    values[index] = {};
    if (is_implicit(parameter)) {
      const void *const object = parameter.code == 'S' ? static_cast<const void *>(script.context().session)
                                                       : static_cast<const void *>(script.settings().options);
      values[index].kind = SONDE_VALUE_HANDLE;
      values[index].as.pointer = object;
      continue;
    }
    ++argument;
    if (parameter.code == 'c') {
      has_callbacks = true;
      if (!lua_isnoneornil(state, argument) && !lua_isfunction(state, argument)) {
        bad_argument(state, bound, argument, "a function");
      }
      continue;
    }
    read_argument(state, bound, parameter, argument, values[index]);
  }
  if (given > argument) {
    return luaL_error(state, "%s.%s takes %d arguments, got %d", bound.plugin, bound.name, argument, given);
  }
  if (has_callbacks) {
    // Last, since from here on nothing may raise until the call has taken them: references first, then records.
    argument = 0;
    int references[kMaxParameters];
    for (uint32_t index = 0; index < bound.parameter_count; ++index) {
      if (is_implicit(bound.parameters[index])) continue;
      ++argument;
      references[index] = LUA_NOREF;
      if (bound.parameters[index].code != 'c' || lua_isnoneornil(state, argument)) continue;
      lua_pushvalue(state, argument);
      references[index] = luaL_ref(state, LUA_REGISTRYINDEX);
    }
    for (uint32_t index = 0; index < bound.parameter_count; ++index) {
      if (bound.parameters[index].code != 'c' || references[index] == LUA_NOREF) continue;
      CallbackRecord *const record = new_callback(state, references[index]);
      if (record == nullptr) continue;  // passed as no callback
      bindings[index] = {run_callback, record, drop_callback};
      values[index].kind = SONDE_VALUE_HANDLE;
      values[index].as.pointer = &bindings[index];
    }
  }
  sonde_value_t results[kMaxParameters + 1];
  uint64_t count = 0;
  const sonde_status status = script.reflect().call(bound.signature, bound.function, values, bound.parameter_count,
                                                    results, kMaxParameters + 1, &count);
  if (status < 0) {
    const char *const text = script.context().host->last_error();
    return luaL_error(state, "%s.%s: %s (status %d)", bound.plugin, bound.name, text, static_cast<int>(status));
  }
  // Lua gives a C function LUA_MINSTACK places beyond its arguments; few results need no more.
  if (count > LUA_MINSTACK / 4) luaL_checkstack(state, static_cast<int>(count) + 4, "results");
  for (uint64_t index = 0; index < count; ++index) {
    const sonde_value_t &result = results[index];
    if (result.kind == SONDE_VALUE_I64 || result.kind == SONDE_VALUE_U64) {
      lua_pushinteger(state, result.as.i64);
    } else {
      push_argument(state, result);
    }
  }
  return static_cast<int>(count);
}

// ---- Binding ----

void describe(lua_State *state, Bound &bound, const char *text) {
  Script &script = Script::of(state);
  const sonde_reflect_service_t &reflect = script.reflect();
  if (reflect.prepare(text, &bound.signature) < 0) raise_last_error(state, script.context());
  sonde_parameter_t parameter = {};
  parameter.struct_size = sizeof(parameter);
  for (uint64_t index = 0; reflect.parameter(bound.signature, index, &parameter) >= 0; ++index) {
    if (parameter.is_out != 0) continue;
    if (parameter.code == 'h' && parameter.handle[0] == 'R') {
      luaL_error(state, "%s.%s takes results, which a script does not have", bound.plugin, bound.name);
    }
    const char first = parameter.code == 'h' ? parameter.handle[0] : '\0';
    const bool of_host = first == 'S' || first == 'C' || first == 'T';
    bound.parameters[bound.parameter_count++] = {of_host ? first : static_cast<char>(parameter.code),
                                                 parameter.handle_number, parameter.handle};
  }
}

// Pushes the function `name` of `plugin` as a closure. Both texts live as long as the process.
void bind(lua_State *state, const char *plugin, const char *name) {
  Script &script = Script::of(state);
  sonde_export_t published = {};
  if (script.plugins().function(plugin, name, &published) < 0) raise_last_error(state, script.context());
  auto *const bound = static_cast<Bound *>(lua_newuserdatauv(state, sizeof(Bound), 1));
  *bound = {};
  // The user value keeps the plugin's id; the other texts are the plugin's own.
  bound->plugin = lua_pushstring(state, plugin);
  lua_setiuservalue(state, -2, 1);
  bound->name = published.name;
  bound->function = published.function;
  describe(state, *bound, published.signature);
  luaL_setmetatable(state, kBoundClass);
  lua_pushcclosure(state, call_bound, 1);
}

// __index of a proxy; upvalue 1: the plugin's id. The function is kept in the proxy.
int proxy_index(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const char *const name = luaL_checkstring(state, 2);
  bind(state, lua_tostring(state, lua_upvalueindex(1)), name);
  lua_pushvalue(state, 2);
  lua_pushvalue(state, -2);
  lua_rawset(state, 1);
  return 1;
}

// Pushes the proxy of a plugin.
void push_proxy(lua_State *state, int id) {
  const char *const plugin = luaL_checkstring(state, id);
  luaL_getsubtable(state, LUA_REGISTRYINDEX, kProxies);
  if (lua_getfield(state, -1, plugin) == LUA_TTABLE) {
    lua_remove(state, -2);
    return;
  }
  lua_pop(state, 1);
  if (!Script::of(state).is_granted(plugin)) {
    luaL_error(state, "plugin \"%s\" is not granted to this script; add it to `grant` in the configuration", plugin);
  }
  lua_newtable(state);
  lua_newtable(state);
  lua_pushvalue(state, id);
  lua_pushcclosure(state, proxy_index, 1);
  lua_setfield(state, -2, "__index");
  lua_pushliteral(state, "sonde.plugin");
  lua_setfield(state, -2, "__metatable");
  lua_setmetatable(state, -2);
  lua_pushvalue(state, -1);
  lua_setfield(state, -3, plugin);
  lua_remove(state, -2);
}

// sonde.plugin("workload")
int plugin(lua_State *state) {
  lua_settop(state, 1);
  push_proxy(state, 1);
  return 1;
}

// sonde.call("workload", "kernel_count", ...)
int call(lua_State *state) {
  luaL_checkstring(state, 2);
  push_proxy(state, 1);
  lua_pushvalue(state, 2);
  lua_gettable(state, -2);
  lua_replace(state, 2);
  lua_pop(state, 1);
  lua_call(state, lua_gettop(state) - 2, LUA_MULTRET);
  return lua_gettop(state) - 1;
}

int handle_text(lua_State *state) {
  const auto *const box = static_cast<const HandleBox *>(luaL_checkudata(state, 1, kHandleClass));
  lua_pushfstring(state, "handle: %p", box->pointer);
  return 1;
}

int handle_equal(lua_State *state) {
  const auto *const a = static_cast<const HandleBox *>(luaL_testudata(state, 1, kHandleClass));
  const auto *const b = static_cast<const HandleBox *>(luaL_testudata(state, 2, kHandleClass));
  lua_pushboolean(state, a != nullptr && b != nullptr && a->pointer == b->pointer && a->number == b->number);
  return 1;
}

constexpr luaL_Reg kHandleMetamethods[] = {{"__tostring", handle_text}, {"__eq", handle_equal}, {nullptr, nullptr}};

}  // namespace

void open_calls(lua_State *state) {
  make_class(state, kBoundClass, nullptr, nullptr);
  make_class(state, kHandleClass, nullptr, kHandleMetamethods);
  lua_pushcfunction(state, plugin);
  lua_setfield(state, -2, "plugin");
  lua_pushcfunction(state, call);
  lua_setfield(state, -2, "call");
}

}  // namespace sonde::lua
