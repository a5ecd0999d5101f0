#include "sampler.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <sonde/ledger.h>

#include "common/services.h"
#include "sampling_port.h"

namespace sonde::cuda {

namespace {

constexpr char kResource[] = "cuda.device";
constexpr char kMode[] = "pc_sampling";
// Continuous sampling left kernel durations as they were (tests/gpu/sampling/beside.cpp), so it may share the device with
// activity tracing where the user asks for it.
constexpr char kSharedMode[] = "activity";
constexpr uint32_t kInfo = 0;
constexpr uint32_t kWarning = 1;
constexpr uint32_t kError = 2;
constexpr uint32_t kNoData = 3;
constexpr size_t kMostWindows = 4096;  // that wait for delivery
constexpr auto kLockPatience = std::chrono::seconds(2);

std::atomic<Sampler *> current{nullptr};

// A forked child has neither the thread nor a usable context: it begins anew, and the parent's state is left behind.
void forget_in_child() { current.store(nullptr, std::memory_order_relaxed); }

sonde_string_t intern(const std::string &text) {
  sonde_string_t id = 0;
  services().capture->intern(text.data(), text.size(), &id);
  return id;
}

// What the tool does itself is not captured.
struct Inside {
  Inside() { services().capture->enter(); }
  ~Inside() { services().capture->leave(); }
};

// Holds the lock, or nothing when another thread did not give it up in time.
std::unique_lock<std::mutex> lock_for_a_while(std::mutex &mutex) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (!lock.owns_lock() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    (void)lock.try_lock();
  }
  return lock;
}

std::string refusal(const CuptiApi &cupti, CuptiResult result) {
  std::string text = std::string("CUPTI refuses: ") + cupti.text(result);
  if (result == kCuptiInsufficientPrivileges) {
    text += " (the driver's option NVreg_RestrictProfilingToAdminUsers keeps it for root)";
  }
  return text;
}

template <typename Params>
Params params_of(void *context) {
  Params params = {};
  params.size = sizeof(params);
  params.context = context;
  return params;
}

}  // namespace

std::string short_stall_name(const std::string &vendor, bool &not_issued) {
  constexpr std::string_view kPrefix = "smsp__pcsamp_warps_issue_stalled_";
  constexpr std::string_view kSuffix = "_not_issued";
  std::string_view name = vendor;
  not_issued = name.ends_with(kSuffix);
  if (not_issued) name.remove_suffix(kSuffix.size());
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return std::string(name);
}

Sampler &Sampler::instance() {
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, forget_in_child);
    return true;
  }();
  (void)registered;
  Sampler *found = current.load(std::memory_order_acquire);
  if (found == nullptr) {
    // Never destroyed: a callback may come while the process ends.
    auto *made = new Sampler;
    made->process_ = getpid();
    if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
    delete made;
  }
  return *found;
}

// ---- beginning and ending ------------------------------------------------------------------------------------------

void Sampler::attach(SamplingPort *port, const SamplingSettings &settings) {
  std::lock_guard<std::mutex> control(control_mutex_);
  {
    std::lock_guard<std::mutex> hold(queue_mutex_);
    if (broken_) {
      port->note(kNoData, "no PC samples because CUPTI has not returned from an earlier call");
      return;
    }
  }
  const bool shared = settings.beside_activity && settings.mode == SamplingMode::kContinuous;
  const char *const mode = shared ? kSharedMode : kMode;
  if (const auto *claim = services().claim; claim != nullptr && claim->take(kResource, mode, "cuda_sampling") != 0) {
    port->note(kNoData, std::string("no PC samples because ") + services().host->last_error());
    return;
  }
  std::string error;
  if (!running_) error = begin(settings);
  if (!error.empty()) {
    port->note(kNoData, "no PC samples because " + error);
    if (const auto *claim = services().claim) claim->release(kResource, mode);
    return;
  }
  claims_[port] = mode;
  port->attached();
  port->note(kInfo, "PC sampling by CUPTI " + version_text(api_.base.version) + " from " + api_.base.path);
  {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    ports_.push_back(port);
    for (const auto &context : all_contexts()) {
      if (context->enabled) port->reasons(context->id, context->reasons);
    }
  }
  // Contexts that exist already are found by the sampler's thread. A program that attaches by itself may count on
  // them; one that was injected gets here while the driver initialises and must not wait for it.
  if (secure_getenv("CUDA_INJECTION64_PATH") != nullptr) return;
  std::unique_lock<std::mutex> lock(queue_mutex_);
  done_.wait_for(lock, std::chrono::nanoseconds(settings_.deadline_ns), [this] { return looked_; });
}

