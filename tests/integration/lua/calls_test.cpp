// Calling what plugins publish, and being called back.
#include "script_run.h"

namespace sonde::test {
namespace {

constexpr const char *kGrant = "grant: [test_exports]\ndeadline: 5s";

std::string failure_of(const std::string &script, const char *options = kGrant) {
  ScriptRun run(script, options);
  run.finish();
  if (run.finding_count() == 0) return "";
  return run.finding(0).message;
}

TEST(LuaCalls, CallsExportsByName) {
  EXPECT_EQ(failure_of(R"LUA(
assert(sonde.call("test_exports", "add", 40, 2) == 42)
local p = sonde.plugin("test_exports")
assert(p.add(-1, 1) == 0 and p.half(5) == 2.5 and p.half(2.5) == 1.25)
assert(p.greet("Lua") == "hello Lua")
assert(p.narrow(-2147483648) == -2147483648)
assert(p.add == p.add and sonde.plugin("test_exports") == p))LUA"),
            "");
}

TEST(LuaCalls, TheSessionIsGivenImplicitly) {
  EXPECT_EQ(failure_of("assert(sonde.call('test_exports', 'has_session') == 1)"), "");
}

TEST(LuaCalls, IntegersKeepAll64Bits) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
for _, value in ipairs{0, 1, -1, 0xffff800012345678, (1 << 53) + 1, math.mininteger, math.maxinteger} do
  assert(p.same_u64(value) == value)
  assert(p.add(value, 0) == value)
end
assert(p.same_u64(3.0) == 3))LUA"),
            "");
}

TEST(LuaCalls, ErrorsNameFunctionAndArgument) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
local function message(f, ...) local ok, m = pcall(f, ...) assert(not ok) return m end
assert(message(p.add, 1, "x"):find("test_exports.add, argument 2: expected an integer, got string", 1, true))
assert(message(p.add, 1.5, 2):find("argument 1: expected an integer"))
assert(message(p.add, 1):find("argument 2: expected an integer, got no value"))
assert(message(p.add, 1, 2, 3):find("takes 2 arguments, got 3"))
assert(message(p.narrow, 1 << 31):find("2147483648 lies outside"))
assert(message(p.greet, "a\0b"):find("NUL"))
assert(message(p.refuse):find("test_exports.refuse: the device is taken (status -17)", 1, true))
assert(message(function() return p.nothing end):find("nothing")))LUA"),
            "");
}

TEST(LuaCalls, OnlyGrantedPluginsCanBeCalled) {
  EXPECT_NE(failure_of("sonde.plugin('test_exports')", "deadline: 5s").find("is not granted to this script"),
            std::string::npos);
  EXPECT_NE(failure_of("sonde.call('test_exports', 'add', 1, 2)", "deadline: 5s").find("is not granted"),
            std::string::npos);
  EXPECT_NE(failure_of("sonde.plugin('lua')").find("is not granted"), std::string::npos);
}

TEST(LuaCalls, AGrantOfAnUnknownPluginIsAnErrorOfTheConfiguration) {
  ScriptRun run("-- calls nothing", "grant: [no_such_plugin]");
  EXPECT_EQ(run.created, SONDE_E_NOT_FOUND);
  EXPECT_NE(run.create_error.find("no_such_plugin"), std::string::npos);
}

// Row 149 of the fault list: light userdata lose high bits.
TEST(LuaCalls, HandlesKeepTheirBitsAndTheirKind) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
local counter = p.new_counter(5)
assert(type(counter) == "userdata" and p.next_of(counter) == 5 and p.next_of(counter) == 6)
for _, bits in ipairs{1 << 56, 0xffff800012345678, -8, 1 << 47} do
  assert(p.bits_of(p.high_handle(bits)) == bits)
end
assert(p.high_handle(64) == p.high_handle(64) and p.high_handle(64) ~= p.high_handle(128))
assert(p.high_handle(0) == nil)
local other = p.new_other()
local ok, message = pcall(p.next_of, other)
assert(not ok and message:find("expected a handle {counter}", 1, true))
assert(not pcall(p.next_of, nil) and not pcall(p.next_of, 64) and not pcall(p.next_of, {}))
assert(getmetatable(counter) == "sonde.handle"))LUA"),
            "");
}

