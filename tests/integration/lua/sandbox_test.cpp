// What a script cannot reach, and that what it can behaves as the manual says.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "script_run.h"

namespace sonde::test {
namespace {

std::string failure_of(const std::string &script) {
  ScriptRun run(script, "deadline: 5s");
  run.finish();
  return run.failure();
}

TEST(LuaSandbox, ForeignLibrariesAreAbsent) {
  EXPECT_EQ(failure_of(R"LUA(
for _, name in ipairs{"io", "os", "debug", "package", "require", "dofile", "loadfile", "warn"} do
  assert(_G[name] == nil, name)
end
assert(string.dump == nil)
local allowed = {_G=1, _VERSION=1, assert=1, collectgarbage=1, error=1, getmetatable=1, ipairs=1, load=1, next=1, pairs=1,
  pcall=1, print=1, rawequal=1, rawget=1, rawlen=1, rawset=1, select=1, setmetatable=1, tonumber=1, tostring=1, type=1,
  xpcall=1, coroutine=1, math=1, sonde=1, string=1, table=1, utf8=1}
for name in pairs(_G) do assert(allowed[name], name) end)LUA"),
            "");
}

TEST(LuaSandbox, BytecodeIsRefused) {
  EXPECT_EQ(failure_of(R"LUA(
local f, message = load("\27Lua\x54\0\x19\x93\r\n\x1a\n")
assert(f == nil and message:find("binary"))
f, message = load("\27Lua", "name", "b")
assert(f == nil and message:find("binary"))
f, message = load("\27Lua", "name", "bt", {})
assert(f == nil and message:find("binary"))
local sent = false
f, message = load(function() if not sent then sent = true return "\27Lua" end end, "name", "b")
assert(f == nil and message:find("binary"))
assert(load("return 1 + 1")() == 2)
assert(load("return x", "chunk", "t", {x = 5})() == 5)
assert(load("return x", "chunk", "t", nil) ~= nil))LUA"),
            "");
  ScriptRun run(std::string("\"\\e\""));  // the script itself, not as text
  run.finish();
  EXPECT_NE(run.failure(), "");
}

TEST(LuaSandbox, MetatablesOfTheHostAreClosed) {
  EXPECT_EQ(failure_of(R"LUA(
assert(getmetatable("") == "string")
assert(not pcall(setmetatable, "", {}))
local t = sonde.table{name="t", columns={{name="a"}}}
assert(getmetatable(t) == "sonde.table")
assert(not pcall(function() t.add = nil end))
assert(not pcall(function() t.__gc = nil end) and t.__gc == nil)
local groups = sonde.groups("name", "duration", "sonde.device.kernel")
assert(getmetatable(groups) == "sonde.groups" and groups.__gc == nil)
assert(not pcall(t.add, groups, {}), "a method of another class")
assert(not pcall(groups.rows, t))
assert(not pcall(groups.rows, {}))
assert(not pcall(groups.rows)))LUA"),
            "");
}

TEST(LuaSandbox, StringMethodsOfTheScriptCannotReachTheHost) {
  EXPECT_EQ(failure_of(R"LUA(
string.find = nil
string.format = function() error("not called by the host") end
local ok, message = pcall(function() local x = nil; return x.y end)
assert(not ok and type(message) == "string"))LUA"),
            "");
}

TEST(LuaSandbox, GlobalsOfTheScriptMayHaveAMetatable) {
  EXPECT_EQ(failure_of("setmetatable(_G, {__index=function(t, k) error('asked for ' .. k) end}) function finish() end"),
            "");
  // `finish` is looked up under the limits too.
  EXPECT_NE(
      failure_of("setmetatable(_G, {__index=function(t, k) error('asked for ' .. k) end})").find("asked for finish"),
      std::string::npos);
}

TEST(LuaSandbox, PrintGoesToTheLog) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(failure_of("print('words', 1, nil, {}, true)"), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(failure_of("print(setmetatable({}, {__tostring=function() error('inside') end}))").find("inside"),
            std::string::npos);
}

TEST(LuaSandbox, RandomNumbersRepeat) {
  const char *const script = "sonde.table{name='r', columns={{name='r'}}}:add{math.random(1 << 62)}";
  ScriptRun first(script);
  first.finish();
  ScriptRun second(script);
  second.finish();
  EXPECT_EQ(first.row("r", 0), second.row("r", 0));
}

TEST(LuaSandbox, CollectgarbageAnswersTwoQuestions) {
  EXPECT_EQ(failure_of("assert(collectgarbage('count') > 10) assert(collectgarbage() == 0) "
                       "assert(not pcall(collectgarbage, 'stop')) assert(not pcall(collectgarbage, 'generational'))"),
            "");
}

// Examples of the Lua 5.4 manual, section 6.4, and of its rules one by one.
TEST(LuaSandbox, PatternsFollowTheManual) {
  EXPECT_EQ(failure_of(R"LUA(
local function same(got, expected) assert(got == expected, tostring(got) .. " is not " .. tostring(expected)) end
local function all(...) local n = select("#", ...) local t = {...} for i = 1, n do t[i] = tostring(t[i]) end return table.concat(t, "|") end
same(string.gsub("hello world", "(%w+)", "%1 %1"), "hello hello world world")
same(string.gsub("hello world", "%w+", "%0 %0", 1), "hello hello world")
same(string.gsub("hello world from Lua", "(%w+)%s*(%w+)", "%2 %1"), "world hello Lua from")
same(string.gsub("$name-$version.tar.gz", "%$(%w+)", {name="lua", version="5.4"}), "lua-5.4.tar.gz")
same(all(string.find("hello Lua user", "Lua")), "7|9")
same(all(string.find("abc", "b()c")), "2|3|3")
same(all(string.find("abc", "b", -10)), "2|2")
same(all(string.find("", "")), "1|0")
same(all(string.find("abc", "", 4)), "4|3")
same(string.find("abc", "", 5), nil)
same(all(("a\0b"):find("\0")), "2|2")
-- classes and sets
same(("  x1_"):match("^%s*(%a)(%d)(%p)$"), "x")
same(("THE (quick) fox"):find("%((%a+)%)"), 5)
same(("0xFFg"):match("%x+", 3), "FF")
same(("a-b]c"):match("[%-%]]+"), "-")
same(("]"):match("[]]"), "]")
same(("^a"):match("[%^]"), "^")
same(("b"):match("[^a]"), "b")
same(("f-g"):match("[a-]", 2), "-")
same(("A1"):match("%U"), "1")
same(("\128"):match("%W"), "\128")
-- repetitions
same(("aaab"):match("a-b"), "aaab")
same(("aaab"):match("^a*"), "aaa")
same(("b"):match("^a+"), nil)
same(("color colour"):gsub("colou?r", "x"), "x x")
same(("<<a>>"):match("<(.-)>"), "<a")
-- balance, frontier, back references
same(("f(a(b)c)d"):match("%b()"), "(a(b)c)")
same(("THE (quick) fox"):gsub("%f[%a]%a+", "w"), "w (w) w")
same(("THE END"):match("%f[%w]%w+%f[%W]"), "THE")
same(([[say "it's" ok]]):match([[(["'])(.-)%1]]), '"')
same(all(([[say "it's" ok]]):match([[(["'])(.-)%1]])), [["|it's]])
-- anchors
same(("hello"):gsub("^h", "j"), "jello")
same(("hello"):gsub("o$", "0"), "hell0")
same(("a$b"):match("a$b"), "a$b")
same(all(("abc"):gsub("", "-")), "-a-b-c-|4")
same(all(("abc"):gsub("b*", "x")), "xaxcx|3")
same(all(("hello world"):gsub("o", "0", 1)), "hell0 world|1")
same(all(("abc"):gsub("%w", "%%")), "%%%|3")
same(("abc"):gsub("b", {b=false}), "abc")
same(("abc"):gsub("b", function() end), "abc")
same(("abc"):gsub("(b)(c)", "%2%1"), "acb")
-- gmatch with empty matches and a start
local found = {}
for place in ("a,b"):gmatch("()[^,]*") do found[#found + 1] = place end
same(table.concat(found, " "), "1 3")
local rest = {}
for w in ("one two three"):gmatch("%a+", 5) do rest[#rest + 1] = w end
same(table.concat(rest, " "), "two three")
-- errors
for _, bad in ipairs{"[a", "%", "(a", "%b", "%bx", "%f", "%1", "[%", "[^", "[]"} do
  assert(not pcall(string.find, "aaa", bad), bad)
end
assert(not pcall(string.gsub, "a", "a", "%2"))
assert(not pcall(string.gsub, "a", "a", "%x"))
assert(not pcall(string.gsub, "a", "a", true))
assert(not pcall(string.gsub, "a", "a", function() return {} end))
)LUA"),
            "");
}

// The stock interpreter is the standard: both run patterns.lua.
TEST(LuaSandbox, PatternsAgreeWithTheStockInterpreter) {
  const std::string path = std::string(SONDE_TEST_SOURCE_DIR) + "/tests/integration/lua/patterns.lua";
  FILE *const stock = popen(("lua5.4 " + path).c_str(), "r");
  ASSERT_NE(stock, nullptr);
  std::vector<std::string> expected;
  char line[65536];
  while (std::fgets(line, sizeof(line), stock) != nullptr) {
    expected.emplace_back(line);
    expected.back().pop_back();
  }
  ASSERT_EQ(pclose(stock), 0);
  ASSERT_EQ(expected.size(), 4000u);
  std::ifstream file(path);
  ScriptRun run(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()), "deadline: 20s");
  run.finish();
  ASSERT_EQ(run.failure(), "");
  uint64_t errors = 0;
  for (uint64_t index = 0; index < expected.size(); ++index) {
    const std::vector<std::string> row = run.row("lines", index);
    ASSERT_EQ(row.size(), 1u);
    ASSERT_EQ(row[0], expected[index]) << "case " << index + 1;
    errors += expected[index].find("error") != std::string::npos;
  }
  EXPECT_GT(errors, 100u);  // malformed patterns are among them
}

TEST(LuaSandbox, CoroutinesFollowTheManual) {
  EXPECT_EQ(failure_of(R"LUA(
local co = coroutine.create(function(a, b)
  assert(a == 1 and b == 2)
  local c = coroutine.yield(a + b)
  assert(c == "x")
  local d, e = coroutine.yield()
  assert(d == nil and e == 5)
  return "end", 7
end)
assert(coroutine.status(co) == "suspended")
local ok, value = coroutine.resume(co, 1, 2)
assert(ok and value == 3)
assert(select("#", coroutine.resume(co, "x")) == 1)
local a, b, c = coroutine.resume(co, nil, 5)
assert(a == true and b == "end" and c == 7)
assert(coroutine.status(co) == "dead")
ok, value = coroutine.resume(co)
assert(not ok and value == "cannot resume dead coroutine")
local f = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
assert(f() == 1 and f() == 2 and f() == 3 and f() == nil)
ok, value = pcall(f)
assert(not ok and value:find("dead coroutine"))
f = coroutine.wrap(function() error({code = 3}) end)
ok, value = pcall(f)
assert(not ok and value.code == 3)
local main, is_main = coroutine.running()
assert(is_main and not coroutine.isyieldable())
co = coroutine.create(function()
  assert(coroutine.isyieldable() and coroutine.status(main) == "normal")
  assert(not coroutine.resume(main))
  local closed <close> = setmetatable({}, {__close=function() main = "closed" end})
  coroutine.yield()
end)
assert(coroutine.resume(co))
assert(coroutine.close(co) and main == "closed" and coroutine.status(co) == "dead")
co = coroutine.wrap(function() return pcall(function() coroutine.yield(1) error("x", 0) end) end)
assert(co() == 1)
ok, value = co()
assert(ok == false and value == "x")
co = coroutine.wrap(function() return xpcall(function() coroutine.yield(1) error("x", 0) end, function(m) return m .. "y" end) end)
assert(co() == 1)
ok, value = co()
assert(ok == false and value == "xy")
assert(not pcall(coroutine.yield))
assert(not pcall(coroutine.resume, 1)))LUA"),
            "");
}

}  // namespace
}  // namespace sonde::test
