#include "run/identity.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "fixture.h"

namespace sonde::run {
namespace {

TEST(Identity, ReadsTheStartTimeWhateverTheProgramIsCalled) {
  // Field 22 of proc_pid_stat(5); 100 ticks a second make 10^7 ns each.
  const std::string fields = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 12345 0 0\n";
  EXPECT_EQ(start_from_stat("42 (python3)" + fields, 100), 123450000000u);
  EXPECT_EQ(start_from_stat("42 (a) b (c) 7 8)" + fields, 100), 123450000000u);
  EXPECT_EQ(start_from_stat("42 (cut", 100), 0u);
  EXPECT_EQ(start_from_stat("42 (cut) S 1 2", 100), 0u);
  EXPECT_EQ(start_from_stat("", 100), 0u);
}

TEST(Identity, NamesTwoProcessesOfOneIdApart) {
  Identity first;
  first.host = "h";
  first.process = 7;
  first.start_ns = 100;
  Identity second = first;
  second.start_ns = 200;
  EXPECT_EQ(first.stem(), "h-7-100-0");
  EXPECT_NE(first.stem(), second.stem());
}

TEST(Identity, KnowsThisProcess) {
  ::unsetenv("SONDE_EXEC");
  const Identity identity = identify_process();
  EXPECT_EQ(identity.process, static_cast<uint64_t>(::getpid()));
  EXPECT_GT(identity.start_ns, 0u);
  EXPECT_EQ(identity.start_ns, identify_process().start_ns);
  EXPECT_EQ(identity.image, 0u);
  EXPECT_FALSE(identity.host.empty());
  EXPECT_EQ(identity.host.find('/'), std::string::npos);
  ::setenv("SONDE_EXEC", "3", 1);
  EXPECT_EQ(identify_process().image, 3u);
  ::setenv("SONDE_EXEC", "3x", 1);
  EXPECT_EQ(identify_process().image, 0u);
  ::unsetenv("SONDE_EXEC");
}

using FolderTest = RunTest;

TEST_F(FolderTest, TakesTheNextImageNumberWhereAFileExists) {
  Identity identity;
  identity.host = "h";
  std::ofstream(folder_ / "h-0-0-0.sonde") << "x";
  std::ofstream(folder_ / "h-0-0-1.sonde.live") << "x";
  EXPECT_EQ(fresh_capture_stem(folder_.string(), identity), (folder_ / "h-0-0-2").string());
  EXPECT_EQ(identity.image, 2u);
}

TEST_F(FolderTest, WritesRunJsonOnceFromManyAtATime) {
  std::vector<std::thread> threads;
  for (uint64_t index = 0; index < 8; ++index) {
    threads.emplace_back([this, index] {
      Identity identity;
      identity.host = "host" + std::to_string(index);
      identity.process = index;
      EXPECT_TRUE(write_run_json(folder_.string(), identity));
    });
  }
  for (std::thread &thread : threads) thread.join();
  const std::string text = read(folder_ / "run.json");
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["format"], "sonde.run/1");
  EXPECT_EQ(json["tool"], "sonde 0.1.0");
  EXPECT_TRUE(json["command"].is_array());
  EXPECT_GT(json["created_ns"].get<int64_t>(), 0);
  Identity late;
  late.host = "late";
  EXPECT_TRUE(write_run_json(folder_.string(), late));
  EXPECT_EQ(read(folder_ / "run.json"), text) << "the first one stays";
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder_)) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1u);
}

TEST_F(FolderTest, SaysWhyAFolderCannotBeMade) {
  std::ofstream(folder_ / "file") << "x";
  Result<void> made = make_run_folder((folder_ / "file" / "run").string());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, SONDE_E_IO);
  EXPECT_NE(made.error().text.find("file/run"), std::string::npos);
}

}  // namespace
}  // namespace sonde::run
