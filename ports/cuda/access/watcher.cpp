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
#include <sonde/spaces/access.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "code.h"
#include "common/services.h"
#include "port.h"
#include "readout.h"

namespace sonde::cuda::access {

namespace {

constexpr char kResource[] = "cuda.device";
constexpr char kMode[] = "patches";
constexpr char kHolder[] = "cuda_access";
constexpr uint32_t kApiEnter = 0;

// Driver calls that launch, with what sanitizerEnableCallback calls them: there is the last moment to wait.
constexpr uint32_t kLaunchCalls[] = {115, 116, 117, 307, 442, 477, 478, 480, 514, 515, 652, 653};
constexpr auto kLongestWait = std::chrono::seconds(10);
// Driver calls that end a context: the last moment to read what ran in it. Not the release of a primary context, which
// libraries make all the time.
constexpr uint32_t kEndCalls[] = {11, 13, 322, 389, 545};
constexpr uint64_t kLongestFlush = 2'000'000'000;  // ns

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

// Launches of this thread between their begin and end; of a graph: all its kernels until the graph's end.
thread_local std::vector<std::unique_ptr<LaunchEntry>> open_launches;
thread_local bool in_graph = false;
// A slot that waits for this thread's next launch.
struct Promise {
  Space *space = nullptr;
  uint32_t features = 0;
};
thread_local Promise promise;

bool contains_any(const std::string &text, const std::vector<std::string> &parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string &part) { return text.find(part) != std::string::npos; });
}

uint32_t memory_kind(uint32_t flags, bool pinned) {
  if (pinned) return SONDE_MEMORY_PINNED;
  if ((flags & kMemoryManaged) != 0) {
    return (flags & kMemoryModule) != 0 ? SONDE_MEMORY_MANAGED_STATIC : SONDE_MEMORY_MANAGED;
  }
  return (flags & kMemoryModule) != 0 ? SONDE_MEMORY_DEVICE_STATIC : SONDE_MEMORY_DEVICE;
}

// A thread of the port takes none of the program's signals, except those that its own faults raise.
template <typename Body>
std::thread quiet_thread(Body &&body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), "sonde-access");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

template <typename Record>
void emit(const Port &port, Record &record) {
  (void)services().capture->emit(port.session(), &record.header);
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
  for (const uint32_t domain : {domain::kResource, domain::kLaunch, domain::kGraphs}) {
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

// ---- callbacks: what there is ----------------------------------------------------------------------------------------

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
    case domain::kGraphs:
      self->on_graph(id, data);
      break;
    default:
      break;
  }
}

void Watcher::on_resource(uint32_t id, const void *data) {
  switch (id) {
    case resource::kContextCreated: {
      static const bool once = std::atexit(program_ends) == 0;
      (void)once;
      const auto &created = *static_cast<const ResourceContext *>(data);
      WatcherSettings settings;
      {
        const std::lock_guard hold(module_mutex_);
        settings = settings_;
      }
      auto space = std::make_unique<Space>(api_, created.context, created.device, settings.space);
      std::string reason;
      if (!space->prepare(settings.folder, reason)) {
        const std::shared_lock hold(ports_mutex_);
        tell(3, "no data on accesses of device " + std::to_string(created.device) + " because " + reason);
      }
      const std::lock_guard hold(module_mutex_);
      spaces_[created.context] = std::move(space);
      break;
    }
    case resource::kContextDestroyStarting:
      context_ends(static_cast<const ResourceContext *>(data)->context);
      break;
    case resource::kModuleLoaded: {
      const auto &loaded = *static_cast<const ResourceModule *>(data);
      ModuleInfo info;
      info.context = loaded.context;
      if (loaded.code != nullptr && loaded.code_bytes != 0) {
        for (std::string &name : functions_with_tensor_copies(loaded.code, loaded.code_bytes)) {
          info.incomplete.insert(std::move(name));
        }
        info.hash = XXH3_64bits(loaded.code, loaded.code_bytes);
      }
      sonde_object_module_t record = {};
      SONDE_RECORD_INIT(&record, SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE, sonde_stamp());
      record.module = reinterpret_cast<uint64_t>(loaded.module);
      record.bytes = loaded.code_bytes;
      record.hash = info.hash;
      {
        const std::shared_lock hold(ports_mutex_);
        for (const Port *port : ports_) {
          if (port->wants(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE)) emit(*port, record);
        }
      }
      const std::lock_guard hold(module_mutex_);
      ModuleInfo &stored = modules_[loaded.module] = std::move(info);
      // At once, so that graphs are made of patched code; with sampling, when a launch is chosen.
      if (active_ && wish_.kernel_period <= 1 && wish_.only.empty() && wish_.except.empty()) {
        (void)patch(loaded.module, stored, patch_key());
      }
      break;
    }
    case resource::kModuleUnloadStarting: {
      const auto &gone = *static_cast<const ResourceModule *>(data);
      const std::lock_guard hold(module_mutex_);
      modules_.erase(gone.module);
      std::erase_if(functions_,
                    [&](const auto &entry) { return entry.second.module == reinterpret_cast<uint64_t>(gone.module); });
      break;
    }
    case resource::kDeviceAllocated:
    case resource::kHostAllocated:
    case resource::kAllocatedAsync:
    case resource::kPoolPointerImported: {
      const auto &memory = *static_cast<const ResourceMemory *>(data);
      allocated(memory.address, memory.bytes, &memory, id == resource::kHostAllocated, id == resource::kAllocatedAsync);
      break;
    }
    case resource::kDeviceFreed:
    case resource::kHostFreed:
    case resource::kFreedAsync: {
      const auto &memory = *static_cast<const ResourceMemory *>(data);
      freed(memory.address, &memory, id == resource::kHostFreed, id == resource::kFreedAsync);
      break;
    }
    default:
      break;
  }
}

