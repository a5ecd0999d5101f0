// The example of plugins/layout, run as a user would: options, a script that calls the analysis, two outputs.
#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sonde::layout_lint {
namespace {

TEST(Example, RunsOnAModule) {
  const Host host(sonde_host());
  namespace files = std::filesystem;
  std::string pattern = (files::temp_directory_path() / "layout_lint_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const files::path folder = pattern, source = SONDE_TEST_SOURCE_DIR, before = files::current_path();
  for (const char *const file : {"example.yaml", "example.lua"}) {
    files::copy_file(source / "plugins/layout" / file, folder / file);
  }
  files::copy_file(source / "tests/data/layouts/ttgir/matmul_hopper.ttgir", folder / "kernel.ttgir");
  files::current_path(folder);
  const auto &plugins = host.service<sonde_plugins_service_t>();
  host.check(plugins.add_path(SONDE_LAYOUT_MODULE));
  host.check(plugins.add_path(SONDE_LUA_MODULE));
  const auto &runs = host.service<sonde_run_service_t>();
  const auto &configs = host.service<sonde_config_service_t>();
  sonde_config_t *config = nullptr;
  host.check(configs.load("example.yaml", &config));
  sonde_run_t *run = nullptr;
  ASSERT_EQ(runs.open(config, &run), SONDE_OK) << host.table()->last_error();
  ASSERT_EQ(runs.start(run), SONDE_OK) << host.table()->last_error();
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(runs.finish(run), SONDE_OK) << host.table()->last_error();
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("Layout conversions by kernel"), std::string::npos) << text;
  EXPECT_NE(text.find("triton_mm"), std::string::npos) << text;
  EXPECT_NE(text.find("7 sites, 0 without a plan, 0 parts could not be read."), std::string::npos) << text;
  EXPECT_GT(files::file_size("lint.sarif"), 500u);
  runs.close(run);
  configs.release(config);
  files::current_path(before);
  files::remove_all(folder);
}

}  // namespace
}  // namespace sonde::layout_lint
