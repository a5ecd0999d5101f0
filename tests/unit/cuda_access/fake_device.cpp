// See fake_device.h. The entry points of both libraries are at the end.
#include "fake_device.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "device/state.h"
#include "fake_edges.h"

namespace sonde::cuda::access::test {

namespace {

constexpr SanitizerResult kFailed = 999;
constexpr int32_t kDriverFailed = 400;  // CUDA_ERROR_INVALID_HANDLE

void copy_bytes(void *to, const void *from, size_t bytes) {
  // A word arrives whole, and after what came before it.
  if (bytes == sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, from, sizeof(value));
    __atomic_store_n(static_cast<uint64_t *>(to), value, __ATOMIC_RELEASE);
  } else {
    std::memcpy(to, from, bytes);
  }
}

// Does its work in order on a thread of its own, which lives as long as the process.
class StreamQueue {
 public:
  StreamQueue(Context context, uint32_t number) : context_(context), number_(number) {
    std::thread([this] { work(); }).detach();
  }
  void add(std::function<void()> task) {
    const std::lock_guard hold(mutex_);
    tasks_.push_back(std::move(task));
    ++pending_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pending_ == 0; });
  }
  Context context() const { return context_; }
  uint32_t number() const { return number_; }

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !tasks_.empty(); });
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
      task = nullptr;
      const std::lock_guard hold(mutex_);
      --pending_;
      changed_.notify_all();
    }
  }

  Context context_;
  uint32_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  uint64_t pending_ = 0;
};

struct FakeModule {
  Context context = nullptr;
  std::string code;
  bool own = false;                         // the port's: no callbacks
  std::map<uint32_t, std::string> pending;  // patches that are asked for
  std::map<uint32_t, std::string> active;
  uint64_t running = 0;
};

struct FakeFunction {
  FakeModule *module = nullptr;
  std::string name;
  Kernel kernel;
  EdgeKernel edges = nullptr;
  uint64_t begin = 0;
};

constexpr uint64_t kFunctionBytes = 0x1000;

struct FakeContext {
  int32_t device = 0;
  StreamQueue *stream = nullptr;
};

struct FakeLaunch {
  void *data = nullptr;
};

struct Block {
  uint64_t bytes;
  Context context;
  bool pinned;
};

class Device final : public FakeDevice {
 public:
  // ---- the program ---------------------------------------------------------------------------------------------------

  Context create_context(int32_t device) override {
    const std::lock_guard driver(driver_);
    auto *const made = new FakeContext;
    made->device = device;
    const auto context = reinterpret_cast<Context>(made);
    made->stream = new_stream(context);
    {
      const std::lock_guard hold(mutex_);
      contexts_.insert(context);
    }
    const ResourceContext data = {context, device};
    call(domain::kResource, resource::kContextCreated, &data);
    return context;
  }

  void destroy_context(Context context) override {
    constexpr uint32_t kContextDestroy = 322;  // SANITIZER_CBID_DRIVER_cuCtxDestroy_v2
    const Inside inside(*this, context, kContextDestroy);
    const ResourceContext data = {context, reinterpret_cast<FakeContext *>(context)->device};
    call(domain::kResource, resource::kContextDestroyStarting, &data);
    const std::lock_guard hold(mutex_);
    contexts_.erase(context);
    // What was made in it is gone, and may not be touched any more.
    std::erase_if(memory_, [&](const auto &entry) {
      if (entry.second.context != context) return false;
      forget(entry.first, entry.second);
      return true;
    });
  }

  Module load_module(Context context, const std::string &code) override {
    const std::lock_guard driver(driver_);
    auto *const made = new_module(context, code, false);
    const ResourceModule data = {context, reinterpret_cast<Module>(made), made->code.size(), made->code.data(),
                                 nullptr};
    call(domain::kResource, resource::kModuleLoaded, &data);
    return reinterpret_cast<Module>(made);
  }

  void unload_module(Module module) override {
    const std::lock_guard driver(driver_);
    auto *const gone = reinterpret_cast<FakeModule *>(module);
    const ResourceModule data = {gone->context, module, gone->code.size(), gone->code.data(), nullptr};
    call(domain::kResource, resource::kModuleUnloadStarting, &data);
    const std::lock_guard hold(mutex_);
    if (!gone->active.empty()) --counts.patched;
    modules_.erase(gone);
    --counts.modules;
  }

