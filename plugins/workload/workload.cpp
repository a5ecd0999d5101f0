#include "workload.h"

#include <algorithm>
#include <array>

namespace sonde::workload {
namespace {

constexpr std::array kCopyNames = {"unknown",        "host_to_device",  "device_to_host", "device_to_device",
                                   "host_to_host",   "peer_to_peer",    "host_to_array",  "array_to_host",
                                   "array_to_array", "array_to_device", "device_to_array"};
constexpr std::array kMemoryNames = {"unknown", "pageable", "pinned",        "device",
                                     "array",   "managed",  "device_static", "managed_static"};

}  // namespace

const char *copy_name(uint32_t kind) { return kCopyNames[kind < kCopyNames.size() ? kind : 0]; }
const char *memory_name(uint32_t kind) { return kMemoryNames[kind < kMemoryNames.size() ? kind : 0]; }

bool is_host_copy(uint32_t kind) {
  return kind == SONDE_COPY_HOST_TO_DEVICE || kind == SONDE_COPY_DEVICE_TO_HOST || kind == SONDE_COPY_HOST_TO_ARRAY ||
         kind == SONDE_COPY_ARRAY_TO_HOST;
}

std::string_view scope_group(std::string_view name) {
  constexpr std::string_view kEquals = " = ";
  for (size_t comma = name.find(", "); comma != std::string_view::npos; comma = name.find(", ", comma + 1)) {
    size_t at = comma + 2;
    while (at < name.size() && (name[at] == '_' || (name[at] >= 'a' && name[at] <= 'z'))) ++at;
    const bool has_word = at > comma + 2;
    if (!has_word || name.substr(at, kEquals.size()) != kEquals || at + kEquals.size() >= name.size()) continue;
    const char value = name[at + kEquals.size()];
    if ((value >= '0' && value <= '9') || value == '-' || value == '[') return name.substr(0, comma);
  }
  return name;
}

Shape KernelRow::typical() const {
  const auto most =
      std::max_element(shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  return most == shapes.end() ? Shape{} : most->first;
}

void GraphRow::note_launch(uint64_t correlation) {
  if (correlation == 0) return;
  const bool is_new = launch_ids.size() < kLaunchLimit
                          ? launch_ids.insert(correlation).second
                          : correlation != last_launch && !launch_ids.contains(correlation);
  last_launch = correlation;
  launches += is_new ? 1 : 0;
}

Workload::Workload(const Options &options, toolkit::SourceStrings::Fetch fetch)
    : options_(options), strings_(fetch), accesses_(std::make_unique<Accesses>(options_, std::move(fetch), strings_)) {
  for (uint32_t kind = 0; kind < copy_labels_.size(); ++kind) {
    copy_labels_[kind] = strings_.intern(std::string("copy ") + copy_name(kind));
  }
  set_label_ = strings_.intern("set");
  other_kernels_ = strings_.intern("(other kernels)");
  other_scopes_ = strings_.intern("(other scopes)");
}

void Workload::consume(const sonde_batch_t &raw) {
  const std::lock_guard<std::mutex> hold(mutex_);
  lost_records_ += raw.lost_ring + raw.lost_overwritten;
  lost_batches_ += raw.lost_queue;
  Source &source = sources_.try_emplace(raw.source, options_, other_scopes_).first->second;
  for (const Record record : Batch(&raw)) {
    ++source.records;
    if (record.header()->time != 0) {
      const int64_t time = record.time_ns();
      source.first_ns = std::min(source.first_ns, time);
      source.last_ns = std::max(source.last_ns, time);
    }
    switch (record.header()->space) {
      case SONDE_SPACE_SESSION:
        ++source.session_records;
        session_record(source, record, raw.source);
        break;
      case SONDE_SPACE_HOST:
        host_record(source, record, raw.source);
        break;
      case SONDE_SPACE_DEVICE:
        device_record(source, record, raw.source);
        break;
      case SONDE_SPACE_MEMORY:
        memory_record(source, record);
        break;
      case SONDE_SPACE_OBJECT:
        object_record(source, record, raw.source);
        break;
      case SONDE_SPACE_FRAMEWORK:
        framework_record(source, record, raw.source);
        break;
      default:
        break;
    }
  }
  accesses_->consume(raw);
}

void Workload::finish() {
  const std::lock_guard<std::mutex> hold(mutex_);
  // A replaying process is a source too, which only says that it began: no part of the run that is looked at.
  const auto says_nothing = [](const auto &entry) { return entry.second.records == entry.second.session_records; };
  if (!std::all_of(sources_.begin(), sources_.end(), says_nothing)) std::erase_if(sources_, says_nothing);
  for (auto &[id, source] : sources_) {
    for (auto &[number, device] : source.devices) device.finish();
    source.host.finish();
    source.memory.finish();
    if (!source.windows.sampled()) continue;
    source.windows.finish();
    for (auto &[key, row] : source.kernels) row.estimate = row.sampled.finish(source.windows);
  }
  accesses_->finish();
}

bool Workload::sampled() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto &entry) { return entry.second.windows.sampled(); });
}
uint64_t Workload::kernel_count() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t sum = 0;
  for (const auto &[id, source] : sources_) sum += source.kernel_count;
  return sum;
}

