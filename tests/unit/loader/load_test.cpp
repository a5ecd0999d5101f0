#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "fixture.h"

namespace sonde::loader {
namespace {

// True when the dynamic linker still has the module.
bool is_mapped(const std::string &name) {
  void *const handle = ::dlopen(module(name).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

bool ran(const std::string &name) { return std::getenv(("LOADER_TEST_RAN_" + name).c_str()) != nullptr; }

TEST_F(LoaderTest, LoadsAModuleOnceAndFindsWhatItOffers) {
  ASSERT_EQ(load(module("sample")), SONDE_OK) << error_;
  const sonde_plugin_entry_t *const first = entry_;
  EXPECT_STREQ(first->id, "sample");
  EXPECT_EQ(first->export_count, 2u);
  ASSERT_EQ(load("sample"), SONDE_OK) << "what is loaded needs no search";
  EXPECT_EQ(entry_, first);
  ASSERT_EQ(load(module("sample")), SONDE_OK);
  EXPECT_EQ(entry_, first);

  sonde_export_t function{};
  ASSERT_EQ(plugins_->function("sample", "add", &function), SONDE_OK);
  EXPECT_STREQ(function.signature, "e(qq&q)");
  int64_t sum = 0;
  EXPECT_EQ(reinterpret_cast<sonde_status (*)(int64_t, int64_t, int64_t *)>(function.function)(2, 3, &sum), SONDE_OK);
  EXPECT_EQ(sum, 5);
  EXPECT_EQ(plugins_->function("sample", "subtract", &function), SONDE_E_NOT_FOUND);
  EXPECT_STREQ(host_table()->last_error(), "plugin sample has no function 'subtract'; it has add, half");

  const char *name = nullptr, *signature = nullptr, *help = nullptr;
  ASSERT_EQ(plugins_->export_at("sample", 1, &name, &signature, &help), SONDE_OK)
      << "without a manifest: from the module";
  EXPECT_STREQ(signature, "d(d)");
  sonde_option_t option{};
  ASSERT_EQ(plugins_->option_at("sample", 0, &option), SONDE_OK);
  EXPECT_STREQ(option.name, "rows");

  const void *table = nullptr;
  EXPECT_EQ(plugins_->interface("sample", "com.example.own/1", 8, &table), SONDE_OK);
  EXPECT_EQ(static_cast<const uint32_t *>(table)[1], 42u);
  EXPECT_EQ(plugins_->interface(nullptr, "com.example.own/1", 8, &table), SONDE_OK);
  EXPECT_EQ(plugins_->interface("sample", "com.example.own/1", 16, &table), SONDE_E_TOO_OLD);
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(plugins_->interface("sample", "sonde.port/1", 8, &table), SONDE_E_NOT_FOUND);
  EXPECT_EQ(plugins_->interface("absent", "sonde.port/1", 8, &table), SONDE_E_NOT_FOUND);
  EXPECT_TRUE(is_mapped("sample"));
}

TEST_F(LoaderTest, RefusesAPluginThatNeedsANewerHostBeforeAnyOfItsCode) {
  EXPECT_EQ(load(module("too_new")), SONDE_E_TOO_OLD);
  EXPECT_EQ(error_, module("too_new") + ": needs version 1.99 of the binary interface, this host has 1." +
                        std::to_string(SONDE_ABI_MINOR));
  EXPECT_FALSE(ran("too_new")) << "not even a constructor may run";
  EXPECT_FALSE(is_mapped("too_new"));
  EXPECT_EQ(entry_, nullptr);
}

TEST_F(LoaderTest, RefusesAnotherMajorWithBothNumbers) {
  EXPECT_EQ(load(module("other_major")), SONDE_E_INCOMPATIBLE);
  EXPECT_NE(error_.find("major version 2 of the binary interface, this host has 1"), std::string::npos) << error_;
  EXPECT_FALSE(ran("other_major"));
  EXPECT_FALSE(is_mapped("other_major"));
}

TEST_F(LoaderTest, TakesAnEntryThatEndsBeforeTheLaterFields) {
  ASSERT_EQ(load(module("first_fields")), SONDE_OK) << error_;
  EXPECT_EQ(entry_->struct_size, sizeof(sonde_plugin_entry_t));
  EXPECT_STREQ(entry_->version, "1.2.3");
  EXPECT_STREQ(entry_->summary, "");
  EXPECT_EQ(entry_->exports, nullptr);
  EXPECT_EQ(entry_->init, nullptr);
  EXPECT_EQ(entry_->get_interface, nullptr);
}

TEST_F(LoaderTest, TakesALongerEntryAndWalksItsStride) {
  ASSERT_EQ(load(module("longer")), SONDE_OK) << error_;
  ASSERT_EQ(entry_->export_count, 2u);
  EXPECT_EQ(entry_->export_stride, sizeof(sonde_export_t));
  EXPECT_STREQ(entry_->exports[1].name, "two");
}

// Same version, another size; a field removed in the middle: the classes of crash that a size field must prevent.
TEST_F(LoaderTest, RefusesATableOfAnotherLayout) {
  const struct {
    const char *name;
    const char *text;
  } cases[] = {
      {"cut_in_a_member", "struct_size is 92, expected 96"},
      {"huge", "struct_size is 1048576"},
      {"field_removed", "exports is not NULL and does not lie in a loaded object"},
      {"null_id", "id is NULL"},
      {"bad_id", "id 'Bad' is not made of lower case letters"},
      {"bad_stride", "the stride of exports is 8, expected 32"},
      {"bad_count", "100000 exports, more than the 4096 allowed"},
  };
  for (const auto &item : cases) {
    EXPECT_EQ(load(module(item.name)), SONDE_E_CORRUPT) << item.name;
    EXPECT_NE(error_.find(item.text), std::string::npos) << item.name << ": " << error_;
    EXPECT_NE(error_.find(module(item.name)), std::string::npos) << error_;
    EXPECT_FALSE(is_mapped(item.name)) << item.name;
  }
}

TEST_F(LoaderTest, UnloadsAPluginWhoseInitFailsAndSaysWhy) {
  EXPECT_EQ(load(module("init_fails")), SONDE_E_IO);
  EXPECT_EQ(error_, "plugin init_fails (" + module("init_fails") + "): init failed: the device is away");
  EXPECT_FALSE(is_mapped("init_fails"));
  const void *table = nullptr;
  EXPECT_EQ(plugins_->interface("init_fails", "sonde.analysis/1", 8, &table), SONDE_E_NOT_FOUND);
  EXPECT_EQ(load(module("init_fails")), SONDE_E_IO) << "it may be tried again";
}

TEST_F(LoaderTest, RefusesAPluginThatLoadsItselfInsteadOfWaitingForEver) {
  ASSERT_EQ(plugins_->add_path(module("loads_itself").c_str()), SONDE_OK);
  EXPECT_EQ(load("loads_itself"), SONDE_E_STATE);
  EXPECT_NE(error_.find("loads itself while it starts"), std::string::npos) << error_;
}

TEST_F(LoaderTest, SaysWhatIsWrongWithAFileThatIsNoPlugin) {
  EXPECT_EQ(load(module("no_entry")), SONDE_E_NOT_FOUND);
  EXPECT_NE(error_.find("does not define sonde_plugin_entry"), std::string::npos) << error_;
  EXPECT_EQ(load("/nonexistent/x.so"), SONDE_E_NOT_FOUND);
  EXPECT_EQ(error_, "no plugin module at '/nonexistent/x.so'");
  EXPECT_EQ(load("/tmp"), SONDE_E_CORRUPT);
  const std::string text = testing::TempDir() + "/text.so";
  std::ofstream(text) << "hello, this is text and long enough for a header: " << std::string(200, '.');
  EXPECT_EQ(load(text), SONDE_E_CORRUPT);
  EXPECT_NE(error_.find("not an ELF file"), std::string::npos) << error_;
  std::ofstream(text, std::ios::trunc).flush();
  EXPECT_EQ(load(text), SONDE_E_CORRUPT);
  EXPECT_NE(error_.find("an empty file"), std::string::npos) << error_;
}

TEST_F(LoaderTest, RefusesEveryCutOfAModule) {
  std::ifstream in(module("sample"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string cut = testing::TempDir() + "/cut.so";
  for (size_t bytes = 1; bytes < whole.size(); bytes += 1 + whole.size() / 97) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc).write(whole.data(), static_cast<std::streamsize>(bytes));
    EXPECT_NE(load(cut), SONDE_OK) << bytes;
  }
}

// A wrong library path must name what was looked for and where.
TEST_F(LoaderTest, ListsWhereItLookedForAnUnknownId) {
  SearchInputs inputs;
  inputs.plugin_path = "/nowhere/plugins";
  inputs.home = "/home/somebody";
  Registry::instance().set_inputs(inputs);
  ASSERT_EQ(plugins_->add_path(MODULE_FOLDER), SONDE_OK);
  EXPECT_EQ(load("smaple"), SONDE_E_NOT_FOUND);
  EXPECT_NE(error_.find("no plugin 'smaple'; looked in "), std::string::npos) << error_;
  EXPECT_NE(error_.find("(added)"), std::string::npos) << error_;
  EXPECT_NE(error_.find("/nowhere/plugins (SONDE_PLUGIN_PATH, does not exist)"), std::string::npos) << error_;
  EXPECT_NE(error_.find("/home/somebody/.local/share/sonde/plugins (user, does not exist)"), std::string::npos);
  EXPECT_NE(error_.find("there are: "), std::string::npos);
  EXPECT_EQ(plugins_->add_path("/nowhere/at/all"), SONDE_E_NOT_FOUND);
}

TEST_F(LoaderTest, RegistersAPluginLinkedIntoTheProgram) {
  static sonde_plugin_entry_t entry{};
  entry.struct_size = sizeof(entry);
  entry.abi_major = SONDE_ABI_MAJOR;
  entry.id = "linked_in";
  entry.version = "1";
  ASSERT_EQ(plugins_->add_static(&entry), SONDE_OK) << host_table()->last_error();
  EXPECT_EQ(load("linked_in"), SONDE_OK) << error_;
  sonde_plugin_info_t info{};
  ASSERT_EQ(plugins_->at(0, &info), SONDE_OK);
  EXPECT_STREQ(info.id, "linked_in");
  EXPECT_STREQ(info.path, "");
  EXPECT_EQ(info.loaded, 1u);
  EXPECT_EQ(plugins_->add_static(nullptr), SONDE_E_INVALID);
  entry.id = nullptr;
  EXPECT_EQ(plugins_->add_static(&entry), SONDE_E_CORRUPT);
  entry.id = "linked_in";
}

TEST_F(LoaderTest, LoadsOnceFromManyThreads) {
  ASSERT_EQ(plugins_->add_path(MODULE_FOLDER), SONDE_OK);
  std::vector<const sonde_plugin_entry_t *> entries(8);
  std::vector<std::thread> threads;
  for (size_t index = 0; index < entries.size(); ++index) {
    threads.emplace_back([&, index] { plugins_->load("throws", &entries[index]); });
  }
  for (std::thread &thread : threads) thread.join();
  for (const sonde_plugin_entry_t *const entry : entries) EXPECT_EQ(entry, entries[0]);
  EXPECT_NE(entries[0], nullptr);
}

// The finalizer calls the host: no lock may be held while it runs.
TEST_F(LoaderTest, LetsAShutdownCallTheHost) {
  const Ended ended = run_process(std::string("timeout 20 ") + LOADER_PROCESS + " " + MODULE_FOLDER + " finalizer");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("shutdown called the host"), std::string::npos) << ended.errors;
}

}  // namespace

Ended run_process(const std::string &command) {
  Ended ended;
  FILE *const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"popen failed", -1};
  char block[4096];
  for (size_t got = 0; (got = std::fread(block, 1, sizeof block, pipe)) > 0;) ended.errors.append(block, got);
  ended.status = ::pclose(pipe);
  return ended;
}

}  // namespace sonde::loader
