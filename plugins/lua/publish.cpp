// sonde.table and sonde.finding: what a script publishes.
#include <cmath>
#include <cstring>
#include <iterator>

#include "script.h"

namespace sonde::lua {
namespace {

constexpr const char *kTableClass = "sonde.table";
constexpr uint32_t kMaxColumns = 64;
constexpr uint32_t kMaxEvidence = 64;

struct PublishedTable {
  sonde_table_t *table;
  uint32_t column_count;
  uint32_t kinds[kMaxColumns];
};

// ---- Reading Lua tables of named parts ----

// Text under `name` in the table at `index`, "" when absent; stays on the stack so that it lives.
const char *text_part(lua_State *state, int index, const char *name) {
  lua_getfield(state, index, name);
  if (lua_isnil(state, -1)) return "";
  if (lua_type(state, -1) != LUA_TSTRING) {
    luaL_error(state, "%s: expected text, got %s", name, luaL_typename(state, -1));
  }
  return lua_tostring(state, -1);
}

double number_part(lua_State *state, int index, const char *name, double fallback) {
  double number = fallback;
  if (lua_getfield(state, index, name) != LUA_TNIL) {
    if (lua_type(state, -1) != LUA_TNUMBER) {
      luaL_error(state, "%s: expected a number, got %s", name, luaL_typename(state, -1));
    }
    number = lua_tonumber(state, -1);
  }
  lua_pop(state, 1);
  return number;
}

bool flag_part(lua_State *state, int index, const char *name) {
  lua_getfield(state, index, name);
  const bool flag = lua_toboolean(state, -1) != 0;
  lua_pop(state, 1);
  return flag;
}

// Index of `word` among `words`, an error that lists them otherwise.
uint32_t word_index(lua_State *state, const char *part, const char *word, const char *const *words, uint32_t count) {
  for (uint32_t index = 0; index < count; ++index) {
    if (std::strcmp(words[index], word) == 0) return index;
  }
  luaL_Buffer known;
  luaL_buffinit(state, &known);
  for (uint32_t index = 0; index < count; ++index) {
    if (index != 0) luaL_addstring(&known, ", ");
    luaL_addstring(&known, words[index]);
  }
  luaL_pushresult(&known);
  luaL_error(state, "%s: \"%s\" is none of %s", part, word, lua_tostring(state, -1));
  return 0;
}

// A misspelt key would be ignored silently otherwise.
void check_keys(lua_State *state, int index, const char *what, const char *const *words, uint32_t count) {
  lua_pushnil(state);
  while (lua_next(state, index) != 0) {
    lua_pop(state, 1);
    if (lua_type(state, -1) != LUA_TSTRING) luaL_error(state, "%s: keys are names", what);
    word_index(state, what, lua_tostring(state, -1), words, count);
  }
}

// ---- Tables ----

constexpr const char *kKindWords[] = {"i64", "u64", "f64", "text", "bool"};
constexpr uint32_t kKinds[] = {SONDE_VALUE_I64, SONDE_VALUE_U64, SONDE_VALUE_F64, SONDE_VALUE_TEXT, SONDE_VALUE_BOOL};

void read_column(lua_State *state, sonde_column_spec_t &column) {
  static const char *const kKeys[] = {"name", "unit", "help", "kind", "key", "hidden", "sort"};
  const int index = lua_gettop(state);
  if (lua_type(state, index) != LUA_TTABLE) {
    luaL_error(state, "columns: each is a table, as in {name=\"kernel\", kind=\"text\"}");
  }
  check_keys(state, index, "column", kKeys, std::size(kKeys));
  column.name = text_part(state, index, "name");
  column.unit = text_part(state, index, "unit");
  column.help = text_part(state, index, "help");
  if (column.name[0] == '\0') luaL_error(state, "column: name is missing");
  const char *const kind = text_part(state, index, "kind");
  column.kind =
      kind[0] == '\0' ? SONDE_VALUE_I64 : kKinds[word_index(state, "kind", kind, kKindWords, std::size(kKindWords))];
  if (flag_part(state, index, "key")) column.flags |= SONDE_COLUMN_KEY;
  if (flag_part(state, index, "hidden")) column.flags |= SONDE_COLUMN_HIDDEN;
  const char *const sort = text_part(state, index, "sort");
  if (sort[0] != '\0') {
    static const char *const kSorts[] = {"down"};
    word_index(state, "sort", sort, kSorts, 1);
    column.flags |= SONDE_COLUMN_SORT_DOWN;
  }
}

// sonde.table{name=, title=, help=, rows=, columns={...}}
int new_table(lua_State *state) {
  static const char *const kKeys[] = {"name", "title", "help", "rows", "columns"};
  Script &script = Script::of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  check_keys(state, 1, "table", kKeys, std::size(kKeys));
  sonde_table_spec_t spec = {};
  spec.struct_size = sizeof(spec);
  spec.origin = script.settings().name.c_str();
  spec.name = text_part(state, 1, "name");
  spec.title = text_part(state, 1, "title");
  spec.help = text_part(state, 1, "help");
  if (spec.name[0] == '\0') return luaL_error(state, "table: name is missing");
  if (spec.title[0] == '\0') spec.title = spec.name;
  spec.show_rows = static_cast<uint32_t>(number_part(state, 1, "rows", 0));
  if (lua_getfield(state, 1, "columns") != LUA_TTABLE) return luaL_error(state, "table: columns are missing");
  const int columns = lua_gettop(state);
  const lua_Unsigned count = lua_rawlen(state, columns);
  if (count == 0 || count > kMaxColumns) return luaL_error(state, "table: 1 to %d columns", int{kMaxColumns});
  luaL_checkstack(state, static_cast<int>(count) * 6 + 8, "columns");
  auto *const box = static_cast<PublishedTable *>(lua_newuserdatauv(state, sizeof(PublishedTable), 1));
  *box = {};
  const int object = lua_gettop(state);
  lua_createtable(state, 0, static_cast<int>(count));  // name -> index
  const int names = lua_gettop(state);
  sonde_column_spec_t specs[kMaxColumns] = {};
  for (lua_Unsigned index = 0; index < count; ++index) {
    lua_rawgeti(state, columns, static_cast<lua_Integer>(index + 1));
    read_column(state, specs[index]);
    box->kinds[index] = specs[index].kind;
    lua_pushinteger(state, static_cast<lua_Integer>(index));
    lua_setfield(state, names, specs[index].name);
  }
  spec.columns = specs;
  spec.column_count = static_cast<uint32_t>(count);
  spec.column_stride = sizeof(sonde_column_spec_t);
  box->column_count = spec.column_count;
  const Context &context = script.context();
  if (context.results->create_table(context.session, &spec, &box->table) < 0) return raise_last_error(state, context);
  lua_pushvalue(state, names);
  lua_setiuservalue(state, object, 1);
  lua_pushvalue(state, object);
  luaL_setmetatable(state, kTableClass);
  return 1;
}

// The value on top as a cell of `kind`; the string stays where it is.
sonde_value_t to_cell(lua_State *state, uint32_t kind, const char *column) {
  sonde_value_t value = {};
  const int type = lua_type(state, -1);
  if (type == LUA_TNIL) return value;
  value.kind = kind;
  int fits = 1;
  switch (kind) {
    case SONDE_VALUE_I64:
    case SONDE_VALUE_U64:
      value.as.i64 = type == LUA_TNUMBER ? lua_tointegerx(state, -1, &fits) : (fits = 0);
      break;
    case SONDE_VALUE_F64:
      value.as.f64 = type == LUA_TNUMBER ? lua_tonumber(state, -1) : (fits = 0);
      break;
    case SONDE_VALUE_TEXT: {
      size_t length = 0;
      value.as.text = type == LUA_TSTRING ? lua_tolstring(state, -1, &length) : nullptr;
      value.count = length;
      fits = value.as.text != nullptr;
      break;
    }
    default:
      value.as.u64 = lua_toboolean(state, -1) != 0 ? 1 : 0;
      fits = type == LUA_TBOOLEAN;
      break;
  }
  if (fits == 0) {
    const char *word = "";
    for (uint32_t index = 0; index < std::size(kKinds); ++index) {
      if (kKinds[index] == kind) word = kKindWords[index];
    }
    luaL_tolstring(state, -1, nullptr);
    luaL_error(state, "column %s: expected %s, got %s", column, word, lua_tostring(state, -1));
  }
  return value;
}

// table:add{column=value, ...} or table:add{value, value, ...}
int table_add(lua_State *state) {
  auto *const box = static_cast<PublishedTable *>(luaL_checkudata(state, 1, kTableClass));
  const Context &context = Script::of(state).context();
  if (box->table == nullptr) return luaL_error(state, "the table was not made");
  luaL_checktype(state, 2, LUA_TTABLE);
  lua_settop(state, 2);
  luaL_checkstack(state, static_cast<int>(box->column_count) + 8, "columns");
  lua_getiuservalue(state, 1, 1);
  sonde_value_t values[kMaxColumns] = {};
  lua_pushnil(state);
  while (lua_next(state, 2) != 0) {
    uint32_t column = 0;
    if (lua_isinteger(state, -2)) {
      const lua_Integer place = lua_tointeger(state, -2);
      if (place < 1 || place > static_cast<lua_Integer>(box->column_count)) {
        return luaL_error(state, "value %I: the table has %d columns", place, static_cast<int>(box->column_count));
      }
      column = static_cast<uint32_t>(place - 1);
    } else {
      lua_pushvalue(state, -2);
      if (lua_type(state, -1) != LUA_TSTRING || lua_rawget(state, 3) == LUA_TNIL) {
        return luaL_error(state, "the table has no column \"%s\"", luaL_tolstring(state, -2 - 1, nullptr));
      }
      column = static_cast<uint32_t>(lua_tointeger(state, -1));
      lua_pop(state, 1);
    }
    const char *const name = lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : "";
    // The row's table keeps the text alive until it is copied.
    values[column] = to_cell(state, box->kinds[column], name);
    lua_pop(state, 1);
  }
  if (context.results->add_row(box->table, values, box->column_count) < 0) return raise_last_error(state, context);
  return 0;
}

constexpr luaL_Reg kTableMethods[] = {{"add", table_add}, {nullptr, nullptr}};

// ---- Findings ----

sonde_value_t evidence_value(lua_State *state) {
  sonde_value_t value = {};
  switch (lua_type(state, -1)) {
    case LUA_TNUMBER:
      value.kind = lua_isinteger(state, -1) != 0 ? SONDE_VALUE_I64 : SONDE_VALUE_F64;
      if (value.kind == SONDE_VALUE_I64) {
        value.as.i64 = lua_tointeger(state, -1);
      } else {
        value.as.f64 = lua_tonumber(state, -1);
      }
      break;
    case LUA_TBOOLEAN:
      value.kind = SONDE_VALUE_BOOL;
      value.as.u64 = lua_toboolean(state, -1) != 0 ? 1 : 0;
      break;
    case LUA_TSTRING: {
      size_t length = 0;
      value.kind = SONDE_VALUE_TEXT;
      value.as.text = lua_tolstring(state, -1, &length);
      value.count = length;
      break;
    }
    default:
      luaL_error(state, "evidence: a value is a number, text or boolean, not %s", luaL_typename(state, -1));
  }
  return value;
}

// evidence={{name=, value=, unit=}, ...}: a list, so that the order is the script's. The parts stay on the stack.
uint32_t read_evidence(lua_State *state, sonde_evidence_t *evidence) {
  static const char *const kKeys[] = {"name", "value", "unit"};
  if (lua_getfield(state, 1, "evidence") == LUA_TNIL) return 0;
  luaL_checktype(state, -1, LUA_TTABLE);
  const int list = lua_gettop(state);
  const lua_Unsigned count = lua_rawlen(state, list);
  if (count > kMaxEvidence) luaL_error(state, "evidence: at most %d", int{kMaxEvidence});
  luaL_checkstack(state, static_cast<int>(count) * 4 + 8, "evidence");
  for (lua_Unsigned index = 0; index < count; ++index) {
    lua_rawgeti(state, list, static_cast<lua_Integer>(index + 1));
    if (lua_type(state, -1) != LUA_TTABLE) luaL_error(state, "evidence: each is {name=, value=, unit=}");
    const int entry = lua_gettop(state);
    check_keys(state, entry, "evidence", kKeys, std::size(kKeys));
    evidence[index].name = text_part(state, entry, "name");
    evidence[index].unit = text_part(state, entry, "unit");
    lua_getfield(state, entry, "value");
    evidence[index].value = evidence_value(state);
  }
  return static_cast<uint32_t>(count);
}

// sonde.finding{rule=, message=, severity=, ...}
int new_finding(lua_State *state) {
  static const char *const kKeys[] = {"rule",     "severity", "verdict",      "message",    "advice",        "reason",
                                      "kernel",   "file",     "tensor",       "call_path",  "line",          "column",
                                      "evidence", "formula",  "gain_seconds", "confidence", "sampling_scale"};
  static const char *const kSeverities[] = {"note", "warning", "error"};
  static const char *const kVerdicts[] = {"violation", "ok", "unsupported"};
  Script &script = Script::of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  luaL_checkstack(state, 40, "finding");
  check_keys(state, 1, "finding", kKeys, std::size(kKeys));
  sonde_finding_t finding = {};
  finding.struct_size = sizeof(finding);
  finding.origin = script.settings().name.c_str();
  finding.rule = text_part(state, 1, "rule");
  finding.message = text_part(state, 1, "message");
  if (finding.rule[0] == '\0' || finding.message[0] == '\0') {
    return luaL_error(state, "finding: rule and message are needed");
  }
  const char *const severity = text_part(state, 1, "severity");
  finding.severity = severity[0] == '\0' ? SONDE_SEVERITY_WARNING
                                         : word_index(state, "severity", severity, kSeverities, std::size(kSeverities));
  const char *const verdict = text_part(state, 1, "verdict");
  finding.verdict = verdict[0] == '\0' ? SONDE_VERDICT_VIOLATION
                                       : word_index(state, "verdict", verdict, kVerdicts, std::size(kVerdicts));
  finding.advice = text_part(state, 1, "advice");
  finding.reason = text_part(state, 1, "reason");
  finding.kernel = text_part(state, 1, "kernel");
  finding.file = text_part(state, 1, "file");
  finding.tensor = text_part(state, 1, "tensor");
  finding.call_path = text_part(state, 1, "call_path");
  finding.formula = text_part(state, 1, "formula");
  if (finding.verdict == SONDE_VERDICT_UNSUPPORTED && finding.reason[0] == '\0') {
    return luaL_error(state, "finding: verdict unsupported needs a reason");
  }
  finding.line = static_cast<uint32_t>(number_part(state, 1, "line", 0));
  finding.column = static_cast<uint32_t>(number_part(state, 1, "column", 0));
  finding.gain_seconds = number_part(state, 1, "gain_seconds", 0);
  finding.confidence = number_part(state, 1, "confidence", 1);
  finding.sampling_scale = number_part(state, 1, "sampling_scale", 1);
  sonde_evidence_t evidence[kMaxEvidence] = {};
  finding.evidence_count = read_evidence(state, evidence);
  finding.evidence = evidence;
  finding.evidence_stride = sizeof(sonde_evidence_t);
  const Context &context = script.context();
  if (context.results->add_finding(context.session, &finding) < 0) return raise_last_error(state, context);
  return 0;
}

}  // namespace

sonde_table_t *to_table(lua_State *state, int index) {
  auto *const box = static_cast<PublishedTable *>(luaL_testudata(state, index, kTableClass));
  return box == nullptr ? nullptr : box->table;
}

void open_publish(lua_State *state) {
  make_class(state, kTableClass, kTableMethods, nullptr);
  lua_pushcfunction(state, new_table);
  lua_setfield(state, -2, "table");
  lua_pushcfunction(state, new_finding);
  lua_setfield(state, -2, "finding");
}

}  // namespace sonde::lua
