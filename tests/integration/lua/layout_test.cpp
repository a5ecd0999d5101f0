// The library sonde.layout, the same in a hosted script and in the stock interpreter.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "script_run.h"

namespace sonde::test {
namespace {

TEST(LuaLayouts, WorkInAHostedScript) {
  std::ifstream file(std::string(TEST_SOURCE_FOLDER) + "/layout_test.lua");
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_GT(text.str().size(), 1000u);
  // What a script returns is not looked at; a failed assertion is its error.
  ScriptRun run(text.str().c_str());
  run.finish();
  EXPECT_EQ(run.failure(), "");
}

TEST(LuaLayouts, WorkInTheStockInterpreter) {
  const std::string command = std::string("LUA_CPATH='") + TEST_LUA_MODULE_FOLDER + "/?.so' lua5.4 " +
                              TEST_SOURCE_FOLDER + "/layout_test.lua 2>&1";
  FILE *const output = ::popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  std::string text;
  for (int letter = std::fgetc(output); letter != EOF; letter = std::fgetc(output)) text += static_cast<char>(letter);
  const int status = ::pclose(output);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
}

TEST(LuaLayouts, CountAgainstTheScriptsMemory) {
  ScriptRun run(R"LUA(
local all = {}
local tile = sonde.layout.identity(1 << 20, "in", "out")
while true do all[#all + 1] = tile:invert() end)LUA");
  run.finish();
  EXPECT_NE(run.failure().find("memory"), std::string::npos) << run.failure();
}

}  // namespace
}  // namespace sonde::test
