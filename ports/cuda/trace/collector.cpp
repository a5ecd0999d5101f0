#include "collector.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <utility>

#include <sonde/clock.h>
#include <sonde/ledger.h>
#include <sonde/record.h>
#include <sonde/spaces/session.h>

#include "common/services.h"
#include "launches.h"
#include "port.h"
#include "resource.h"

namespace sonde::cuda {

namespace {

constexpr uint32_t kInfo = 0;
constexpr uint32_t kWarning = 1;
constexpr uint32_t kNoData = 3;

constexpr char kClaimResource[] = "cuda.device";
constexpr char kClaimMode[] = "activity";
constexpr char kClaimHolder[] = "cuda";

std::atomic<Collector *> current{nullptr};

// CUPTI keeps one timestamp function for the process. Registering another one while records are under way would leave
// some in another clock, so this happens once, whatever sessions come and go.
std::atomic<bool> stamp_registered{false};

uint64_t stamp_for_cupti() { return sonde_stamp(); }

void on_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *record_limit) {
  Collector::instance().buffer_requested(buffer, bytes, record_limit);
}

void on_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes) {
  Collector::instance().buffer_completed(context, stream, buffer, bytes, valid_bytes);
}

// Kinds that a budget may leave out. What is rare and gives the others their meaning (objects, allocations, pools) is
// always collected, and the counters of managed memory, whose switching costs more than their collection saves.
constexpr uint32_t kSampledKinds[] = {kind::kMemcpy,           kind::kMemcpyPeer, kind::kMemset,
                                      kind::kConcurrentKernel, kind::kDriver,     kind::kRuntime,
                                      kind::kSynchronization,  kind::kOverhead,   kind::kGraphTrace};

constexpr uint64_t callback_point(uint32_t domain, uint32_t point) { return uint64_t{domain} << 32 | point; }

// True when this process was entered through the driver's injection: CUPTI is then switched on while the driver
// initialises and must not be asked for objects that exist already.
bool injected() {
  const char *path = secure_getenv("CUDA_INJECTION64_PATH");
  return path != nullptr && *path != '\0';
}

}  // namespace

const char *kind_name(uint32_t kind) {
  switch (kind) {
    case kind::kMemcpy:
      return "copies";
    case kind::kMemcpyPeer:
      return "copies between devices";
    case kind::kMemset:
      return "sets";
    case kind::kConcurrentKernel:
      return "kernels";
    case kind::kDriver:
      return "driver calls";
    case kind::kRuntime:
      return "runtime calls";
    case kind::kDevice:
      return "devices";
    case kind::kContext:
      return "contexts";
    case kind::kStream:
      return "streams";
    case kind::kModule:
      return "modules";
    case kind::kFunction:
      return "functions";
    case kind::kOverhead:
      return "CUPTI's overheads";
    case kind::kSynchronization:
      return "synchronisations";
    case kind::kMemory:
      return "allocations";
    case kind::kMemoryPool:
      return "memory pools";
    case kind::kGraphTrace:
      return "graph launches";
    default:
      return "activity";
  }
}

Collector &Collector::instance() {
  Collector *collector = current.load(std::memory_order_acquire);
  if (collector != nullptr) return *collector;
  // Never destroyed: CUPTI may hand buffers over while the process ends.
  static Collector *const first = [] {
    auto *made = new Collector;
    current.store(made, std::memory_order_release);
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    return made;
  }();
  return *first;
}

// The child has neither the thread nor sane locks of its parent: it starts with a collector of its own, which only
// takes over what CUPTI, copied with the rest of memory, still has switched on.
void Collector::after_fork_in_child() {
  Collector *old = current.load(std::memory_order_relaxed);
  auto *fresh = new Collector;
  fresh->enabled_ = old->enabled_;
  fresh->runtime_launches_ = old->runtime_launches_;
  fresh->driver_launches_ = old->driver_launches_;
  fresh->counters_ = old->counters_;
  fresh->subscriber_ = old->subscriber_;
  fresh->points_ = old->points_;
  fresh->counting_ = old->counting_.load();
  fresh->vendor_clock_ = old->vendor_clock_;
  current.store(fresh, std::memory_order_release);
}

uint64_t Collector::now() const {
  uint64_t stamp = 0;
  if (vendor_clock_ && api_.get_timestamp != nullptr && api_.get_timestamp(&stamp) == kCuptiSuccess) return stamp;
  return sonde_stamp();
}

