// Column reductions of kernel records from a Lua script, in events a second, beside the same sum taken row by row.
//
//   bench_lua_columns [RUNS]
//
// The script times itself: each operation is repeated on the batch at hand, interleaved, so the figures include the
// call from Lua; the best batch counts, then the median over runs. Bar: every reduction >= 20 M events/s with 8192 records a batch. Exit 1 below it.
#include "lua_bench.h"

namespace {

constexpr const char *kScript = R"LUA(
local names = {"sum", "duration", "minmax", "group", "rows"}
local best, records = {}, 0
local function note(name, elapsed, count)
  best[name] = math.min(best[name] or math.huge, elapsed / count)
end
local groups = {}
local repeats = sonde.options.repeats
local operations = {
  sum = function(batch) return batch:sum("grid_x") end,
  duration = function(batch) return batch:sum("duration") end,
  minmax = function(batch) return batch:max("duration") end,
  rows = function(batch) local sum = 0 for row in batch:rows() do sum = sum + row.duration end return sum end,
}
sonde.subscribe{space = "sonde.device", types = {"kernel"}, on_batch = function(batch)
  local count = batch:count()
  records = records + count
  for name, operation in pairs(operations) do
    local times = name == "rows" and 1 or repeats
    local begin = sonde.now_ns()
    for _ = 1, times do operation(batch) end
    note(name, sonde.now_ns() - begin, times * count)
  end
  local begin = sonde.now_ns()
  for index = 1, repeats do
    groups[index] = groups[index] or sonde.groups("name", "duration", "sonde.device.kernel")
    groups[index]:add(batch)
  end
  note("group", sonde.now_ns() - begin, repeats * count)
  assert(operations.rows(batch) == operations.duration(batch))
end}
function finish()
  local columns, row = {{name = "records"}}, {records}
  for index, name in ipairs(names) do
    columns[index + 1] = {name = name, kind = "f64", unit = "ns"}
    row[index + 1] = best[name]
  end
  sonde.table{name = "result", columns = columns}:add(row)
end)LUA";

}  // namespace

int main(int count, char **arguments) {
  const int runs = count > 1 ? std::atoi(arguments[1]) : 5;
  bool reached = true;
  std::printf("%-10s %-22s %12s %14s %10s\n", "records", "operation", "ns/event", "M events/s", "to rows");
  for (const uint64_t records : {uint64_t{512}, uint64_t{8192}}) {
    const char *const names[] = {"sum", "duration", "minmax", "group", "rows"};
    const char *const titles[] = {"sum(grid_x)", "sum(duration)", "max(duration)", "group(name, duration)",
                                  "rows, summed in Lua"};
    std::vector<double> measured[5];
    for (int run = 0; run < runs; ++run) {
      const sonde::bench::ScriptBench bench(kScript, "options: {repeats: 3}", 40, records);
      for (int index = 0; index < 5; ++index) measured[index].push_back(bench.cell(names[index]));
    }
    const double rows = sonde::bench::median(measured[4]);
    for (int index = 0; index < 5; ++index) {
      const double each = sonde::bench::median(measured[index]);
      std::printf("%-10llu %-22s %12.2f %14.1f %9.1fx\n", static_cast<unsigned long long>(records), titles[index], each,
                  1000 / each, rows / each);
      if (records == 8192 && index < 4 && each > 50) reached = false;
    }
  }
  std::printf("bar: reductions >= 20 M events/s at 8192 records a batch: %s\n", reached ? "reached" : "MISSED");
  return reached ? 0 : 1;
}
