// Launches, as the library's callbacks tell: which code is patched, and what each launch gets.
#include <algorithm>
#include <chrono>
#include <shared_mutex>

#include <sonde/spaces/access.h>

#include "common/services.h"
#include "driver_calls.h"
#include "port.h"
#include "watcher.h"

namespace sonde::cuda::access {

namespace {

constexpr auto kLongestWait = std::chrono::seconds(10);

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

}  // namespace

// ---- patching --------------------------------------------------------------------------------------------------------

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
      case kObjects | kCheck:
        access = "objects_check";
        break;
      case kObjects | kPages:
        access = "objects_pages";
        break;
      case kObjects | kIntervals:
        access = "objects_intervals";
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
    info.lines = module->second.lines;
  }
  // Another launch of each period than of the function before, so that kernels that alternate are all seen.
  info.offset = static_cast<uint32_t>(functions_.size() - 1);
  return info;
}

// ---- launches --------------------------------------------------------------------------------------------------------

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

// What the patches of this launch work on. The library keeps one datum for all nodes of a graph launch, the last that was
// set (seen on an H200), so a node's goes by its function; a function that ever had one gives it up again.
SanitizerResult Watcher::set_data(const Launch &launch, bool is_node, void *data) {
  FunctionInfo &function = function_of(launch);
  SanitizerResult result = kSanitizerSuccess;
  if (is_node || function.has_data) {
    result = api_.set_function_data(launch.function, is_node ? data : nullptr);
    function.has_data = is_node && data != nullptr;
  }
  if (is_node || result != kSanitizerSuccess) return result;
  return api_.set_launch_data(launch.handle, launch.function, launch.stream_handle, data);
}

// Nodes of one graph launch that run the same function share its data. So the first gets a State, and the others say
// where they are counted. False: it is the first.
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
  return true;
}

void Watcher::begin_alone(const Launch &launch, LaunchEntry &entry) {
  FunctionInfo &function = function_of(launch);
  const bool filtered = (!wish_.only.empty() && !contains_any(function.plain_name, wish_.only)) ||
                        contains_any(function.plain_name, wish_.except);
  const uint32_t period = std::max(wish_.kernel_period, 1u);
  // The first launch of each function is watched and stands for itself, then one of each period stands for all of it.
  const uint64_t number = function.launches++;
  const bool chosen = number == 0 || period == 1 || number % period == period - 1 - function.offset % (period - 1);
  entry.kernel_period = number == 0 ? 1 : period;
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
    (void)set_data(launch, entry.graph_node != 0, nullptr);
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
      set_data(launch, entry.graph_node != 0, slot->memory) != kSanitizerSuccess) {
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

uint32_t Watcher::graph_number(GraphExec exec) {
  const std::lock_guard hold(module_mutex_);
  const auto [place, added] = graph_numbers_.try_emplace(exec, last_graph_ + 1);
  if (added) ++last_graph_;
  return place->second;
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
      if (!in_graph) break;
      const auto identity = reinterpret_cast<uint64_t>(node.node);
      if (node.node_type == kGraphNodeKernel) on_launch_begin(node.launch, identity, graph_number(node.exec));
      if (node.node_type == kGraphNodeMemcpy) on_copy(node.copy, identity, graph_number(node.exec));
      if (node.node_type == kGraphNodeMemset) on_set(node.set, identity, graph_number(node.exec));
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

}  // namespace sonde::cuda::access