void Collector::tell(uint32_t severity, const std::string &text) const {
  for (Port *port : ports_) port->note(severity, text);
}

void Collector::tell_refusal(const char *what, CuptiResult result) const {
  tell(kNoData, std::string("no data on ") + what + " because CUPTI refuses it: " + api_.text(result) + " (" +
                    std::to_string(result) + ")");
}

// ---- attach and detach ---------------------------------------------------------------------------------------------

void Collector::attach(Port *port, const CollectorSettings &settings) {
  std::lock_guard<std::mutex> control(control_mutex_);
  {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    ports_.push_back(port);
  }
  if (!open(port, settings)) return;
  port->attached(vendor_clock_);
  if (!running_ && !begin(port)) return;
  update_budget();
  apply();
}

bool Collector::open(Port *port, const CollectorSettings &settings) {
  if (broken_) {
    port->note(kNoData, "no data because CUPTI did not return from an earlier flush");
    return false;
  }
  if (opened_.load(std::memory_order_relaxed)) return true;
  // Held from here on: CUPTI stays loaded, and with it what excludes other collectors.
  const sonde_claim_service_t *claims = services().claim;
  if (!claimed_ && claims != nullptr) {
    if (claims->take(kClaimResource, kClaimMode, kClaimHolder) != SONDE_OK) {
      port->note(kNoData, std::string("no data because ") + services().host->last_error());
      return false;
    }
    claimed_ = true;
  }
  if (port->needs().budget > 0) call_ns_before_ = driver_call_ns();
  api_ = open_cupti(settings.cupti);
  if (!api_.complete()) {
    port->note(kNoData, "no data because " + api_.error);
    if (claimed_) claims->release(kClaimResource, kClaimMode);
    claimed_ = false;
    return false;
  }
  settings_ = settings;
  decoder_ = std::make_unique<Decoder>(&api_, services().capture);
  pool_.configure(settings.buffer_bytes, settings.pool_bytes);
  if (!stamp_registered.load(std::memory_order_relaxed)) {
    CuptiResult result = kCuptiNotInitialized;
    if (!settings_.vendor_clock && api_.activity_register_timestamp != nullptr) {
      result = api_.activity_register_timestamp(stamp_for_cupti);
    }
    vendor_clock_ = result != kCuptiSuccess;
    stamp_registered.store(!vendor_clock_, std::memory_order_relaxed);
    if (vendor_clock_ && !settings_.vendor_clock) {
      port->note(kWarning, "CUPTI does not take the host's clock; its own is related to it by repeated readings");
    }
  }
  opened_.store(true, std::memory_order_release);
  port->note(kInfo, "CUPTI " + version_text(api_.version) + " from " + api_.path);
  return true;
}

bool Collector::begin(Port *port) {
  if (settings_.prepare_buffers && api_.activity_set_attribute != nullptr) {
    uint8_t zeroed = 1;
    size_t bytes = sizeof(zeroed);
    api_.activity_set_attribute(kAttributeZeroedBuffers, &bytes, &zeroed);
  }
  if (api_.set_thread_id_type != nullptr) api_.set_thread_id_type(kThreadIdSystem);
  const CuptiResult result = api_.activity_register_callbacks(on_buffer_requested, on_buffer_completed);
  if (result != kCuptiSuccess) {
    port->note(kNoData, std::string("no data because CUPTI takes no buffers: ") + api_.text(result));
    return false;
  }
  {
    std::lock_guard<std::mutex> hold(queue_mutex_);
    running_ = true;
    stopping_ = false;
    exited_ = false;
    begun_ = last_flush_ = Clock::now();
    seen_buffer_.store(false, std::memory_order_relaxed);
  }
  thread_ = std::thread([this] { work(); });
  return true;
}

sonde_status Collector::detach(Port *port) {
  std::lock_guard<std::mutex> control(control_mutex_);
  sonde_status status = SONDE_OK;
  const bool last = ports_.size() == 1;
  if (running_) {
    if (last) {
      std::lock_guard<std::mutex> hold(queue_mutex_);
      switch_off_ = true;
    }
    status = flush(last);
  }
  {
    // A thread that is stuck inside CUPTI holds no lock, so this does not wait for it.
    std::lock_guard<std::mutex> hold(ports_mutex_);
    std::erase(ports_, port);
  }
  port->finish(late_buffers());
  if (!running_) return status;
  update_budget();
  if (last) {
    end();
  } else {
    apply();
  }
  return status;
}

