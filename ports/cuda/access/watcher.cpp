#include "watcher.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <shared_mutex>
#include <utility>

#include <sonde/claim.h>
#include <sonde/ledger.h>

#include "common/services.h"
#include "driver_calls.h"
#include "port.h"
#include "readout.h"

namespace sonde::cuda::access {

namespace {

constexpr char kResource[] = "cuda.device";
constexpr char kMode[] = "patches";
constexpr char kHolder[] = "cuda_access";

// What runs on threads of the port is not the program's.
thread_local bool own_thread = false;

// Within a callback: what the port itself does there makes no further ones.
class Quiet {
 public:
  Quiet() : before_(std::exchange(own_thread, true)) {}
  ~Quiet() { own_thread = before_; }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;

 private:
  bool before_;
};

// A thread of the port takes none of the program's signals, except those that its own faults raise.
template <typename Body>
std::thread quiet_thread(Body &&body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), "sonde-access");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Watcher &Watcher::instance() {
  static Watcher *const watcher = new Watcher;  // callbacks may come while the process ends
  return *watcher;
}

// Runs before the driver's own end, being registered after it: the last moment for the device.
void Watcher::program_ends() {
  Watcher &self = instance();
  self.active_ = false;
  (void)self.flush(kLongestFlush);
  self.device_gone_ = true;
}

void Watcher::after_fork_in_child() {
  Watcher &self = instance();
  self.active_ = false;
  self.opened_ = false;
  self.claimed_ = false;
  self.exited_ = true;
}

void Watcher::tell(uint32_t severity, const std::string &text) const {
  for (const Port *port : ports_) port->note(severity, text);
}

// ---- sessions --------------------------------------------------------------------------------------------------------

bool Watcher::open(Port *port, const WatcherSettings &settings) {
  if (opened_) return true;
  const auto refuse = [&](const std::string &reason) {
    port->note(3, "no data on accesses because " + reason);
    if (claimed_) (void)services().claim->release(kResource, kMode);
    claimed_ = false;
    return false;
  };
  if (services().claim != nullptr && !claimed_) {
    if (services().claim->take(kResource, kMode, kHolder) != SONDE_OK) return refuse(services().host->last_error());
    claimed_ = true;
  }
  std::string reason;
  if (!open_sanitizer(settings.sanitizer, api_, reason)) return refuse(reason);
  settings_ = settings;
  SanitizerResult result = api_.subscribe(&subscriber_, callback, this);
  for (const uint32_t domain :
       {domain::kResource, domain::kLaunch, domain::kMemcpy, domain::kMemset, domain::kGraphs}) {
    if (result == kSanitizerSuccess) result = api_.enable_domain(1, subscriber_, domain);
  }
  if (result != kSanitizerSuccess) {
    if (subscriber_ != nullptr) (void)api_.unsubscribe(std::exchange(subscriber_, nullptr));
    return refuse(api_.explain("the Compute Sanitizer refuses to watch", result));
  }
  (void)api_.enable_callback(1, subscriber_, domain::kDriverApi, driver_call::kMemMap);
  (void)api_.enable_callback(1, subscriber_, domain::kDriverApi, driver_call::kMemUnmap);
  for (const uint32_t call : kLaunchCalls) (void)api_.enable_callback(1, subscriber_, domain::kDriverApi, call);
  for (const uint32_t call : kEndCalls) (void)api_.enable_callback(1, subscriber_, domain::kDriverApi, call);
  static const bool once = [] { return pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0; }();
  (void)once;
  opened_ = true;
  port->note(0, "accesses are watched through " + api_.path);
  return true;
}

void Watcher::attach(Port *port, const WatcherSettings &settings) {
  const std::lock_guard control(control_mutex_);
  port->attached(settings.record_threads);
  if (!open(port, settings)) return;
  {
    const std::unique_lock hold(ports_mutex_);
    ports_.push_back(port);
  }
  if (ports_.size() == 1) {
    {
      const std::lock_guard hold(module_mutex_);
      settings_ = settings;
      for (auto &[context, space] : spaces_) space->configure(settings.space);
      unknown_contexts_.clear();
      (void)discard_records();
      if (readout_ == nullptr) readout_ = std::make_shared<Readout>(api_);
    }
    if (services().ranges != nullptr) (void)services().ranges->watch(range_changed, this, nullptr, &range_watch_);
    stopping_ = false;
    give_up_ = false;
    exited_ = false;
    thread_ = quiet_thread([this] { work(); });
    for (size_t i = 0; i < settings_.record_threads; ++i) {
      record_threads_.push_back(quiet_thread([this, i] { carry_records(i); }));
    }
  }
  {
    const std::lock_guard hold(module_mutex_);
    wish_ = wish();
  }
  active_ = true;
}

sonde_status Watcher::detach(Port *port) {
  const std::lock_guard control(control_mutex_);
  if (std::find(ports_.begin(), ports_.end(), port) == ports_.end()) {
    port->finish();
    return SONDE_OK;
  }
  const bool last = ports_.size() == 1;
  if (last) active_ = false;
  const sonde_status status = flush(kLongestFlush);
  if (last) {
    {
      const std::lock_guard hold(module_mutex_);
      for (auto &[context, space] : spaces_) space->stall(false);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(status == SONDE_OK ? 1000 : 200);
    carry_until_ = until.time_since_epoch().count();
    {
      const std::lock_guard hold(queue_mutex_);
      give_up_ = true;
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    for (std::thread &thread : record_threads_) thread.join();
    record_threads_.clear();
    {
      const std::lock_guard hold(module_mutex_);
      if (const uint64_t blocks = discard_records(); blocks != 0) {
        port->lose(SONDE_LOSS_DEADLINE, blocks, blocks * kBlockBytes);
      }
    }
    if (range_watch_ != 0) (void)services().ranges->unwatch(range_watch_);
    range_watch_ = 0;
    {
      const std::lock_guard hold(live_mutex_);
      live_.forget_tensors();
    }
  }
  {
    const std::unique_lock hold(ports_mutex_);
    ports_.erase(std::find(ports_.begin(), ports_.end(), port));
  }
  { const std::unique_lock nobody_reads(reading_mutex_); }  // for this port any more
  std::vector<Module> patched;
  {
    const std::lock_guard hold(module_mutex_);
    wish_ = wish();
    if (last) patched = take_patched();
  }
  // Without the lock, for which callbacks wait that hold up this call.
  for (Module module : patched) {
    if (!device_gone_) (void)api_.unpatch_module(module);
  }
  port->finish();
  if (status != SONDE_OK) {
    return services().host->set_error(status, "cuda_access: watched kernels did not end within two seconds");
  }
  return SONDE_OK;
}

std::vector<Port *> Watcher::current_ports() const {
  const std::shared_lock hold(ports_mutex_);
  return ports_;
}

void Watcher::refresh() {
  const Wish now = wish();
  const std::lock_guard hold(module_mutex_);
  wish_ = now;
}

Wish Watcher::wish() const {
  Wish out;
  bool first = true;
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    const Wish one = port->wish();
    if (first) {
      out = one;
      first = false;
      continue;
    }
    // What one session leaves out, another may want.
    out.features |= one.features;
    out.kernel_period = std::min(out.kernel_period, one.kernel_period);
    out.block_period = std::min(out.block_period, one.block_period);
    if (one.only.empty() || out.only.empty()) {
      out.only.clear();
    } else {
      out.only.insert(out.only.end(), one.only.begin(), one.only.end());
    }
    if (one.except != out.except) out.except.clear();
  }
  return out;
}

sonde_status Watcher::flush(uint64_t nanoseconds) {
  std::unique_lock lock(queue_mutex_);
  const uint64_t last = last_launch_;
  const auto done = [&] {
    return exited_ ||
           (std::all_of(queue_.begin(), queue_.end(), [&](const auto &entry) { return entry->ordinal > last; }) &&
            (being_read_ == nullptr || being_read_->ordinal > last));
  };
  if (nanoseconds == 0) return done() ? SONDE_OK : SONDE_E_TIMEOUT;
  wake_.notify_all();
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  if (!idle_.wait_until(lock, until, done)) return SONDE_E_TIMEOUT;
  if (exited_) return SONDE_OK;
  lock.unlock();
  while (records_pending()) {
    if (std::chrono::steady_clock::now() >= until) return SONDE_E_TIMEOUT;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return SONDE_OK;
}

bool Watcher::records_pending() {
  const std::lock_guard hold(module_mutex_);
  return carrying_ != 0 ||
         std::any_of(spaces_.begin(), spaces_.end(), [](const auto &entry) { return entry.second->has_full(); });
}

// Frees the blocks that nobody carried and returns how many; called with the modules' mutex.
uint64_t Watcher::discard_records() {
  uint64_t blocks = 0;
  for (auto &[context, space] : spaces_) {
    uint32_t block = 0;
    // A kernel that never ends fills them anew.
    for (uint64_t i = 0; i < space->options().record_bytes / kBlockBytes && space->next_full(block); ++i) {
      space->free_block(block);
      ++blocks;
    }
  }
  return blocks;
}

uint64_t Watcher::freed_ordinal(uint64_t address) {
  const std::lock_guard hold(live_mutex_);
  const LiveRange *const range = live_.freed(address);
  return range != nullptr ? range->ordinal : 0;
}

void Watcher::range_changed(void *user, const sonde_range_t *range, uint32_t live) {
  auto *const self = static_cast<Watcher *>(user);
  if (range->kind != SONDE_RANGE_TENSOR) return;
  const std::lock_guard hold(self->live_mutex_);
  if (live != 0) {
    self->live_.announce(range->address, range->bytes, range->ordinal, range->name);
  } else {
    (void)self->live_.retire(range->address);
  }
}

void Watcher::callback(void *user, uint32_t domain, uint32_t id, const void *data) {
  if (own_thread) return;
  const Quiet quiet;
  auto *const self = static_cast<Watcher *>(user);
  switch (domain) {
    case domain::kResource:
      self->on_resource(id, data);
      break;
    case domain::kDriverApi:
      self->on_driver_call(id, *static_cast<const ApiCall *>(data));
      break;
    case domain::kLaunch:
      if (id == launch::kBegin) {
        self->on_launch_begin(*static_cast<const Launch *>(data), 0, 0);
      } else if (id == launch::kEnd) {
        self->on_launch_end(static_cast<const Launch *>(data)->stream_handle);
      }
      break;
    case domain::kMemcpy:
      if (id == kTransferStarting) self->on_copy(*static_cast<const MemcpyData *>(data), 0, 0);
      break;
    case domain::kMemset:
      if (id == kTransferStarting) self->on_set(*static_cast<const MemsetData *>(data), 0, 0);
      break;
    case domain::kGraphs:
      self->on_graph(id, data);
      break;
    default:
      break;
  }
}

// ---- the port's threads ----------------------------------------------------------------------------------------------

void Watcher::work() {
  own_thread = true;
  services().capture->enter();
  uint32_t patience = 0;
  for (;;) {
    std::unique_ptr<LaunchEntry> entry;
    bool finished = true;
    uint64_t watermark = 0;
    {
      std::unique_lock lock(queue_mutex_);
      // A launch that runs does not hold up those that have ended after it.
      auto next = std::find_if(queue_.begin(), queue_.end(),
                               [](const auto &waiting) { return waiting->slot == nullptr || waiting->slot->over(); });
      if (next == queue_.end()) {
        if (stopping_ && (queue_.empty() || give_up_)) {
          if (queue_.empty()) break;
          finished = false;
          next = queue_.begin();
        } else if (queue_.empty()) {
          wake_.wait_for(lock, std::chrono::milliseconds(100));
          patience = 0;
          continue;
        } else {
          // Launches run: look again soon at first, then less often.
          const auto pause = std::chrono::microseconds(std::min(20u << std::min(patience++, 6u), 1000u));
          lock.unlock();
          std::this_thread::sleep_for(pause);
          continue;
        }
      }
      patience = 0;
      // Ordinals and stamps have one order, so the first that is not read is the earliest.
      watermark = begun_.empty() ? 0 : begun_.begin()->second;
      entry = std::move(*next);
      queue_.erase(next);
      being_read_ = std::make_unique<LaunchEntry>();
      being_read_->ordinal = entry->ordinal;
    }
    {
      const std::shared_lock reading(reading_mutex_);
      readout_->read(*this, *entry, current_ports(), finished && !device_gone_, watermark);
      if (const std::string trouble = readout_->take_trouble(); !trouble.empty()) {
        const std::shared_lock hold(ports_mutex_);
        tell(2, trouble);
      }
    }
    if (!finished && entry->slot != nullptr) {
      const std::lock_guard hold(module_mutex_);
      abandoned_.push_back({entry->slot, entry->space, entry->function.module});
    }
    {
      const std::lock_guard hold(queue_mutex_);
      being_read_.reset();
      begun_.erase(entry->ordinal);
    }
    idle_.notify_all();
  }
  {
    const std::lock_guard hold(queue_mutex_);
    exited_ = true;
  }
  idle_.notify_all();
  services().capture->leave();
}

// Blocks that a thread takes at once.
constexpr size_t kBlocksAtOnce = 16;

void Watcher::carry_records(size_t number) {
  own_thread = true;
  services().capture->enter();
  uint32_t patience = 0;
  std::vector<uint32_t> blocks;
  // After the end until there is nothing left, or no time.
  const auto late = [&] {
    return stopping_ && std::chrono::steady_clock::now().time_since_epoch().count() >= carry_until_;
  };
  while (!late()) {
    Space *space = nullptr;
    blocks.clear();
    {
      const std::lock_guard hold(module_mutex_);
      for (auto &[context, candidate] : spaces_) {
        uint32_t block = 0;
        while (candidate->ready() && blocks.size() < kBlocksAtOnce && candidate->next_full(block)) {
          blocks.push_back(block);
        }
        if (blocks.empty()) continue;
        space = candidate.get();
        ++carrying_;
        break;
      }
    }
    if (blocks.empty() && stopping_) break;
    if (blocks.empty()) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(20u << std::min(patience++, 6u), 1000u)));
      continue;
    }
    patience = 0;
    Context outer = nullptr;
    const bool pushed = !device_gone_ && api_.push_context(space->context()) == 0;
    auto &[stream, staging] = space->carrier(number);
    if (pushed && stream == nullptr) {
      Stream made = nullptr;
      void *memory = nullptr;
      if (api_.stream_create(&made, kNonBlocking, kHighestPriority) == 0) {
        (void)api_.stream_handle(space->context(), made, &stream);
      }
      (void)api_.pinned_memory(&memory, kBlocksAtOnce * kBlockBytes);
      staging = static_cast<uint8_t *>(memory);
    }
    const bool is_possible = pushed && staging != nullptr && stream != nullptr;
    // Each copy takes the library as long as a megabyte's way does, so neighbours come in one.
    for_each_run(blocks, kBlocksAtOnce, [&](std::span<const uint32_t> run) {
      const bool good = is_possible && api_.copy_to_host(staging, space->block_address(run.front()),
                                                         run.size() * kBlockBytes, stream) == kSanitizerSuccess;
      for (const uint32_t block : run) space->free_block(block);
      const std::shared_lock reading(reading_mutex_);
      const std::vector<Port *> ports = current_ports();
      for (size_t i = 0; i < run.size(); ++i) {
        uint8_t *const block = staging + i * kBlockBytes;
        if (good) {
          BlockHead head;
          std::memcpy(&head, block, sizeof(head));
          emit_block(ports, block, std::min<uint64_t>(head.used, kBlockBytes), static_cast<int64_t>(number), 0);
        } else {
          lose_block(ports);
        }
      }
    });
    if (pushed) (void)api_.pop_context(&outer);
    const std::lock_guard hold(module_mutex_);
    --carrying_;
  }
  services().capture->leave();
}

}  // namespace sonde::cuda::access