int64_t Workload::kernel_ns() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  int64_t sum = 0;
  for (const auto &[id, source] : sources_) sum += source.kernel_ns;
  return sum;
}

double Workload::idle_share(uint32_t number) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  int64_t idle = 0;
  int64_t span = 0;
  for (const auto &[id, source] : sources_) {
    const auto it = source.devices.find(number);
    if (it == source.devices.end()) continue;
    Device device = it->second;  // finishing a copy leaves the run's own state alone
    device.finish();
    idle += device.idle_ns();
    span += device.span_ns();
  }
  return span == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(span);
}

uint64_t Workload::peak_bytes(uint32_t device) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t peak = 0;
  for (const auto &[id, source] : sources_) {
    MemorySide memory = source.memory;
    memory.finish();
    peak = std::max(peak, memory.device_peak_bytes(device));
  }
  return peak;
}

uint64_t Workload::working_set(uint32_t device) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  int64_t most = 0;
  for (const auto &[key, row] : accesses_->working_sets().devices()) {
    if (std::get<1>(key) != device) continue;
    for (const Distribution &level : row.objects) most = std::max(most, level.statistics.max());
  }
  return static_cast<uint64_t>(most);
}

uint64_t Workload::footprint(uint32_t device) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t most = 0;
  for (const auto &[key, row] : accesses_->working_sets().footprints()) {
    if (std::get<1>(key) == device) most = std::max(most, row.peak_bytes);
  }
  return most;
}

std::vector<HotObject> Workload::hot_objects(uint64_t limit) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  std::vector<HotObject> rows;
  for (const auto *const entry : accesses_->heat().objects(toolkit::ObjectLevel::kAllocation).sorted()) {
    if (rows.size() == limit) break;
    const toolkit::MemoryObject &object = entry->item.object;
    rows.push_back({accesses_->object_text(object.name), object.address, object.bytes, entry->item.accesses()});
  }
  return rows;
}

std::vector<KernelTraffic> Workload::kernel_traffic(uint64_t limit) const {
  std::map<uint32_t, KernelTraffic> by_name;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const auto &[key, row] : accesses_->working_sets().kernels().rows()) {
      KernelTraffic &traffic =
          by_name.try_emplace(key.name, KernelTraffic{strings_.text(key.name), 0, 0, 0}).first->second;
      traffic.launches += row.watched;
      traffic.accesses += row.accesses;
      traffic.bytes += row.read_bytes + row.write_bytes + row.copy_bytes;
    }
  }
  std::vector<KernelTraffic> rows;
  for (auto &[name, traffic] : by_name) rows.push_back(std::move(traffic));
  std::sort(rows.begin(), rows.end(), [](const KernelTraffic &a, const KernelTraffic &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

std::vector<TopKernel> Workload::top_kernels(uint64_t limit) const {
  std::map<uint32_t, TopKernel> by_name;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const auto &[id, source] : sources_) {
      for (const auto &[key, row] : source.kernels) {
        TopKernel &top = by_name.try_emplace(row.name, TopKernel{strings_.text(row.name), 0, 0}).first->second;
        top.count += row.durations.count;
        top.total_ns += static_cast<int64_t>(row.durations.total_ns());
      }
    }
  }
  std::vector<TopKernel> rows;
  for (auto &[name, top] : by_name) rows.push_back(std::move(top));
  std::sort(rows.begin(), rows.end(), [](const TopKernel &a, const TopKernel &b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

}  // namespace sonde::workload