TEST(LuaCalls, ListsBecomeViews) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
local integers, numbers = p.totals({1, 2, 1 << 40}, {0.5, 1, 2})
assert(integers == 3 + (1 << 40) and numbers == 3.5)
integers, numbers = p.totals({}, {})
assert(integers == 0 and numbers == 0.0)
local ok, message = pcall(p.totals, {1, "x"}, {})
assert(not ok and message:find("element 2 is no integer"))
assert(not pcall(p.totals, 5, {})))LUA"),
            "");
}

TEST(LuaCalls, FunctionsServeAsCallbacks) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
local calls = 0
assert(p.sum_of(function(n) calls = calls + 1 return n * 10 end, 4) == 100 and calls == 4)
assert(p.sum_of(function(n) return p.sum_of(function(m) return m end, n) end, 4) == 1 + 3 + 6 + 10)
local co = coroutine.wrap(function() return p.sum_of(function(n) return n end, 3) end)
assert(co() == 6)
for i = 1, 2000 do p.sum_of(function(n) return n end, 1) end)LUA"),
            "");
}

TEST(LuaCalls, AnErrorInACallbackComesBackAsOne) {
  EXPECT_EQ(failure_of(R"LUA(
local p = sonde.plugin("test_exports")
local ok, message = pcall(p.sum_of, function(n) error("inside " .. n) end, 4)
assert(not ok and message:find("inside 1", 1, true), message)
ok, message = pcall(p.sum_of, function(n) coroutine.yield() end, 4)
assert(not ok))LUA"),
            "");
}

TEST(LuaCalls, AnEndlessCallbackMeetsTheDeadline) {
  ScriptRun run("sonde.plugin('test_exports').sum_of(function() while true do end end, 1)",
                "grant: [test_exports]\ndeadline: 100ms");
  run.finish();
  EXPECT_NE(run.failure().find("the deadline of 0.1 s passed"), std::string::npos) << run.failure();
}

// Row 151 of the fault list: a callback on a thread that the state does not belong to.
TEST(LuaCalls, ACallbackOnAnotherThreadIsRefusedAndCounted) {
  ScriptRun run(R"LUA(
local called = false
local status = sonde.plugin("test_exports").from_elsewhere(function() called = true end)
assert(status == -16 and not called))LUA",
                kGrant);
  run.finish();
  ASSERT_EQ(run.finding_count(), 1u);
  EXPECT_STREQ(run.finding().rule, "lua.wrong_thread");
  EXPECT_NE(std::string(run.finding().message).find("1 calls"), std::string::npos) << run.finding().message;
}

TEST(LuaCalls, ACallbackMayOutliveItsScript) {
  sonde_export_t call_kept = {};
  sonde_export_t drop_kept = {};
  lua_plugin();
  const auto &plugins = get<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  ASSERT_EQ(plugins.function("test_exports", "call_kept", &call_kept), SONDE_OK);
  ASSERT_EQ(plugins.function("test_exports", "drop_kept", &drop_kept), SONDE_OK);
  const auto call = [&] {
    int64_t status = 0;
    reinterpret_cast<sonde_status (*)(int64_t *)>(call_kept.function)(&status);
    return status;
  };
  {
    ScriptRun run(R"LUA(
local p = sonde.plugin("test_exports")
p.keep(function() return 1 end)
assert(p.call_kept() == 0))LUA",
                  kGrant);
    EXPECT_EQ(call(), SONDE_E_THREAD);  // the script does not run now
    run.finish();
    EXPECT_STREQ(run.finding().rule, "lua.wrong_thread");
  }
  EXPECT_EQ(call(), SONDE_E_THREAD);  // the script is gone
  reinterpret_cast<sonde_status (*)()>(drop_kept.function)();
}

}  // namespace
}  // namespace sonde::test