  Function add_function(Module module, const std::string &name, Kernel kernel) override {
    const std::lock_guard hold(mutex_);
    auto *const made = new FakeFunction;
    made->module = reinterpret_cast<FakeModule *>(module);
    made->name = name;
    made->kernel = std::move(kernel);
    made->begin = 0x7f0000000000 + kFunctionBytes * ++last_function_;
    functions_.push_back(made);
    return reinterpret_cast<Function>(made);
  }

  Stream create_stream(Context context) override {
    const std::lock_guard driver(driver_);
    return reinterpret_cast<Stream>(new_stream(context));
  }

  void *allocate(Context context, uint64_t bytes, uint32_t flags, Stream ordered) override {
    void *const out = std::aligned_alloc(256, (bytes + 255) & ~uint64_t{255});
    std::memset(out, 0xa5, bytes);
    {
      const std::lock_guard hold(mutex_);
      program_memory_[reinterpret_cast<uint64_t>(out)] = {bytes, context, false};
    }
    tell(context, ordered != nullptr ? resource::kAllocatedAsync : resource::kDeviceAllocated,
         reinterpret_cast<uint64_t>(out), bytes, flags, ordered);
    return out;
  }

  void free(void *address, Stream ordered) override {
    Block block = {};
    {
      const std::lock_guard hold(mutex_);
      const auto found = program_memory_.find(reinterpret_cast<uint64_t>(address));
      block = found->second;
      program_memory_.erase(found);
    }
    tell(block.context, ordered != nullptr ? resource::kFreedAsync : resource::kDeviceFreed,
         reinterpret_cast<uint64_t>(address), block.bytes, 0, ordered);
    std::free(address);
  }

  void tell_allocated(Context context, uint64_t address, uint64_t bytes, uint32_t flags) override {
    tell(context, resource::kDeviceAllocated, address, bytes, flags, nullptr);
  }
  void tell_freed(Context context, uint64_t address, uint64_t bytes) override {
    tell(context, resource::kDeviceFreed, address, bytes, 0, nullptr);
  }

  void tell_copy(const MemcpyData &copy) override { call(domain::kMemcpy, kTransferStarting, &copy); }
  void tell_set(const MemsetData &set) override { call(domain::kMemset, kTransferStarting, &set); }

  void map(Context context, uint64_t address, uint64_t bytes) override {
    const MemMapParameters parameters = {address, bytes, 0, 1, 0};
    api_call(context, driver_call::kMemMap, &parameters);
  }
  void unmap(Context context, uint64_t address, uint64_t bytes) override {
    const MemUnmapParameters parameters = {address, bytes};
    api_call(context, driver_call::kMemUnmap, &parameters);
  }

  void launch(Context context, Function function, Stream stream, uint32_t grid, uint32_t block) override {
    constexpr uint32_t kLaunchKernel = 307;  // SANITIZER_CBID_DRIVER_cuLaunchKernel
    StreamQueue *const queue = queue_of(context, stream);
    const Inside inside(*this, context, kLaunchKernel);
    FakeLaunch made;
    Launch data = launch_data(context, function, stream, queue, made, grid, block);
    call(domain::kLaunch, launch::kBegin, &data);
    run(function, queue, made, grid, block);
    call(domain::kLaunch, launch::kEnd, &data);
  }

  GraphExec create_graph(bool contains_device_launches) override {
    const std::lock_guard driver(driver_);
    const auto graph = reinterpret_cast<GraphExec>(0x1000 + ++last_graph_);
    GraphExecEvent data = {};
    data.exec = graph;
    data.contains_device_launches = contains_device_launches ? 1 : 0;
    call(domain::kGraphs, graphs::kExecCreated, &data);
    return graph;
  }

