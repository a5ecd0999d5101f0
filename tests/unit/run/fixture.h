// The services of a run in a test process, and a folder that goes away.
#pragma once

#include <gtest/gtest.h>
#include <sonde/run.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/service.h"
#include "core/services.h"
#include "loader/install.h"
#include "report/install.h"
#include "run/install.h"
#include "run/services.h"
#include "run/settings.h"
#include "store/install.h"

namespace sonde::run {

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    core::install();
    config::install();
    loader::install();
    store::install();
    report::install();
    install();
    services_ = *services();
    run_ = &service<sonde_run_service_t>(SONDE_RUN_SERVICE);
    folder_ = std::filesystem::temp_directory_path() / (std::string("sonde-run-") + std::to_string(::getpid()) + "-" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  OwnedConfig parsed(const std::string &text) {
    sonde_config_t *tree = nullptr;
    EXPECT_EQ(services_->config->parse(text.c_str(), "run.yaml", &tree), SONDE_OK) << last_error();
    return OwnedConfig(tree);
  }
  // Opens a run; on failure null, and the text is in error_.
  sonde_run_t *open(const std::string &text) {
    const OwnedConfig tree = parsed(text);
    sonde_run_t *run = nullptr;
    status_ = run_->open(tree.get(), &run);
    error_ = status_ == SONDE_OK ? "" : last_error();
    return run;
  }
  static std::string read(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const Services *services_ = nullptr;
  const sonde_run_service_t *run_ = nullptr;
  std::filesystem::path folder_;
  sonde_status status_ = SONDE_OK;
  std::string error_;
};

}  // namespace sonde::run
