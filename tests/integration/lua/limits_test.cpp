// A script that fails, never ends or eats memory is a finding; the run goes on.
#include <thread>

#include "script_run.h"

namespace sonde::test {
namespace {

constexpr const char *kShort = "deadline: 100ms";

// Runs `body` in on_batch under a short deadline; the failure's message. The whole may take a few seconds at most.
std::string failure_in_batch(const std::string &body, const std::string &options = kShort) {
  const auto begin = std::chrono::steady_clock::now();
  ScriptRun run("sonde.subscribe{space='sonde.device', on_batch=function(batch)\n" + body + "\nend}", options);
  run.copy(1, 1);
  run.flush();
  run.copy(2, 1);
  run.finish();
  EXPECT_EQ(run.finished, SONDE_OK);
  EXPECT_LT(seconds_since(begin), 10) << body;
  return run.failure();
}

bool is_deadline(const std::string &message) {
  return message.find("the deadline of 0.1 s passed") != std::string::npos;
}

TEST(LuaLimits, AnErrorIsAFindingWithItsPlace) {
  ScriptRun run("local x = 1\nfunction finish()\n  error('went wrong')\nend");
  run.finish();
  EXPECT_EQ(run.finished, SONDE_OK);
  EXPECT_EQ(run.failure(), "script script failed in finish: script:3: went wrong");
  EXPECT_STREQ(run.finding().file, "script");
  EXPECT_EQ(run.finding().line, 3u);
}

TEST(LuaLimits, ErrorsOfEveryKindAreNamed) {
  EXPECT_NE(failure_in_batch("local x = nil; x.y = 1").find("attempt to index a nil value"), std::string::npos);
  EXPECT_NE(failure_in_batch("error({})").find("error object is a table value"), std::string::npos);
  EXPECT_NE(failure_in_batch("error()").find("error object is a nil value"), std::string::npos);
  EXPECT_NE(failure_in_batch("batch:sum('nothing', 'copy')").find("no field \"nothing\""), std::string::npos);
}

TEST(LuaLimits, ASyntaxErrorIsAFindingWithItsPlace) {
  ScriptRun run("local x =\n)");
  EXPECT_EQ(run.created, SONDE_OK);
  EXPECT_EQ(run.started, SONDE_OK);
  run.finish();
  EXPECT_NE(run.failure().find("script:2:"), std::string::npos) << run.failure();
  EXPECT_EQ(run.finding().line, 2u);
}

TEST(LuaLimits, OtherScriptsGoOn) {
  ScriptRun good(
      "local n = 0 sonde.subscribe{space='sonde.device', on_batch=function(b) n = n + b:count('copy') end} "
      "function finish() sonde.table{name='n', columns={{name='n'}}}:add{n} end");
  EXPECT_TRUE(is_deadline(failure_in_batch("while true do end")));
  good.copy(1, 1);
  good.finish();
  EXPECT_EQ(good.row("n", 0), (std::vector<std::string>{"1"}));
}

TEST(LuaLimits, AnEndlessLoopEnds) {
  EXPECT_TRUE(is_deadline(failure_in_batch("while true do end")));
  EXPECT_TRUE(is_deadline(failure_in_batch("local function f() return f() end f()")));
  EXPECT_TRUE(is_deadline(failure_in_batch("goto a ::a:: goto a")));
}

TEST(LuaLimits, AnEndlessLoopNamesItsLine) {
  ScriptRun run("function finish()\n  local x = 0\n  while true do x = x + 1 end\nend", kShort);
  run.finish();
  EXPECT_TRUE(is_deadline(run.failure()));
  EXPECT_EQ(run.finding().line, 3u);
}

// The first escape: the script's own pcall takes the error.
TEST(LuaLimits, PcallDoesNotSwallowTheDeadline) {
  EXPECT_TRUE(is_deadline(failure_in_batch("while true do pcall(function() while true do end end) end")));
  EXPECT_TRUE(is_deadline(failure_in_batch("while true do pcall(pcall, function() while true do end end) end")));
  EXPECT_TRUE(is_deadline(failure_in_batch(
      "local function again() xpcall(function() while true do end end, again) end while true do again() end")));
  EXPECT_TRUE(
      is_deadline(failure_in_batch("xpcall(function() while true do end end, function() while true do end end)")));
  EXPECT_TRUE(is_deadline(failure_in_batch("xpcall(error, function() while true do end end)")));
}

// The second: a coroutine runs on a state of its own.
TEST(LuaLimits, CoroutinesAreCovered) {
  EXPECT_TRUE(is_deadline(failure_in_batch("coroutine.wrap(function() while true do end end)()")));
  EXPECT_TRUE(is_deadline(
      failure_in_batch("while true do coroutine.resume(coroutine.create(function() while true do end end)) end")));
  EXPECT_TRUE(is_deadline(failure_in_batch(
      "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end")));
  EXPECT_TRUE(
      is_deadline(failure_in_batch("coroutine.wrap(function() coroutine.wrap(function() pcall(function() while "
                                   "true do end end) while true do end end)() end)()")));
}

// The third: matching in C cannot be interrupted there.
TEST(LuaLimits, PatternsThatBacktrackEnd) {
  const std::string subject = "local s = ('a'):rep(5000) ";
  const std::string pattern = "('a*'):rep(20) .. 'b'";
  for (const char *call : {"s:find(", "s:match(", "s:gsub("}) {
    const std::string tail = std::string(call) == "s:gsub(" ? ", '')" : ")";
    EXPECT_TRUE(is_deadline(failure_in_batch(subject + call + pattern + tail))) << call;
  }
  EXPECT_TRUE(is_deadline(failure_in_batch(subject + "for x in s:gmatch(" + pattern + ") do end")));
  EXPECT_TRUE(is_deadline(failure_in_batch("local s = ('x'):rep(4000000) s:find('%bxy')")));
  EXPECT_TRUE(is_deadline(failure_in_batch(subject + "while true do pcall(string.find, s, " + pattern + ") end")));
}

TEST(LuaLimits, LoopsInsideTheLibrariesEnd) {
  EXPECT_NE(failure_in_batch("table.move({}, 1, 1 << 62, 2)").find("too many elements"), std::string::npos);
  EXPECT_NE(failure_in_batch("table.move({}, math.mininteger, math.maxinteger - 1, 2)"), "");
  EXPECT_NE(
      failure_in_batch("table.insert(setmetatable({}, {__len=function() return 1 << 60 end}), 1, 0)").find("__len"),
      std::string::npos);
  EXPECT_NE(failure_in_batch("local t = {} for i = 0, 62 do t[1 << i] = 1 end table.insert(t, 1, 0) error('fine')"),
            "");
  EXPECT_NE(
      failure_in_batch("table.sort(setmetatable({}, {__len=function() return 1 << 30 end}), tonumber)").find("__len"),
      std::string::npos);
  EXPECT_EQ(failure_in_batch("assert((''):rep(1 << 62) == '')"), "");
  EXPECT_TRUE(is_deadline(failure_in_batch("table.sort({3, 1, 2}, function() while true do end end)")));
  EXPECT_TRUE(is_deadline(failure_in_batch("('x'):gsub('x', function() while true do end end)")));
}

TEST(LuaLimits, FinalizersAndCloseHandlersCannotHide) {
  EXPECT_NE(failure_in_batch("setmetatable({}, {__gc=function() while true do end end})").find("finalizers"),
            std::string::npos);
  EXPECT_EQ(
      failure_in_batch("local m = {} setmetatable({}, m) m.__gc = function() while true do end end collectgarbage()"),
      "");
  const std::string closing = "local x <close> = setmetatable({}, {__close=function() while true do end end}) ";
  EXPECT_TRUE(is_deadline(failure_in_batch("do " + closing + " end")));
  EXPECT_TRUE(is_deadline(failure_in_batch("coroutine.wrap(function() " + closing + " while true do end end)()")));
  EXPECT_TRUE(is_deadline(failure_in_batch("local co = coroutine.create(function() " + closing +
                                           " coroutine.yield() end) coroutine.resume(co) coroutine.close(co)")));
  EXPECT_TRUE(is_deadline(failure_in_batch("local co = coroutine.create(function() " + closing +
                                           " while true do end end) pcall(coroutine.resume, co) coroutine.close(co)")));
}

TEST(LuaLimits, MemoryIsCapped) {
  const std::string cap = "memory: 4Mi\ndeadline: 5s";
  const auto capped = [&](const char *body) {
    const std::string message = failure_in_batch(body, cap);
    return message.find("not enough memory: the cap is 4 MiB") != std::string::npos;
  };
  EXPECT_TRUE(capped("local t = {} while true do t[#t + 1] = {} end"));
  EXPECT_TRUE(capped("local s = ('x'):rep(1 << 30)"));
  EXPECT_TRUE(capped("local s = 'x' while true do s = s .. s end"));
  EXPECT_TRUE(capped("local t = {} for i = 1, 1 << 30 do t[i] = i end"));
  EXPECT_TRUE(capped("local t = {} while true do t[#t + 1] = coroutine.create(function() end) end"));
  EXPECT_TRUE(capped("return table.concat({('x'):rep(3000000), ('y'):rep(3000000)})"));
  EXPECT_EQ(failure_in_batch("local s = ('x'):rep(1000000)", cap), "");
}

TEST(LuaLimits, AMemoryBombNamesItsLine) {
  ScriptRun run("function finish()\n  local t = {}\n  while true do t[#t + 1] = {} end\nend",
                "memory: 2Mi\ndeadline: 5s");
  run.finish();
  EXPECT_NE(run.failure().find("script:3: not enough memory: the cap is 2 MiB"), std::string::npos) << run.failure();
  EXPECT_EQ(run.finding().line, 3u);
}

TEST(LuaLimits, ACaughtMemoryErrorIsTheScriptsOwnAffair) {
  EXPECT_EQ(failure_in_batch("assert(not pcall(string.rep, 'x', 1 << 30))", "memory: 4Mi"), "");
}

TEST(LuaLimits, GroupsCountAgainstTheCap) {
  ScriptRun run(
      "sonde.subscribe{space='sonde.device', types={'copy'}, on_batch=function(b) b:group('bytes', 'bytes') end}",
      "memory: 1Mi");
  for (uint64_t index = 0; index < 20000; ++index) {
    run.copy(index, 1);
    if (index % 1000 == 0) run.flush();
  }
  run.finish();
  EXPECT_NE(run.failure().find("not enough memory"), std::string::npos) << run.failure();
}

TEST(LuaLimits, DeepRecursionIsAnError) {
  EXPECT_NE(failure_in_batch("local function f() return 1 + f() end f()", "memory: 512Mi\ndeadline: 5s")
                .find("stack overflow"),
            std::string::npos);
  EXPECT_EQ(failure_in_batch("local function f() return pcall(f) end assert(f() == true)", "deadline: 5s"), "");
  EXPECT_NE(failure_in_batch("local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end "
                             "return t.x",
                             "deadline: 5s"),
            "");
  EXPECT_NE(failure_in_batch("local s = ('('):rep(100000) load('return ' .. s)() ", "deadline: 5s"), "");
  EXPECT_NE(failure_in_batch("('a'):rep(1000):match(('(a'):rep(40))", "deadline: 5s").find("too many captures"),
            std::string::npos);
}

TEST(LuaLimits, AFailedScriptIsNotCalledAgain) {
  ScriptRun run(
      "sonde.table{name='calls', columns={{name='n'}}}\n"
      "sonde.subscribe{space='sonde.device', on_batch=function(b) error('once') end}\n"
      "function finish() sonde.finding{rule='script.finish', message='called'} end");
  run.copy(1, 1);
  run.flush();
  run.copy(1, 1);
  run.finish();
  EXPECT_NE(run.failure().find("once"), std::string::npos);
}

TEST(LuaLimits, TheDeadlineIsForEachCall) {
  ScriptRun run(
      "sonde.subscribe{space='sonde.device', on_batch=function(b) local t = sonde.now_ns() "
      "while sonde.now_ns() - t < 300000000 do end end}",
      "deadline: 1s");
  for (int index = 0; index < 6; ++index) {
    run.copy(1, 1);
    run.flush();
  }
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

}  // namespace
}  // namespace sonde::test