void Collector::end() {
  {
    std::unique_lock<std::mutex> lock(queue_mutex_);
    running_ = false;
    stopping_ = true;
    wake_.notify_all();
    if (broken_) {
      done_.wait_for(lock, std::chrono::milliseconds(10), [this] { return exited_; });
    } else {
      done_.wait(lock, [this] { return exited_; });
    }
    if (!exited_) {
      thread_.detach();
      return;
    }
  }
  thread_.join();
  pool_.trim();
  duty_.reset();
  sampling_ = false;
  standing_known_ = false;
  left_out_ = false;
  std::lock_guard<std::mutex> hold(window_mutex_);
  window_ = {};
  report_ = {};
}

void Collector::refresh() {
  std::lock_guard<std::mutex> control(control_mutex_);
  if (!running_) return;
  update_budget();
  apply();
}

// ---- what CUPTI has switched on ------------------------------------------------------------------------------------

CollectorNeeds Collector::needs() const {
  CollectorNeeds all;
  for (const Port *port : ports_) {
    const CollectorNeeds one = port->needs();
    all.kinds |= one.kinds;
    all.runtime_launches |= one.runtime_launches;
    all.driver_launches |= one.driver_launches;
    all.managed |= one.managed;
    all.graphs |= one.graphs;
    all.modules |= one.modules;
    all.streams |= one.streams;
    all.budget = std::max(all.budget, one.budget);
  }
  if (left_out_) {
    for (const uint32_t kind : kSampledKinds) all.kinds.reset(kind);
    all.runtime_launches = all.driver_launches = false;
  }
  return all;
}

void Collector::apply() {
  const CollectorNeeds wanted = needs();
  apply_subscription(wanted);
  std::bitset<kind::kCount> kinds = wanted.kinds;
  // Without the subscription a module is known by its activity record, which has no hash and no end.
  if (wanted.modules && subscriber_ == nullptr) kinds.set(kind::kModule);

  for (uint32_t kind = 0; kind < kind::kCount; ++kind) {
    if (kinds[kind] == enabled_[kind]) continue;
    if (kind == kind::kRuntime) runtime_launches_ = false;  // the kind overrides what was set for single calls
    if (kind == kind::kDriver) driver_launches_ = false;
    if (!kinds[kind]) {
      api_.activity_disable(kind);
      enabled_.reset(kind);
      continue;
    }
    if (refused_[kind]) continue;
    const bool object = kind == kind::kDevice || kind == kind::kContext || kind == kind::kStream;
    CuptiResult result = kCuptiInvalidKind;
    if (object && !injected() && api_.activity_enable_and_dump != nullptr) result = api_.activity_enable_and_dump(kind);
    if (result != kCuptiSuccess) result = api_.activity_enable(kind);
    if (result == kCuptiSuccess) {
      enabled_.set(kind);
    } else {
      refused_.set(kind);
      tell_refusal(kind_name(kind), result);
    }
  }
  apply_calls(true, wanted.runtime_launches && !enabled_[kind::kRuntime], runtime_launches_);
  apply_calls(false, wanted.driver_launches && !enabled_[kind::kDriver], driver_launches_);
  apply_counters(wanted.managed);
}

void Collector::apply_calls(bool runtime, bool wanted, bool &applied) {
  if (wanted == applied) return;
  const auto enable = runtime ? api_.activity_enable_runtime_call : api_.activity_enable_driver_call;
  if (enable == nullptr) {
    tell(kNoData, "no data on launch calls because CUPTI " + version_text(api_.version) +
                      " cannot record single calls; the option `api: true` records all");
    return;
  }
  bool any = false;
  const auto one = [&](uint32_t callback) { any |= enable(callback, wanted ? 1 : 0) == kCuptiSuccess; };
  if (runtime) {
    for (const uint32_t callback : kRuntimeLaunchCalls) one(callback);
  } else {
    for (const uint32_t callback : kDriverLaunchCalls) one(callback);
  }
  // Older libraries do not know the newest calls, so single refusals are no fault.
  if (any || !wanted) {
    applied = wanted;
  } else {
    tell(kNoData, "no data on launch calls because CUPTI refuses to record them");
  }
}

