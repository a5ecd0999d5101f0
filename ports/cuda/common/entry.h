// What the entry file of every port of CUDA repeats: reading options, and keeping exceptions inside.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "common/services.h"

namespace sonde::cuda {

// Reads the options; without a configuration, or for a key that an older host dropped, the defaults hold.
class OptionReader {
 public:
  explicit OptionReader(const sonde_config_t *config) : config_(config) {}

  void read(const char *name, bool &out) const {
    uint32_t value = 0;
    if (config_ != nullptr && services().config->get_bool(config_, name, &value) == SONDE_OK) out = value != 0;
  }
  template <typename Number>
  void read_number(const char *name, Number &out) const {
    int64_t value = 0;
    if (config_ != nullptr && services().config->get_i64(config_, name, &value) == SONDE_OK) {
      out = static_cast<Number>(value);
    }
  }
  void read_real(const char *name, double &out) const {
    double value = 0;
    if (config_ != nullptr && services().config->get_f64(config_, name, &value) == SONDE_OK) out = value;
  }
  void read_time(const char *name, uint64_t &out) const {
    int64_t value = 0;
    if (config_ != nullptr && services().config->get_time(config_, name, &value) == SONDE_OK) {
      out = static_cast<uint64_t>(value);
    }
  }
  void read(const char *name, std::string &out) const {
    const char *value = nullptr;
    if (config_ != nullptr && services().config->get_text(config_, name, &value) == SONDE_OK) out = value;
  }

 private:
  const sonde_config_t *config_;
};

// Runs `body` and turns what it throws into a status: no exception leaves the plugin.
template <typename Body>
sonde_status guarded(const char *plugin, Body &&body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return services().host->set_error(SONDE_E_FULL, (std::string(plugin) + ": out of memory").c_str());
  } catch (const std::exception &error) {
    return services().host->set_error(SONDE_E_INTERNAL, (std::string(plugin) + ": " + error.what()).c_str());
  }
}

}  // namespace sonde::cuda