std::string Sampler::begin(const SamplingSettings &settings) {
  settings_ = settings;
  if (!opened_) {
    api_ = open_sampling(settings.cupti);
    opened_ = api_.error.empty();
  }
  if (!api_.error.empty()) return api_.error;
  if (api_.register_checksum != nullptr) api_.register_checksum(on_checksum);
  if (std::string error = subscribe(); !error.empty()) return error;
  {
    std::lock_guard<std::mutex> hold(queue_mutex_);
    stopping_ = looked_ = exited_ = false;
    requested_ = finished_ = 0;
  }
  running_ = true;
  thread_ = std::thread([this] { work(); });
  return "";
}

std::string Sampler::subscribe() {
  const CuptiApi &cupti = api_.base;
  const CuptiResult result = cupti.subscribe(&subscriber_, on_callback, this);
  if (result != kCuptiSuccess) {
    subscriber_ = nullptr;
    if (result == kCuptiMultipleSubscribers) return "another profiler holds CUPTI's subscription";
    return std::string("CUPTI refuses its callbacks: ") + cupti.text(result);
  }
  for (const uint32_t point : {kResourceContextCreated, kResourceContextDestroyStarting, kResourceModuleLoaded,
                               kResourceModuleUnloadStarting}) {
    cupti.enable_callback(1, subscriber_, kDomainResource, point);
  }
  if (settings_.mode != SamplingMode::kContinuous) {
    for (const uint32_t call : kDriverLaunchCalls) cupti.enable_callback(1, subscriber_, kDomainDriver, call);
  }
  return "";
}

sonde_status Sampler::detach(SamplingPort *port) {
  std::lock_guard<std::mutex> control(control_mutex_);
  bool last = false;
  {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    const auto found = std::find(ports_.begin(), ports_.end(), port);
    if (found == ports_.end()) return SONDE_OK;
    last = ports_.size() == 1;
  }
  sonde_status status = SONDE_OK;
  if (last) {
    std::unique_lock<std::mutex> lock(queue_mutex_);
    stopping_ = true;
    wake_.notify_all();
    const auto deadline = std::chrono::nanoseconds(settings_.deadline_ns);
    if (done_.wait_for(lock, deadline, [this] { return exited_; })) {
      lock.unlock();
      thread_.join();
    } else {
      broken_ = true;
      status = SONDE_E_TIMEOUT;
      lock.unlock();
      thread_.detach();
    }
    running_ = false;
    if (status == SONDE_OK) {
      api_.base.unsubscribe(subscriber_);
      subscriber_ = nullptr;
      std::lock_guard<std::mutex> hold(contexts_mutex_);
      contexts_.clear();
    }
  } else {
    status = flush();
  }
  {
    std::lock_guard<std::mutex> hold(ports_mutex_);
    ports_.erase(std::remove(ports_.begin(), ports_.end(), port), ports_.end());
  }
  if (status != SONDE_OK) {
    port->lose(SONDE_LOSS_DEADLINE, UINT64_MAX);
    port->note(kError, "CUPTI did not return from its last read of PC samples in time; what it held is lost");
  }
  port->detached();
  if (const auto *claim = services().claim) claim->release(kResource, claims_[port]);
  claims_.erase(port);
  return status;
}

sonde_status Sampler::flush() {
  std::unique_lock<std::mutex> lock(queue_mutex_);
  if (!running_ || broken_) return broken_ ? SONDE_E_TIMEOUT : SONDE_OK;
  const uint64_t ticket = ++requested_;
  wake_.notify_all();
  const auto deadline = std::chrono::nanoseconds(settings_.deadline_ns);
  return done_.wait_for(lock, deadline, [&] { return finished_ >= ticket || exited_; }) ? SONDE_OK : SONDE_E_TIMEOUT;
}

void Sampler::note_all(uint32_t severity, const std::string &text) {
  std::lock_guard<std::mutex> hold(ports_mutex_);
  for (const SamplingPort *port : ports_) port->note(severity, text);
}

// ---- contexts ------------------------------------------------------------------------------------------------------

