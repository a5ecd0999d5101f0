#include "cli/merge_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/capture_feed.h"

namespace sonde::cli {

uint32_t KernelKeys::key(std::string_view name, const uint32_t (&grid)[3], const uint32_t (&block)[3]) {
  auto known = names_.find(name);
  if (known == names_.end()) {
    known = names_.emplace(std::string(name), static_cast<uint32_t>(text_of_.size())).first;
    text_of_.emplace_back(name);
  }
  const Key key{known->second, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}};
  const auto [place, is_new] = keys_.try_emplace(key, static_cast<uint32_t>(key_of_.size()));
  if (is_new) key_of_.push_back(key);
  return place->second;
}

std::string KernelKeys::describe(uint32_t key) const {
  const auto &[name, grid, block] = key_of_.at(key);
  std::string text = text_of_[name];
  constexpr size_t kMostName = 120;
  if (text.size() > kMostName) text = text.substr(0, kMostName) + "...";
  return fmt::format("{}<<<{}x{}x{}, {}x{}x{}>>>", text, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
}

namespace {

class Surveyor {
 public:
  Surveyor(const Session &session, Role role, KernelKeys &keys) : session_(session), role_(role), keys_(keys) {}

  void on_batch(const Batch &batch) {
    const sonde_batch_t &raw = batch.raw();
    survey_.last_stream = std::max(survey_.last_stream, raw.stream);
    for (const Record record : batch) {
      const sonde_record_t &header = *record.header();
      if (header.space == 0) continue;
      ++survey_.counts[{header.space, header.type}];
      const bool has_time = header.time != 0 && record.interval(header.time).repair == 0;
      if (has_time) survey_.first_ns = std::min(survey_.first_ns, record.time_ns());
      switch (header.space) {
        case SONDE_SPACE_SESSION:
          on_session(record);
          break;
        case SONDE_SPACE_DEVICE:
          on_device(record);
          break;
        case SONDE_SPACE_ACCESS:
          on_access(record);
          break;
        case SONDE_SPACE_MEMORY:
          on_memory(record);
          break;
        case SONDE_SPACE_HOST:
          on_host(record, raw.source);
          break;
        case SONDE_SPACE_OBJECT:
          on_object(record);
          break;
        default:
          break;
      }
    }
  }

  Survey finish() {
    Launches &chosen = accesses_.correlations.empty() ? kernels_ : accesses_;
    survey_.launches_are_accesses = &chosen == &accesses_;
    survey_.launches = std::move(chosen.sequence);
    survey_.correlations = std::move(chosen.correlations);
    survey_.lives = lives_.take(&survey_.unmatched_frees);

    const std::vector<toolkit::JoinLaunch> &launches = survey_.launches.launches();
    survey_.call_ns.assign(launches.size(), 0);
    std::sort(calls_.begin(), calls_.end());
    for (uint32_t index = 0; index < launches.size(); ++index) {
      const uint64_t correlation = survey_.correlations[index];
      if (survey_.launches_are_accesses) {
        survey_.call_ns[index] = launches[index].time_ns;
        survey_.by_id.emplace_back(launches[index].id, index);
      }
      if (correlation == 0) continue;
      survey_.by_correlation.emplace_back(correlation, index);
      const auto call = std::lower_bound(calls_.begin(), calls_.end(), std::make_pair(correlation, INT64_MIN));
      if (call != calls_.end() && call->first == correlation) survey_.call_ns[index] = call->second;
    }
    std::sort(survey_.by_id.begin(), survey_.by_id.end());
    std::sort(survey_.by_correlation.begin(), survey_.by_correlation.end());
    return std::move(survey_);
  }

 private:
  struct Launches {
    toolkit::JoinLaunches sequence;
    std::vector<uint64_t> correlations;
  };

  const std::string &text(uint32_t source, sonde_string_t id) {
    const auto [place, is_new] = texts_.try_emplace(id);
    if (is_new) place->second = session_.text(source, id);
    return place->second;
  }

  void on_session(const Record &record) {
    if (record.header()->type != SONDE_SESSION_STREAM) return;
    sonde_session_stream_t storage;
    survey_.last_stream = std::max(survey_.last_stream, record.as<sonde_session_stream_t>(storage).stream);
  }

  template <typename Launch>
  void add(Launches &launches, const Record &record, const Launch &launch, uint64_t id) {
    const bool is_graph = launch.graph_exec != 0;
    toolkit::JoinLane lane;
    lane.device = launch.device;
    lane.context = launch.context;
    lane.stream = is_graph ? launch.graph_exec : launch.stream;
    lane.is_graph = is_graph;
    const uint32_t key = keys_.key(text(source_, launch.name), launch.grid, launch.block);
    launches.sequence.add(lane, record.time_ns(), id, launch.graph_node, key);
    launches.correlations.push_back(launch.correlation);
  }

  void on_device(const Record &record) {
    if (record.header()->type != SONDE_DEVICE_KERNEL) return;
    sonde_device_kernel_t storage;
    const auto &kernel = record.as<sonde_device_kernel_t>(storage);
    add(kernels_, record, kernel, kernel.correlation);
  }

  void on_access(const Record &record) {
    if (role_ != Role::kAccessed || record.header()->type != SONDE_ACCESS_LAUNCH) return;
    sonde_access_launch_t storage;
    const auto &launch = record.as<sonde_access_launch_t>(storage);
    add(accesses_, record, launch, launch.launch);
  }

  void on_memory(const Record &record) {
    const uint32_t type = record.header()->type;
    const int64_t time_ns = record.time_ns();
    switch (type) {
      case SONDE_MEMORY_ALLOCATE:
      case SONDE_MEMORY_SUB_ALLOCATE: {
        sonde_memory_allocate_t storage;
        const auto &range = record.as<sonde_memory_allocate_t>(storage);
        const uint32_t layer = type == SONDE_MEMORY_SUB_ALLOCATE ? 1 : 0;
        const bool is_host = range.kind == SONDE_MEMORY_PAGEABLE || range.kind == SONDE_MEMORY_PINNED;
        const bool is_static = range.kind == SONDE_MEMORY_DEVICE_STATIC || range.kind == SONDE_MEMORY_MANAGED_STATIC;
        const uint32_t group =
            (is_host ? kHostGroup : range.device) | (layer != 0 ? kInnerGroups : 0) | (is_static ? kStaticGroups : 0);
        lives_.allocate(time_ns, layer, range.address, range.bytes, group, 0);
        return;
      }
      case SONDE_MEMORY_FREE:
      case SONDE_MEMORY_SUB_FREE: {
        sonde_memory_free_t storage;
        const auto &range = record.as<sonde_memory_free_t>(storage);
        lives_.release(time_ns, type == SONDE_MEMORY_SUB_FREE ? 1 : 0, range.address);
        return;
      }
      case SONDE_MEMORY_MAP:
      case SONDE_MEMORY_UNMAP: {
        sonde_memory_map_t storage;
        const auto &range = record.as<sonde_memory_map_t>(storage);
        if (type == SONDE_MEMORY_MAP) {
          lives_.allocate(time_ns, 0, range.address, range.bytes, range.device, 0);
        } else {
          lives_.release(time_ns, 0, range.address);
        }
        return;
      }
      default:
        return;
    }
  }

  // Calls that launch: their moments are what both runs have.
  void on_host(const Record &record, uint32_t source) {
    if (role_ != Role::kTraced) return;
    uint64_t correlation = 0;
    sonde_string_t function = 0;
    if (record.header()->type == SONDE_HOST_CALL) {
      sonde_host_call_t storage;
      const auto &call = record.as<sonde_host_call_t>(storage);
      correlation = call.correlation;
      function = call.function;
    } else if (record.header()->type == SONDE_HOST_CALL_BEGIN) {
      sonde_host_call_begin_t storage;
      const auto &call = record.as<sonde_host_call_begin_t>(storage);
      correlation = call.correlation;
      function = call.function;
    }
    if (correlation == 0) return;
    const auto [known, is_new] = launching_.try_emplace(function, false);
    if (is_new) known->second = text(source, function).find("Launch") != std::string::npos;
    if (known->second) calls_.emplace_back(correlation, record.time_ns());
  }

  void on_object(const Record &record) {
    if (record.header()->type != SONDE_OBJECT_MODULE) return;
    sonde_object_module_t storage;
    const auto &module = record.as<sonde_object_module_t>(storage);
    if (module.state == 0) survey_.modules.push_back({module.module, module.hash, module.bytes});
  }

  static constexpr uint32_t source_ = 1;  // one file is replayed at a time

  const Session &session_;
  const Role role_;
  KernelKeys &keys_;
  Survey survey_;
  Launches kernels_;
  Launches accesses_;
  toolkit::RangeLives lives_;
  std::vector<std::pair<uint64_t, int64_t>> calls_;  // correlation and time
  std::unordered_map<sonde_string_t, bool> launching_;
  std::unordered_map<sonde_string_t, std::string> texts_;
};

}  // namespace

Survey survey_capture(const Host &host, const std::string &path, Role role, KernelKeys &keys) {
  CaptureFeed feed(host, path);
  Surveyor surveyor(feed.session(), role, keys);
  feed.subscribe_all("merge.survey", [&](const Batch &batch) {
    surveyor.on_batch(batch);
    return SONDE_OK;
  });
  feed.run();
  return surveyor.finish();
}

}  // namespace sonde::cli