  void launch_graph(Context context, GraphExec graph, const std::vector<GraphNodeOfTest> &nodes,
                    Stream stream) override {
    constexpr uint32_t kGraphLaunch = 514;  // SANITIZER_CBID_DRIVER_cuGraphLaunch
    StreamQueue *const queue = queue_of(context, stream);
    const Inside inside(*this, context, kGraphLaunch);
    const GraphLaunch data = {context, stream, reinterpret_cast<StreamHandle>(queue), graph, 0};
    call(domain::kGraphs, graphs::kLaunchBegin, &data);
    std::vector<FakeLaunch> launches(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      GraphNodeLaunch node = {};
      node.exec = graph;
      node.node = reinterpret_cast<GraphNode>(nodes[i].node);
      node.node_type = kGraphNodeKernel;
      node.launch = launch_data(context, nodes[i].function, nullptr, nullptr, launches[i], 1, 32);
      node.launch.api_stream = stream;
      node.launch.api_stream_handle = reinterpret_cast<StreamHandle>(queue);
      call(domain::kGraphs, graphs::kNodeBegin, &node);
      call(domain::kGraphs, graphs::kNodeEnd, &node);
    }
    // As seen on a device: data set for launches are the last one's for all nodes, and where a function has data of its
    // own, its nodes have those.
    void *last = nullptr;
    for (const FakeLaunch &made : launches) last = made.data != nullptr ? made.data : last;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::lock_guard hold(mutex_);
      const auto own = function_data_.find(nodes[i].function);
      launches[i].data = own != function_data_.end() && own->second != nullptr ? own->second : last;
    }
    for (size_t i = 0; i < nodes.size(); ++i) run(nodes[i].function, queue, launches[i], 1, 32);
    call(domain::kGraphs, graphs::kLaunchEnd, &data);
  }

  void synchronize(Context context, Stream stream) override { queue_of(context, stream)->wait(); }
  void synchronize_all() override {
    std::vector<StreamQueue *> all;
    {
      const std::lock_guard hold(mutex_);
      all = streams_;
    }
    for (StreamQueue *stream : all) stream->wait();
  }

  // ---- the sanitizer -------------------------------------------------------------------------------------------------

  SanitizerResult subscribe(SubscriberHandle *out, Callback callback, void *user) {
    const std::lock_guard driver(driver_);
    if (settings.refuse_subscribing || callback_ != nullptr) return kFailed;
    callback_ = callback;
    user_ = user;
    ++counts.subscribers;
    *out = reinterpret_cast<SubscriberHandle>(this);
    return kSanitizerSuccess;
  }

  SanitizerResult unsubscribe() {
    const std::lock_guard driver(driver_);
    callback_ = nullptr;
    --counts.subscribers;
    return kSanitizerSuccess;
  }

  SanitizerResult enable_domain(uint32_t enable, uint32_t number) {
    const std::lock_guard driver(driver_);
    enable != 0 ? (void)domains_.insert(number) : (void)domains_.erase(number);
    return kSanitizerSuccess;
  }

  SanitizerResult enable_callback(uint32_t enable, uint32_t number, uint32_t id) {
    const std::lock_guard driver(driver_);
    const auto key = std::make_pair(number, id);
    enable != 0 ? (void)callbacks_.insert(key) : (void)callbacks_.erase(key);
    return kSanitizerSuccess;
  }

  SanitizerResult patch_instructions(uint32_t instruction, Module module, const char *function) {
    const std::lock_guard driver(driver_);
    FakeModule *const found = module_of(module);
    if (found == nullptr) return kFailed;
    found->pending[instruction] = function;
    return kSanitizerSuccess;
  }

  SanitizerResult patch_module(Module module) {
    const std::lock_guard driver(driver_);
    FakeModule *const found = module_of(module);
    if (found == nullptr || settings.refuse_patching) return kFailed;
    const std::lock_guard hold(mutex_);
    if (found->active.empty()) ++counts.patched;
    found->active = std::move(found->pending);
    found->pending.clear();
    ++counts.patches;
    return kSanitizerSuccess;
  }

  SanitizerResult unpatch_module(Module module) {
    const std::lock_guard driver(driver_);
    FakeModule *const found = module_of(module);
    if (found == nullptr) return kFailed;
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return found->running == 0; });
    if (!found->active.empty()) --counts.patched;
    found->active.clear();
    found->pending.clear();
    return kSanitizerSuccess;
  }

  SanitizerResult set_function_data(Function function, const void *data) {
    const std::lock_guard hold(mutex_);
    function_data_[function] = const_cast<void *>(data);
    return kSanitizerSuccess;
  }
  SanitizerResult set_launch_data(LaunchHandle launch, const void *data) {
    reinterpret_cast<FakeLaunch *>(launch)->data = const_cast<void *>(data);
    return kSanitizerSuccess;
  }

  SanitizerResult function_range(Module module, const char *name, uint64_t *begin, uint64_t *bytes) {
    const std::lock_guard hold(mutex_);
    for (const FakeFunction *function : functions_) {
      if (function->module != reinterpret_cast<FakeModule *>(module) || function->name != name) continue;
      *begin = function->begin;
      *bytes = kFunctionBytes;
      return kSanitizerSuccess;
    }
    return kFailed;
  }

  SanitizerResult own_memory(Context context, void **out, size_t bytes, bool pinned) {
    const std::lock_guard driver(driver_);
    if (!pinned && settings.refuse_memory) return kFailed;
    *out = std::aligned_alloc(256, (bytes + 255) & ~size_t{255});
    if (*out == nullptr) return kFailed;
    // Large pieces are not filled, so that what nobody touches costs nothing.
    if (bytes <= (4u << 20)) std::memset(*out, 0xa5, bytes);
    const std::lock_guard hold(mutex_);
    memory_[reinterpret_cast<uint64_t>(*out)] = {bytes, context, pinned};
    (pinned ? counts.host_bytes : counts.device_bytes) += bytes;
    return kSanitizerSuccess;
  }

  SanitizerResult free_own(void *address) {
    const std::lock_guard driver(driver_);
    const std::lock_guard hold(mutex_);
    const auto found = memory_.find(reinterpret_cast<uint64_t>(address));
    if (found == memory_.end()) {
      ++counts.bad_calls;
      return kFailed;
    }
    forget(found->first, found->second);
    memory_.erase(found);
    return kSanitizerSuccess;
  }

  SanitizerResult copy_async(void *to, const void *from, size_t bytes, StreamHandle stream) {
    const std::lock_guard driver(driver_);
    StreamQueue *const queue = known(stream);
    if (queue == nullptr) return kFailed;
    // The source is read now, as of pageable memory.
    auto content = std::make_shared<std::vector<uint8_t>>(static_cast<const uint8_t *>(from),
                                                          static_cast<const uint8_t *>(from) + bytes);
    queue->add([=] { copy_bytes(to, content->data(), content->size()); });
    return kSanitizerSuccess;
  }

  SanitizerResult set(void *to, int value, size_t bytes, StreamHandle stream) {
    const std::lock_guard driver(driver_);
    StreamQueue *const queue = known(stream);
    if (queue == nullptr) return kFailed;
    queue->add([=] { std::memset(to, value, bytes); });
    return kSanitizerSuccess;
  }

  SanitizerResult wait(StreamHandle stream) {
    StreamQueue *const queue = known(stream);
    if (queue == nullptr) return kFailed;
    queue->wait();
    return kSanitizerSuccess;
  }

  SanitizerResult handle_of(Context context, Stream stream, StreamHandle *out) {
    *out = reinterpret_cast<StreamHandle>(queue_of(context, stream));
    return kSanitizerSuccess;
  }

  Context current() const { return current_.empty() ? nullptr : current_.back(); }

  // ---- the driver ----------------------------------------------------------------------------------------------------

  int32_t driver_stream(Stream *out) {
    const std::lock_guard driver(driver_);
    *out = reinterpret_cast<Stream>(new_stream(current()));
    return 0;
  }

  int32_t push(Context context) {
    const std::lock_guard driver(driver_);
    const std::lock_guard hold(mutex_);
    if (!contexts_.contains(context)) return kDriverFailed;
    current_.push_back(context);
    return 0;
  }

  int32_t pop(Context *out) {
    if (current_.empty()) {
      ++counts.bad_calls;
      return kDriverFailed;
    }
    *out = current_.back();
    current_.pop_back();
    return 0;
  }

  int32_t load_own(Module *out) {
    const std::lock_guard driver(driver_);
    *out = reinterpret_cast<Module>(new_module(current(), "", true));
    return 0;
  }

  int32_t own_function(Function *out, Module module, const char *name) {
    const std::lock_guard hold(mutex_);
    auto *const made = new FakeFunction;
    made->module = reinterpret_cast<FakeModule *>(module);
    made->name = name;
    made->edges = edge_kernel(name);
    functions_.push_back(made);
    *out = reinterpret_cast<Function>(made);
    return made->edges != nullptr ? 0 : kDriverFailed;
  }

  int32_t launch_own(Function function, uint32_t grid, uint32_t grid_y, Stream stream, void **arguments) {
    const std::lock_guard driver(driver_);
    StreamQueue *const queue = known(reinterpret_cast<StreamHandle>(stream));
    if (queue == nullptr) return kDriverFailed;
    // Arguments are read now.
    queue->add(reinterpret_cast<FakeFunction *>(function)->edges(grid, grid_y, arguments));
    return 0;
  }

  int32_t copy_from_device(void *to, uint64_t from, size_t bytes, Stream stream) {
    const std::lock_guard driver(driver_);
    StreamQueue *const queue = known(reinterpret_cast<StreamHandle>(stream));
    if (queue == nullptr) return kDriverFailed;
    queue->add([=, this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(settings.copy_delay.load()));
      std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    });
    return 0;
  }

  int32_t wait(Stream stream) {
    { const std::lock_guard driver(driver_); }
    return wait(reinterpret_cast<StreamHandle>(stream)) == kSanitizerSuccess ? 0 : kDriverFailed;
  }

 private:
  void call(uint32_t number, uint32_t id, const void *data) {
    if (callback_ != nullptr && domains_.contains(number)) callback_(user_, number, id, data);
  }

  // Entering a driver call, before its lock is taken, or leaving it after.
  void call_of_program(Context context, uint32_t id, uint32_t site) {
    const int32_t result = 0;
    ApiCall data = {site, "", nullptr, &result, "", context};
    Callback callback = nullptr;
    void *user = nullptr;
    {
      const std::lock_guard driver(driver_);
      if (!callbacks_.contains({domain::kDriverApi, id})) return;
      callback = callback_;
      user = user_;
    }
    if (callback != nullptr) callback(user, domain::kDriverApi, id, &data);
  }

  // One driver call of the program.
  class Inside {
   public:
    Inside(Device &device, Context context, uint32_t id) : device_(device), context_(context), id_(id) {
      device_.call_of_program(context_, id_, 0);
      device_.driver_.lock();
    }
    ~Inside() {
      device_.driver_.unlock();
      device_.call_of_program(context_, id_, kApiExit);
    }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;

   private:
    Device &device_;
    Context context_;
    uint32_t id_;
  };

  void api_call(Context context, uint32_t id, const void *parameters) {
    const std::lock_guard driver(driver_);
    if (callback_ == nullptr || !callbacks_.contains({domain::kDriverApi, id})) return;
    const int32_t result = 0;
    ApiCall data = {0, "", parameters, &result, "", context};
    callback_(user_, domain::kDriverApi, id, &data);
    data.site = kApiExit;
    callback_(user_, domain::kDriverApi, id, &data);
  }

  void tell(Context context, uint32_t id, uint64_t address, uint64_t bytes, uint32_t flags, Stream ordered) {
    const std::lock_guard driver(driver_);
    ResourceMemory data = {};
    data.address = address;
    data.bytes = bytes;
    data.context = context;
    data.stream = ordered;
    data.pool = ordered != nullptr ? this : nullptr;
    data.flags = flags;
    call(domain::kResource, id, &data);
  }

  Launch launch_data(Context context, Function function, Stream stream, StreamQueue *queue, FakeLaunch &made,
                     uint32_t grid, uint32_t block) {
    auto *const known_function = reinterpret_cast<FakeFunction *>(function);
    Launch data = {};
    data.context = context;
    data.stream = stream;
    data.stream_handle = reinterpret_cast<StreamHandle>(queue);
    data.module = reinterpret_cast<Module>(known_function->module);
    data.function = function;
    data.function_name = known_function->name.c_str();
    data.grid[0] = grid, data.grid[1] = data.grid[2] = 1;
    data.block[0] = block, data.block[1] = data.block[2] = 1;
    data.grid_id = ++last_grid_;
    data.handle = reinterpret_cast<LaunchHandle>(&made);
    return data;
  }

  void run(Function function, StreamQueue *queue, const FakeLaunch &made, uint32_t grid, uint32_t block) {
    auto *const known_function = reinterpret_cast<FakeFunction *>(function);
    FakeModule *const module = known_function->module;
    KernelRun one = {{grid, 1, 1}, {block, 1, 1}, made.data, {}, known_function->begin, queue->number()};
    {
      const std::lock_guard hold(mutex_);
      one.patches = module->active;
      ++module->running;
    }
    queue->add([this, one, known_function, module] {
      if (known_function->kernel) known_function->kernel(one);
      const std::lock_guard hold(mutex_);
      --module->running;
      ended_.notify_all();
    });
  }

  FakeModule *new_module(Context context, const std::string &code, bool own) {
    auto *const made = new FakeModule;
    made->context = context;
    made->code = code;
    made->own = own;
    const std::lock_guard hold(mutex_);
    modules_.insert(made);
    ++counts.modules;
    return made;
  }

  FakeModule *module_of(Module module) {
    const std::lock_guard hold(mutex_);
    auto *const found = reinterpret_cast<FakeModule *>(module);
    if (modules_.contains(found)) return found;
    ++counts.bad_calls;
    return nullptr;
  }

  StreamQueue *new_stream(Context context) {
    const std::lock_guard hold(mutex_);
    streams_.push_back(new StreamQueue(context, static_cast<uint32_t>(streams_.size())));
    ++counts.streams;
    return streams_.back();
  }

  StreamQueue *queue_of(Context context, Stream stream) {
    return stream != nullptr ? reinterpret_cast<StreamQueue *>(stream)
                             : reinterpret_cast<FakeContext *>(context)->stream;
  }

  // Null for a stream of a context that is gone.
  StreamQueue *known(StreamHandle stream) {
    auto *const queue = reinterpret_cast<StreamQueue *>(stream);
    const std::lock_guard hold(mutex_);
    if (queue != nullptr && (queue->context() == nullptr || contexts_.contains(queue->context()))) return queue;
    return nullptr;
  }

  void forget(uint64_t address, const Block &block) {
    (block.pinned ? counts.host_bytes : counts.device_bytes) -= block.bytes;
    std::free(reinterpret_cast<void *>(address));
  }

  std::recursive_mutex driver_;
  std::mutex mutex_;
  std::condition_variable ended_;
  Callback callback_ = nullptr;
  void *user_ = nullptr;
  std::set<uint32_t> domains_;
  std::set<std::pair<uint32_t, uint32_t>> callbacks_;
  std::set<Context> contexts_;
  std::set<FakeModule *> modules_;
  std::vector<FakeFunction *> functions_;
  std::vector<StreamQueue *> streams_;
  std::map<Function, void *> function_data_;
  std::map<uint64_t, Block> memory_;          // of the port
  std::map<uint64_t, Block> program_memory_;  // of the program
  uint64_t last_function_ = 0;
  uint64_t last_graph_ = 0;
  std::atomic<uint64_t> last_grid_{0};
  static thread_local std::vector<Context> current_;
};

