// The plugin service over the test's own modules, without the environment of the machine.
#pragma once

#include <gtest/gtest.h>
#include <sonde/plugins.h>

#include <string>

#include "config/service.h"
#include "core/services.h"
#include "loader/install.h"
#include "loader/registry.h"

namespace sonde::loader {

inline std::string module(const std::string &name) { return std::string(MODULE_FOLDER) + "/" + name + ".so"; }

// Runs a command; its standard error, and the status as waitpid gives it.
struct Ended {
  std::string errors;
  int status;
};
Ended run_process(const std::string &command);

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    core::install();
    config::install();
    install();
    Registry::instance().set_inputs({});
    plugins_ = &service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  }

  sonde_status load(const std::string &id) {
    const sonde_status status = plugins_->load(id.c_str(), &entry_);
    error_ = host_table()->last_error();
    return status;
  }

  const sonde_plugins_service_t *plugins_ = nullptr;
  const sonde_plugin_entry_t *entry_ = nullptr;
  std::string error_;
};

}  // namespace sonde::loader
