// Records as objects, for exploring. A field is read through the column service, from a batch of that one record, so
// a row and a reduction cannot disagree.
#include <cstring>
#include <initializer_list>

#include "glue.h"

namespace sonde::lua {
namespace {

constexpr const char *kRowClass = "sonde.row";
constexpr const char *kCursorClass = "sonde.cursor";
constexpr int kFields = 3;  // user value of a batch: type -> table of fields

struct RowBox {
  const BatchBox *box;
  uint64_t generation;
  const sonde_record_t *record;
};

struct CursorBox {
  uint64_t generation;
  const sonde_record_t *record;  // the last one given
  uint16_t space;
  uint16_t type;
};

// A field by name, as a row needs it.
struct FieldBox {
  sonde_column_t column;
  const char *names;  // words of an enum
};

const sonde_record_type_t *find_type(const sonde_schema_t &schema, uint32_t number) {
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    const auto *const type = reinterpret_cast<const sonde_record_type_t *>(
        reinterpret_cast<const uint8_t *>(schema.types) + uint64_t{index} * schema.type_stride);
    if (type->type == number) return type;
  }
  return nullptr;
}

const sonde_field_t *field_at(const sonde_record_type_t &type, uint32_t index) {
  return reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const uint8_t *>(type.fields) +
                                                 uint64_t{index} * type.field_stride);
}

// Table on top: name -> FieldBox, for every field and derived name of a type; array part: names in order.
void add_field(lua_State *state, const Context &context, const char *space, const char *type, const char *name,
               const char *names) {
  sonde_column_t column = {};
  column.struct_size = sizeof(column);
  if (context.columns->find(space, type, name, &column) < 0) return;  // spans, and derived names it lacks
  auto *const box = static_cast<FieldBox *>(lua_newuserdatauv(state, sizeof(FieldBox), 0));
  *box = {column, names};
  lua_setfield(state, -2, name);
  lua_pushstring(state, name);
  lua_rawseti(state, -2, static_cast<lua_Integer>(lua_rawlen(state, -2)) + 1);
}

void push_fields(lua_State *state, const Context &context, const char *space, const char *type_name,
                 const sonde_column_t &any) {
  lua_newtable(state);
  const sonde_schema_t *schema = nullptr;
  if (context.capture->schema(any.space, &schema) < 0) raise_last_error(state, context);
  const sonde_record_type_t *const type = find_type(*schema, any.type);
  for (uint32_t index = 0; type != nullptr && index < type->field_count; ++index) {
    const sonde_field_t &field = *field_at(*type, index);
    add_field(state, context, space, type_name, field.name, field.names);
  }
  for (const char *const name : {"time", "time_ns", "end_ns", "duration", "stream_id", "source_id"}) {
    lua_getfield(state, -1, name);
    const bool known = !lua_isnil(state, -1);
    lua_pop(state, 1);
    if (!known) add_field(state, context, space, type_name, name, "");
  }
}

RowBox *check_row(lua_State *state) {
  auto *const row = static_cast<RowBox *>(luaL_checkudata(state, 1, kRowClass));
  if (row->box->batch == nullptr || row->box->generation != row->generation) {
    luaL_error(state, "the record's batch is over: copy the fields you need");
  }
  return row;
}

const sonde_repair_t *repair_of(const sonde_batch_t &batch, uint64_t offset) {
  uint64_t low = 0;
  uint64_t high = batch.repair_count;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (batch.repairs[middle].offset < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < batch.repair_count && batch.repairs[low].offset == offset ? &batch.repairs[low] : nullptr;
}

// Pushes the value, nil when the record does not carry the field.
void push_field(lua_State *state, const RowBox &row, const FieldBox &field) {
  const sonde_batch_t &whole = *row.box->batch;
  const auto *const data = reinterpret_cast<const uint8_t *>(row.record);
  sonde_batch_t one = whole;
  one.data = data;
  one.bytes = SONDE_RECORD_BYTES(row.record);
  one.count = 1;
  sonde_repair_t moved = {};
  const sonde_repair_t *const repair = repair_of(whole, static_cast<uint64_t>(data - whole.data));
  one.repair_count = 0;
  if (repair != nullptr) {
    moved = *repair;
    moved.offset = 0;
    one.repairs = &moved;
    one.repair_count = 1;
  }
  const Context &context = *row.box->context;
  uint64_t count = 0;
  if (field.column.kind == SONDE_KIND_FLOAT) {
    double number = 0;
    context.columns->gather_f64(&one, &field.column, &number, 1, &count);
    if (count != 0) {
      lua_pushnumber(state, number);
    } else {
      lua_pushnil(state);
    }
    return;
  }
  int64_t integer = 0;
  context.columns->gather_i64(&one, &field.column, &integer, 1, &count);
  if (count == 0) {
    lua_pushnil(state);
  } else if (field.column.kind == SONDE_KIND_STRING) {
    const char *text = nullptr;
    if (context.capture->text(whole.session, whole.source, static_cast<sonde_string_t>(integer), &text) < 0) {
      lua_pushinteger(state, integer);
    } else {
      lua_pushstring(state, text);
    }
  } else if (field.column.kind == SONDE_KIND_ENUM) {
    push_word(state, field.names, static_cast<uint64_t>(integer));
  } else {
    lua_pushinteger(state, integer);
  }
}

int row_index(lua_State *state) {
  const RowBox *const row = check_row(state);
  luaL_checktype(state, 2, LUA_TSTRING);
  lua_getiuservalue(state, 1, 2);
  lua_pushvalue(state, 2);
  if (lua_rawget(state, -2) == LUA_TNIL) {
    return luaL_error(state, "the record has no field \"%s\"", lua_tostring(state, 2));
  }
  push_field(state, *row, *static_cast<const FieldBox *>(lua_touserdata(state, -1)));
  return 1;
}

// for name, value in pairs(row); upvalues: the row, the index of the last name.
int row_next(lua_State *state) {
  lua_settop(state, 0);
  lua_pushvalue(state, lua_upvalueindex(1));
  const RowBox *const row = check_row(state);
  const lua_Integer index = lua_tointeger(state, lua_upvalueindex(2)) + 1;
  lua_pushinteger(state, index);
  lua_copy(state, -1, lua_upvalueindex(2));
  lua_getiuservalue(state, 1, 2);
  if (lua_rawgeti(state, -1, index) == LUA_TNIL) return 1;
  lua_pushvalue(state, -1);
  lua_rawget(state, -3);
  push_field(state, *row, *static_cast<const FieldBox *>(lua_touserdata(state, -1)));
  lua_remove(state, -2);
  return 2;
}

int row_pairs(lua_State *state) {
  check_row(state);
  lua_settop(state, 1);
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, row_next, 2);
  return 1;
}