std::vector<std::shared_ptr<Sampler::Context>> Sampler::all_contexts() {
  std::lock_guard<std::mutex> hold(contexts_mutex_);
  std::vector<std::shared_ptr<Context>> out;
  for (const auto &[handle, context] : contexts_) out.push_back(context);
  return out;
}

void Sampler::add_context(void *handle) {
  auto context = std::make_shared<Context>();
  context->handle = handle;
  std::unique_lock<std::mutex> lock(context->mutex);
  {
    std::lock_guard<std::mutex> hold(contexts_mutex_);
    if (!contexts_.emplace(handle, context).second) return;
  }
  if (const std::string error = configure(*context); !error.empty()) {
    lock.unlock();
    note_all(kNoData, "no PC samples of context " + std::to_string(context->id) + " because " + error);
    return;
  }
  context->enabled = true;
  lock.unlock();
  std::lock_guard<std::mutex> hold(ports_mutex_);
  for (SamplingPort *port : ports_) port->reasons(context->id, context->reasons);
}

void Sampler::prepare(SamplingData &data, std::vector<PcData> &pcs, std::vector<StallSamples> &stalls,
                      size_t reasons) const {
  pcs.assign(settings_.pcs_per_copy, PcData{});
  stalls.assign(pcs.size() * reasons, StallSamples{});
  for (size_t i = 0; i < pcs.size(); ++i) {
    pcs[i].size = sizeof(PcData);
    pcs[i].stalls = stalls.data() + i * reasons;
  }
  data = {};
  data.size = sizeof(data);
  data.room = pcs.size();
  data.pcs = pcs.data();
}

std::string Sampler::configure(Context &context) {
  const CuptiApi &cupti = api_.base;
  if (cupti.get_context_id != nullptr) cupti.get_context_id(context.handle, &context.id);
  api_.get_device_id(context.handle, &context.device);
  CurrentContext use(driver_, context.handle);

  // CUPTI answers and is configured for a context that it samples already.
  auto which = params_of<SamplingContextParams>(context.handle);
  CuptiResult result = api_.enable(&which);
  if (result != kCuptiSuccess) return refusal(cupti, result);
  size_t count = 0;
  auto ask = params_of<StallCountParams>(context.handle);
  ask.count = &count;
  result = api_.stall_count(&ask);
  if (result != kCuptiSuccess) {
    api_.disable(&which);
    return std::string("CUPTI names no stall reasons: ") + cupti.text(result);
  }
  std::vector<uint32_t> indices(count);
  std::vector<char> text(count * kStallNameBytes);
  std::vector<char *> names(count);
  for (size_t i = 0; i < count; ++i) names[i] = text.data() + i * kStallNameBytes;
  auto list = params_of<StallNamesParams>(context.handle);
  list.count = count;
  list.indices = indices.data();
  list.names = names.data();
  result = api_.stall_names(&list);
  if (result != kCuptiSuccess) {
    api_.disable(&which);
    return std::string("CUPTI names no stall reasons: ") + cupti.text(result);
  }
  for (size_t i = 0; i < count; ++i) {
    StallReason reason;
    const std::string vendor(names[i], strnlen(names[i], kStallNameBytes));
    reason.index = indices[i];
    reason.stall = intern(short_stall_name(vendor, reason.not_issued));
    reason.vendor = intern(vendor);
    context.stalls[reason.index] = reason;
    context.reasons.push_back(reason);
  }
  prepare(context.configured, context.configured_pcs, context.configured_stalls, std::max<size_t>(count, 1));
  prepare(context.drained, context.drained_pcs, context.drained_stalls, std::max<size_t>(count, 1));

  std::vector<SamplingAttribute> attributes;
  const auto add = [&](uint32_t attribute) -> SamplingAttribute & {
    attributes.push_back({});
    attributes.back().attribute = attribute;
    return attributes.back();
  };
  add(kAttributeCollectionMode).value.number =
      settings_.mode == SamplingMode::kSerialized ? kSamplingKernelSerialized : kSamplingContinuous;
  if (settings_.period_log2 != 0) add(kAttributeSamplingPeriod).value.number = settings_.period_log2;
  if (settings_.hardware_bytes != 0) add(kAttributeHardwareBytes).value.bytes = settings_.hardware_bytes;
  if (settings_.scratch_bytes != 0) add(kAttributeScratchBytes).value.bytes = settings_.scratch_bytes;
  add(kAttributeStartStop).value.number = settings_.mode == SamplingMode::kRanges ? 1 : 0;
  add(kAttributeSleepSpan).value.number =
      static_cast<uint32_t>(std::clamp<uint64_t>(settings_.drain_period_ns / 1'000'000, 1, 100));
  add(kAttributeOutputFormat).value.number = kOutputParsed;
  add(kAttributeDataBuffer).value.pointer = &context.configured;
  auto config = params_of<SamplingConfigParams>(context.handle);
  config.count = attributes.size();
  config.attributes = attributes.data();

  result = api_.set_attributes(&config);
  if (result != kCuptiSuccess) {
    api_.disable(&which);
    std::string refused = refusal(cupti, result);
    for (const SamplingAttribute &attribute : attributes) {
      if (attribute.status == kCuptiSuccess) continue;
      refused += ", attribute " + std::to_string(attribute.attribute) + ": " + cupti.text(attribute.status);
    }
    return refused;
  }
  context.window_begin = sonde_stamp();
  return "";
}

