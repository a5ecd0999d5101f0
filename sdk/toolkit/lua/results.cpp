// Reading of tables, findings and losses.
#include <cstring>
#include <iterator>
#include <utility>

#include "glue.h"

namespace sonde::lua {
namespace {

constexpr const char *kTableClass = "sonde.result_table";

struct TableBox {
  const Context *context;
  sonde_table_t *table;
  const sonde_table_spec_t *spec;
};

TableBox *check_table(lua_State *state) {
  auto *const box = static_cast<TableBox *>(luaL_checkudata(state, 1, kTableClass));
  if (box->context->session == nullptr) luaL_error(state, "the session of this table is closed");
  return box;
}

const sonde_column_spec_t &column_at(const sonde_table_spec_t &spec, uint32_t index) {
  return *reinterpret_cast<const sonde_column_spec_t *>(reinterpret_cast<const uint8_t *>(spec.columns) +
                                                        uint64_t{index} * spec.column_stride);
}

void set_text(lua_State *state, const char *name, const char *text) {
  if (text == nullptr || text[0] == '\0') return;
  lua_pushstring(state, text);
  lua_setfield(state, -2, name);
}

const char *kind_word(uint32_t kind) {
  switch (kind) {
    case SONDE_VALUE_I64:
      return "i64";
    case SONDE_VALUE_U64:
      return "u64";
    case SONDE_VALUE_F64:
      return "f64";
    case SONDE_VALUE_BOOL:
      return "bool";
    default:
      return "text";
  }
}

void push_row(lua_State *state, const TableBox &box, uint64_t row) {
  lua_createtable(state, 0, static_cast<int>(box.spec->column_count));
  for (uint32_t index = 0; index < box.spec->column_count; ++index) {
    sonde_value_t value = {};
    if (box.context->results->cell(box.table, row, index, &value) < 0) raise_last_error(state, *box.context);
    push_value(state, value);
    lua_setfield(state, -2, column_at(*box.spec, index).name);
  }
}

int table_length(lua_State *state) {
  const TableBox *const box = check_table(state);
  uint64_t rows = 0;
  if (box->context->results->row_count(box->table, &rows) < 0) return raise_last_error(state, *box->context);
  lua_pushinteger(state, static_cast<lua_Integer>(rows));
  return 1;
}

void push_columns(lua_State *state, const TableBox &box) {
  lua_createtable(state, static_cast<int>(box.spec->column_count), 0);
  for (uint32_t index = 0; index < box.spec->column_count; ++index) {
    const sonde_column_spec_t &column = column_at(*box.spec, index);
    lua_createtable(state, 0, 5);
    set_text(state, "name", column.name);
    set_text(state, "unit", column.unit);
    set_text(state, "help", column.help);
    set_text(state, "kind", kind_word(column.kind));
    lua_pushboolean(state, (column.flags & SONDE_COLUMN_KEY) != 0);
    lua_setfield(state, -2, "key");
    lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
  }
}

// table[i] is the i-th row; table.name, origin, title, help, columns describe it.
int table_index(lua_State *state) {
  const TableBox *const box = check_table(state);
  if (lua_isinteger(state, 2)) {
    uint64_t rows = 0;
    if (box->context->results->row_count(box->table, &rows) < 0) return raise_last_error(state, *box->context);
    const lua_Integer row = lua_tointeger(state, 2);
    if (row < 1 || static_cast<uint64_t>(row) > rows) return 0;
    push_row(state, *box, static_cast<uint64_t>(row - 1));
    return 1;
  }
  const char *const name = luaL_checkstring(state, 2);
  const sonde_table_spec_t &spec = *box->spec;
  if (std::strcmp(name, "columns") == 0) {
    push_columns(state, *box);
    return 1;
  }
  for (const auto &[key, text] : {std::pair{"name", spec.name}, std::pair{"origin", spec.origin},
                                  std::pair{"title", spec.title}, std::pair{"help", spec.help}}) {
    if (std::strcmp(name, key) != 0) continue;
    lua_pushstring(state, text == nullptr ? "" : text);
    return 1;
  }
  return luaL_error(state, "a table has no \"%s\"; rows are table[1] to table[#table]", name);
}

constexpr luaL_Reg kMetamethods[] = {{"__len", table_length}, {"__index", table_index}, {nullptr, nullptr}};

const Context *open_context(lua_State *state) {
  const auto *const context = static_cast<const Context *>(lua_touserdata(state, lua_upvalueindex(1)));
  if (context->session == nullptr) luaL_error(state, "the session is closed");
  return context;
}

void push_evidence(lua_State *state, const sonde_finding_t &finding) {
  lua_createtable(state, static_cast<int>(finding.evidence_count), 0);
  for (uint32_t index = 0; index < finding.evidence_count; ++index) {
    const auto &evidence = *reinterpret_cast<const sonde_evidence_t *>(
        reinterpret_cast<const uint8_t *>(finding.evidence) + uint64_t{index} * finding.evidence_stride);
    lua_createtable(state, 0, 3);
    set_text(state, "name", evidence.name);
    set_text(state, "unit", evidence.unit);
    push_value(state, evidence.value);
    lua_setfield(state, -2, "value");
    lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
  }
}

void push_finding(lua_State *state, const sonde_finding_t &finding) {
  lua_newtable(state);
  set_text(state, "origin", finding.origin);
  set_text(state, "rule", finding.rule);
  set_text(state, "severity", severity_word(finding.severity));
  set_text(state, "verdict", verdict_word(finding.verdict));
  set_text(state, "message", finding.message);
  set_text(state, "advice", finding.advice);
  set_text(state, "reason", finding.reason);
  set_text(state, "kernel", finding.kernel);
  set_text(state, "file", finding.file);
  set_text(state, "tensor", finding.tensor);
  set_text(state, "call_path", finding.call_path);
  set_text(state, "formula", finding.formula);
  if (finding.line != 0) {
    lua_pushinteger(state, finding.line);
    lua_setfield(state, -2, "line");
  }
  for (const auto &[key, number] :
       {std::pair{"gain_seconds", finding.gain_seconds}, std::pair{"confidence", finding.confidence},
        std::pair{"sampling_scale", finding.sampling_scale}}) {
    lua_pushnumber(state, number);
    lua_setfield(state, -2, key);
  }
  push_evidence(state, finding);
  lua_setfield(state, -2, "evidence");
}

constexpr const char *kCauses[] = {"none",     "ring_full",  "too_big", "queue_full", "overwritten",
                                   "vendor",   "memory_cap", "disk",    "tail",       "malformed",
                                   "deadline", "subscriber", "damaged", "late"};

}  // namespace

void register_results(lua_State *state) { make_class(state, kTableClass, nullptr, kMetamethods); }

const char *severity_word(uint32_t severity) {
  constexpr const char *kWords[] = {"note", "warning", "error"};
  return severity < 3 ? kWords[severity] : "unknown";
}

const char *verdict_word(uint32_t verdict) {
  constexpr const char *kWords[] = {"violation", "ok", "unsupported"};
  return verdict < 3 ? kWords[verdict] : "unknown";
}

void push_table(lua_State *state, const Context *context, sonde_table_t *table) {
  const sonde_table_spec_t *spec = nullptr;
  if (context->results->table_spec(table, &spec) < 0) raise_last_error(state, *context);
  auto *const box = static_cast<TableBox *>(lua_newuserdatauv(state, sizeof(TableBox), 0));
  *box = {context, table, spec};
  luaL_setmetatable(state, kTableClass);
}

int results(lua_State *state) {
  const Context *const context = open_context(state);
  uint64_t count = 0;
  if (context->results->table_count(context->session, &count) < 0) return raise_last_error(state, *context);
  lua_createtable(state, 0, static_cast<int>(count));
  for (uint64_t index = 0; index < count; ++index) {
    sonde_table_t *table = nullptr;
    const sonde_table_spec_t *spec = nullptr;
    if (context->results->table_at(context->session, index, &table) < 0 ||
        context->results->table_spec(table, &spec) < 0) {
      return raise_last_error(state, *context);
    }
    lua_pushfstring(state, "%s.%s", spec->origin, spec->name);
    push_table(state, context, table);
    lua_rawset(state, -3);
  }
  return 1;
}

int findings(lua_State *state) {
  const Context *const context = open_context(state);
  uint64_t count = 0;
  if (context->results->finding_count(context->session, &count) < 0) return raise_last_error(state, *context);
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t index = 0; index < count; ++index) {
    const sonde_finding_t *finding = nullptr;
    if (context->results->finding_at(context->session, index, &finding) < 0) return raise_last_error(state, *context);
    push_finding(state, *finding);
    lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
  }
  return 1;
}