// Upvalues: batch, cursor, fields.
int rows_next(lua_State *state) {
  auto *const box = static_cast<BatchBox *>(lua_touserdata(state, lua_upvalueindex(1)));
  auto *const cursor = static_cast<CursorBox *>(lua_touserdata(state, lua_upvalueindex(2)));
  if (box->batch == nullptr || box->generation != cursor->generation) {
    return luaL_error(state, "the batch of this loop is over");
  }
  const sonde_record_t *record = sonde_batch_next(box->batch, cursor->record);
  while (record != nullptr && (record->space != cursor->space || record->type != cursor->type)) {
    record = sonde_batch_next(box->batch, record);
  }
  if (record == nullptr) return 0;
  cursor->record = record;
  auto *const row = static_cast<RowBox *>(lua_newuserdatauv(state, sizeof(RowBox), 2));
  *row = {box, box->generation, record};
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_setiuservalue(state, -2, 1);
  lua_pushvalue(state, lua_upvalueindex(3));
  lua_setiuservalue(state, -2, 2);
  luaL_setmetatable(state, kRowClass);
  return 1;
}

constexpr luaL_Reg kRowMetamethods[] = {{"__index", row_index}, {"__pairs", row_pairs}, {nullptr, nullptr}};

}  // namespace

void register_rows(lua_State *state) {
  make_class(state, kRowClass, nullptr, kRowMetamethods);
  make_class(state, kCursorClass, nullptr, nullptr);
}

void push_word(lua_State *state, const char *names, uint64_t value) {
  const char *word = names;
  for (uint64_t index = 0; index < value; ++index) {
    word = std::strchr(word, '|');
    if (word == nullptr) break;
    ++word;
  }
  if (word == nullptr || word[0] == '\0' || word[0] == '|') {
    lua_pushinteger(state, static_cast<lua_Integer>(value));
    return;
  }
  const char *const end = std::strchr(word, '|');
  lua_pushlstring(state, word, end == nullptr ? std::strlen(word) : static_cast<size_t>(end - word));
}

const sonde_field_t *schema_field(const Context &context, const sonde_column_t &column, const char *name) {
  const sonde_schema_t *schema = nullptr;
  if (column.derived != 0 || context.capture->schema(column.space, &schema) < 0) return nullptr;
  const sonde_record_type_t *const type = find_type(*schema, column.type);
  for (uint32_t index = 0; type != nullptr && index < type->field_count; ++index) {
    const sonde_field_t *const field = field_at(*type, index);
    if (std::strcmp(field->name, name) == 0) return field;
  }
  return nullptr;
}

int batch_rows(lua_State *state) {
  auto *const box = static_cast<BatchBox *>(luaL_checkudata(state, 1, kBatchClass));
  if (box->batch == nullptr) return luaL_error(state, "the batch is over: it may be used inside its callback only");
  lua_settop(state, 2);
  lua_pushliteral(state, "time");
  lua_getiuservalue(state, 1, 1);
  const sonde_column_t *const any = find_column(state, *box, 4, 3, 2);
  char space[kNameBytes];
  char type[kNameBytes];
  split_type(state, box->space, lua_isnoneornil(state, 2) ? box->type : lua_tostring(state, 2), space, type);
  lua_getiuservalue(state, 1, kFields);
  const lua_Integer number = static_cast<lua_Integer>(any->space) << 16 | any->type;
  if (lua_rawgeti(state, -1, number) == LUA_TNIL) {
    lua_pop(state, 1);
    push_fields(state, *box->context, space, type, *any);
    lua_pushvalue(state, -1);
    lua_rawseti(state, -3, number);
  }
  lua_pushvalue(state, 1);
  auto *const cursor = static_cast<CursorBox *>(lua_newuserdatauv(state, sizeof(CursorBox), 0));
  *cursor = {box->generation, nullptr, any->space, any->type};
  luaL_setmetatable(state, kCursorClass);
  lua_pushvalue(state, -3);
  lua_pushcclosure(state, rows_next, 3);
  return 1;
}

}  // namespace sonde::lua
