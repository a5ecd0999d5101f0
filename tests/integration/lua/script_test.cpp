// What a script sees of a session and what it publishes.
#include "script_run.h"

namespace sonde::test {
namespace {

using Cells = std::vector<std::string>;

TEST(LuaScript, SumsAColumnOfItsBatches) {
  ScriptRun run(R"LUA(
local bytes, count, least, most = 0, 0, math.maxinteger, 0
sonde.subscribe{space="sonde.device", types={"copy"}, on_batch=function(batch)
  bytes = bytes + batch:sum("bytes")
  count = count + batch:count()
  least = math.min(least, batch:min("bytes") or least)
  most = math.max(most, batch:max("bytes", "copy") or most)
end}
function finish()
  local t = sonde.table{name="copies", columns={{name="bytes"}, {name="count", kind="u64"}, {name="least"}, {name="most"}}}
  t:add{bytes=bytes, count=count, least=least, most=most}
end)LUA");
  for (uint64_t index = 1; index <= 100; ++index) run.copy(index, 1);
  run.kernel(0, 10, "other");
  run.finish();
  EXPECT_EQ(run.failure(), "");
  EXPECT_EQ(run.row("copies", 0), (Cells{"5050", "100", "1", "100"}));
}

TEST(LuaScript, GroupsByNameAcrossBatches) {
  ScriptRun run(R"LUA(
local groups
sonde.subscribe{space="sonde.device", types={"kernel"}, on_batch=function(batch)
  groups = batch:group("name", "grid_x")
  groups = batch:group("name", "grid_x") -- the same batch is not added again
end}
function finish()
  local t = sonde.table{name="kernels", columns={{name="kernel", kind="text", key=true}, {name="count"}, {name="sum"}, {name="mean", kind="f64"}}}
  for _, row in ipairs(groups:top(2)) do t:add{row.key, row.count, row.sum, row.mean} end
  local all = sonde.table{name="all", columns={{name="groups"}, {name="rows"}}}
  all:add{#groups, #groups:rows()}
end)LUA");
  for (int index = 0; index < 5; ++index) run.kernel(0, 100, "gemm");
  run.flush();
  for (int index = 0; index < 3; ++index) run.kernel(0, 100, "softmax");
  run.kernel(0, 100, "gemm");
  run.kernel(0, 100, "rare");
  run.finish();
  EXPECT_EQ(run.failure(), "");
  EXPECT_EQ(run.row("kernels", 0), (Cells{"gemm", "6", "24", "4.000000"}));
  EXPECT_EQ(run.row("kernels", 1), (Cells{"softmax", "3", "12", "4.000000"}));
  EXPECT_EQ(run.row("all", 0), (Cells{"3", "3"}));
}

TEST(LuaScript, ReadsRowsByName) {
  ScriptRun run(R"LUA(
local t = sonde.table{name="rows", columns={{name="name", kind="text"}, {name="stream"}, {name="grid"}, {name="fields"}}}
local words = sonde.table{name="words", columns={{name="kind", kind="text"}}}
sonde.subscribe{space="sonde.device", types={"kernel", "copy"}, on_batch=function(batch)
  for row in batch:rows("kernel") do
    local fields = 0
    for name, value in pairs(row) do fields = fields + 1; assert(row[name] == value) end
    t:add{row.name, row.stream, row.grid_x, fields}
    -- Each of the three is rounded down to whole ns.
    assert(row.duration >= 0 and math.abs(row.end_ns - row.time_ns - row.duration) <= 1)
    assert(not pcall(function() return row.nothing end))
  end
  for row in batch:rows("copy") do words:add{row.kind} end
end})LUA");
  run.kernel(0, 1000, "first", 3);
  run.copy(8, SONDE_COPY_DEVICE_TO_HOST);
  run.kernel(0, 1000, "second", UINT64_MAX);
  run.finish();
  EXPECT_EQ(run.failure(), "");
  EXPECT_EQ(run.row("rows", 0).at(0), "first");
  EXPECT_EQ(run.row("rows", 1).at(1), "-1");  // the 64 bits of UINT64_MAX
  EXPECT_EQ(run.row("rows", 1).at(2), "4");
  EXPECT_GT(std::stoi(run.row("rows", 0).at(3)), 20);
  EXPECT_EQ(run.row("words", 0), (Cells{"device_to_host"}));
}

// Row 148 of the fault list: numbers that are doubles change addresses.
TEST(LuaScript, AddressesKeepAll64Bits) {
  ScriptRun run(R"LUA(
local t = sonde.table{name="addresses", columns={{name="address", kind="u64"}, {name="hex", kind="text"}, {name="text", kind="text"}}}
sonde.subscribe{space="sonde.memory", types={"allocate"}, on_batch=function(batch)
  for row in batch:rows() do t:add{row.address, sonde.u64.hex(row.address), sonde.u64.text(row.address)} end
end}
function finish()
  assert(sonde.u64.less(1, 0xffff800012345678) and not (1 < 0xffff800012345678))
  assert(sonde.u64.parse("18446744073709551615") == -1 and sonde.u64.parse("0xffff800012345678") == 0xffff800012345678)
  assert(sonde.u64.parse("18446744073709551616") == nil and sonde.u64.parse("") == nil and sonde.u64.parse("12x") == nil)
  assert(sonde.u64.number(-1) == 2.0^64)
  local q, r = sonde.u64.divide(-1, 10)
  assert(q == 1844674407370955161 and r == 5)
end)LUA");
  const uint64_t addresses[] = {0xffff800012345678, (uint64_t{1} << 53) + 1, 0x7ffc919e0000, UINT64_MAX};
  for (const uint64_t address : addresses) run.allocate(address, 64);
  run.finish();
  EXPECT_EQ(run.failure(), "");
  EXPECT_EQ(run.row("addresses", 0), (Cells{"18446603336526616184", "0xffff800012345678", "18446603336526616184"}));
  EXPECT_EQ(run.row("addresses", 1), (Cells{"9007199254740993", "0x20000000000001", "9007199254740993"}));
  EXPECT_EQ(run.row("addresses", 2).at(0), "140722751537152");
  EXPECT_EQ(run.row("addresses", 3).at(0), "18446744073709551615");
}

TEST(LuaScript, OptionsComeFromTheConfiguration) {
  ScriptRun run(
      R"LUA(
local o = sonde.options
assert(o.rows == 10 and math.type(o.rows) == "integer")
assert(o.share == 0.25 and o.flag == true and o.word == "abc")
assert(#o.list == 3 and o.list[2] == "two" and o.nested.deep.value == -1)
assert(sonde.name == "script"))LUA",
      "options: {rows: 10, share: 0.25, flag: true, word: abc, list: [1, two, 3.5], nested: {deep: {value: -1}}}");
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

TEST(LuaScript, WithoutOptionsTheTableIsEmpty) {
  ScriptRun run("assert(next(sonde.options) == nil)");
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

TEST(LuaScript, PublishesFindings) {
  ScriptRun run(R"LUA(
sonde.finding{rule="script.tiny", severity="note", message="tiny copies", advice="join them", kernel="k", file="a.py", line=12,
  evidence={{name="share", value=0.75, unit="1"}, {name="copies", value=2^53|1}, {name="why", value="text"}},
  formula="share > 0.5", gain_seconds=0.5, confidence=0.9}
sonde.finding{rule="script.none", message="could not look", verdict="unsupported", reason="no copies"})LUA");
  run.finish();
  ASSERT_EQ(run.finding_count(), 2u);
  const sonde_finding_t &finding = run.finding(0);
  EXPECT_STREQ(finding.origin, "script");
  EXPECT_STREQ(finding.rule, "script.tiny");
  EXPECT_EQ(finding.severity, SONDE_SEVERITY_NOTE);
  EXPECT_EQ(finding.line, 12u);
  EXPECT_EQ(finding.gain_seconds, 0.5);
  ASSERT_EQ(finding.evidence_count, 3u);
  EXPECT_EQ(finding.evidence[0].value.as.f64, 0.75);
  EXPECT_EQ(finding.evidence[1].value.as.i64, 9007199254740993);
  EXPECT_EQ(run.finding(1).verdict, SONDE_VERDICT_UNSUPPORTED);
}

TEST(LuaScript, ReadsResultsOfOthersInFinish) {
  ScriptRun run(R"LUA(
local mine = sonde.table{name="first", title="First", columns={{name="word", kind="text"}, {name="share", kind="f64", unit="1"}, {name="flag", kind="bool"}}}
mine:add{word="a", share=0.5, flag=true}
mine:add{word="b"}
sonde.finding{rule="script.x", message="seen"}
function finish()
  local t = sonde.results()["script.first"]
  assert(#t == 2 and t.title == "First" and t.origin == "script")
  assert(t[1].word == "a" and t[1].share == 0.5 and t[1].flag == true)
  assert(t[2].share == nil and t[3] == nil and t[0] == nil)
  assert(t.columns[2].unit == "1" and t.columns[2].kind == "f64")
  local rows = 0
  for _, row in ipairs(t) do rows = rows + 1 end
  assert(rows == 2)
  local f = sonde.findings()
  assert(#f == 1 and f[1].rule == "script.x" and f[1].severity == "warning" and f[1].verdict == "violation")
  assert(#sonde.losses() == 0)
end)LUA");
  run.finish();
  EXPECT_STREQ(run.finding(0).rule, "script.x");
  EXPECT_EQ(run.finding_count(), 1u);
}

TEST(LuaScript, ABatchIsOverAfterItsCallback) {
  ScriptRun run(R"LUA(
local kept, row
sonde.subscribe{space="sonde.device", types={"copy"}, on_batch=function(batch)
  kept = batch
  for r in batch:rows() do row = r end
  assert(row.bytes == 8)
end}
function finish()
  local ok, message = pcall(kept.sum, kept, "bytes")
  assert(not ok and message:find("the batch is over"))
  ok, message = pcall(function() return kept.stream end)
  assert(not ok and message:find("the batch is over"))
  ok, message = pcall(function() return row.bytes end)
  assert(not ok and message:find("batch is over"))
end)LUA");
  run.copy(8, 1);
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

TEST(LuaScript, BatchesTellWhereTheyComeFrom) {
  ScriptRun run(R"LUA(
sonde.subscribe{space="sonde.device", on_batch=function(batch)
  assert(batch.stream >= 1 and batch.source == 0 and batch.records >= 1 and batch.bytes % 8 == 0)
  assert(batch.lost_ring == 0 and batch.lost_queue == 0 and batch.lost_overwritten == 0 and batch.repairs == 0)
  assert(batch.first_ns <= batch.last_ns)
  assert(not pcall(function() return batch.nothing end))
  assert(not pcall(batch.sum, batch, "bytes"), "several types: one must be named")
  assert(batch:sum("bytes", "copy") == 8 and batch:sum("bytes", "sonde.device.copy") == 8)
  assert(batch:mean("bytes", "copy") == 8.0 and batch:mean("bytes", "set") == nil and batch:sum("bytes", "set") == 0)
  assert(#batch:gather("bytes", "copy") == 1 and batch:gather("bytes", "copy")[1] == 8)
end})LUA");
  run.copy(8, 1);
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

TEST(LuaScript, WrongNamesAreErrorsWithTheRightOnes) {
  const auto failure = [](const char *script) {
    ScriptRun run(script);
    run.copy(1, 1);
    run.finish();
    return run.failure();
  };
  EXPECT_NE(failure("sonde.subscribe{space='sonde.nothing', on_batch=function() end}").find("sonde.nothing"),
            std::string::npos);
  EXPECT_NE(failure("sonde.subscribe{space='sonde.device', types={'kernal'}, on_batch=function() end}")
                .find("no type \"kernal\"; it has kernel, copy"),
            std::string::npos);
  EXPECT_NE(failure("sonde.subscribe{space='sonde.device', type='copy', on_batch=function() end}")
                .find("unknown key \"type\""),
            std::string::npos);
  EXPECT_NE(failure("sonde.subscribe{space='sonde.device', types={'copy'}, on_batch=function(b) b:sum('byte') end}")
                .find("no field \"byte\"; it has"),
            std::string::npos);
  EXPECT_NE(
      failure("sonde.table{name='x', columns={{name='a', kind='int'}}}").find("none of i64, u64, f64, text, bool"),
      std::string::npos);
  EXPECT_NE(failure("local t = sonde.table{name='x', columns={{name='a'}}} t:add{b=1}").find("no column \"b\""),
            std::string::npos);
  EXPECT_NE(
      failure("local t = sonde.table{name='x', columns={{name='a'}}} t:add{a=1.5}").find("column a: expected i64"),
      std::string::npos);
  EXPECT_NE(failure("sonde.finding{rule='r', mesage='m'}").find("mesage"), std::string::npos);
}

TEST(LuaScript, ARunThatIsGivenUpLeavesNothingBehind) {
  for (int round = 0; round < 20; ++round) {
    ScriptRun run("sonde.subscribe{space='sonde.device', on_batch=function(batch) batch:sum('bytes', 'copy') end}");
    for (int index = 0; index < 50; ++index) run.copy(8, 1);
  }  // destroyed while its session runs
}

TEST(LuaScript, SubscribingLateIsAnError) {
  ScriptRun run("function finish() sonde.subscribe{space='sonde.device', on_batch=function() end} end");
  run.finish();
  EXPECT_NE(run.failure().find("while the script loads"), std::string::npos);
}

TEST(LuaScript, AFileThatCannotBeReadIsAnErrorOfTheConfiguration) {
  const auto &config = get<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
  const sonde_plugin_entry_t &plugin = lua_plugin();
  sonde_config_t *tree = nullptr;
  ASSERT_EQ(config.parse("path: /nowhere/script.lua", "test", &tree), SONDE_OK);
  sonde_config_t *options = nullptr;
  ASSERT_EQ(config.check(tree, "lua", plugin.options, plugin.option_count, plugin.option_stride, &options), SONDE_OK);
  const auto *analysis = static_cast<const sonde_analysis_t *>(plugin.get_interface(SONDE_ANALYSIS_INTERFACE));
  sonde_session_t *session = nullptr;
  ASSERT_EQ(get<sonde_session_service_t>(SONDE_SESSION_SERVICE).open(nullptr, &session), SONDE_OK);
  void *instance = nullptr;
  EXPECT_EQ(analysis->create(session, options, &instance), SONDE_E_IO);
  EXPECT_NE(std::string(sonde_host()->last_error()).find("/nowhere/script.lua"), std::string::npos);
  EXPECT_EQ(instance, nullptr);
  get<sonde_session_service_t>(SONDE_SESSION_SERVICE).close(session);
  config.release(options);
  config.release(tree);
}

}  // namespace
}  // namespace sonde::test
