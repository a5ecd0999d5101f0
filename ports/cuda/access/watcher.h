// The one client of the Compute Sanitizer in the process, shared by all sessions.
//
// Callbacks run on the program's threads, inside the driver: there a launch gets a State of its own and a version of
// the live ranges, a flag is put behind it into its stream, and nothing waits for the device. A thread of the port
// reads finished launches and hands the results to the sessions; others carry blocks of records to the host meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <sonde/ranges.h>
#include <sonde/spaces/access.h>
#include <sonde/status.h>
#include <sonde/toolkit/cubin_lines.h>

#include "space.h"

namespace sonde::cuda::access {

class Port;
class Readout;

struct WatcherSettings {
  std::string sanitizer;  // file or folder of the library, "" to search
  std::string folder;     // of the device code, "" beside the plugin
  SpaceOptions space;
  uint32_t record_threads = 3;
};

// What the sessions want, together.
struct Wish {
  uint32_t features = 0;
  uint32_t kernel_period = 1;
  uint32_t block_period = 1;
  std::vector<std::string> only;    // parts of kernel names; empty: all
  std::vector<std::string> except;  // parts of kernel names
  bool floor = false;               // patch with functions that do nothing
  bool naive = false;               // patch with one atomic operation for each access

  bool operator==(const Wish &) const = default;
};

struct FunctionInfo {
  sonde_string_t name = 0;
  std::string plain_name;
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t module = 0;
  bool incomplete = false;
  bool has_data = false;  // of its own, since a graph launch
  std::shared_ptr<const toolkit::CubinLines> lines;
  uint64_t launches = 0;  // for sampling
  uint32_t offset = 0;    // the launch of each period that is watched
};

// A launch from its begin until its results are out.
struct LaunchEntry {
  uint64_t ordinal = 0;
  uint64_t stamp = 0;
  uint64_t stream = 0;
  uint64_t graph_node = 0;
  uint64_t grid_id = 0;
  uint64_t counted_in = 0;
  Function handle_of_function = nullptr;
  uint32_t graph_exec = 0;
  uint32_t context = 0;
  uint32_t device = 0;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t flags = 0;
  uint32_t kernel_period = 1;
  FunctionInfo function;
  Space *space = nullptr;
  Slot *slot = nullptr;
  StreamHandle handle = nullptr;
};

class Watcher {
 public:
  static Watcher &instance();

  // Begins to watch for `port`, opening the library at the first call. What stands in the way is noted in the port's
  // session. [control]
  void attach(Port *port, const WatcherSettings &settings);

  // Ends it: waits up to two seconds for launches that run, hands out what there is. [control]
  sonde_status detach(Port *port);

  // The wishes of an attached port changed. [any]
  void refresh();

  // Waits until every launch that has ended is read, at most `nanoseconds`. SONDE_E_TIMEOUT. [any]
  sonde_status flush(uint64_t nanoseconds);

  // Whether the address lies in a range that was freed: its ordinal, else 0. [any]
  uint64_t freed_ordinal(uint64_t address);

 private:
  struct ModuleInfo {
    Context context = nullptr;
    uint64_t hash = 0;
    std::unordered_set<std::string> incomplete;
    std::shared_ptr<const toolkit::CubinLines> lines;  // where accesses were checked when it was loaded
    std::string patched;                               // what it is patched for; "" not at all
    bool refused = false;
  };

  Watcher() = default;
  static void after_fork_in_child();
  static void program_ends();

  bool open(Port *port, const WatcherSettings &settings);
  void tell(uint32_t severity, const std::string &text) const;
  Wish wish() const;
  std::vector<Port *> current_ports() const;