void Collector::apply_counters(bool wanted) {
  if (wanted == counters_) return;
  if (!wanted) {
    api_.activity_disable(kind::kUnifiedMemoryCounter);
    counters_ = false;
    return;
  }
  if (api_.activity_configure_counters == nullptr || refused_[kind::kUnifiedMemoryCounter]) return;
  UnifiedMemoryCounterConfig configs[] = {
      {kCounterScopeSingleDevice, kCounterBytesHostToDevice, 0, 1},
      {kCounterScopeSingleDevice, kCounterBytesDeviceToHost, 0, 1},
      {kCounterScopeSingleDevice, kCounterCpuPageFault, 0, 1},
      {kCounterScopeSingleDevice, kCounterGpuPageFault, 0, 1},
      {kCounterScopeSingleDevice, kCounterThrashing, 0, 1},
      {kCounterScopeSingleDevice, kCounterThrottling, 0, 1},
      {kCounterScopeSingleDevice, kCounterRemoteMap, 0, 1},
      {kCounterScopeSingleDevice, kCounterBytesDeviceToDevice, 0, 1},
  };
  CuptiResult result = api_.activity_configure_counters(configs, std::size(configs));
  if (result == kCuptiSuccess) result = api_.activity_enable(kind::kUnifiedMemoryCounter);
  if (result == kCuptiSuccess) {
    if (counters_waited_) tell(kWarning, "managed memory is recorded from the driver's initialisation on");
    counters_ = true;
    return;
  }
  // Before the driver is initialised nothing can be configured; the collector's thread tries again.
  counters_waited_ = result == kCuptiNotInitialized || result == kCuptiNotReady;
  if (counters_waited_) return;
  refused_.set(kind::kUnifiedMemoryCounter);
  tell_refusal("managed memory", result);
}

void Collector::apply_subscription(const CollectorNeeds &wanted) {
  std::vector<uint64_t> points;
  const auto add = [&](uint32_t domain, std::initializer_list<uint32_t> some) {
    for (const uint32_t point : some) points.push_back(callback_point(domain, point));
  };
  if (wanted.graphs) {
    add(kDomainResource, {kResourceGraphCreated, kResourceGraphDestroyStarting, kResourceGraphCloned,
                          kResourceGraphExecCreated, kResourceGraphExecDestroyStarting});
  }
  if (wanted.modules) add(kDomainResource, {kResourceModuleLoaded, kResourceModuleUnloadStarting});
  if (wanted.streams) add(kDomainResource, {kResourceStreamDestroyStarting});
  const size_t objects = points.size();
  // Also while a session without a budget suspends it: the windows go on.
  if (wanted.budget > 0) {
    add(kDomainDriver, {kDriverGetVersion});
    for (const uint32_t call : kDriverLaunchCalls) add(kDomainDriver, {call});
  }
  if (points == points_) return;
  if (points.empty()) {
    unsubscribe();
    return;
  }
  if (subscription_refused_) return;
  const bool present = api_.subscribe != nullptr && api_.unsubscribe != nullptr && api_.enable_callback != nullptr;
  CuptiResult result = present ? kCuptiSuccess : kCuptiNotInitialized;
  if (present && subscriber_ == nullptr) {
    result = api_.subscribe(&subscriber_, on_callback, nullptr);
    if (result != kCuptiSuccess) subscriber_ = nullptr;
  }
  const auto enable = [&](uint32_t on, uint64_t point) {
    return api_.enable_callback(on, subscriber_, static_cast<uint32_t>(point >> 32), static_cast<uint32_t>(point));
  };
  for (const uint64_t point : points_) {
    const bool kept = std::find(points.begin(), points.end(), point) != points.end();
    if (subscriber_ != nullptr && !kept) enable(0, point);
  }
  // An older library does not know the newest calls; single refusals among these are no fault.
  bool counting = false;
  for (size_t i = 0; i < points.size() && result == kCuptiSuccess; ++i) {
    const CuptiResult one = enable(1, points[i]);
    if (i < objects) result = one;
    counting |= i > objects && one == kCuptiSuccess;
  }
  counting_ = counting && result == kCuptiSuccess;
  if (wanted.budget > 0 && !counting_) {
    tell(kWarning,
         "launches are not counted, because CUPTI's callbacks are not to be had: the budget rests on the assumption "
         "that collection doubles the cost of a launch, and counts are scaled by time");
  }
  if (result == kCuptiSuccess) {
    points_ = std::move(points);
    return;
  }
  // Half a subscription is none: what was taken is given back once, here.
  subscription_refused_ = true;
  unsubscribe();
  if (objects == 0) return;
  tell(kNoData, result == kCuptiMultipleSubscribers
                    ? "no data on graphs, hashes of modules and ends of streams because another profiler holds "
                      "CUPTI's subscription; activity records are collected"
                    : std::string("no data on graphs, hashes of modules and ends of streams because CUPTI refuses "
                                  "its callbacks: ") +
                          api_.text(result) + "; activity records are collected");
}

