// The ports and analyses of a run: instances of plugins, each with its own options.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "run/settings.h"

namespace sonde::run {

// Puts a failure of a part of the run among the results: the run goes on without it.
void add_failure(const Services &services, sonde_session_t *session, const char *rule, const std::string &message,
                 const std::string &reason);

class AnalysisInstance {
 public:
  AnalysisInstance(const Services &services, sonde_session_t *session) : services_(services), session_(session) {}
  ~AnalysisInstance();
  AnalysisInstance(const AnalysisInstance &) = delete;
  AnalysisInstance &operator=(const AnalysisInstance &) = delete;

  // Loads the plugin and checks the options; an error is a fault of the configuration. A failing create is a finding.
  Result<void> create(const PluginWish &wish);
  void start();
  void finish();

 private:
  void fail_in(const char *function, sonde_status status);

  const Services &services_;
  sonde_session_t *const session_;
  std::string label_;
  OwnedConfig options_;
  const sonde_analysis_t *table_ = nullptr;
  void *instance_ = nullptr;
  bool created_ = false;
  bool works_ = false;
};

class PortInstance {
 public:
  PortInstance(const Services &services, sonde_session_t *session) : services_(services), session_(session) {}
  ~PortInstance();
  PortInstance(const PortInstance &) = delete;
  PortInstance &operator=(const PortInstance &) = delete;

  // `budget`: for a port that has such an option and is not given it; 0: none.
  Result<void> create(const PluginWish &wish, double budget);
  void start();
  // Never run at the same time as each other.
  void demand();
  void flush(bool forced);
  void stop();
  // SONDE_E_UNIMPLEMENTED: not for this port. [any]
  sonde_status entry(uint32_t which, void *argument);

  const std::string &id() const { return id_; }

 private:
  void fail_in(const char *function, sonde_status status);

  const Services &services_;
  sonde_session_t *const session_;
  std::string id_;
  OwnedConfig options_;
  const sonde_port_t *table_ = nullptr;
  void *instance_ = nullptr;
  std::mutex mutex_;
  bool created_ = false;
  bool running_ = false;
};

}  // namespace sonde::run