void Watcher::on_driver_call(uint32_t id, const ApiCall &call) {
  if (id == driver_call::kMemMap || id == driver_call::kMemUnmap) {
    if (call.site != kApiExit || call.result == nullptr || *static_cast<const int32_t *>(call.result) != 0) return;
    // Parts of a reservation come and go on their own.
    if (id == driver_call::kMemMap) {
      const auto &map = *static_cast<const MemMapParameters *>(call.parameters);
      allocated(map.address, map.bytes, nullptr, false, false);
    } else {
      const auto &unmap = *static_cast<const MemUnmapParameters *>(call.parameters);
      for (uint64_t at = unmap.address; at < unmap.address + unmap.bytes;) {
        uint64_t begin = 0;
        uint64_t end = 0;
        {
          const std::lock_guard hold(live_mutex_);
          const LiveRange *const range = live_.after(at);
          if (range == nullptr || range->begin >= unmap.address + unmap.bytes) break;
          begin = range->begin;
          end = range->end;
        }
        at = std::max(end, freed(begin, nullptr, false, false));
      }
    }
    return;
  }
  if (std::find(std::begin(kEndCalls), std::end(kEndCalls), id) != std::end(kEndCalls)) {
    if (call.site == kApiEnter && active_) (void)flush(kLongestFlush);
    return;
  }
  if (call.site == kApiExit) withdraw_promise();
  if (call.site == kApiEnter && active_) wait_for_room(call.context);
}

void Watcher::allocated(uint64_t address, uint64_t bytes, const ResourceMemory *memory, bool pinned, bool ordered) {
  const uint32_t flags = memory != nullptr ? memory->flags : 0;
  {
    const std::lock_guard hold(live_mutex_);
    const bool is_static = (flags & kMemoryModule) != 0;
    if (live_.allocate(address, bytes, is_static ? SONDE_OBJECT_IS_STATIC : SONDE_OBJECT_IS_ALLOCATION) == 0) return;
  }
  if (!active_) return;
  sonde_memory_allocate_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.kind = memory_kind(flags, pinned);
  record.flags = ordered ? 3 : 0;
  if (memory != nullptr) {
    record.pool = reinterpret_cast<uint64_t>(memory->pool);
    record.stream = ordered ? reinterpret_cast<uint64_t>(memory->stream) : 0;
    record.device = static_cast<uint32_t>(memory->device);
  }
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    if (port->wants(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE)) emit(*port, record);
  }
}