void Collector::unsubscribe() {
  if (subscriber_ != nullptr) api_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
  points_.clear();
  counting_ = false;
}

void Collector::switch_off_all() {
  unsubscribe();
  for (uint32_t kind = 0; kind < kind::kCount; ++kind) {
    if (enabled_[kind]) api_.activity_disable(kind);
  }
  enabled_.reset();
  apply_calls(true, false, runtime_launches_);
  apply_calls(false, false, driver_launches_);
  apply_counters(false);
  refused_.reset();
  subscription_refused_ = false;
  if (settings_.prepare_buffers && api_.activity_set_attribute != nullptr) {
    uint8_t zeroed = 0;
    size_t bytes = sizeof(zeroed);
    api_.activity_set_attribute(kAttributeZeroedBuffers, &bytes, &zeroed);
  }
}

// ---- budget --------------------------------------------------------------------------------------------------------

// The least budget holds for all sessions, and none while one session wants everything.
void Collector::update_budget() {
  double least = 0;
  for (const Port *port : ports_) {
    const CollectorNeeds one = port->needs();
    if (!one.any()) continue;
    if (one.budget <= 0) {
      least = 0;
      break;
    }
    least = least == 0 ? one.budget : std::min(least, one.budget);
  }
  std::lock_guard<std::mutex> hold(queue_mutex_);
  if (least == budget_) return;
  budget_ = least;
  // Until the thread begins the first window nothing is collected, as it would belong to none.
  left_out_ = least > 0 && (left_out_ || window().stratum == 0);
  turn_ = true;
  wake_.notify_all();
}

Window Collector::window() const {
  std::lock_guard<std::mutex> hold(window_mutex_);
  Window copy = window_;
  copy.end = now();
  // Also where the last flush has ended the subscription already: nothing is launched unseen in between.
  copy.end_launches = copy.counted ? launches_counted() : SONDE_LAUNCHES_UNKNOWN;
  copy.next_collected = false;
  return copy;
}

BudgetReport Collector::budget_report() const {
  std::lock_guard<std::mutex> hold(window_mutex_);
  return report_;
}

Collector::Clock::time_point Collector::turn_due() const {
  const double budget = budget_;
  if (sampling_ ? budget == 0 : budget > 0) return not_before_;
  return sampling_ ? std::max(duty_->due(), not_before_) : Clock::time_point::max();
}

void Collector::enter_window(uint64_t stamp, uint64_t launches) {
  std::lock_guard<std::mutex> hold(window_mutex_);
  window_ = {};
  window_.begin = stamp;
  window_.begin_launches = launches;
  window_.counted = counting_;
  if (sampling_) {
    window_.stratum = duty_->stratum().number;
    window_.slots = duty_->stratum().slots;
    window_.chosen = static_cast<uint32_t>(duty_->stratum().chosen.size());
    window_.collected = duty_->collected();
  } else {
    window_.stratum = duty_->controller().number_certain();
  }
  const BudgetController &controller = duty_->controller();
  ++report_.windows;
  report_.budget = controller.budget();
  report_.collecting = controller.collecting_slowdown();
  report_.standing = controller.standing_slowdown();
  report_.standing_ns = controller.standing_ns();
  report_.counted = counting_;
  report_.out_of_reach = controller.out_of_reach();
  if (controller.elapsed_ns() > 0) report_.collected_share = controller.collected_ns() / controller.elapsed_ns();
  if (controller.launches() > 0) report_.launch_ns = controller.elapsed_ns() / controller.launches();
}