void Sampler::end_context(void *handle) {
  std::shared_ptr<Context> context;
  {
    std::lock_guard<std::mutex> hold(contexts_mutex_);
    const auto found = contexts_.find(handle);
    if (found == contexts_.end()) return;
    context = found->second;
    contexts_.erase(found);
  }
  const auto lock = lock_for_a_while(context->mutex);
  if (!lock.owns_lock()) {
    note_all(kError, "the last PC samples of a context are lost: CUPTI did not return from a read in time");
    return;
  }
  disable(*context);
}

// ---- samples -------------------------------------------------------------------------------------------------------

void Sampler::consume(Context &context, const SamplingData &data, bool full) {
  SampledWindow window;
  window.begin = context.window_begin;
  window.end = sonde_stamp();
  window.samples = data.total_samples;
  window.dropped = data.dropped_samples;
  window.foreign = data.foreign_samples;
  window.range = data.range;
  window.context = context.id;
  window.device = context.device;
  window.full = full;
  window.pc_count = std::min(data.pc_count, data.room);
  if (window.pc_count == 0 && window.samples == 0 && window.dropped == 0 && !window.full) return;
  context.window_begin = window.end;

  struct Sum {
    sonde_string_t stall;
    uint64_t samples;
    uint64_t latency;
  };
  std::vector<Sum> sums;
  for (size_t i = 0; i < window.pc_count; ++i) {
    const PcData &pc = data.pcs[i];
    SampledPc record;
    if (!codes_.resolve(pc.checksum, record.module)) record.flags = 1;
    record.pc = pc.pc;
    record.correlation = pc.correlation;
    record.function = pc.function != nullptr ? intern(pc.function) : 0;
    record.function_index = pc.function_index;
    sums.clear();
    for (size_t j = 0; j < pc.stall_count; ++j) {
      const StallSamples &samples = pc.stalls[j];
      const auto known = context.stalls.find(samples.index);
      // A number that CUPTI did not name is kept under that number.
      const bool named = known != context.stalls.end();
      const sonde_string_t stall = named ? known->second.stall : intern("unknown_" + std::to_string(samples.index));
      auto sum = std::find_if(sums.begin(), sums.end(), [&](const Sum &one) { return one.stall == stall; });
      if (sum == sums.end()) sum = sums.insert(sums.end(), {stall, 0, 0});
      (named && known->second.not_issued ? sum->latency : sum->samples) += samples.samples;
    }
    for (const Sum &sum : sums) {
      if (sum.samples == 0 && sum.latency == 0) continue;
      record.stall = sum.stall;
      record.samples = sum.samples;
      record.latency = sum.latency;
      window.pcs.push_back(record);
    }
  }
  std::lock_guard<std::mutex> hold(queue_mutex_);
  if (queue_.size() >= kMostWindows) {
    dropped_windows_ += 1 + window.pcs.size();
    return;
  }
  queue_.push_back(std::move(window));
}