// Its memory goes; the Space stays for those who hold it, and is used no more.
void Watcher::context_ends(Context context) {
  std::unique_ptr<Space> space;
  {
    const std::lock_guard hold(module_mutex_);
    const auto found = spaces_.find(context);
    if (found == spaces_.end()) return;
    space = std::move(found->second);
    spaces_.erase(found);
    space->end();
    std::erase_if(abandoned_, [&](const Abandoned &launch) { return launch.space == space.get(); });
    if (readout_ != nullptr) readout_->forget_memory();
  }
  {
    const std::lock_guard hold(queue_mutex_);
    for (auto &entry : queue_) {
      if (entry->space != space.get()) continue;
      entry->slot = nullptr;
      entry->flags |= SONDE_LAUNCH_UNFINISHED;
    }
  }
  const std::lock_guard hold(module_mutex_);
  ended_spaces_.push_back(std::move(space));
}

uint64_t Watcher::freed(uint64_t address, const ResourceMemory *memory, bool pinned, bool ordered) {
  uint64_t bytes = memory != nullptr ? memory->bytes : 0;
  uint64_t end = 0;
  {
    const std::lock_guard hold(live_mutex_);
    if (const auto range = live_.release(address)) {
      bytes = range->end - range->begin;
      end = range->end;
    }
  }
  if (!active_) return end;
  sonde_memory_free_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.kind = memory_kind(memory != nullptr ? memory->flags : 0, pinned);
  record.flags = ordered ? 3 : 0;
  if (memory != nullptr) {
    record.pool = reinterpret_cast<uint64_t>(memory->pool);
    record.stream = ordered ? reinterpret_cast<uint64_t>(memory->stream) : 0;
    record.device = static_cast<uint32_t>(memory->device);
  }
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    if (port->wants(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE)) emit(*port, record);
  }
  return end;
}

// ---- callbacks: patching ---------------------------------------------------------------------------------------------

// One word for a set of patches: modules that have it need no other.
std::string Watcher::patch_key() const {
  if (wish_.floor) return "empty";
  if (wish_.naive) return "naive";
  const uint32_t features = wish_.features;
  if (features == 0) return "";
  std::string access = "several";
  if (wish_.block_period <= 1) {
    switch (features & ~kEvents) {
      case kObjects:
        access = "objects";
        break;
      case kPages:
        access = "pages";
        break;
      case kIntervals:
        access = "intervals";
        break;
      case kRecords:
        access = "records";
        break;
      case kCheck:
        access = "check";
        break;
      default:
        break;
    }
  }
  if ((features & ~kEvents) == 0) access = "";
  return access + ((features & kInstructions) != 0 ? "+shared" : "") + ((features & kEvents) != 0 ? "+events" : "");
}

bool Watcher::patch(Module module, ModuleInfo &info, const std::string &key) {
  if (info.patched == key || info.refused) return info.patched == key && !key.empty();
  SanitizerResult result = kSanitizerSuccess;
  if (!info.patched.empty()) {
    // Waits for the module's kernels, which must not wait for room meanwhile: who makes it waits for this callback.
    const auto space = spaces_.find(info.context);
    if (space != spaces_.end()) space->second->stall(false);
    result = api_.unpatch_module(module);
    if (space != spaces_.end()) space->second->stall(settings_.space.stall);
  }
  info.patched.clear();
  if (key.empty() || result != kSanitizerSuccess) return false;
  const auto add = [&](uint32_t instruction, const char *function) {
    if (result == kSanitizerSuccess) result = api_.patch_instructions(instruction, module, function);
  };
  const std::string access = key.substr(0, key.find('+'));
  if (!access.empty()) add(instruction::kGlobalAccess, ("sonde_" + access).c_str());
  if (access != "empty" && access != "naive") {
    if (!access.empty() || key.find("+events") != std::string::npos) {
      add(instruction::kMemcpyAsync, "sonde_copy_async");
      add(instruction::kBulkGlobalToShared, "sonde_bulk_load");
      add(instruction::kBulkSharedToGlobal, "sonde_bulk_store");
      add(instruction::kBulkReduceToGlobal, "sonde_bulk_reduce");
    }
    if (key.find("+shared") != std::string::npos) add(instruction::kSharedAccess, "sonde_shared");
    if (key.find("+events") != std::string::npos) {
      add(instruction::kBlockEnter, "sonde_block_enter");
      add(instruction::kBlockExit, "sonde_block_exit");
      add(instruction::kBarrier, "sonde_barrier");
      add(instruction::kWarpBarrier, "sonde_warp_barrier");
      add(instruction::kDeviceMalloc, "sonde_malloc");
      add(instruction::kDeviceAlignedMalloc, "sonde_malloc");
      add(instruction::kDeviceFree, "sonde_free");
      add(instruction::kPipelineCommit, "sonde_pipeline_commit");
      add(instruction::kPipelineWait, "sonde_pipeline_wait");
      add(instruction::kClusterArrive, "sonde_cluster_arrive");
      add(instruction::kClusterWait, "sonde_cluster_wait");
      add(instruction::kCall, "sonde_call");
      add(instruction::kReturn, "sonde_return");
      add(instruction::kCudaBarrier, "sonde_shared_barrier");
    }
  }
  if (result == kSanitizerSuccess) result = api_.patch_module(module);
  if (result != kSanitizerSuccess) {
    info.refused = true;
    const std::shared_lock hold(ports_mutex_);
    tell(2, api_.explain("a module could not be patched; its launches are marked", result));
    return false;
  }
  info.patched = key;
  return true;
}

