#include <sys/wait.h>

#include <csignal>

#include "fixture.h"

namespace sonde::loader {
namespace {

Ended crash(const std::string &environment) {
  return run_process("env " + environment + " timeout 20 " + LOADER_PROCESS + " " + MODULE_FOLDER + " throws create");
}

bool died_of(const Ended &ended, int signal) {
  // timeout passes the signal on as 128 + n, or dies of it too.
  return (WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == signal) ||
         (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 128 + signal);
}

TEST(Crash, NamesThePluginWhoseCodeFaultsAndDiesAllTheSame) {
  const Ended ended = crash("SONDE_CRASH=1 LOADER_TEST_CREATE=write");
  EXPECT_NE(ended.errors.find("sonde: SIGSEGV in the code of plugin 'throws'"), std::string::npos) << ended.errors;
  EXPECT_TRUE(died_of(ended, SIGSEGV)) << ended.status;
}

TEST(Crash, NamesThePluginThatCalledWhatFaults) {
  const Ended ended = crash("SONDE_CRASH=1 LOADER_TEST_CREATE=library");
  EXPECT_NE(ended.errors.find("plugin 'throws'"), std::string::npos) << ended.errors;
  EXPECT_TRUE(died_of(ended, SIGSEGV)) << ended.status;
}

TEST(Crash, NamesThePluginThatAborts) {
  const Ended ended = crash("SONDE_CRASH=1 LOADER_TEST_CREATE=abort");
  EXPECT_NE(ended.errors.find("sonde: SIGABRT while plugin 'throws' was called"), std::string::npos) << ended.errors;
  EXPECT_TRUE(died_of(ended, SIGABRT)) << ended.status;
}

TEST(Crash, LeavesSignalsAloneUnlessAsked) {
  const Ended ended = crash("LOADER_TEST_CREATE=write");
  EXPECT_EQ(ended.errors.find("sonde: SIGSEGV"), std::string::npos) << ended.errors;
  EXPECT_TRUE(died_of(ended, SIGSEGV)) << ended.status;
}

}  // namespace
}  // namespace sonde::loader
