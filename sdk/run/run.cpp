#include "run/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "run/helper_thread.h"
#include "run/outputs.h"

namespace sonde::run {

namespace {

// The loader's private service "sonde.crash/1": install() makes a fatal signal name the plugin at fault.
struct CrashService {
  uint32_t struct_size;
  uint32_t reserved;
  void (*install)(void);
};

// Keeps the first error of a sequence that goes on.
void keep_first(Result<void> &first, Result<void> next) {
  if (first && !next) first = std::move(next);
}

Result<void> as_result(sonde_status status) {
  if (status >= 0) return {};
  return Error{status, error_text(status)};
}

}  // namespace

Result<std::unique_ptr<Run>> Run::open(const Services &services, Settings settings) {
  std::unique_ptr<Run> run(new Run(services, std::move(settings)));
  for (const std::string &path : run->settings_.plugin_paths) {
    if (const sonde_status status = services.plugins->add_path(path.c_str()); status != SONDE_OK) {
      return Error{status, error_text(status)};
    }
  }
  if (Result<void> opened = run->open_session(); !opened) return opened.error();
  if (Result<void> made = run->make_instances(); !made) return made.error();
  return run;
}

Run::~Run() {
  if (state_ == State::kRunning || state_ == State::kReplayed) static_cast<void>(finish());
  ports_.clear();
  analyses_.clear();
  if (session_ != nullptr) services_.session->close(session_);
  // A run that never recorded leaves no live file behind.
  if (state_ != State::kFinished && !capture_path_.empty()) ::unlink((capture_path_ + ".live").c_str());
}

Result<void> Run::open_session() {
  identity_ = identify_process();
  std::string live_path;
  if (!settings_.record_path.empty()) {
    if (services_.store == nullptr) return Error{SONDE_E_NOT_FOUND, "record: this build has no sonde.store/1"};
    if (Result<void> made = make_run_folder(settings_.record_path); !made) return made;
    capture_path_ = fresh_capture_stem(settings_.record_path, identity_) + ".sonde";
    live_path = capture_path_ + ".live";
  }
  sonde_session_options_t options{};
  options.struct_size = sizeof(options);
  options.policy = settings_.policy;
  options.ring_bytes = settings_.ring_bytes;
  options.memory_cap = settings_.memory_cap;
  options.stall_ns = settings_.stall_ns;
  options.period_ns = settings_.period_ns;
  options.name = settings_.name.c_str();
  options.live_path = live_path.empty() ? nullptr : live_path.c_str();
  return as_result(services_.session->open(&options, &session_));
}

Result<void> Run::make_instances() {
  for (const PluginWish &wish : settings_.ports) {
    auto port = std::make_unique<PortInstance>(services_, session_);
    if (Result<void> created = port->create(wish, settings_.budget); !created) return created;
    ports_.push_back(std::move(port));
  }
  for (const PluginWish &wish : settings_.analyses) {
    auto analysis = std::make_unique<AnalysisInstance>(services_, session_);
    if (Result<void> created = analysis->create(wish); !created) return created;
    analyses_.push_back(std::move(analysis));
  }
  return {};
}

Result<void> Run::start_recording() {
  if (capture_path_.empty()) return {};
  if (Result<void> written = write_run_json(settings_.record_path, identity_); !written) return written;
  const char *const spaces = settings_.record_spaces.empty() ? nullptr : settings_.record_spaces.c_str();
  return as_result(services_.store->record(session_, capture_path_.c_str(), spaces, &settings_.writer, &recording_));
}

Result<void> Run::start() {
  if (state_ != State::kOpen) return Error{SONDE_E_STATE, "run.start: the run was started before"};
  if (Result<void> recording = start_recording(); !recording) return recording;
  for (const auto &analysis : analyses_) analysis->start();
  if (Result<void> started = as_result(services_.session->start(session_)); !started) return started;
  state_ = State::kRunning;
  if (SONDE_HAS(services_.capture, sonde_capture_service_t, watch_demand)) {
    services_.capture->watch_demand(
        session_, [](void *user) { static_cast<Run *>(user)->on_demand_changed(); }, this, nullptr);
  }
  for (const auto &port : ports_) port->start();
  if (!ports_.empty()) helper_ = helper_thread("sonde-run", [this] { run_helper(); });
  return {};
}

Result<void> Run::replay(const std::string &path, Progress progress, void *user) {
  if (state_ != State::kOpen) return Error{SONDE_E_STATE, "run.replay: the run was started before"};
  if (services_.store == nullptr) return Error{SONDE_E_NOT_FOUND, "run.replay: this build has no sonde.store/1"};
  // Here Sonde is the tool and the process its own: a crash may be named.
  const void *crash = nullptr;
  if (get_service("sonde.crash/1", sizeof(CrashService), &crash) == SONDE_OK) {
    static_cast<const CrashService *>(crash)->install();
  }
  sonde_capture_t *capture = nullptr;
  if (Result<void> opened = as_result(services_.store->open(path.c_str(), &capture)); !opened) return opened;
  for (const auto &analysis : analyses_) analysis->start();
  Result<void> result = as_result(services_.session->start(session_));
  if (result) {
    state_ = State::kReplayed;
    keep_first(result, as_result(services_.store->replay(capture, session_, progress, user)));
  }
  keep_first(result, as_result(services_.store->close(capture)));
  return result;
}

Result<void> Run::finish(const std::function<void()> &captured) {
  if (state_ != State::kRunning && state_ != State::kReplayed) {
    return Error{SONDE_E_STATE, state_ == State::kOpen ? "run.finish: the run was not started"
                                                       : "run.finish: the run was finished before"};
  }
  state_ = State::kFinished;
  Result<void> first;
  stop_helper();
  for (const auto &port : ports_) port->flush(true);
  for (const auto &port : ports_) port->stop();
  keep_first(first, as_result(services_.session->stop(session_, settings_.deadline_ns)));
  // The file is closed before anything that may take long: what was captured is safe then.
  if (recording_ != nullptr) {
    Result<void> recorded = as_result(services_.store->finish(recording_));
    recording_ = nullptr;
    if (!recorded) {
      add_failure(services_, session_, "run.record_failed", fmt::format("recording {} failed", capture_path_),
                  recorded.error().text);
    }
    keep_first(first, std::move(recorded));
  }
  if (captured) captured();
  for (const auto &analysis : analyses_) analysis->finish();
  for (const OutputWish &output : settings_.outputs) {
    keep_first(first, write_output(services_, session_, output, identity_.stem()));
  }
  return first;
}

sonde_status Run::entry(uint32_t which, void *argument) {
  for (const auto &port : ports_) {
    const sonde_status status = port->entry(which, argument);
    if (status == SONDE_E_UNIMPLEMENTED) continue;
    const std::lock_guard lock(entries_mutex_);
    if (std::find(entered_.begin(), entered_.end(), port->id()) == entered_.end()) entered_.push_back(port->id());
    return status;
  }
  return fail(SONDE_E_NOT_FOUND, fmt::format("no port of this run takes the foreign entry {}", which));
}

void Run::on_demand_changed() {
  {
    const std::lock_guard lock(helper_mutex_);
    demand_changed_ = true;
  }
  helper_wake_.notify_all();
}

void Run::run_helper() {
  services_.capture->enter();
  const std::chrono::nanoseconds period(settings_.flush_period_ns);
  auto next_flush = std::chrono::steady_clock::now() + period;
  std::unique_lock lock(helper_mutex_);
  while (!helper_ends_) {
    helper_wake_.wait_until(lock, next_flush, [&] { return helper_ends_ || demand_changed_; });
    if (helper_ends_) break;
    const bool changed = demand_changed_;
    demand_changed_ = false;
    lock.unlock();
    if (changed) {
      for (const auto &port : ports_) port->demand();
    }
    if (std::chrono::steady_clock::now() >= next_flush) {
      for (const auto &port : ports_) port->flush(false);
      next_flush = std::chrono::steady_clock::now() + period;
    }
    lock.lock();
  }
  services_.capture->leave();
}

void Run::stop_helper() {
  {
    const std::lock_guard lock(helper_mutex_);
    helper_ends_ = true;
  }
  helper_wake_.notify_all();
  if (helper_.joinable()) helper_.join();
}

}  // namespace sonde::run
