#include "loader/manifest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "fixture.h"

namespace sonde::loader {
namespace {

class ManifestTest : public LoaderTest {
 protected:
  void SetUp() override {
    LoaderTest::SetUp();
    folder_ = testing::TempDir() + "/manifests-" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    folder_ = std::filesystem::canonical(folder_).string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void copy(const std::string &name) { std::filesystem::copy_file(module(name), folder_ + "/" + name + ".so"); }
  void write(const std::string &name, const std::string &text) { std::ofstream(folder_ + "/" + name) << text; }

  std::string folder_;
};

TEST_F(ManifestTest, IsMadeFromTheModuleAndReadBackWhole) {
  const std::string path = folder_ + "/sample.yaml";
  ASSERT_EQ(plugins_->write_manifest(module("sample").c_str(), path.c_str()), SONDE_OK) << host_table()->last_error();
  Result<Manifest> manifest = read_manifest(path);
  ASSERT_TRUE(manifest) << manifest.error().text;
  EXPECT_EQ(manifest->id, "sample");
  EXPECT_EQ(manifest->version, "1.2.3");
  EXPECT_EQ(manifest->summary, "A sample: with a colon, \"quotes\" and a \\");
  EXPECT_EQ(manifest->license, "MIT");
  EXPECT_EQ(manifest->abi_major, SONDE_ABI_MAJOR);
  EXPECT_EQ(manifest->interfaces, std::vector<std::string>{"sonde.analysis/1"});
  ASSERT_EQ(manifest->exports.size(), 2u);
  EXPECT_EQ(manifest->exports[1].signature, "d(d)");
  EXPECT_EQ(manifest->exports[1].help, "a \"half\"");
  ASSERT_EQ(manifest->options.size(), 2u);
  EXPECT_EQ(manifest->options[0].fallback, "20");
  EXPECT_EQ(manifest->options[0].type, SONDE_OPTION_I64);
  EXPECT_FALSE(manifest->options[1].has_fallback);
}

TEST_F(ManifestTest, ListingReadsManifestsAndOpensNoModule) {
  // The module cannot be opened at all, its manifest can.
  write("unopened.so", "not a module");
  write("unopened.yaml",
        "sonde_manifest: 1\nid: unopened\nversion: '2'\nsummary: listed\nabi: {major: 1, minor_required: 0}\n"
        "interfaces: [sonde.port/1, sonde.analysis/1]\nlater_key: ignored\n"
        "exports: [{name: f, signature: 'e()', help: h}]\n"
        "options: [{name: o, type: time, default: 5ms, unit: ns, choices: '', help: h}]\n");
  ASSERT_EQ(plugins_->add_path(folder_.c_str()), SONDE_OK);
  uint64_t count = 0;
  ASSERT_EQ(plugins_->count(&count), SONDE_OK);
  sonde_plugin_info_t info{};
  bool found = false;
  for (uint64_t index = 0; index < count; ++index) {
    ASSERT_EQ(plugins_->at(index, &info), SONDE_OK);
    if (std::string(info.id) == "unopened") {
      found = true;
      break;
    }
  }
  ASSERT_TRUE(found);
  EXPECT_STREQ(info.problem, "");
  EXPECT_STREQ(info.interfaces, "sonde.port/1 sonde.analysis/1");
  EXPECT_EQ(info.loaded, 0u);
  const char *name = nullptr, *signature = nullptr, *help = nullptr;
  EXPECT_EQ(plugins_->export_at("unopened", 0, &name, &signature, &help), SONDE_OK);
  EXPECT_STREQ(signature, "e()");
  EXPECT_EQ(plugins_->export_at("unopened", 1, &name, &signature, &help), SONDE_E_RANGE);
  sonde_option_t option{};
  EXPECT_EQ(plugins_->option_at("unopened", 0, &option), SONDE_OK);
  EXPECT_EQ(option.type, SONDE_OPTION_TIME);
  EXPECT_STREQ(option.fallback, "5ms");
  EXPECT_EQ(load("unopened"), SONDE_E_CORRUPT);
}

TEST_F(ManifestTest, ListsTheReasonWhyAPluginCannotBeUsed) {
  write("bare.so", "x");
  write("broken.so", "x");
  write("broken.yaml", "sonde_manifest: 1\nid: broken\nversion: [1\n");
  write("newer.so", "x");
  write("newer.yaml", "sonde_manifest: 1\nid: newer\nversion: '1'\nabi: {major: 1, minor_required: 7}\n");
  write("format.so", "x");
  write("format.yaml", "sonde_manifest: 9\n");
  ASSERT_EQ(plugins_->add_path(folder_.c_str()), SONDE_OK);
  std::map<std::string, std::string> problems;
  uint64_t count = 0;
  plugins_->count(&count);
  for (uint64_t index = 0; index < count; ++index) {
    sonde_plugin_info_t info{};
    ASSERT_EQ(plugins_->at(index, &info), SONDE_OK);
    problems[info.id] = info.problem;
  }
  EXPECT_NE(problems["bare"].find("no manifest " + folder_ + "/bare.yaml"), std::string::npos);
  EXPECT_NE(problems["broken"].find("broken.yaml:"), std::string::npos) << problems["broken"];
  EXPECT_NE(problems["newer"].find("needs version 1.7 of the binary interface, this host has 1." +
                                   std::to_string(SONDE_ABI_MINOR)),
            std::string::npos);
  EXPECT_NE(problems["format"].find("a manifest of format 9"), std::string::npos);
}

TEST_F(ManifestTest, ManifestOfAnotherPluginIsAnError) {
  copy("longer");
  write("longer.yaml", "sonde_manifest: 1\nid: shorter\nversion: '1'\nabi: {major: 1, minor_required: 0}\n");
  ASSERT_EQ(plugins_->add_path(folder_.c_str()), SONDE_OK);
  EXPECT_EQ(load("shorter"), SONDE_E_CORRUPT);
  EXPECT_NE(error_.find("its manifest says id 'shorter', the module says 'longer'"), std::string::npos) << error_;
}

TEST_F(ManifestTest, TheFirstPluginOfAnIdWins) {
  const std::string second = folder_ + "/second";
  std::filesystem::create_directories(second);
  const std::string text = "sonde_manifest: 1\nid: twin\nabi: {major: 1, minor_required: 0}\nversion: ";
  write("twin.so", "x");
  write("twin.yaml", text + "'1'\n");
  write("second/twin.so", "x");
  write("second/twin.yaml", text + "'2'\n");
  ASSERT_EQ(plugins_->add_path(folder_.c_str()), SONDE_OK);
  ASSERT_EQ(plugins_->add_path(second.c_str()), SONDE_OK);
  uint64_t count = 0;
  plugins_->count(&count);
  int twins = 0;
  for (uint64_t index = 0; index < count; ++index) {
    sonde_plugin_info_t info{};
    plugins_->at(index, &info);
    if (std::string(info.id) != "twin") continue;
    ++twins;
    EXPECT_STREQ(info.version, "2") << "the path added last comes first";
  }
  EXPECT_EQ(twins, 1);
}

TEST_F(ManifestTest, SaysWhyItCannotBeWritten) {
  EXPECT_EQ(plugins_->write_manifest(module("sample").c_str(), "/nonexistent/sample.yaml"), SONDE_E_IO);
  EXPECT_NE(std::string(host_table()->last_error()).find("/nonexistent/sample.yaml"), std::string::npos);
  EXPECT_EQ(plugins_->write_manifest("/nonexistent/sample.so", "-"), SONDE_E_NOT_FOUND);
}

}  // namespace
}  // namespace sonde::loader
