#include "managed_join.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>

namespace sonde::toolkit {

namespace {

// A copy of the record as far as it goes: an older, shorter form leaves the rest 0.
template <typename Record>
Record copy_of(const sonde_record_t *record) {
  Record copy = {};
  std::memcpy(&copy, record, std::min<size_t>(sizeof(copy), SONDE_RECORD_BYTES(record)));
  return copy;
}

uint64_t last_of(uint64_t address, uint64_t bytes) {
  const uint64_t more = bytes == 0 ? 0 : bytes - 1;
  return address > UINT64_MAX - more ? UINT64_MAX : address + more;
}

// The ranges that are alive, by address; they do not overlap.
class LiveRanges {
 public:
  // Ends what it overlaps; returns how many that were.
  uint64_t begin(Lifetime &range, std::vector<Lifetime> &all) {
    uint64_t replaced = 0;
    auto it = first_overlapping(range.address);
    const uint64_t last = last_of(range.address, range.bytes);
    while (it != live_.end() && it->first <= last) {
      all[it->second].end = range.begin;
      it = live_.erase(it);
      ++replaced;
    }
    live_.emplace(range.address, all.size());
    all.push_back(range);
    all_ = &all;
    return replaced;
  }

  bool end(uint64_t address, int64_t time) {
    const auto found = live_.find(address);
    if (found == live_.end()) return false;
    (*all_)[found->second].end = std::max(time, (*all_)[found->second].begin);
    live_.erase(found);
    return true;
  }

  std::vector<TouchedRange> overlapping(uint64_t address, uint64_t bytes) const {
    std::vector<TouchedRange> out;
    const uint64_t last = last_of(address, bytes);
    for (auto it = first_overlapping(address); it != live_.end() && it->first <= last; ++it) {
      const Lifetime &range = (*all_)[it->second];
      const uint64_t from = std::max(address, range.address);
      const uint64_t to = std::min(last, last_of(range.address, range.bytes));
      out.push_back({range.id, to - from + 1});
    }
    return out;
  }

 private:
  using Map = std::map<uint64_t, size_t>;  // address -> index of the lifetime

  Map::const_iterator first_overlapping(uint64_t address) const {
    auto it = live_.upper_bound(address);
    if (it == live_.begin()) return it;
    const auto before = std::prev(it);
    const Lifetime &range = (*all_)[before->second];
    return last_of(range.address, range.bytes) >= address ? before : it;
  }

  Map live_;
  std::vector<Lifetime> *all_ = nullptr;
};

// Kernels that ran during events that are asked for in order of begin.
class KernelSweep {
 public:
  explicit KernelSweep(const std::vector<KernelSpan> &kernels) : kernels_(kernels) {}

  std::vector<RunningKernel> during(const ManagedEvent &event) {
    std::vector<RunningKernel> out;
    // A moment belongs to the kernels that run then: it is looked at as one nanosecond.
    const int64_t begin = event.begin;
    const int64_t end = std::max(event.end, event.begin + 1);
    while (next_ < kernels_.size() && kernels_[next_].begin < end) open_.push_back(next_++);
    // Later events begin no earlier, so what has ended is not needed again.
    open_.erase(std::remove_if(open_.begin(), open_.end(), [&](size_t i) { return kernels_[i].end <= begin; }),
                open_.end());
    if (event.device == kCpu) return out;

    std::vector<int64_t> edges = {begin, end};
    std::vector<size_t> running;
    for (const size_t i : open_) {
      const KernelSpan &kernel = kernels_[i];
      if (kernel.begin >= end || (event.device != kAnyDevice && kernel.device != event.device)) continue;
      running.push_back(i);
      edges.push_back(std::clamp(kernel.begin, begin, end));
      edges.push_back(std::clamp(kernel.end, begin, end));
    }
    std::sort(running.begin(), running.end());
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    const auto length = static_cast<double>(end - begin);
    for (const size_t i : running) out.push_back({i, 0, 0});
    for (size_t edge = 0; edge + 1 < edges.size(); ++edge) {
      const double part = static_cast<double>(edges[edge + 1] - edges[edge]) / length;
      const auto runs = [&](size_t i) {
        return kernels_[i].begin <= edges[edge] && kernels_[i].end >= edges[edge + 1];
      };
      const auto count = static_cast<double>(std::count_if(running.begin(), running.end(), runs));
      for (size_t k = 0; k < running.size(); ++k) {
        if (!runs(running[k])) continue;
        out[k].overlap += part;
        out[k].confidence += part / count;
      }
    }
    return out;
  }

