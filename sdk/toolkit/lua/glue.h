// What the script host (plugins/lua) and the module for a stock interpreter (bindings/lua) have in common: batches with
// column operations, groups, rows, and reading of results, as Lua objects.
//
// The sources are compiled by both. One runs on the C++ build of Lua, where an error unwinds; the other, and the
// script host inside a stock interpreter too, on the C build, where an error jumps. So no object with a destructor is
// alive where a Lua function may raise, and no C++ exception passes through Lua.
//
// Objects that belong to a run hold a pointer to its Context; they are errors to use once `session` is null.
#pragma once

#include <lua.hpp>

#include <sonde/capture.h>
#include <sonde/columns.h>
#include <sonde/delivery.h>
#include <sonde/host.h>
#include <sonde/result.h>
#include <sonde/session.h>

#include <cstdint>

namespace sonde::lua {

struct Context {
  const sonde_host_t *host = nullptr;
  const sonde_capture_service_t *capture = nullptr;
  const sonde_columns_service_t *columns = nullptr;
  const sonde_result_service_t *results = nullptr;
  const sonde_session_service_t *sessions = nullptr;
  sonde_session_t *session = nullptr;  // null: closed
  // Counts `bytes` more (or less) that lie outside Lua for its objects; false: over the cap. May be null.
  bool (*charge)(void *user, int64_t bytes) = nullptr;
  void *user = nullptr;
};

// Fetches the services. False: last_error tells which is missing.
bool fetch(Context &context, const sonde_host_t *host);

// Makes the metatables of this folder's objects. Once for each lua_State.
void register_objects(lua_State *state);

// Raises the host's last error of this thread.
int raise_last_error(lua_State *state, const Context &context);

// Makes a metatable that scripts cannot look into: pairs of names and functions for objects of class `name`.
void make_class(lua_State *state, const char *name, const luaL_Reg *methods, const luaL_Reg *metamethods);

// Pushes a value; text and bytes are copied, u64 keeps its bits, a handle or none is nil.
void push_value(lua_State *state, const sonde_value_t &value);

// ---- Batches (batch.cpp) ----

inline constexpr const char *kBatchClass = "sonde.batch";

// Room for a name of a space or type.
inline constexpr uint32_t kNameBytes = 128;

struct BatchBox {
  const Context *context;
  const sonde_batch_t *batch;  // null outside the callback
  uint64_t generation;         // changes with each batch; rows remember theirs
  char space[kNameBytes];
  char type[kNameBytes];  // of calls that name none; "" when there are several
};

// Pushes a batch object without a batch. `type` may be "".
BatchBox *push_batch(lua_State *state, const Context *context, const char *space, const char *type);

// Gives the object a batch, or takes it away with null.
void set_batch(BatchBox *box, const sonde_batch_t *batch);

// ---- Groups (groups.cpp) ----

// The groups of (key, value, type) that this batch object keeps, made at the first call; each batch is added once.
// Stack: batch, key, value [, type]. Pushes the groups.
int batch_group(lua_State *state);

// sonde.groups(key, value, "space.type") with the context as upvalue 1 (light userdata).
int new_groups(lua_State *state);

// ---- Columns, shared by the above ----

// Splits "space.type", or takes `space` for a plain type. Raises an error when a name is too long.
void split_type(lua_State *state, const char *space, const char *word, char *space_out, char *type_out);

// Looks a column up in the cache table at `cache` (index), by the field at `field` and the type at `type` (indices; 0 or
// none: the box's own). No allocation when it is there. The pointer lives as long as the cache.
const sonde_column_t *find_column(lua_State *state, const BatchBox &box, int cache, int field, int type);

// ---- Rows (rows.cpp) ----

// batch:rows([type]): iterator over record objects.
int batch_rows(lua_State *state);

// Pushes the word of an enum value, or the number.
void push_word(lua_State *state, const char *names, uint64_t value);

// The field of a column's name in its schema, or null for a derived one.
const sonde_field_t *schema_field(const Context &context, const sonde_column_t &column, const char *name);

// ---- Results (results.cpp) ----

// Map "origin.name" -> table object, and each alone. Context as upvalue 1.
int results(lua_State *state);
// Array of findings as tables. Context as upvalue 1.
int findings(lua_State *state);
// Array of rows of the loss ledger. Context as upvalue 1.
int losses(lua_State *state);

// Word of a severity, verdict or loss cause.
const char *severity_word(uint32_t severity);
const char *verdict_word(uint32_t verdict);

void push_table(lua_State *state, const Context *context, sonde_table_t *table);

// ---- u64 helpers (integers.cpp) ----

// Pushes the table sonde.u64.
void push_u64_library(lua_State *state);

}  // namespace sonde::lua