void Sampler::drain(Context &context) {
  if (!context.enabled || context.full) return;
  for (;;) {
    auto get = params_of<SamplingGetDataParams>(context.handle);
    get.data = &context.drained;
    SamplingData &data = context.drained;
    data.total_samples = data.dropped_samples = data.foreign_samples = 0;
    data.pc_count = data.remaining_pcs = 0;
    data.hardware_buffer_full = 0;
    const CuptiResult result = api_.get_data(&get);
    if (result != kCuptiSuccess && result != kCuptiOutOfMemory) {
      note_all(kError, std::string("CUPTI refuses to hand out PC samples: ") + api_.base.text(result));
      return;
    }
    const size_t before = data.pc_count;
    context.full = result == kCuptiOutOfMemory;
    consume(context, data, context.full);
    if (data.remaining_pcs == 0 || before == 0 || context.full) return;
  }
}

void Sampler::disable(Context &context) {
  if (!context.enabled) return;
  CurrentContext use(driver_, context.handle);
  auto which = params_of<SamplingContextParams>(context.handle);
  if (context.started) api_.stop(&which);
  context.started = false;
  if (settings_.mode != SamplingMode::kSerialized) drain(context);
  context.enabled = false;
  const CuptiResult result = api_.disable(&which);
  if (result != kCuptiSuccess) {
    note_all(kWarning, std::string("CUPTI refuses to end PC sampling: ") + api_.base.text(result));
  }
  // What was still in CUPTI's hands is now in the buffer that it was configured with.
  consume(context, context.configured, false);
  if (context.configured.remaining_pcs != 0) {
    note_all(kWarning, std::to_string(context.configured.remaining_pcs) +
                           " sampled instructions did not fit into the last buffer; raise pcs_per_copy");
    std::lock_guard<std::mutex> hold(queue_mutex_);
    dropped_windows_ += context.configured.remaining_pcs;
  }
}

void Sampler::drain_all() {
  for (const auto &context : all_contexts()) {
    std::lock_guard<std::mutex> hold(context->mutex);
    drain(*context);
  }
}

void Sampler::disable_all() {
  for (const auto &context : all_contexts()) {
    std::lock_guard<std::mutex> hold(context->mutex);
    disable(*context);
  }
}

// On the program's thread at the begin of a launch: CUPTI does not return from beginning a range while a context is
// being made, and a range must be read between its end and the begin of the next.
void Sampler::switch_range(Context &context) {
  const auto now = Clock::now();
  if (!context.enabled || now < context.range_until) return;
  CurrentContext use(driver_, context.handle);
  auto which = params_of<SamplingContextParams>(context.handle);
  const auto refused = [&](CuptiResult result) {
    note_all(kError, std::string("CUPTI refuses to switch PC sampling: ") + api_.base.text(result));
    context.range_until = Clock::time_point::max();
  };
  if (context.started) {
    context.started = false;
    if (const CuptiResult result = api_.stop(&which); result != kCuptiSuccess) return refused(result);
    drain(context);
    if (settings_.off_ns != 0) {
      context.range_until = now + std::chrono::nanoseconds(settings_.off_ns);
      return;
    }
  }
  if (const CuptiResult result = api_.start(&which); result != kCuptiSuccess) return refused(result);
  context.started = true;
  context.window_begin = sonde_stamp();
  context.range_until = now + std::chrono::nanoseconds(settings_.on_ns);
}

// ---- callbacks -----------------------------------------------------------------------------------------------------

void Sampler::on_checksum(const void *code, size_t bytes, uint64_t *checksum) { *checksum = code_hash(code, bytes); }

void Sampler::on_module(void *handle, const ModuleData &data, bool loaded) {
  if (!loaded) {
    // Instructions of a module that is loaded again later must not be mixed with these. In the other modes what is
    // read is read between kernels or ranges.
    if (settings_.mode != SamplingMode::kContinuous) return;
    std::shared_ptr<Context> context;
    {
      std::lock_guard<std::mutex> hold(contexts_mutex_);
      if (const auto found = contexts_.find(handle); found != contexts_.end()) context = found->second;
    }
    if (context == nullptr) return;
    const auto lock = lock_for_a_while(context->mutex);
    if (lock.owns_lock()) drain(*context);
    return;
  }
  if (data.code == nullptr || data.bytes == 0) return;
  const uint64_t hash = code_hash(data.code, data.bytes);
  if (api_.register_checksum == nullptr && api_.get_checksum != nullptr) {
    ChecksumParams params = {};
    params.size = sizeof(params);
    params.bytes = data.bytes;
    params.code = data.code;
    if (api_.get_checksum(&params) == kCuptiSuccess) codes_.alias(params.checksum, hash);
  }
  if (!codes_.add(hash, data.code, data.bytes, settings_.code_bytes)) {
    note_all(kWarning, "code objects beyond `code_bytes` are not in the capture: their samples have no source lines");
  }
}