 private:
  const std::vector<KernelSpan> &kernels_;
  size_t next_ = 0;
  std::vector<size_t> open_;
};

}  // namespace

void ManagedRecords::allocate(uint64_t address, uint64_t bytes, int64_t time) {
  allocations_.push_back({address, bytes, time, records_++, true});
}
void ManagedRecords::free(uint64_t address, int64_t time) {
  allocations_.push_back({address, 0, time, records_++, false});
}
void ManagedRecords::tensor(uint64_t address, uint64_t bytes, int64_t time) {
  tensors_.push_back({address, bytes, time, records_++, true});
}
void ManagedRecords::end_tensor(uint64_t address, int64_t time) {
  tensors_.push_back({address, 0, time, records_++, false});
}
void ManagedRecords::kernel(int64_t begin, int64_t end, uint32_t device) {
  kernels_.push_back({begin, std::max(begin, end), device, records_++});
}
void ManagedRecords::event(ManagedEvent event) {
  event.end = std::max(event.begin, event.end);
  event.record = records_++;
  events_.push_back(event);
}

bool ManagedRecords::add(const sonde_record_t *record, const std::function<int64_t(uint64_t)> &ns) {
  const int64_t time = ns(record->time);
  // An end that a record leaves 0 is that of a moment.
  const auto end_of = [&](uint64_t end) { return end == 0 ? time : std::max(time, ns(end)); };
  if (record->space == SONDE_SPACE_MEMORY) {
    switch (record->type) {
      case SONDE_MEMORY_ALLOCATE: {
        const auto one = copy_of<sonde_memory_allocate_t>(record);
        allocate(one.address, one.bytes, time);
        return true;
      }
      case SONDE_MEMORY_FREE:
        free(copy_of<sonde_memory_free_t>(record).address, time);
        return true;
      case SONDE_MEMORY_SUB_ALLOCATE: {
        const auto one = copy_of<sonde_memory_allocate_t>(record);
        tensor(one.address, one.bytes, time);
        return true;
      }
      case SONDE_MEMORY_SUB_FREE:
        end_tensor(copy_of<sonde_memory_free_t>(record).address, time);
        return true;
      default:
        return false;
    }
  }
  if (record->space == SONDE_SPACE_FRAMEWORK) {
    const auto one = copy_of<sonde_framework_tensor_t>(record);
    if (record->type == SONDE_FRAMEWORK_TENSOR_ALLOCATE) {
      tensor(one.address, one.bytes, time);
    } else if (record->type == SONDE_FRAMEWORK_TENSOR_FREE) {
      end_tensor(one.address, time);
    } else {
      return false;
    }
    return true;
  }
  if (record->space != SONDE_SPACE_DEVICE) return false;
  ManagedEvent made;
  made.begin = time;
  switch (record->type) {
    case SONDE_DEVICE_KERNEL: {
      const auto one = copy_of<sonde_device_kernel_t>(record);
      kernel(time, end_of(one.end), one.device);
      return true;
    }
    case SONDE_DEVICE_PAGE_FAULT: {
      const auto one = copy_of<sonde_device_page_fault_t>(record);
      made.kind = ManagedKind::kPageFault;
      made.end = end_of(one.end);
      made.address = one.address;
      made.count = one.count;
      made.device = made.source = made.target = one.processor;
      event(made);
      return true;
    }
    case SONDE_DEVICE_MIGRATION: {
      const auto one = copy_of<sonde_device_migration_t>(record);
      made.kind = ManagedKind::kMigration;
      made.end = end_of(one.end);
      made.address = one.address;
      made.bytes = one.bytes;
      made.source = one.source;
      made.target = one.destination;
      made.cause = one.cause;
      // Pages go to whom wanted them, except when they are pushed out: then it was the device that needs the room.
      constexpr uint32_t kEviction = 3;
      made.device = one.cause == kEviction ? one.source : one.destination;
      event(made);
      return true;
    }
    case SONDE_DEVICE_THRASH: {
      const auto one = copy_of<sonde_device_thrash_t>(record);
      made.kind = ManagedKind::kThrash;
      made.end = end_of(one.end);
      made.address = one.address;
      made.bytes = one.bytes;
      made.device = made.source = made.target = one.processor;
      made.cause = one.action;
      event(made);
      return true;
    }
    default:
      return false;
  }
}

ManagedJoin ManagedRecords::join() const {
  ManagedJoin out;
  out.kernels = kernels_;
  std::stable_sort(out.kernels.begin(), out.kernels.end(),
                   [](const KernelSpan &a, const KernelSpan &b) { return a.begin < b.begin; });
  out.events = events_;
  std::stable_sort(out.events.begin(), out.events.end(),
                   [](const ManagedEvent &a, const ManagedEvent &b) { return a.begin < b.begin; });
  // At one time an end comes before a begin: an address may be used again at once.
  const auto in_order = [](std::vector<Change> changes) {
    std::stable_sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
      return a.time != b.time ? a.time < b.time : a.begins < b.begins;
    });
    return changes;
  };
  const std::vector<Change> allocations = in_order(allocations_);
  const std::vector<Change> tensors = in_order(tensors_);
  LiveRanges live_allocations;
  LiveRanges live_tensors;
  const auto apply = [&](const std::vector<Change> &changes, size_t &next, int64_t until, LiveRanges &live,
                         std::vector<Lifetime> &all) {
    for (; next < changes.size() && changes[next].time <= until; ++next) {
      const Change &change = changes[next];
      if (change.begins) {
        Lifetime range = {all.size() + 1, change.address, change.bytes, change.time, Lifetime::kAlive, change.record};
        out.replaced += live.begin(range, all);
      } else if (!live.end(change.address, change.time)) {
        ++out.unmatched_frees;
      }
    }
  };
  size_t next_allocation = 0;
  size_t next_tensor = 0;
  KernelSweep sweep(out.kernels);
  for (size_t i = 0; i < out.events.size(); ++i) {
    const ManagedEvent &event = out.events[i];
    apply(allocations, next_allocation, event.begin, live_allocations, out.allocations);
    apply(tensors, next_tensor, event.begin, live_tensors, out.tensors);
    ManagedLink link;
    link.event = i;
    link.allocations = live_allocations.overlapping(event.address, event.bytes);
    link.tensors = live_tensors.overlapping(event.address, event.bytes);
    link.kernels = sweep.during(event);
    out.links.push_back(std::move(link));
  }
  apply(allocations, next_allocation, INT64_MAX, live_allocations, out.allocations);
  apply(tensors, next_tensor, INT64_MAX, live_tensors, out.tensors);
  return out;
}

}  // namespace sonde::toolkit