// Ends the window under way, if there is one, for all sessions.
void Collector::move_window(uint64_t stamp, uint64_t launches, bool next_collected) {
  Window ended;
  {
    std::lock_guard<std::mutex> hold(window_mutex_);
    window_.end = stamp;
    window_.end_launches = launches;
    window_.next_collected = next_collected;
    ended = window_;
  }
  if (ended.stratum == 0) return;
  std::lock_guard<std::mutex> hold(ports_mutex_);
  for (Port *port : ports_) port->end_window(ended);
}

void Collector::turn_window() {
  if (Clock::now() < turn_due()) return;
  // A detach that waits for this thread holds the lock: nothing is to be switched then.
  std::unique_lock<std::mutex> control(control_mutex_, std::try_to_lock);
  if (!control.owns_lock() || !running_) {
    not_before_ = Clock::now() + std::chrono::milliseconds(1);
    return;
  }
  const double budget = budget_;
  const bool begins = !sampling_ && budget > 0;
  const bool ends = sampling_ && budget == 0;
  if (!begins && !ends && !sampling_) return;
  uint64_t first = 0;
  {
    std::lock_guard<std::mutex> hold(window_mutex_);
    first = window_.begin_launches;
  }
  if (begins && (duty_ == nullptr || duty_->controller().budget() != budget)) {
    const uint64_t seed = sonde_stamp() * 0x9E3779B97F4A7C15u;
    duty_ = std::make_unique<DutyCycle>(budget, settings_.slot_ns, seed);
    standing_known_ = false;
  }
  // Not before the program launches: an injected process gets here while the driver still initialises.
  if (duty_ != nullptr && !standing_known_ && counting_ && launches_counted() != 0) {
    standing_known_ = true;
    // A session without a budget may have opened CUPTI: then the bare call is taken at what it costs everywhere.
    const double before = call_ns_before_ > 0 ? call_ns_before_ : kBareCallNs;
    duty_->controller().set_standing_cost(std::max(driver_call_ns() - before, 0.0) * kCallsPerLaunch);
  }

  // Switching belongs to the collected side: such a window begins before it is switched on and ends after off.
  Clock::time_point at = Clock::now();
  uint64_t stamp = now();
  uint64_t launches = launches_counted();
  const bool next = ends || (begins ? duty_->begin(at) : duty_->next_collected());
  if (left_out_ == next) {
    left_out_ = !next;
    apply();
    if (!next) {
      at = Clock::now();
      stamp = now();
      launches = launches_counted();
    }
  }
  const bool counted = counting_;
  move_window(stamp, counted ? launches : SONDE_LAUNCHES_UNKNOWN, next);
  if (!begins && !ends) duty_->step(at, counted ? std::optional<uint64_t>(launches - first) : std::nullopt);
  sampling_ = !ends;
  enter_window(stamp, launches);
}

// ---- buffers -------------------------------------------------------------------------------------------------------

void Collector::buffer_requested(uint8_t **buffer, size_t *bytes, size_t *record_limit) {
  // CUPTI drops records and counts them when it gets no buffer; before 12.9 it does not survive that.
  *buffer = pool_.take(api_.version < kCupti12_9);
  seen_buffer_.store(true, std::memory_order_relaxed);
  *bytes = *buffer != nullptr ? pool_.buffer_bytes() : 0;
  *record_limit = 0;  // as many as fit
}

void Collector::buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t, size_t valid_bytes) {
  if (buffer == nullptr) return;
  {
    std::lock_guard<std::mutex> hold(queue_mutex_);
    if (running_) {
      queue_.push_back({buffer, valid_bytes, context, stream});
      wake_.notify_one();
      return;
    }
  }
  if (valid_bytes != 0) late_buffers_.fetch_add(1, std::memory_order_relaxed);
  pool_.give(buffer, valid_bytes);
}

sonde_status Collector::flush(bool forced) {
  std::unique_lock<std::mutex> lock(queue_mutex_);
  if (!running_) return SONDE_OK;
  // The thread is still inside the flush that did not end in time: nobody waits for it a second time.
  if (broken_.load(std::memory_order_relaxed)) return SONDE_E_TIMEOUT;
  const uint64_t ticket = ++requested_;
  forced_ |= forced;
  wake_.notify_all();
  const auto deadline = std::chrono::nanoseconds(settings_.deadline_ns);
  if (done_.wait_for(lock, deadline, [&] { return finished_ >= ticket; })) return SONDE_OK;
  broken_.store(true, std::memory_order_relaxed);
  return SONDE_E_TIMEOUT;
}

