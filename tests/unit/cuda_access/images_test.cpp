// Where the device code comes from: beside the plugin, the cache, or an nvcc, here a script.
#include "patch_images.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sonde::cuda::access {
namespace {

namespace fs = std::filesystem;

class DeviceCode : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "sonde-device-code-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "code");
    setenv("SONDE_CACHE", (root_ / "cache").c_str(), 1);
    setenv("SONDE_NVCC", (root_ / "nvcc").c_str(), 1);
  }
  void TearDown() override {
    std::error_code error;
    fs::permissions(root_, fs::perms::owner_all, error);
    fs::remove_all(root_, error);
    unsetenv("SONDE_CACHE");
    unsetenv("SONDE_NVCC");
  }

  void write(const fs::path &name, const std::string &text) { std::ofstream(root_ / name) << text; }
  std::string read(const fs::path &name) {
    std::ifstream file(root_ / name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write_sources() {
    write("code/patches.cu", "patches");
    write("code/edges.cu", "edges");
    write("code/state.h", "state");
  }
  // Copies its source (the word that ends with .cu) to what follows -o, and notes its arguments.
  void write_nvcc() {
    write_program("echo \"$@\" >> '" + (root_ / "calls").string() +
                  "'\n"
                  "while [ $# -gt 0 ]; do case \"$1\" in *.cu) source=$1;; -o) out=$2; shift;; esac; shift; done\n"
                  "{ printf 'made of '; cat \"$source\"; } > \"$out\"\n");
  }
  void write_program(const std::string &body) {
    write("nvcc", "#!/bin/sh\n" + body);
    fs::permissions(root_ / "nvcc", fs::perms::owner_all);
  }
  bool find() { return find_patch_images((root_ / "code").string(), 9, 0, images_, reason_); }
  static std::string text(const std::vector<char> &image) { return {image.begin(), image.end()}; }
  size_t calls() {
    const std::string lines = read("calls");
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }

  fs::path root_;
  PatchImages images_;
  std::string reason_;
};

TEST_F(DeviceCode, WhatTheBuildMadeIsTaken) {
  write_sources();
  write("code/patches.fatbin", "built patches");
  write("code/edges.fatbin", "built edges");
  ASSERT_TRUE(find()) << reason_;
  EXPECT_EQ(text(images_.patches), "built patches");
  EXPECT_EQ(text(images_.edges), "built edges");
  EXPECT_FALSE(fs::exists(root_ / "cache"));
}

TEST_F(DeviceCode, ElseTheSourcesAreCompiledForTheDevice) {
  write_sources();
  write_nvcc();
  ASSERT_TRUE(find()) << reason_;
  EXPECT_EQ(text(images_.patches), "made of patches");
  EXPECT_EQ(text(images_.edges), "made of edges");
  const std::string calls = read("calls");
  EXPECT_NE(calls.find("-arch=sm_90"), std::string::npos) << calls;
  const std::string first = calls.substr(0, calls.find('\n'));
  const std::string second = calls.substr(calls.find('\n') + 1);
  EXPECT_NE(first.find("--compile-as-tools-patch"), std::string::npos) << calls;
  EXPECT_EQ(second.find("--compile-as-tools-patch"), std::string::npos) << calls;
}

TEST_F(DeviceCode, TheSecondTimeTheCacheHasThem) {
  write_sources();
  write_nvcc();
  ASSERT_TRUE(find()) << reason_;
  ASSERT_TRUE(find()) << reason_;
  EXPECT_EQ(text(images_.patches), "made of patches");
  EXPECT_EQ(calls(), 2u);
  write("code/state.h", "another state");
  ASSERT_TRUE(find()) << reason_;
  EXPECT_EQ(calls(), 4u) << "another source is another entry of the cache";
}

TEST_F(DeviceCode, NothingIsLeftOfACompilationButItsResults) {
  write_sources();
  write_nvcc();
  ASSERT_TRUE(find()) << reason_;
  size_t files = 0;
  for (const auto &entry : fs::directory_iterator(root_ / "cache")) {
    EXPECT_EQ(entry.path().extension(), ".fatbin") << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(DeviceCode, TheReasonHoldsWhatTheCompilerSaid) {
  write_sources();
  write_program("echo 'patches.cu(3): error: this does not compile' >&2; exit 2\n");
  EXPECT_FALSE(find());
  EXPECT_NE(reason_.find("this does not compile"), std::string::npos) << reason_;
  EXPECT_NE(reason_.find("patches.cu"), std::string::npos) << reason_;
  EXPECT_TRUE(fs::is_empty(root_ / "cache"));
}

TEST_F(DeviceCode, ACompilerThatMakesNothingIsAFailure) {
  write_sources();
  write_program("exit 0\n");
  EXPECT_FALSE(find());
  EXPECT_FALSE(reason_.empty());
}

TEST_F(DeviceCode, ACompilerThatDiesIsAFailure) {
  write_sources();
  write_program("kill -9 $$\n");
  EXPECT_FALSE(find());
  EXPECT_NE(reason_.find("could not compile"), std::string::npos) << reason_;
}

TEST_F(DeviceCode, MissingSourcesAreNamed) {
  write_nvcc();
  EXPECT_FALSE(find());
  EXPECT_NE(reason_.find((root_ / "code").string()), std::string::npos) << reason_;
  EXPECT_EQ(calls(), 0u);
}

TEST_F(DeviceCode, WithoutACompilerTheReasonSaysSo) {
  if (::access("/usr/local/cuda/bin/nvcc", X_OK) == 0) GTEST_SKIP() << "this machine has an nvcc in the last place";
  write_sources();
  setenv("SONDE_NVCC", (root_ / "none").c_str(), 1);
  const std::string path = getenv("PATH");
  setenv("PATH", root_.c_str(), 1);
  EXPECT_FALSE(find());
  setenv("PATH", path.c_str(), 1);
  EXPECT_NE(reason_.find("no nvcc"), std::string::npos) << reason_;
}

TEST_F(DeviceCode, ACacheThatCannotBeMadeIsAFailure) {
  write_sources();
  write_nvcc();
  write("cache", "a file where the folder should be");
  EXPECT_FALSE(find());
  EXPECT_NE(reason_.find("cache"), std::string::npos) << reason_;
}

}  // namespace
}  // namespace sonde::cuda::access