// The patched modules of which no kernel runs: unpatching waits for those. Called with the modules' mutex.
std::vector<Module> Watcher::take_patched() {
  std::erase_if(abandoned_, [](const Abandoned &launch) { return launch.slot->over(); });
  std::vector<Module> out;
  for (auto &[module, info] : modules_) {
    const bool runs = std::any_of(abandoned_.begin(), abandoned_.end(), [&](const Abandoned &launch) {
      return launch.module == reinterpret_cast<uint64_t>(module);
    });
    if (info.patched.empty() || runs) continue;
    out.push_back(module);
    info.patched.clear();
  }
  return out;
}

Space *Watcher::space_of(Context context) {
  const auto found = spaces_.find(context);
  return found != spaces_.end() && found->second->ready() ? found->second.get() : nullptr;
}

FunctionInfo &Watcher::function_of(const Launch &launch) {
  const auto [place, added] = functions_.try_emplace(launch.function);
  FunctionInfo &info = place->second;
  if (!added) return info;
  const char *const name = launch.function_name != nullptr ? launch.function_name : "";
  info.plain_name = name;
  info.module = reinterpret_cast<uint64_t>(launch.module);
  (void)services().capture->intern(name, UINT64_MAX, &info.name);
  (void)api_.function_range(launch.module, name, &info.begin, &info.bytes);
  if (const auto module = modules_.find(launch.module); module != modules_.end()) {
    info.incomplete = module->second.incomplete.contains(name);
  }
  // Another launch of each period than of the function before, so that kernels that alternate are all seen.
  info.offset = static_cast<uint32_t>(functions_.size() - 1);
  return info;
}

// ---- callbacks: launches ---------------------------------------------------------------------------------------------

// Deeper inside the driver nothing may wait for the port's threads, which call the driver themselves.
void Watcher::wait_for_room(Context context) {
  withdraw_promise();
  Space *space = nullptr;
  uint32_t features = 0;
  {
    const std::lock_guard hold(module_mutex_);
    space = space_of(context);
    features = wish_.features;
    if (space == nullptr || features == 0 || wish_.floor || wish_.kernel_period > 1) return;
    if (!settings_.space.stall) return;
  }
  bool promised = space->promise(features);
  if (!promised) {
    std::unique_lock lock(queue_mutex_);
    wake_.notify_all();
    idle_.wait_for(lock, kLongestWait, [&] { return exited_ || (promised = space->promise(features)); });
  }
  if (promised) promise = {space, features};
}

// After the call: what it did not use up.
void Watcher::withdraw_promise() {
  if (promise.space != nullptr) promise.space->withdraw(promise.features);
  promise = {};
}

