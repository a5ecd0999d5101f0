// A call from Lua to a function that a plugin publishes, beside a plain C function of Lua's own library.
//
//   bench_lua_call [RUNS]
//
// All loops run interleaved in one script that times itself: the best of 101 rounds less that of the empty loop, then
// the median over runs. Bar: a call through a
// compiled shape costs at most 3 times the plain one. Exit 1 above it.
#include "lua_bench.h"

namespace {

int64_t same(int64_t value) { return value; }
sonde_status count_of(sonde_session_t *, uint64_t index, uint64_t *out) {
  *out = index;
  return SONDE_OK;
}
double mix(double a, double b, double c) { return a + b + c; }
sonde_status call_back(sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, int64_t times) {
  sonde_value_t argument = {};
  argument.kind = SONDE_VALUE_I64;
  sonde_value_t result = {};
  sonde_status status = SONDE_OK;
  for (int64_t index = 0; index < times && status >= 0; ++index) status = callback(user, &argument, 1, &result);
  drop_user(user);
  return status;
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(same, i64, (i64), "compiled shape"),
    SONDE_EXPORT(count_of, status, (session, u64, out_u64), "compiled shape with session and result"),
    SONDE_EXPORT(mix, f64, (f64, f64, f64), "through libffi"),
    SONDE_EXPORT(call_back, status, (callback, i64), "calls a Lua function"),
};

const sonde_plugin_entry_t kEntry = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "bench_exports",
    "1.0.0",
    "functions to call",
    "",
    exports,
    4,
    sizeof(sonde_export_t),
    nullptr,
    0,
    sizeof(sonde_option_t),
    nullptr,
    nullptr,
    nullptr,
};

constexpr const char *kScript = R"LUA(
local p = sonde.plugin("bench_exports")
local same, count_of, mix, plain = p.same, p.count_of, p.mix, math.abs
local n = 10000 -- short enough that the best of many rounds is undisturbed on a busy machine
local best = {}
local function measure(name, body)
  local begin = sonde.now_ns()
  body()
  local each = (sonde.now_ns() - begin) / n
  best[name] = math.min(best[name] or each, each)
end
for _ = 1, 101 do
  measure("empty", function() local x = 0 for i = 1, n do x = i end end)
  measure("plain", function() local x = 0 for i = 1, n do x = plain(i) end end)
  measure("lua", function() local f = function(i) return i end local x = 0 for i = 1, n do x = f(i) end end)
  measure("same", function() local x = 0 for i = 1, n do x = same(i) end end)
  measure("count_of", function() local x = 0 for i = 1, n do x = count_of(i) end end)
  measure("mix", function() local x = 0 for i = 1, n do x = mix(i, 0.5, 1) end end)
  measure("callback", function() p.call_back(function(i) return i end, n) end)
end
local names = {"plain", "lua", "same", "count_of", "mix", "callback"}
local columns, row = {}, {}
for index, name in ipairs(names) do
  columns[index] = {name = name, kind = "f64", unit = "ns"}
  row[index] = best[name] - (name == "callback" and 0 or best.empty)
end
sonde.table{name = "result", columns = columns}:add(row))LUA";

}  // namespace

int main(int count, char **arguments) {
  const int runs = count > 1 ? std::atoi(arguments[1]) : 3;
  sonde::bench::check(sonde::bench::get<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE).add_static(&kEntry),
                      "adding the functions");
  const char *const names[] = {"plain", "lua", "same", "count_of", "mix", "callback"};
  const char *const titles[] = {"C function of Lua (math.abs)", "Lua function",
                                "export i64(i64), compiled",    "export status(session, u64, out), compiled",
                                "export f64(f64 x 3), libffi",  "callback from C into Lua"};
  std::vector<double> measured[6];
  for (int run = 0; run < runs; ++run) {
    const sonde::bench::ScriptBench bench(kScript, "grant: [bench_exports]", 0, 0);
    for (int index = 0; index < 6; ++index) measured[index].push_back(bench.cell(names[index]));
  }
  const double plain = sonde::bench::median(measured[0]);
  std::printf("%-44s %10s %10s\n", "call", "ns", "to plain");
  bool reached = true;
  for (int index = 0; index < 6; ++index) {
    const double each = sonde::bench::median(measured[index]);
    std::printf("%-44s %10.1f %9.2fx\n", titles[index], each, each / plain);
    if ((index == 2 || index == 3) && each > 3 * plain) reached = false;
  }
  std::printf("bar: Lua to an export <= 3x a plain C function: %s\n", reached ? "reached" : "MISSED");
  return reached ? 0 : 1;
}