int losses(lua_State *state) {
  const Context *const context = open_context(state);
  uint64_t count = 0;
  if (context->sessions->losses(context->session, nullptr, 0, &count) < 0) return raise_last_error(state, *context);
  // Rows may appear between the two calls; those are left to the next.
  const uint64_t room = count;
  auto *const rows = static_cast<sonde_loss_t *>(lua_newuserdatauv(state, (room + 1) * sizeof(sonde_loss_t), 0));
  if (context->sessions->losses(context->session, rows, room, &count) < 0) return raise_last_error(state, *context);
  lua_newtable(state);
  for (uint64_t index = 0; index < room && index < count; ++index) {
    const sonde_loss_t &loss = rows[index];
    lua_createtable(state, 0, 6);
    for (const auto &[key, number] :
         {std::pair{"stream", loss.stream}, std::pair{"records", loss.records}, std::pair{"bytes", loss.bytes},
          std::pair{"source", uint64_t{loss.source}}, std::pair{"subscriber", loss.subscriber}}) {
      lua_pushinteger(state, static_cast<lua_Integer>(number));
      lua_setfield(state, -2, key);
    }
    lua_pushstring(state, loss.cause < std::size(kCauses) ? kCauses[loss.cause] : "unknown");
    lua_setfield(state, -2, "cause");
    lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
  }
  return 1;
}

}  // namespace sonde::lua