void Watcher::on_launch_begin(const Launch &launch, uint64_t graph_node, uint64_t graph_exec) {
  if (!active_) return;
  auto entry = std::make_unique<LaunchEntry>();
  entry->stream = reinterpret_cast<uint64_t>(graph_node != 0 ? launch.api_stream : launch.stream);
  entry->handle = graph_node != 0 ? launch.api_stream_handle : launch.stream_handle;
  entry->graph_node = graph_node;
  entry->graph_exec = static_cast<uint32_t>(graph_exec);
  entry->grid_id = launch.grid_id;
  entry->device = static_cast<uint32_t>(launch.device);
  std::copy(std::begin(launch.grid), std::end(launch.grid), entry->grid);
  std::copy(std::begin(launch.block), std::end(launch.block), entry->block);
  {
    const std::lock_guard hold(queue_mutex_);
    entry->ordinal = ++last_launch_;
    entry->stamp = sonde_stamp();
    begun_.emplace(entry->ordinal, entry->stamp);
  }
  const std::lock_guard hold(module_mutex_);
  entry->handle_of_function = launch.function;
  if (!join_twin(launch, *entry)) begin_alone(launch, *entry);
  open_launches.push_back(std::move(entry));
}

// Nodes of one graph launch that run the same function share their data, whatever is set for each: the last one's
// counts for all. So the first gets a State, and the others say where they are counted. False: it is the first.
bool Watcher::join_twin(const Launch &launch, LaunchEntry &entry) {
  if (entry.graph_node == 0) return false;
  const auto twin = std::find_if(open_launches.begin(), open_launches.end(), [&](const auto &other) {
    return other->handle_of_function == launch.function && other->counted_in == 0;
  });
  if (twin == open_launches.end()) return false;
  const LaunchEntry &first = **twin;
  ++function_of(launch).launches;
  entry.function = first.function;
  entry.kernel_period = first.kernel_period;
  entry.flags = first.flags;
  if (first.slot == nullptr) return true;
  entry.flags |= SONDE_LAUNCH_SHARED;
  entry.counted_in = first.ordinal;
  (void)api_.set_launch_data(launch.handle, launch.function, launch.stream_handle, first.slot->memory);
  return true;
}

void Watcher::begin_alone(const Launch &launch, LaunchEntry &entry) {
  FunctionInfo &function = function_of(launch);
  const bool filtered = (!wish_.only.empty() && !contains_any(function.plain_name, wish_.only)) ||
                        contains_any(function.plain_name, wish_.except);
  const uint32_t period = std::max(wish_.kernel_period, 1u);
  // The first launch of each function is watched, then one of each period.
  const uint64_t number = function.launches++;
  const bool chosen = number == 0 || number % period == function.offset % period;
  entry.kernel_period = period;
  entry.function = function;
  Space *const space = space_of(launch.context);
  const auto module = modules_.find(launch.module);
  const bool toggles = period > 1 || !wish_.only.empty() || !wish_.except.empty();
  bool patched = false;
  if (module != modules_.end()) {
    const bool wanted = !filtered && chosen && space != nullptr;
    patched = patch(launch.module, module->second, wanted || !toggles ? patch_key() : "");
  }
  if (!spaces_.contains(launch.context) && unknown_contexts_.insert(launch.context).second) {
    const std::shared_lock ports(ports_mutex_);
    tell(3, "no data on the accesses of a context because it was made before the port started");
  }
  if (filtered || !chosen) {
    entry.flags |= SONDE_LAUNCH_SKIPPED;
  } else if (wish_.features == 0) {
    // Launches alone are wanted.
  } else if (space == nullptr || !patched) {
    entry.flags |= SONDE_LAUNCH_UNPATCHED;
  } else {
    if (function.incomplete) entry.flags |= SONDE_LAUNCH_INCOMPLETE;
    entry.flags |= give_state(launch, function, *space, number, entry);
  }
  if (patched && entry.slot == nullptr) {
    (void)api_.set_launch_data(launch.handle, launch.function, launch.stream_handle, nullptr);
  }
}