thread_local std::vector<Context> Device::current_;

Device &device() {
  static Device *const made = new Device;
  return *made;
}

}  // namespace

}  // namespace sonde::cuda::access::test

using namespace sonde::cuda::access;
using namespace sonde::cuda::access::test;

extern "C" {

FakeDevice *sonde_fake_device() { return &device(); }

SanitizerResult sanitizerSubscribe(SubscriberHandle *out, Callback callback, void *user) {
  return device().subscribe(out, callback, user);
}
SanitizerResult sanitizerUnsubscribe(SubscriberHandle) { return device().unsubscribe(); }
SanitizerResult sanitizerEnableDomain(uint32_t enable, SubscriberHandle, uint32_t domain) {
  return device().enable_domain(enable, domain);
}
SanitizerResult sanitizerEnableCallback(uint32_t enable, SubscriberHandle, uint32_t domain, uint32_t id) {
  return device().enable_callback(enable, domain, id);
}
SanitizerResult sanitizerGetResultString(SanitizerResult result, const char **text) {
  *text = result == kSanitizerSuccess ? "success" : "the fake refuses";
  return kSanitizerSuccess;
}
SanitizerResult sanitizerAddPatches(const void *image, Context) { return image != nullptr ? kSanitizerSuccess : 1; }
SanitizerResult sanitizerPatchInstructions(uint32_t instruction, Module module, const char *function) {
  return device().patch_instructions(instruction, module, function);
}
SanitizerResult sanitizerPatchModule(Module module) { return device().patch_module(module); }
SanitizerResult sanitizerUnpatchModule(Module module) { return device().unpatch_module(module); }
SanitizerResult sanitizerSetCallbackData(Function function, const void *data) {
  return device().set_function_data(function, data);
}
SanitizerResult sanitizerSetLaunchCallbackData(LaunchHandle launch, Function, StreamHandle, const void *data) {
  return device().set_launch_data(launch, data);
}
SanitizerResult sanitizerGetFunctionPcAndSize(Module module, const char *name, uint64_t *begin, uint64_t *bytes) {
  return device().function_range(module, name, begin, bytes);
}
SanitizerResult sanitizerAlloc(Context context, void **out, size_t bytes) {
  return device().own_memory(context, out, bytes, false);
}
SanitizerResult sanitizerAllocHost(Context context, void **out, size_t bytes) {
  return device().own_memory(context, out, bytes, true);
}
SanitizerResult sanitizerFree(Context, void *address) { return device().free_own(address); }
SanitizerResult sanitizerMemcpyHostToDeviceAsync(void *to, const void *from, size_t bytes, StreamHandle stream) {
  return device().copy_async(to, from, bytes, stream);
}
SanitizerResult sanitizerMemcpyDeviceToHost(void *to, const void *from, size_t bytes, StreamHandle stream) {
  const int32_t status =
      device().copy_from_device(to, reinterpret_cast<uint64_t>(from), bytes, reinterpret_cast<Stream>(stream));
  return status == 0 ? device().wait(stream) : status;
}
SanitizerResult sanitizerMemset(void *to, int value, size_t bytes, StreamHandle stream) {
  return device().set(to, value, bytes, stream);
}
SanitizerResult sanitizerStreamSynchronize(StreamHandle stream) { return device().wait(stream); }
SanitizerResult sanitizerGetStreamHandle(Context context, Stream stream, StreamHandle *out) {
  return device().handle_of(context, stream, out);
}

int32_t cuStreamCreateWithPriority(Stream *out, uint32_t, int32_t) { return device().driver_stream(out); }
int32_t cuStreamDestroy_v2(Stream) {
  --device().counts.streams;
  return 0;
}
int32_t cuCtxPushCurrent_v2(Context context) { return device().push(context); }
int32_t cuCtxPopCurrent_v2(Context *out) { return device().pop(out); }
int32_t cuModuleLoadData(Module *out, const void *) { return device().load_own(out); }
int32_t cuModuleUnload(Module) {
  --device().counts.modules;
  return 0;
}
int32_t cuModuleGetFunction(Function *out, Module module, const char *name) {
  return device().own_function(out, module, name);
}
int32_t cuLaunchKernel(Function function, uint32_t grid, uint32_t grid_y, uint32_t, uint32_t, uint32_t, uint32_t,
                       uint32_t, Stream stream, void **arguments, void **) {
  return device().launch_own(function, grid, grid_y, stream, arguments);
}
int32_t cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream stream) {
  return device().copy_from_device(to, from, bytes, stream);
}
int32_t cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream stream) {
  const SanitizerResult result =
      device().copy_async(reinterpret_cast<void *>(to), from, bytes, reinterpret_cast<StreamHandle>(stream));
  return result == kSanitizerSuccess ? 0 : 400;
}
int32_t cuMemsetD8Async(uint64_t to, uint8_t value, size_t bytes, Stream stream) {
  const SanitizerResult result =
      device().set(reinterpret_cast<void *>(to), value, bytes, reinterpret_cast<StreamHandle>(stream));
  return result == kSanitizerSuccess ? 0 : 400;
}
int32_t cuMemAlloc_v2(uint64_t *out, size_t bytes) {
  void *memory = nullptr;
  const SanitizerResult result = device().own_memory(device().current(), &memory, bytes, false);
  *out = reinterpret_cast<uint64_t>(memory);
  return result == kSanitizerSuccess ? 0 : 2;
}
int32_t cuMemFree_v2(uint64_t address) {
  return device().free_own(reinterpret_cast<void *>(address)) == kSanitizerSuccess ? 0 : 400;
}
int32_t cuMemAllocHost_v2(void **out, size_t bytes) {
  return device().own_memory(device().current(), out, bytes, true) == kSanitizerSuccess ? 0 : 2;
}
int32_t cuMemFreeHost(void *address) { return device().free_own(address) == kSanitizerSuccess ? 0 : 400; }
int32_t cuStreamSynchronize(Stream stream) { return device().wait(stream); }
int32_t cuDeviceGetAttribute(int32_t *out, int32_t attribute, int32_t) {
  *out = attribute == 75 ? 9 : 0;
  return 0;
}

}  // extern "C"