void Sampler::on_launch(const DriverCallData &call) {
  const bool leaves = call.site == kCallLeaves;
  // Serialised kernels are read when their launch is over, ranges are switched before one begins.
  if (leaves != (settings_.mode == SamplingMode::kSerialized)) return;
  std::shared_ptr<Context> context;
  {
    std::lock_guard<std::mutex> hold(contexts_mutex_);
    if (const auto found = contexts_.find(call.context); found != contexts_.end()) context = found->second;
  }
  if (context == nullptr) return;
  const auto lock = lock_for_a_while(context->mutex);
  if (!lock.owns_lock()) return;
  leaves ? drain(*context) : switch_range(*context);
}

void Sampler::on_callback(void *user, uint32_t domain, uint32_t point, const void *data) {
  auto *const self = static_cast<Sampler *>(user);
  // In a forked child the subscription is inherited, the sampler is not.
  if (self != current.load(std::memory_order_acquire) || data == nullptr || !self->running_) return;
  const Inside inside;
  try {
    self->take_callback(domain, point, data);
  } catch (const std::exception &error) {
    self->failed(error);  // no exception may reach the library that calls
  }
}

void Sampler::take_callback(uint32_t domain, uint32_t point, const void *data) {
  if (domain == kDomainDriver) return on_launch(*static_cast<const DriverCallData *>(data));
  if (domain != kDomainResource) return;
  const auto &resource = *static_cast<const ResourceData *>(data);
  switch (point) {
    case kResourceContextCreated:
      add_context(resource.context);
      break;
    case kResourceContextDestroyStarting:
      end_context(resource.context);
      break;
    case kResourceModuleLoaded:
    case kResourceModuleUnloadStarting:
      if (resource.descriptor != nullptr) {
        on_module(resource.context, *static_cast<const ModuleData *>(resource.descriptor),
                  point == kResourceModuleLoaded);
      }
      break;
    default:
      break;
  }
}

void Sampler::failed(const std::exception &error) {
  try {
    note_all(kError, std::string("PC samples are lost: ") + error.what());
    std::lock_guard<std::mutex> hold(queue_mutex_);
    ++dropped_windows_;
  } catch (const std::exception &) {
    // Out of memory twice: nothing can be said.
  }
}

// ---- the thread ----------------------------------------------------------------------------------------------------

void Sampler::deliver() {
  std::deque<SampledWindow> windows;
  uint64_t dropped = 0;
  {
    std::lock_guard<std::mutex> hold(queue_mutex_);
    windows.swap(queue_);
    dropped = std::exchange(dropped_windows_, 0);
  }
  std::lock_guard<std::mutex> hold(ports_mutex_);
  for (SamplingPort *port : ports_) {
    port->store(codes_);
    for (const SampledWindow &window : windows) port->deliver(window, *this);
    if (dropped != 0) port->lose(SONDE_LOSS_MEMORY_CAP, dropped);
  }
}

void Sampler::work() {
  pthread_setname_np(pthread_self(), "sonde-sampling");
  const Inside inside;
  driver_ = find_driver();
  for (void *handle : live_contexts(driver_)) add_context(handle);
  const auto drain_period = std::chrono::nanoseconds(settings_.drain_period_ns);
  auto next_drain = Clock::now() + drain_period;
  std::unique_lock<std::mutex> lock(queue_mutex_);
  looked_ = true;
  done_.notify_all();
  for (;;) {
    wake_.wait_until(lock, next_drain, [this] { return requested_ > finished_ || stopping_; });
    const uint64_t ticket = requested_;
    const bool stop = stopping_;
    lock.unlock();
    try {
      if (stop) {
        disable_all();
      } else if (settings_.mode == SamplingMode::kContinuous) {
        drain_all();
      }  // in the other modes the program's thread reads, never while a kernel or range runs
      deliver();
    } catch (const std::exception &error) {
      failed(error);
    }
    next_drain = Clock::now() + drain_period;
    lock.lock();
    finished_ = ticket;
    if (stop) break;
    done_.notify_all();
  }
  exited_ = true;
  done_.notify_all();
}

}  // namespace sonde::cuda
