#include "run/process_run.h"

#include <pthread.h>
#include <semaphore.h>
#include <sonde/port.h>
#include <sonde/run.h>
#include <sonde/spaces/session.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "run/helper_thread.h"
#include "run/run.h"
#include "run/services.h"

namespace sonde::run {

namespace {

enum class State : uint32_t { kNone, kOpening, kActive, kEnding, kEnded, kRefused };

constexpr uint64_t kSlackNs = 500'000'000;  // over the flush's own deadline, for closing the file

// The run and the thread that ends it. Made anew for each run; leaked in a forked child.
struct Active {
  std::unique_ptr<Run> run;
  std::thread finisher;
  sem_t wanted;    // ends the run
  sem_t captured;  // the capture file is closed
  sem_t finished;  // outputs are written
};

// Plain data that a fork handler can reset.
struct Process {
  std::atomic<State> state{State::kNone};
  std::atomic<Active *> active{nullptr};
  std::atomic<int> process{0};  // that the run belongs to
  std::mutex mutex;             // short: the transition from none to opening, and waiting for its end
  std::atomic<pthread_t> opener{};
  bool exit_registered = false;
  bool was_active_before_fork = false;
  std::vector<std::string> *entered_before_fork = nullptr;  // ports whose runtimes belong to the parent
};

Process &process() {
  static Process *const instance = new Process;
  return *instance;
}

void sleep_ns(uint64_t nanoseconds) {
  const timespec wait{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  ::nanosleep(&wait, nullptr);
}

// Waits for a semaphore; false after `limit_ns`. Takes no lock, so it works inside a signal handler.
bool wait_for(sem_t &semaphore, uint64_t limit_ns) {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  const uint64_t total = static_cast<uint64_t>(until.tv_nsec) + limit_ns % 1'000'000'000;
  until.tv_sec += static_cast<time_t>(limit_ns / 1'000'000'000 + total / 1'000'000'000);
  until.tv_nsec = static_cast<long>(total % 1'000'000'000);
  while (::sem_timedwait(&semaphore, &until) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

void say(const char *text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

void finish_on_request(Active &active) {
  while (::sem_wait(&active.wanted) != 0) {
  }
  const Services &all = **services();
  all.capture->enter();
  const Result<void> finished = active.run->finish([&active] { ::sem_post(&active.captured); });
  if (!finished) host_table()->log(SONDE_LOG_ERROR, "run", finished.error().text.c_str());
  all.capture->leave();
  ::sem_post(&active.finished);
}

// Ends the run of this process, if there is one. [signal-safe] but for what the deadlines bound.
void leave() noexcept {
  Process &own = process();
  if (own.process.load(std::memory_order_relaxed) != ::getpid()) return;  // a child of vfork shares the memory
  State expected = State::kActive;
  if (!own.state.compare_exchange_strong(expected, State::kEnding)) {
    // Two threads leave at once: the second waits for the first's work within the same bounds.
    for (int tries = 0; expected == State::kEnding && tries < 400; ++tries) {
      sleep_ns(10'000'000);
      expected = own.state.load(std::memory_order_acquire);
    }
    return;
  }
  Active &active = *own.active.load(std::memory_order_acquire);
  const Settings &settings = active.run->settings();
  ::sem_post(&active.wanted);
  if (!wait_for(active.captured, settings.deadline_ns + kSlackNs)) {
    say("sonde: the last flush did not end within its deadline; what it would have saved is lost\n");
  } else if (!wait_for(active.finished, settings.finish_deadline_ns)) {
    say("sonde: analyses and outputs did not end within session.finish; they are incomplete\n");
  }
  own.state.store(State::kEnded, std::memory_order_release);
}

Result<void> open_and_start(const Services &all, const char *path) {
  Process &own = process();
  sonde_config_t *tree = nullptr;
  if (const sonde_status status = all.config->load(path, &tree); status != SONDE_OK) {
    return Error{status, error_text(status)};
  }
  const OwnedConfig owned(tree);
  Result<Settings> settings = read_settings(all, tree);
  if (!settings) return settings.error();
  std::vector<std::string> lost_ports;
  if (own.entered_before_fork != nullptr) {
    std::erase_if(settings->ports, [&](const PluginWish &wish) {
      const auto &entered = *own.entered_before_fork;
      const bool is_lost = std::find(entered.begin(), entered.end(), wish.id) != entered.end();
      if (is_lost) lost_ports.push_back(wish.id);
      return is_lost;
    });
  }
  Result<std::unique_ptr<Run>> run = Run::open(all, std::move(*settings));
  if (!run) return run.error();
  if (Result<void> started = (*run)->start(); !started) return started;
  for (const std::string &id : lost_ports) {
    all.capture->note(
        (*run)->session(), 3, "run",
        fmt::format("no data of port {}: its runtime was in use before this process was forked", id).c_str());
  }
  all.session->set_current((*run)->session());

  auto *const active = new Active;
  active->run = std::move(*run);
  ::sem_init(&active->wanted, 0, 0);
  ::sem_init(&active->captured, 0, 0);
  ::sem_init(&active->finished, 0, 0);
  active->finisher = helper_thread("sonde-exit", [active] { finish_on_request(*active); });
  own.active.store(active, std::memory_order_release);
  if (!own.exit_registered) {
    // After the plugins were loaded, so that this runs before they are shut down.
    own.exit_registered = true;
    std::atexit([] { leave(); });
  }
  return {};
}

const char *wanted_configuration() {
  const char *const path = std::getenv("SONDE_RUN");
  if (path == nullptr || *path == '\0' || ignores_environment()) return nullptr;
  return path;
}

// Says once why there will be no run; the program goes on as if nothing were there.
sonde_status refuse(const Error &error) {
  process().state.store(State::kRefused, std::memory_order_release);
  host_table()->log(SONDE_LOG_ERROR, "run", fmt::format("this process is not captured: {}", error.text).c_str());
  return fail(error);
}

// The run of this process, opened at the first call.
sonde_status ensure() {
  Process &own = process();
  while (true) {
    const State state = own.state.load(std::memory_order_acquire);
    if (state == State::kActive) return SONDE_OK;
    if (state == State::kEnding || state == State::kEnded) {
      return fail(SONDE_E_STATE, "inject: the run of this process has ended");
    }
    if (state == State::kRefused) return fail(SONDE_E_STATE, "inject: the run of this process could not be started");
    if (state == State::kOpening) {
      // Starting a port may make its runtime call back in here.
      if (::pthread_equal(own.opener.load(), ::pthread_self())) {
        return fail(SONDE_E_STATE, "inject: called again while the run starts");
      }
      sleep_ns(1'000'000);
      continue;
    }
    const char *const path = wanted_configuration();
    if (path == nullptr) return fail(SONDE_E_NOT_FOUND, "inject: SONDE_RUN names no configuration in this process");
    {
      const std::lock_guard lock(own.mutex);
      if (own.state.load() != State::kNone) continue;
      own.opener.store(::pthread_self());
      own.process.store(::getpid());
      own.state.store(State::kOpening, std::memory_order_release);
    }
    const Result<const Services *> all = services();
    Result<void> opened;
    if (!all) {
      opened = all.error();
    } else {
      (*all)->capture->enter();
      opened = open_and_start(**all, path);
      (*all)->capture->leave();
    }
    if (!opened) return refuse(opened.error());
    own.state.store(State::kActive, std::memory_order_release);
    return SONDE_OK;
  }
}

// The beginnings that only a preload sees. Helpers like shells come and go by the hundred, so a run begins at the start
// of a process only where the configuration says so, and otherwise when the program turns out to embed Sonde.
sonde_status start_if_wanted(bool embeds) {
  const char *const path = wanted_configuration();
  if (path == nullptr) return fail(SONDE_E_NOT_FOUND, "inject: SONDE_RUN names no configuration in this process");
  if (process().state.load(std::memory_order_acquire) != State::kNone) return SONDE_OK;
  const Result<const Services *> all = services();
  if (!all) return fail(all.error());
  sonde_config_t *tree = nullptr;
  if (const sonde_status status = (*all)->config->load(path, &tree); status != SONDE_OK) {
    return refuse({status, error_text(status)});
  }
  const OwnedConfig owned(tree);
  const Result<Settings> settings = read_settings(**all, tree);
  if (!settings) return refuse(settings.error());
  const bool has_host = std::any_of(settings->ports.begin(), settings->ports.end(),
                                    [](const PluginWish &wish) { return wish.id == "host"; });
  return settings->record_eager || (embeds && has_host) ? ensure() : SONDE_OK;
}

sonde_status forward(uint32_t entry, void *argument) {
  if (const sonde_status status = ensure(); status != SONDE_OK) return status;
  Active *const active = process().active.load(std::memory_order_acquire);
  return active->run->entry(entry, argument);
}

void before_fork() { process().mutex.lock(); }

void parent_after_fork() { process().mutex.unlock(); }

// Between fork and exec: stores to memory only. The parent's run, its threads and its semaphores do not exist here.
void child_after_fork() {
  Process &own = process();
  own.was_active_before_fork = own.state.load() == State::kActive;
  own.state.store(State::kNone);
  own.process.store(0);
  own.mutex.unlock();
}

// In the child after a fork that the preload saw, outside the fork handlers.
sonde_status continue_in_child() {
  Process &own = process();
  if (!own.was_active_before_fork) return SONDE_OK;
  own.was_active_before_fork = false;
  Active *const parents = own.active.exchange(nullptr);
  if (parents != nullptr) {
    // Another thread of the parent may have held the list's lock: it is read without, in a process of one thread.
    own.entered_before_fork = new std::vector<std::string>(parents->run->entered_ports_unlocked());
  }
  return ensure();
}

// In the parent after a fork that the preload saw.
sonde_status record_fork(uint64_t child) {
  Process &own = process();
  if (own.process.load(std::memory_order_relaxed) != ::getpid()) return SONDE_OK;
  if (own.state.load(std::memory_order_acquire) != State::kActive) return SONDE_OK;
  sonde_session_fork_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_FORK, sonde_stamp());
  record.child = child;
  const Active &active = *own.active.load(std::memory_order_acquire);
  return (*services())->capture->emit(active.run->session(), &record.header);
}

}  // namespace

sonde_status inject(uint32_t entry, void *argument) noexcept {
  if (entry == SONDE_ENTRY_EXIT || entry == SONDE_ENTRY_EXEC) {
    leave();
    return SONDE_OK;
  }
  return at_boundary([&]() -> sonde_status {
    switch (entry) {
      case SONDE_ENTRY_PRELOAD:
        return start_if_wanted(false);
      case SONDE_ENTRY_HOST:
        return start_if_wanted(true);
      case SONDE_ENTRY_FORK:
        return argument == nullptr ? continue_in_child() : record_fork(*static_cast<const uint64_t *>(argument));
      case SONDE_ENTRY_EXEC_FAILED: {
        // The program lives on: a new file takes what follows.
        State expected = State::kEnded;
        Process &own = process();
        if (own.process.load() != ::getpid() || !own.state.compare_exchange_strong(expected, State::kNone)) {
          return SONDE_OK;
        }
        return ensure();
      }
      default:
        return forward(entry, argument);
    }
  });
}

void install_process_run() {
  static const int once = ::pthread_atfork(before_fork, parent_after_fork, child_after_fork);
  static_cast<void>(once);
}

}  // namespace sonde::run