  static void callback(void *user, uint32_t domain, uint32_t id, const void *data);
  void on_resource(uint32_t id, const void *data);
  void on_copy(const MemcpyData &copy, uint64_t graph_node, uint32_t graph_exec);
  void on_set(const MemsetData &set, uint64_t graph_node, uint32_t graph_exec);
  void emit_transfer(sonde_access_transfer_t &record, Context context, uint64_t graph_node, uint32_t graph_exec);
  void on_driver_call(uint32_t id, const ApiCall &call);
  void on_launch_begin(const Launch &launch, uint64_t graph_node, uint64_t graph_exec);
  uint32_t graph_number(GraphExec exec);
  SanitizerResult set_data(const Launch &launch, bool is_node, void *data);
  bool join_twin(const Launch &launch, LaunchEntry &entry);
  void begin_alone(const Launch &launch, LaunchEntry &entry);
  uint32_t give_state(const Launch &launch, const FunctionInfo &function, Space &space, uint64_t number,
                      LaunchEntry &entry);
  void on_launch_end(StreamHandle stream);
  void wait_for_room(Context context);
  static void withdraw_promise();
  void on_graph(uint32_t id, const void *data);
  void allocated(uint64_t address, uint64_t bytes, const ResourceMemory *memory, bool pinned, bool ordered);
  // Returns the end of the range, 0 when none was known.
  uint64_t freed(uint64_t address, const ResourceMemory *memory, bool pinned, bool ordered);
  void context_ends(Context context);
  static void range_changed(void *user, const sonde_range_t *range, uint32_t live);

  bool checks();
  Space *space_of(Context context);
  FunctionInfo &function_of(const Launch &launch);
  std::string patch_key() const;
  bool patch(Module module, ModuleInfo &info, const std::string &key);
  std::vector<Module> take_patched();

  void work();
  void carry_records(size_t number);
  bool records_pending();
  uint64_t discard_records();

  std::mutex control_mutex_;
  // Held by the port's threads while they hand out results, with the driver's lock inside; never within a callback.
  std::shared_mutex reading_mutex_;
  mutable std::shared_mutex ports_mutex_;
  std::vector<Port *> ports_;

  WatcherSettings settings_;
  SanitizerApi api_;
  SubscriberHandle subscriber_ = nullptr;
  bool opened_ = false;
  bool claimed_ = false;
  std::atomic<bool> active_{false};       // a session wants launches
  std::atomic<bool> device_gone_{false};  // the program ends
  uint64_t range_watch_ = 0;

  std::mutex live_mutex_;
  LiveRanges live_;

  std::mutex module_mutex_;  // modules, functions, spaces, the wish
  Wish wish_;
  std::unordered_map<Module, ModuleInfo> modules_;
  std::unordered_map<Function, FunctionInfo> functions_;
  std::map<Context, std::unique_ptr<Space>> spaces_;
  std::vector<std::unique_ptr<Space>> ended_spaces_;  // launches may still refer to them
  std::unordered_set<Context> unknown_contexts_;      // that were noted
  struct Abandoned {
    const Slot *slot;
    const Space *space;
    uint64_t module;
  };
  std::vector<Abandoned> abandoned_;  // launches that had not ended when their session did
  uint32_t carrying_ = 0;             // threads that carry a block of records now
  std::unordered_map<GraphExec, uint32_t> graph_numbers_;
  uint32_t last_graph_ = 0;

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;  // something was read
  std::deque<std::unique_ptr<LaunchEntry>> queue_;
  std::unique_ptr<LaunchEntry> being_read_;
  std::map<uint64_t, uint64_t> begun_;  // stamps of launches that are not read yet, by ordinal
  uint64_t last_launch_ = 0;
  uint64_t last_sequence_ = 0;
  std::atomic<bool> stopping_{false};
  bool give_up_ = false;  // do not wait for launches any more
  bool exited_ = true;
  std::atomic<int64_t> carry_until_{0};  // steady clock; after `stopping_`
  std::shared_ptr<Readout> readout_;
  std::thread thread_;
  std::vector<std::thread> record_threads_;
};

}  // namespace sonde::cuda::access
