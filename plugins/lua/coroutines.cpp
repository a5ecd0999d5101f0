// Coroutines under the deadline: each runs on a lua_State of its own, so the one that runs must be known to the timer.
// Once time is up no pending __close of a dead coroutine runs: hooks would be off in it.
#include "script.h"

namespace sonde::lua {
namespace {

lua_State *check_coroutine(lua_State *state, int index) {
  lua_State *const coroutine = lua_tothread(state, index);
  luaL_argexpected(state, coroutine != nullptr, index, "coroutine");
  return coroutine;
}

int create(lua_State *state) {
  luaL_checktype(state, 1, LUA_TFUNCTION);
  lua_State *const coroutine = lua_newthread(state);
  lua_pushvalue(state, 1);
  lua_xmove(state, coroutine, 1);
  return 1;
}

const char *status_word(lua_State *state, lua_State *coroutine) {
  if (coroutine == state) return "running";
  switch (lua_status(coroutine)) {
    case LUA_YIELD:
      return "suspended";
    case LUA_OK: {
      lua_Debug frame;
      if (lua_getstack(coroutine, 0, &frame) != 0) return "normal";  // it has resumed another
      return lua_gettop(coroutine) == 0 ? "dead" : "suspended";      // not begun: its function lies there
    }
    default:
      return "dead";
  }
}

// Moves `count` arguments over and runs the coroutine. Pushes results and returns their number, or pushes an error and
// returns -1.
int run_coroutine(lua_State *state, lua_State *coroutine, int count) {
  if (lua_checkstack(coroutine, count) == 0) {
    lua_pushliteral(state, "too many arguments to resume");
    return -1;
  }
  const char *const status = status_word(state, coroutine);
  if (status[0] != 's') {
    lua_pushfstring(state, "cannot resume %s coroutine", status[0] == 'd' ? "dead" : "non-suspended");
    return -1;
  }
  lua_xmove(state, coroutine, count);
  Script &script = Script::of(state);
  lua_State *const before = script.deadline().enter(coroutine);
  script.set_running(coroutine);
  int results = 0;
  const int outcome = lua_resume(coroutine, state, count, &results);
  script.set_running(before);
  script.deadline().enter(before);
  if (outcome != LUA_OK && outcome != LUA_YIELD) {
    lua_xmove(coroutine, state, 1);
    return -1;
  }
  if (lua_checkstack(state, results + 1) == 0) {
    lua_pop(coroutine, results);
    lua_pushliteral(state, "too many results to resume");
    return -1;
  }
  lua_xmove(coroutine, state, results);
  return results;
}

// Closes pending variables of a coroutine that does not run; Lua's status.
int reset(lua_State *state, lua_State *coroutine) {
  Script &script = Script::of(state);
  lua_State *const before = script.deadline().enter(coroutine);
  script.set_running(coroutine);
  const int outcome = lua_resetthread(coroutine);
  script.set_running(before);
  script.deadline().enter(before);
  return outcome;
}

int resume(lua_State *state) {
  lua_State *const coroutine = check_coroutine(state, 1);
  const int results = run_coroutine(state, coroutine, lua_gettop(state) - 1);
  lua_pushboolean(state, results >= 0);
  lua_insert(state, results < 0 ? -2 : -(results + 1));
  return results < 0 ? 2 : results + 1;
}

// Upvalue 1: the coroutine.
int wrapped(lua_State *state) {
  lua_State *const coroutine = lua_tothread(state, lua_upvalueindex(1));
  const int results = run_coroutine(state, coroutine, lua_gettop(state));
  if (results >= 0) return results;
  const int status = lua_status(coroutine);
  if (status != LUA_OK && status != LUA_YIELD && !Script::of(state).deadline().expired()) {
    // Its pending variables are closed with the error, which stays the answer whatever they do.
    lua_pushvalue(state, -1);
    lua_xmove(state, coroutine, 1);
    reset(state, coroutine);
    lua_settop(coroutine, 0);
  }
  if (lua_type(state, -1) == LUA_TSTRING) {
    luaL_where(state, 1);
    lua_insert(state, -2);
    lua_concat(state, 2);
  }
  return lua_error(state);
}

int wrap(lua_State *state) {
  create(state);
  lua_pushcclosure(state, wrapped, 1);
  return 1;
}

int yield(lua_State *state) { return lua_yield(state, lua_gettop(state)); }

int status(lua_State *state) {
  lua_pushstring(state, status_word(state, check_coroutine(state, 1)));
  return 1;
}

int is_yieldable(lua_State *state) {
  lua_pushboolean(state, lua_isyieldable(lua_isnone(state, 1) ? state : check_coroutine(state, 1)));
  return 1;
}

int running(lua_State *state) {
  lua_pushboolean(state, lua_pushthread(state));
  return 2;
}

int close(lua_State *state) {
  lua_State *const coroutine = check_coroutine(state, 1);
  const char *const word = status_word(state, coroutine);
  if (word[0] != 's' && word[0] != 'd') return luaL_error(state, "cannot close a %s coroutine", word);
  if (Script::of(state).deadline().expired()) return luaL_error(state, "the deadline passed");
  const int outcome = reset(state, coroutine);
  lua_pushboolean(state, outcome == LUA_OK);
  if (outcome == LUA_OK) return 1;
  lua_xmove(coroutine, state, 1);
  return 2;
}

constexpr luaL_Reg kFunctions[] = {
    {"create", create},   {"resume", resume}, {"wrap", wrap},
    {"yield", yield},     {"status", status}, {"isyieldable", is_yieldable},
    {"running", running}, {"close", close},   {nullptr, nullptr},
};

}  // namespace

void open_coroutines(lua_State *state) {
  lua_newtable(state);
  luaL_setfuncs(state, kFunctions, 0);
  lua_setglobal(state, "coroutine");
}

}  // namespace sonde::lua