// Returns the flag that says how it went.
uint32_t Watcher::give_state(const Launch &launch, const FunctionInfo &function, Space &space, uint64_t number,
                             LaunchEntry &entry) {
  std::shared_ptr<const Table> table;
  {
    const std::lock_guard live(live_mutex_);
    table = space.table(live_, wish_.features);
  }
  const bool promised = promise.space == &space && promise.features == wish_.features;
  Slot *const slot = table != nullptr ? space.take(wish_.features, table, promised) : nullptr;
  if (promised && table != nullptr) promise = {};
  if (slot == nullptr) return SONDE_LAUNCH_STATE_FULL;
  slot->sequence = ++last_sequence_;
  slot->state.launch = entry.ordinal;
  slot->state.block_period = std::max(wish_.block_period, 1u);
  slot->state.block_offset = static_cast<uint32_t>(number % slot->state.block_period);
  slot->state.function_begin = static_cast<uint32_t>(function.begin);
  if (!space.upload(*slot, entry.handle) ||
      api_.set_launch_data(launch.handle, launch.function, launch.stream_handle, slot->memory) != kSanitizerSuccess) {
    space.give_back(slot);
    return SONDE_LAUNCH_UNPATCHED;
  }
  entry.space = &space;
  entry.slot = slot;
  return SONDE_LAUNCH_WATCHED;
}

void Watcher::on_launch_end(StreamHandle) {
  if (open_launches.empty() || in_graph) return;
  for (auto &entry : open_launches) {
    if (entry->slot != nullptr) (void)entry->space->mark_end(*entry->slot, entry->handle);
  }
  const std::lock_guard hold(queue_mutex_);
  for (auto &entry : open_launches) queue_.push_back(std::move(entry));
  open_launches.clear();
  wake_.notify_one();
}

void Watcher::on_graph(uint32_t id, const void *data) {
  switch (id) {
    case graphs::kExecCreated: {
      const auto &created = *static_cast<const GraphExecEvent *>(data);
      if (created.is_device_launch == 0 && created.contains_device_launches == 0) break;
      const std::shared_lock hold(ports_mutex_);
      tell(3, "no data on the accesses of graphs that device code launches because their launches are not seen");
      break;
    }
    case graphs::kLaunchBegin:
      in_graph = static_cast<const GraphLaunch *>(data)->is_upload == 0;
      break;
    case graphs::kNodeBegin: {
      const auto &node = *static_cast<const GraphNodeLaunch *>(data);
      if (!in_graph || node.node_type != kGraphNodeKernel) break;
      uint32_t number = 0;
      {
        const std::lock_guard hold(module_mutex_);
        const auto [place, added] = graph_numbers_.try_emplace(node.exec, last_graph_ + 1);
        if (added) ++last_graph_;
        number = place->second;
      }
      on_launch_begin(node.launch, reinterpret_cast<uint64_t>(node.node), number);
      break;
    }
    case graphs::kLaunchEnd:
      if (!in_graph) break;
      in_graph = false;
      on_launch_end(nullptr);
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

void Watcher::carry_records(size_t number) {
  own_thread = true;
  services().capture->enter();
  uint32_t patience = 0;
  // After the end until there is nothing left, or no time.
  const auto late = [&] {
    return stopping_ && std::chrono::steady_clock::now().time_since_epoch().count() >= carry_until_;
  };
  while (!late()) {
    Space *space = nullptr;
    uint32_t block = 0;
    bool found = false;
    {
      const std::lock_guard hold(module_mutex_);
      for (auto &[context, candidate] : spaces_) {
        if (!candidate->ready() || !candidate->next_full(block)) continue;
        space = candidate.get();
        found = true;
        ++carrying_;
        break;
      }
    }
    if (!found && stopping_) break;
    if (!found) {
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
      (void)api_.pinned_memory(&memory, kBlockBytes);
      staging = static_cast<uint8_t *>(memory);
    }
    const bool good = pushed && staging != nullptr && stream != nullptr &&
                      api_.copy_to_host(staging, space->block_address(block), kBlockBytes, stream) == kSanitizerSuccess;
    if (pushed) (void)api_.pop_context(&outer);
    space->free_block(block);
    {
      const std::shared_lock reading(reading_mutex_);
      const std::vector<Port *> ports = current_ports();
      if (good) {
        BlockHead head;
        std::memcpy(&head, staging, sizeof(head));
        emit_block(ports, staging, std::min<uint64_t>(head.used, kBlockBytes), static_cast<int64_t>(number), 0);
      } else {
        lose_block(ports);
      }
    }
    const std::lock_guard hold(module_mutex_);
    --carrying_;
  }
  services().capture->leave();
}

}  // namespace sonde::cuda::access
