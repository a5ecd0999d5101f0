// One run: a session with its ports, recording, analyses and outputs.
#pragma once

#include <sonde/run.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "run/identity.h"
#include "run/instances.h"
#include "run/settings.h"

namespace sonde::run {

using Progress = sonde_status (*)(void *user, uint64_t done, uint64_t total);

class Run {
 public:
  // Opens the session and makes the instances. What it made is undone on error.
  static Result<std::unique_ptr<Run>> open(const Services &services, Settings settings);
  ~Run();
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  Result<void> start();
  Result<void> replay(const std::string &path, Progress progress, void *user);

  // `captured` is called between the end of capture and the analyses; may be empty. The first error is returned, the
  // rest is done all the same.
  Result<void> finish(const std::function<void()> &captured = {});

  sonde_session_t *session() const { return session_; }
  const Settings &settings() const { return settings_; }

  // Hands a foreign entry to the first port that takes it. SONDE_E_NOT_FOUND: none does. [any]
  sonde_status entry(uint32_t which, void *argument);

  // Ids of the ports that took an entry: their runtimes live in this process and not in a forked child.
  // Without its lock: for the only thread of a forked child.
  const std::vector<std::string> &entered_ports_unlocked() const { return entered_; }

 private:
  enum class State { kOpen, kRunning, kReplayed, kFinished };

  Run(const Services &services, Settings settings) : services_(services), settings_(std::move(settings)) {}
  Result<void> open_session();
  Result<void> make_instances();
  Result<void> start_recording();
  void run_helper();
  void stop_helper();
  void on_demand_changed();

  const Services &services_;
  Settings settings_;
  State state_ = State::kOpen;
  Identity identity_;
  std::string capture_path_;  // of this process's file; "": nothing is recorded
  sonde_session_t *session_ = nullptr;
  sonde_recording_t *recording_ = nullptr;
  std::vector<std::unique_ptr<PortInstance>> ports_;
  std::vector<std::unique_ptr<AnalysisInstance>> analyses_;

  mutable std::mutex entries_mutex_;
  std::vector<std::string> entered_;

  // The helper flushes the ports from time to time and passes changes of demand on.
  std::thread helper_;
  std::mutex helper_mutex_;
  std::condition_variable helper_wake_;
  bool helper_ends_ = false;
  bool demand_changed_ = false;
};

}  // namespace sonde::run
