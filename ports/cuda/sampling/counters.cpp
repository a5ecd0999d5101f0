#include "counters.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>

#include <sonde/ledger.h>
#include <sonde/spaces/sample.h>

#include "common/services.h"

namespace sonde::cuda {

namespace {

constexpr char kOrigin[] = "cuda_sampling";
constexpr char kResource[] = "cuda.device";
constexpr char kMode[] = "counters";
constexpr uint32_t kError = 2;
constexpr uint32_t kNoData = 3;
constexpr size_t kMostRanges = 256;  // kernels of one launch call: a graph has many

// Counters whose callbacks may still come; null when none count.
std::atomic<Counters *> active{nullptr};

// This thread is between the begin and the end of a launch that it serialises.
thread_local bool launching = false;

struct Inside {
  Inside() { services().capture->enter(); }
  ~Inside() { services().capture->leave(); }
};

sonde_string_t intern(const char *text) {
  sonde_string_t id = 0;
  if (text != nullptr) services().capture->intern(text, UINT64_MAX, &id);
  return id;
}

// Parameters with their size: up to and with the last field, as CUPTI counts it.
#define SONDE_PARAMS(name, type, last) \
  type name = {};                      \
  name.size = offsetof(type, last) + sizeof(name.last)

template <typename Function>
bool resolve(void *library, const char *name, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

CountersApi open_counters(const std::string &option) {
  CountersApi api;
  api.base = open_cupti(option);
  if (!api.base.complete()) {
    api.error = api.base.error;
    return api;
  }
  if (api.base.version < kCupti13_0) {
    api.error = api.base.path + " is CUPTI " + version_text(api.base.version) +
                ", counters are read as CUPTI 13.0 and later give them";
    return api;
  }
  void *const library = dlopen(api.base.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.error = dlerror();
    return api;
  }
  const bool complete = resolve(library, "cuptiProfilerInitialize", api.initialize) &
                        resolve(library, "cuptiDeviceGetChipName", api.chip) &
                        resolve(library, "cuptiProfilerGetCounterAvailability", api.availability) &
                        resolve(library, "cuptiProfilerHostInitialize", api.host_initialize) &
                        resolve(library, "cuptiProfilerHostDeinitialize", api.host_deinitialize) &
                        resolve(library, "cuptiProfilerHostConfigAddMetrics", api.host_add_metrics) &
                        resolve(library, "cuptiProfilerHostGetConfigImageSize", api.host_config_size) &
                        resolve(library, "cuptiProfilerHostGetConfigImage", api.host_config) &
                        resolve(library, "cuptiProfilerHostGetNumOfPasses", api.host_passes) &
                        resolve(library, "cuptiProfilerHostGetMetricProperties", api.host_properties) &
                        resolve(library, "cuptiProfilerHostEvaluateToGpuValues", api.host_evaluate) &
                        resolve(library, "cuptiRangeProfilerEnable", api.range_enable) &
                        resolve(library, "cuptiRangeProfilerDisable", api.range_disable) &
                        resolve(library, "cuptiRangeProfilerSetConfig", api.range_config) &
                        resolve(library, "cuptiRangeProfilerStart", api.range_start) &
                        resolve(library, "cuptiRangeProfilerStop", api.range_stop) &
                        resolve(library, "cuptiRangeProfilerDecodeData", api.range_decode) &
                        resolve(library, "cuptiRangeProfilerGetCounterDataSize", api.image_size) &
                        resolve(library, "cuptiRangeProfilerCounterDataImageInitialize", api.image_initialize) &
                        resolve(library, "cuptiRangeProfilerGetCounterDataInfo", api.image_info) &
                        resolve(library, "cuptiGetDeviceId", api.get_device_id);
  if (!complete || api.base.subscribe == nullptr || api.base.enable_callback == nullptr ||
      api.base.unsubscribe == nullptr) {
    api.error = api.base.path + " lacks functions of the range profiler";
  }
  return api;
}

void Counters::note(uint32_t severity, const std::string &text) const {
  services().capture->note(session_, severity, kOrigin, text.c_str());
}

// ---- life ----------------------------------------------------------------------------------------------------------

sonde_status Counters::start() {
  {
    std::lock_guard<std::mutex> life(life_mutex_);
    if (running_) return services().host->set_error(SONDE_E_STATE, "cuda_sampling: the port is started already");
    process_ = getpid();
    running_ = true;
  }
  return demand();
}

sonde_status Counters::demand() {
  if (getpid() != process_) return SONDE_OK;
  std::lock_guard<std::mutex> life(life_mutex_);
  if (!running_) return SONDE_OK;
  uint32_t level = SONDE_LEVEL_NONE;
  services().capture->level(session_, SONDE_SPACE_SAMPLE, SONDE_SAMPLE_COUNTER, &level);
  const bool want = level != SONDE_LEVEL_NONE;
  if (want == counting_) return SONDE_OK;
  counting_ = want;
  want ? begin() : end();
  return SONDE_OK;
}

sonde_status Counters::stop() {
  if (getpid() != process_) return SONDE_OK;
  std::lock_guard<std::mutex> life(life_mutex_);
  if (running_ && counting_) end();
  running_ = counting_ = false;
  return SONDE_OK;
}

void Counters::begin() {
  const auto *claim = services().claim;
  if (claim != nullptr && claim->take(kResource, kMode, kOrigin) != SONDE_OK) {
    note(kNoData, std::string("no counters because ") + services().host->last_error());
    return;
  }
  claimed_ = true;
  Counters *none = nullptr;
  if (!active.compare_exchange_strong(none, this)) {
    note(kNoData, "no counters because another session of this process counts already");
    return;
  }
  std::string error;
  if (api_.initialize == nullptr) api_ = open_counters(cupti_);
  if (!api_.error.empty()) error = api_.error;
  if (error.empty()) {
    names_.clear();
    interned_.clear();
    for (const std::string &metric : metrics_) {
      names_.push_back(metric.c_str());
      interned_.push_back(intern(metric.c_str()));
    }
    const CuptiResult result = api_.base.subscribe(&subscriber_, on_callback, this);
    if (result != kCuptiSuccess) {
      subscriber_ = nullptr;
      error = result == kCuptiMultipleSubscribers
                  ? "another profiler holds CUPTI's subscription"
                  : std::string("CUPTI refuses its callbacks: ") + api_.base.text(result);
    }
  }
  if (!error.empty()) {
    active.store(nullptr);
    note(kNoData, "no counters because " + error);
    return;
  }
  api_.base.enable_callback(1, subscriber_, kDomainResource, kResourceContextDestroyStarting);
  for (const uint32_t call : kDriverLaunchCalls) api_.base.enable_callback(1, subscriber_, kDomainDriver, call);
}

void Counters::end() {
  Counters *self = this;
  if (active.compare_exchange_strong(self, nullptr)) {
    // A launch that is under way is finished first; those that wait behind it find nobody who counts.
    { std::lock_guard<std::mutex> hold(launch_mutex_); }
    if (subscriber_ != nullptr) api_.base.unsubscribe(subscriber_);
    subscriber_ = nullptr;
    std::lock_guard<std::mutex> hold(launch_mutex_);
    while (!contexts_.empty()) end_context(contexts_.begin()->first);
  }
  if (claimed_ && services().claim != nullptr) services().claim->release(kResource, kMode);
  claimed_ = false;
}

// ---- contexts ------------------------------------------------------------------------------------------------------

std::string Counters::add_metrics(Context &context) {
  SONDE_PARAMS(add, HostAddMetricsParams, count);
  add.host = context.host;
  add.names = names_.data();
  add.count = names_.size();
  const CuptiResult result = api_.host_add_metrics(&add);
  if (result == kCuptiSuccess) return "";
  // Which of them it does not know: asked one by one.
  std::string unknown;
  for (const std::string &metric : metrics_) {
    SONDE_PARAMS(ask, HostPropertiesParams, type);
    ask.host = context.host;
    ask.name = metric.c_str();
    if (api_.host_properties(&ask) != kCuptiSuccess) unknown += (unknown.empty() ? "" : ", ") + metric;
  }
  if (!unknown.empty()) return "this device does not have the metrics " + unknown;
  return std::string("CUPTI refuses the list of metrics: ") + api_.base.text(result);
}

std::string Counters::configure(Context &context, void *handle) {
  const auto refused = [&](const char *what, CuptiResult result) {
    std::string text = std::string("CUPTI refuses ") + what + ": " + api_.base.text(result);
    if (result == kCuptiInsufficientPrivileges) {
      text += " (the driver's option NVreg_RestrictProfilingToAdminUsers keeps counters for root)";
    }
    return text;
  };
  if (api_.base.get_context_id != nullptr) api_.base.get_context_id(handle, &context.id);
  api_.get_device_id(handle, &context.device);
  // Not before: CUPTI refuses it while the driver initialises.
  SONDE_PARAMS(params, ProfilerParams, reserved);
  if (const CuptiResult result = api_.initialize(&params); result != kCuptiSuccess)
    return refused("to profile", result);
  SONDE_PARAMS(chip, ChipParams, chip);
  chip.device = context.device;
  CuptiResult result = api_.chip(&chip);
  if (result != kCuptiSuccess) return refused("the name of the chip", result);

  SONDE_PARAMS(available, AvailabilityParams, image);
  available.context = handle;
  result = api_.availability(&available);
  if (result != kCuptiSuccess) return refused("to tell which counters there are", result);
  context.availability.resize(available.bytes);
  available.image = context.availability.data();
  result = api_.availability(&available);
  if (result != kCuptiSuccess) return refused("to tell which counters there are", result);

  SONDE_PARAMS(host, HostInitializeParams, host);
  host.type = kRangeProfilerType;
  host.chip = chip.chip;
  host.availability = context.availability.data();
  result = api_.host_initialize(&host);
  if (result != kCuptiSuccess) return refused("its host part", result);
  context.host = host.host;
  if (std::string error = add_metrics(context); !error.empty()) return error;
  for (const std::string &metric : metrics_) {
    SONDE_PARAMS(ask, HostPropertiesParams, type);
    ask.host = context.host;
    ask.name = metric.c_str();
    context.units.push_back(api_.host_properties(&ask) == kCuptiSuccess ? intern(ask.unit) : 0);
  }
  SONDE_PARAMS(size, HostConfigSizeParams, bytes);
  size.host = context.host;
  result = api_.host_config_size(&size);
  if (result != kCuptiSuccess) return refused("a configuration", result);
  context.config.resize(size.bytes);
  SONDE_PARAMS(config, HostConfigParams, image);
  config.host = context.host;
  config.bytes = context.config.size();
  config.image = context.config.data();
  result = api_.host_config(&config);
  if (result != kCuptiSuccess) return refused("a configuration", result);
  SONDE_PARAMS(passes, HostPassesParams, passes);
  passes.bytes = context.config.size();
  passes.image = context.config.data();
  if (api_.host_passes(&passes) == kCuptiSuccess) context.passes = passes.passes;

  SONDE_PARAMS(enable, RangeEnableParams, profiler);
  enable.context = handle;
  result = api_.range_enable(&enable);
  if (result != kCuptiSuccess) return refused("the range profiler", result);
  context.profiler = enable.profiler;
  SONDE_PARAMS(image, ImageSizeParams, bytes);
  image.profiler = context.profiler;
  image.names = names_.data();
  image.count = names_.size();
  image.ranges = kMostRanges;
  image.nodes = kMostRanges;
  result = api_.image_size(&image);
  if (result != kCuptiSuccess) return refused("room for counters", result);
  context.image.resize(image.bytes);
  context.usable = true;
  return "";
}

Counters::Context &Counters::context_of(void *handle) {
  auto &context = contexts_[handle];
  if (context == nullptr) {
    context = std::make_unique<Context>();
    if (const std::string error = configure(*context, handle); !error.empty()) {
      note(kNoData, "no counters of context " + std::to_string(context->id) + " because " + error);
    }
  }
  return *context;
}

void Counters::end_context(void *handle) {
  const auto found = contexts_.find(handle);
  if (found == contexts_.end()) return;
  Context &context = *found->second;
  if (context.profiler != nullptr) {
    SONDE_PARAMS(disable, RangeParams, profiler);
    disable.profiler = context.profiler;
    api_.range_disable(&disable);
  }
  if (context.host != nullptr) {
    SONDE_PARAMS(end, HostParams, host);
    end.host = context.host;
    api_.host_deinitialize(&end);
  }
  contexts_.erase(found);
}

// ---- launches ------------------------------------------------------------------------------------------------------

void Counters::enter_launch(const DriverCallData &call) {
  launch_mutex_.lock();
  if (active.load(std::memory_order_acquire) != this) {
    launch_mutex_.unlock();
    return;
  }
  launching = true;
  const Inside inside;
  Context &context = context_of(call.context);
  launch_begin_ = sonde_stamp();
  if (!context.usable) return;
  ++context.launches;
  const auto failed = [&](const char *what, CuptiResult result) {
    context.usable = false;
    note(kNoData, std::string("no more counters because CUPTI refuses ") + what + ": " + api_.base.text(result));
  };
  SONDE_PARAMS(image, ImageInitializeParams, image);
  image.profiler = context.profiler;
  image.bytes = context.image.size();
  image.image = context.image.data();
  if (const CuptiResult result = api_.image_initialize(&image); result != kCuptiSuccess) {
    return failed("room for counters", result);
  }
  SONDE_PARAMS(config, RangeConfigParams, target_nesting_level);
  config.profiler = context.profiler;
  config.config_bytes = context.config.size();
  config.config = context.config.data();
  config.image_bytes = context.image.size();
  config.image = context.image.data();
  config.range = kAutoRange;
  config.replay = kKernelReplay;
  config.ranges_per_pass = kMostRanges;
  config.nesting_levels = 1;
  config.least_nesting_level = 1;
  config.target_nesting_level = 1;
  if (const CuptiResult result = api_.range_config(&config); result != kCuptiSuccess) {
    return failed("the configuration", result);
  }
  SONDE_PARAMS(start, RangeParams, profiler);
  start.profiler = context.profiler;
  if (const CuptiResult result = api_.range_start(&start); result != kCuptiSuccess) failed("to start", result);
}

void Counters::leave_launch(const DriverCallData &call) {
  if (!launching) return;
  launching = false;
  std::lock_guard<std::mutex> hold(launch_mutex_, std::adopt_lock);
  const auto found = contexts_.find(call.context);
  if (found == contexts_.end() || !found->second->usable) return;
  Context &context = *found->second;
  size_t ranges = 0;
  uint64_t dropped = 0;
  std::vector<double> values;
  {
    const Inside inside;
    SONDE_PARAMS(stop, RangeStopParams, all_passes);
    stop.profiler = context.profiler;
    CuptiResult result = api_.range_stop(&stop);
    SONDE_PARAMS(decode, RangeDecodeParams, dropped);
    decode.profiler = context.profiler;
    if (result == kCuptiSuccess) result = api_.range_decode(&decode);
    dropped = decode.dropped;
    SONDE_PARAMS(info, ImageInfoParams, ranges);
    info.image = context.image.data();
    info.bytes = context.image.size();
    if (result == kCuptiSuccess) result = api_.image_info(&info);
    ranges = result == kCuptiSuccess ? info.ranges : 0;
    values.resize(ranges * names_.size());
    for (size_t range = 0; range < ranges && result == kCuptiSuccess; ++range) {
      SONDE_PARAMS(evaluate, HostEvaluateParams, values);
      evaluate.host = context.host;
      evaluate.image = context.image.data();
      evaluate.image_bytes = context.image.size();
      evaluate.range = range;
      evaluate.names = names_.data();
      evaluate.count = names_.size();
      evaluate.values = values.data() + range * names_.size();
      result = api_.host_evaluate(&evaluate);
    }
    if (result != kCuptiSuccess) {
      ranges = 0;
      note(kError, std::string("counters of a launch are lost: ") + api_.base.text(result));
      services().capture->lose(session_, 0, SONDE_LOSS_VENDOR, names_.size(), 0);
    }
  }
  if (dropped != 0) services().capture->lose(session_, 0, SONDE_LOSS_VENDOR, dropped * names_.size(), 0);
  // Through the program's own ring: what is emitted here is of this thread.
  const uint64_t end = sonde_stamp();
  const sonde_string_t function = intern(call.symbol);
  for (size_t range = 0; range < ranges; ++range) {
    for (size_t metric = 0; metric < names_.size(); ++metric) {
      sonde_sample_counter_t record = {};
      SONDE_RECORD_INIT(&record, SONDE_SPACE_SAMPLE, SONDE_SAMPLE_COUNTER, launch_begin_);
      record.end = end;
      record.launch = context.launches;
      record.correlation = call.correlation;
      record.value = values[range * names_.size() + metric];
      record.function = function;
      record.metric = interned_[metric];
      record.unit = context.units[metric];
      record.context = context.id;
      record.device = context.device;
      record.passes = static_cast<uint32_t>(context.passes);
      record.replay = SONDE_COUNTER_KERNEL_REPLAY;
      services().capture->emit(session_, &record.header);
    }
  }
}

void Counters::on_callback(void *user, uint32_t domain, uint32_t point, const void *data) {
  auto *const self = static_cast<Counters *>(user);
  if (data == nullptr) return;
  try {
    self->take_callback(domain, point, data);
  } catch (const std::exception &) {
    // No exception may reach the library that calls; what was being counted is lost.
    services().capture->lose(self->session_, 0, SONDE_LOSS_MEMORY_CAP, self->names_.size(), 0);
  }
}

void Counters::take_callback(uint32_t domain, uint32_t point, const void *data) {
  if (domain == kDomainDriver) {
    const auto &call = *static_cast<const DriverCallData *>(data);
    if (call.site == kCallLeaves) {
      if (launching) leave_launch(call);
      return;
    }
    // In a forked child, and after a stop, nobody counts.
    if (active.load(std::memory_order_acquire) == this && getpid() == process_ && !launching) {
      enter_launch(call);
    }
    return;
  }
  if (domain != kDomainResource || point != kResourceContextDestroyStarting) return;
  if (active.load(std::memory_order_acquire) != this || getpid() != process_) return;
  const Inside inside;
  std::lock_guard<std::mutex> hold(launch_mutex_);
  end_context(static_cast<const ResourceData *>(data)->context);
}

}  // namespace sonde::cuda