void Collector::process(const FullBuffer &buffer) {
  if (buffer.valid_bytes != 0) {
    const uint64_t stamp = now();
    std::lock_guard<std::mutex> hold(ports_mutex_);
    for (Port *port : ports_) port->consume(*decoder_, buffer.data, buffer.valid_bytes, stamp, flushed_);
  }
  size_t dropped = 0;
  if (api_.activity_get_dropped != nullptr &&
      api_.activity_get_dropped(buffer.context, buffer.stream, &dropped) == kCuptiSuccess && dropped != 0) {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    for (const Port *port : ports_) port->lose(SONDE_LOSS_VENDOR, dropped, 0);
  }
  pool_.give(buffer.data, buffer.valid_bytes);
}

void Collector::drain() {
  std::vector<FullBuffer> full;
  for (;;) {
    full.clear();
    {
      std::lock_guard<std::mutex> hold(queue_mutex_);
      full.swap(queue_);
    }
    if (full.empty()) return;
    for (const FullBuffer &buffer : full) {
      process(buffer);
      turn_window();  // on time, however many buffers wait
    }
  }
}

void Collector::flush_now(bool forced) {
  // An injected process gets here while the driver may still be initialising on another thread. Until CUPTI has asked
  // for a first buffer there is nothing to gain from calling into it then.
  constexpr auto kInitialisation = std::chrono::seconds(2);
  const bool early = !seen_buffer_.load(std::memory_order_relaxed) && Clock::now() - begun_ < kInitialisation;
  const uint64_t begun = now();
  if (forced || !early) api_.activity_flush_all(forced ? kFlushForced : 0);
  if (vendor_clock_) {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    for (Port *port : ports_) port->pair_clock(api_);
  }
  drain();
  flushed_ = begun;
}

void Collector::work() {
  pthread_setname_np(pthread_self(), "sonde-cuda");
  services().capture->enter();
  if (settings_.prepare_buffers) pool_.prepare(2);
  const auto period = std::chrono::nanoseconds(settings_.flush_period_ns);
  std::unique_lock<std::mutex> lock(queue_mutex_);
  for (;;) {
    // Where somebody asks for a flush every period already, this clock only stands in when the asking ends.
    const auto next = last_flush_ + (asked_ ? 2 * period : period);
    wake_.wait_until(lock, std::min(next, turn_due()),
                     [this] { return !queue_.empty() || requested_ > finished_ || stopping_ || turn_; });
    turn_ = false;
    if (Clock::now() >= turn_due()) {
      lock.unlock();
      turn_window();
      lock.lock();
    }
    if (requested_ > finished_) {
      const uint64_t ticket = requested_;
      const bool forced = std::exchange(forced_, false);
      const bool off = std::exchange(switch_off_, false);
      lock.unlock();
      flush_now(forced);
      if (off) switch_off_all();
      drain();
      if (!off) retry_counters();
      lock.lock();
      last_flush_ = Clock::now();
      asked_ = true;
      finished_ = ticket;
      broken_.store(false, std::memory_order_relaxed);  // slow, not stuck
      done_.notify_all();
    } else if (!queue_.empty()) {
      lock.unlock();
      drain();
      lock.lock();
    } else if (stopping_) {
      break;
    } else if (Clock::now() >= next) {
      asked_ = false;
      lock.unlock();
      flush_now(false);
      retry_counters();
      lock.lock();
      last_flush_ = Clock::now();
    }
    if (pool_.made() != 0 && settings_.prepare_buffers && !stopping_) {
      lock.unlock();
      pool_.prepare(1);
      lock.lock();
    }
  }
  exited_ = true;
  done_.notify_all();
  lock.unlock();
  services().capture->leave();
}

void Collector::retry_counters() {
  // A detach that waits for this thread holds the lock: then there is nothing to switch on any more.
  std::unique_lock<std::mutex> control(control_mutex_, std::try_to_lock);
  if (control.owns_lock() && running_ && counters_waited_ && !counters_) apply_counters(needs().managed);
}

}  // namespace sonde::cuda
