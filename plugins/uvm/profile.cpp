#include "profile.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <sonde/spaces/memory.h>

namespace sonde::uvm {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

namespace {

// A launch that was seen this often with one set of touches has been seen with its pages on the device.
constexpr uint32_t kOftenEnough = 3;

bool is_planned_kind(uint32_t kind) { return kind == SONDE_MEMORY_MANAGED; }

bool is_device_kind(uint32_t kind) { return kind == SONDE_MEMORY_DEVICE || kind == SONDE_MEMORY_UNKNOWN; }

using Pages = PageRange;

void add_pages(std::vector<Pages> &pages, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  if (!pages.empty() && begin <= pages.back().end && begin >= pages.back().begin) {
    pages.back().end = std::max(pages.back().end, end);
  } else {
    pages.push_back({begin, end});
  }
}

void add_edges(std::vector<Pages> &pages, std::span<const uint64_t> edges, uint64_t offset) {
  for (size_t index = 0; index + 1 < edges.size(); index += 2) {
    if (edges[index] >= edges[index + 1]) continue;
    add_pages(pages, (offset + edges[index]) / kPageBytes, (offset + edges[index + 1] - 1) / kPageBytes + 1);
  }
}

void normalize(std::vector<Pages> &pages) {
  if (pages.size() < 2) return;
  std::sort(pages.begin(), pages.end(), [](const Pages &left, const Pages &right) { return left.begin < right.begin; });
  std::vector<Pages> out;
  for (const Pages &one : pages) add_pages(out, one.begin, one.end);
  pages = std::move(out);
}

// Joins ranges over their smallest gaps until there are at most `most`.
uint64_t join_over_gaps(std::vector<Pages> &pages, size_t most) {
  if (pages.size() <= most || most == 0) return 0;
  const size_t joined = pages.size() - most;
  std::vector<uint64_t> gaps;
  for (size_t index = 0; index + 1 < pages.size(); ++index) gaps.push_back(pages[index + 1].begin - pages[index].end);
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<ptrdiff_t>(joined - 1), gaps.end());
  const uint64_t limit = gaps[joined - 1];
  size_t left = joined;
  std::vector<Pages> out{pages[0]};
  for (size_t index = 1; index < pages.size(); ++index) {
    if (left != 0 && pages[index].begin - out.back().end <= limit) {
      out.back().end = pages[index].end;
      --left;
    } else {
      out.push_back(pages[index]);
    }
  }
  pages = std::move(out);
  return joined;
}

}  // namespace

Profile::Profile(const ProfileOptions &options, std::function<const std::string &(uint32_t)> text)
    : options_(options), text_(std::move(text)) {}

std::vector<sonde_interest_t> Profile::interests() {
  std::vector<sonde_interest_t> all = toolkit::MemoryHistory::interests(
      1u << SONDE_ACCESS_OBJECT | 1u << SONDE_ACCESS_PAGES | 1u << SONDE_ACCESS_INTERVALS);
  all.push_back(only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_KERNEL, SONDE_DEVICE_MIGRATION}));
  return all;
}

// ---- records -------------------------------------------------------------------------------------------------------

void Profile::consume(const sonde_batch_t &raw) {
  if ((raw.spaces & (uint64_t{1} << SONDE_SPACE_DEVICE)) == 0) return;
  const Batch batch(&raw);
  for (const Record record : batch) {
    if (record.is(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL)) {
      sonde_device_kernel_t storage;
      const auto &one = record.as<sonde_device_kernel_t>(storage);
      const Interval interval = record.interval(one.end);
      if (interval.repair == 0) {
        kernel(raw.source, one.correlation, one.graph_node, interval.begin_ns, interval.end_ns);
      }
    } else if (record.is(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION)) {
      sonde_device_migration_t storage;
      const auto &one = record.as<sonde_device_migration_t>(storage);
      migration(raw.source, record.time_ns(), one.address, one.bytes, one.destination == UINT32_MAX, one.cause == 3);
    }
  }
}

void Profile::kernel(uint32_t source, uint64_t correlation, uint64_t graph_node, int64_t begin_ns, int64_t end_ns) {
  ++counts_.kernels;
  Source &mine = sources_[source];
  if (mine.kernels.size() < options_.most_launches) mine.kernels.push_back({correlation, graph_node, begin_ns, end_ns});
}

void Profile::migration(uint32_t source, int64_t time_ns, uint64_t address, uint64_t bytes, bool to_host,
                        bool is_eviction) {
  ++counts_.migrations;
  Source &mine = sources_[source];
  ++mine.migrations;
  if (is_eviction) return;
  std::vector<Moved> &moved = mine.moved;
  // One record is one piece of a batch: neighbours are one.
  if (!moved.empty() && moved.back().to_host == to_host && moved.back().address + moved.back().bytes == address) {
    moved.back().bytes += bytes;
    return;
  }
  if (moved.size() < options_.most_launches) moved.push_back({time_ns, address, bytes, to_host});
}

// ---- objects -------------------------------------------------------------------------------------------------------

void Profile::object_begins(const MemoryObject &object) {
  if (object.level == ObjectLevel::kAllocation) add_allocation(sources_[object.source], object);
}

void Profile::add_allocation(Source &source, const MemoryObject &object) {
  const bool is_managed = is_planned_kind(object.kind);
  if (!is_managed && (!is_device_kind(object.kind) || object.device == UINT32_MAX)) return;
  if (object.bytes == 0 || pages_of(object.bytes) >= kNone) return;
  Trace &trace = is_managed ? source.trace : source.other;
  auto &numbers = is_managed ? source.managed : source.unmanaged;
  const uint32_t number = trace.allocate(object.bytes);
  trace.allocations[number].address = object.address;
  trace.allocations[number].name = object.name != 0 ? text_(object.name) : "";
  numbers[object.id] = number;
  (is_managed ? source.lives : source.other_lives)
      .push_back({object.address, object.bytes, object.begin_ns, MemoryObject::kAlive});
}

void Profile::object_ends(const MemoryObject &object) {
  if (object.level != ObjectLevel::kAllocation) return;
  Source &source = sources_[object.source];
  for (const bool is_managed : {true, false}) {
    auto &numbers = is_managed ? source.managed : source.unmanaged;
    const auto found = numbers.find(object.id);
    if (found == numbers.end()) continue;
    if (object.end != toolkit::ObjectEnd::kAlive) {
      (is_managed ? source.lives : source.other_lives)[found->second].end_ns = object.end_ns;
    }
    numbers.erase(found);
  }
}

// ---- launches ------------------------------------------------------------------------------------------------------

uint64_t Profile::ordinal_of(Source &source, const MemoryOperation &operation) {
  // Nodes of one graph launch are one launch call.
  const bool is_graph = operation.graph_exec != 0;
  const bool is_same = is_graph && source.was_graph && source.last_graph == operation.graph_exec &&
                       (operation.correlation != 0 ? source.last_correlation == operation.correlation
                                                   : source.last_time_ns == operation.time_ns);
  source.was_graph = is_graph;
  source.last_graph = operation.graph_exec;
  source.last_correlation = operation.correlation;
  source.last_time_ns = operation.time_ns;
  return is_same ? source.launches_counted - 1 : source.launches_counted++;
}

void Profile::operation(const MemoryOperation &operation, std::span<const MemoryTouch> touches) {
  Source &source = sources_[operation.source];
  if (operation.kind == OperationKind::kPrefetch && operation.device == UINT32_MAX) {
    // The program itself sends memory to the host.
    const uint32_t set = touch_set(source, touches, true);
    if (set == 0) return;
    Launch host;
    host.time_ns = operation.time_ns;
    host.touches = set;
    host.is_host = true;
    source.launches.push_back(host);
    source.other_touches.push_back(0);
    return;
  }
  if (operation.kind != OperationKind::kKernel) return;
  counts_.has_access_records = true;
  if (operation.is_late) {
    // Told before: its touches follow.
    ++counts_.late;
    const auto found = std::find_if(source.launches.rbegin(), source.launches.rend(), [&](const Launch &launch) {
      return !launch.is_host && launch.number == operation.launch;
    });
    if (found == source.launches.rend()) return;
    found->touches = touch_set(source, touches, true);
    source.other_touches[static_cast<size_t>(source.launches.rend() - found) - 1] = touch_set(source, touches, false);
    return;
  }
  ++counts_.launches;
  if ((operation.launch_flags & SONDE_LAUNCH_WATCHED) != 0) ++counts_.watched;
  if (!operation.is_complete()) ++counts_.incomplete;
  Launch launch;
  launch.ordinal = ordinal_of(source, operation);
  if (source.launches.size() >= options_.most_launches) {
    ++counts_.left_out;
    return;
  }
  launch.time_ns = operation.time_ns;
  launch.number = operation.launch;
  launch.correlation = operation.correlation;
  launch.graph_node = operation.graph_node;
  launch.stream = operation.stream;
  launch.name = operation.name;
  launch.device = operation.device;
  launch.is_graph = operation.graph_exec != 0;
  uint64_t shape = operation.name;
  for (const uint32_t part : {operation.grid[0], operation.grid[1], operation.grid[2], operation.block[0],
                              operation.block[1], operation.block[2]}) {
    shape = (shape ^ part) * 0x9e3779b97f4a7c15ULL;
    shape ^= shape >> 29;
  }
  launch.shape = shapes_.try_emplace(shape, static_cast<uint32_t>(shapes_.size())).first->second;
  launch.touches = touch_set(source, touches, true);
  source.launches.push_back(launch);
  source.other_touches.push_back(touch_set(source, touches, false));
}

uint32_t Profile::touch_set(Source &source, std::span<const MemoryTouch> touches, bool is_managed) {
  if (is_managed ? options_.memory == Memory::kAll : options_.memory == Memory::kManaged) return 0;
  const auto &numbers = is_managed ? source.managed : source.unmanaged;
  if (numbers.empty()) return 0;
  TouchSet &set = set_;
  set.clear();
  for (const MemoryTouch &touch : touches) {
    if (touch.object->level != ObjectLevel::kAllocation) continue;
    const auto found = numbers.find(touch.object->id);
    if (found == numbers.end()) continue;
    ++counts_.touches;
    add_spans(touch, touches, found->second, set);
  }
  if (set.empty()) return 0;
  const auto in_order = [](const PageSpan &left, const PageSpan &right) {
    return left.allocation != right.allocation ? left.allocation < right.allocation : left.first < right.first;
  };
  if (!std::is_sorted(set.begin(), set.end(), in_order)) std::sort(set.begin(), set.end(), in_order);
  return (is_managed ? source.trace : source.other).intern(set);
}

void Profile::add_spans(const MemoryTouch &touch, std::span<const MemoryTouch> all, uint32_t allocation,
                        TouchSet &set) {
  const MemoryObject &object = *touch.object;
  const uint64_t whole = pages_of(object.bytes);
  std::vector<Pages> &read = read_;
  std::vector<Pages> &written = written_;
  read.clear();
  written.clear();
  if (!touch.read_edges.empty() || !touch.write_edges.empty()) {
    ++counts_.by_edges;
    add_edges(read, touch.read_edges, 0);
    add_edges(written, touch.write_edges, 0);
  } else if (!touch.pages.empty()) {
    ++counts_.by_edges;
    for (const uint64_t page : touch.pages) {
      const uint64_t begin = std::max(page * touch.page_bytes, object.address) - object.address;
      const uint64_t end = std::min((page + 1) * touch.page_bytes, object.address + object.bytes) - object.address;
      if (begin >= end) continue;
      const uint64_t last = (end - 1) / kPageBytes + 1;
      if (touch.is_written()) add_pages(written, begin / kPageBytes, last);
      if (touch.is_read() || !touch.is_written()) add_pages(read, begin / kPageBytes, last);
    }
  } else {
    bool has_tensors = false;
    for (const MemoryTouch &inner : all) {
      const MemoryObject &tensor = *inner.object;
      if (tensor.level != ObjectLevel::kTensor || tensor.bytes == 0) continue;
      if (tensor.address < object.address || tensor.address + tensor.bytes > object.address + object.bytes) continue;
      has_tensors = true;
      const uint64_t edges[] = {0, tensor.bytes};
      if (inner.is_written()) add_edges(written, edges, tensor.address - object.address);
      if (inner.is_read() || !inner.is_written()) add_edges(read, edges, tensor.address - object.address);
    }
    ++(has_tensors ? counts_.by_tensors : counts_.whole);
    if (!has_tensors) {
      if (touch.is_written()) written.push_back({0, whole});
      if (touch.is_read() || !touch.is_written()) read.push_back({0, whole});
    }
  }
  for (std::vector<Pages> *const one : {&read, &written}) {
    normalize(*one);
    for (Pages &pages : *one) pages.end = std::min(pages.end, whole);
    std::erase_if(*one, [](const Pages &pages) { return pages.begin >= pages.end; });
    counts_.joined_spans += join_over_gaps(*one, options_.most_spans);
  }
  const uint64_t asked = touch.read_bytes + touch.write_bytes + touch.copy_bytes;
  if (read.size() + written.size() == 1) {
    // As most launches do: one range, and only read or only written.
    const PageRange &range = read.empty() ? written[0] : read[0];
    PageSpan span;
    span.allocation = allocation;
    span.first = static_cast<uint32_t>(range.begin);
    span.count = static_cast<uint32_t>(range.end - range.begin);
    span.is_read = !read.empty();
    span.is_written = !written.empty();
    if (asked != 0) {
      span.traffic =
          static_cast<float>(static_cast<double>(asked) / static_cast<double>(uint64_t{span.count} * kPageBytes));
    }
    set.push_back(span);
    return;
  }
  // Cut where reading or writing begins or ends.
  std::vector<uint64_t> &cuts = cuts_;
  cuts.clear();
  for (const std::vector<Pages> *const one : {&read, &written}) {
    for (const Pages &pages : *one) {
      cuts.push_back(pages.begin);
      cuts.push_back(pages.end);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const size_t first = set.size();
  uint64_t pages = 0;
  size_t next_read = 0;
  size_t next_written = 0;
  for (size_t index = 0; index + 1 < cuts.size(); ++index) {
    while (next_read < read.size() && read[next_read].end <= cuts[index]) ++next_read;
    while (next_written < written.size() && written[next_written].end <= cuts[index]) ++next_written;
    const bool is_read = next_read < read.size() && read[next_read].begin <= cuts[index];
    const bool is_written = next_written < written.size() && written[next_written].begin <= cuts[index];
    if (!is_read && !is_written) continue;
    PageSpan span;
    span.allocation = allocation;
    span.first = static_cast<uint32_t>(cuts[index]);
    span.count = static_cast<uint32_t>(cuts[index + 1] - cuts[index]);
    span.is_read = is_read;
    span.is_written = is_written;
    pages += span.count;
    set.push_back(span);
  }
  if (asked == 0 || pages == 0) return;
  const float traffic = static_cast<float>(static_cast<double>(asked) / static_cast<double>(pages * kPageBytes));
  for (size_t index = first; index < set.size(); ++index) set[index].traffic = traffic;
}

// ---- traces --------------------------------------------------------------------------------------------------------

void Profile::finish() {
  for (auto &[number, source] : sources_) make_trace(number, source);
  std::stable_sort(traces_.begin(), traces_.end(),
                   [](const Trace &left, const Trace &right) { return left.footprint() > right.footprint(); });
  sources_.clear();
}

void Profile::make_trace(uint32_t number, Source &source) {
  const bool has_managed = source.trace.sets.size() > 1;
  const bool use_all = options_.memory == Memory::kAll || (options_.memory == Memory::kAutomatic && !has_managed);
  Trace trace = std::move(use_all ? source.other : source.trace);
  const std::vector<Life> &lives = use_all ? source.other_lives : source.lives;
  if (use_all) {
    for (size_t index = 0; index < source.launches.size(); ++index) {
      source.launches[index].touches = source.other_touches[index];
    }
    std::erase_if(source.launches, [](const Launch &launch) { return launch.is_host; });
  }
  if (trace.sets.size() < 2) return;
  if (use_all) counts_.is_all_memory = true;
  trace.source = number;

  // One device.
  std::map<uint32_t, uint64_t> touches_of;
  for (const Launch &launch : source.launches) {
    if (!launch.is_host && launch.touches != 0) ++touches_of[launch.device];
  }
  trace.device = options_.device;
  if (trace.device == kNone && !touches_of.empty()) {
    trace.device = std::max_element(touches_of.begin(), touches_of.end(), [](const auto &left, const auto &right) {
                     return left.second < right.second;
                   })->first;
  }
  std::vector<Launch> launches;
  for (const Launch &launch : source.launches) {
    if (!launch.is_host && launch.device != trace.device) {
      ++counts_.other_devices;
    } else {
      launches.push_back(launch);
    }
  }
  find_homes(source, trace, lives, launches);

  // What comes before the first touch and after the last has nothing to be planned.
  const auto touches = [](const Launch &launch) { return launch.touches != 0 && !launch.is_host; };
  const auto first = std::find_if(launches.begin(), launches.end(), touches);
  if (first == launches.end()) return;
  std::map<uint32_t, uint32_t> occurrences;
  uint64_t counted = 0;
  uint64_t last_graph = kNobody;
  for (auto at = launches.begin(); at != launches.end(); ++at) {
    Step step;
    step.touches = at->touches;
    if (!at->is_host) {
      const uint32_t kernel = trace.kernel(text_(at->name));
      step.kernel = kernel;
      step.launch = at->ordinal;
      step.stream = at->stream;
      step.is_graph = at->is_graph;
      // As a port counts: graph launches are one kernel without a name.
      const uint32_t key = at->is_graph ? kNone : kernel;
      if (at->is_graph && last_graph == at->ordinal) {
        step.occurrence = occurrences[key] - 1;
      } else {
        step.occurrence = occurrences[key]++;
      }
      last_graph = at->is_graph ? at->ordinal : kNobody;
      counted = at->ordinal + 1;
    }
    if (at >= first) trace.steps.push_back(step);
  }
  trace.set_launches(counted);
  launches.erase(launches.begin(), first);
  for (uint32_t allocation = 0; allocation < lives.size(); ++allocation) {
    const auto step_at = [&](int64_t time_ns) {
      const auto found = std::lower_bound(launches.begin(), launches.end(), time_ns,
                                          [](const Launch &launch, int64_t ns) { return launch.time_ns < ns; });
      return static_cast<uint32_t>(found - launches.begin());
    };
    trace.allocations[allocation].begin_step = step_at(lives[allocation].begin_ns);
    if (lives[allocation].end_ns != MemoryObject::kAlive) {
      const uint32_t end = step_at(lives[allocation].end_ns);
      if (end < launches.size()) trace.allocations[allocation].end_step = end;
    }
  }
  set_times(source, launches, trace);
  for (const Step &step : trace.steps) {
    uint32_t last = kNone;
    for (const PageSpan &span : trace.sets[step.touches]) {
      if (span.allocation == last) continue;
      last = span.allocation;
      ++(step.is_host() ? trace.allocations[last].host_touches : trace.allocations[last].device_touches);
    }
  }
  traces_.push_back(std::move(trace));
}

// Where pages were at first, and moments at which the host took them back, by migrations.
void Profile::find_homes(const Source &source, Trace &trace, const std::vector<Life> &lives,
                         std::vector<Launch> &launches) {
  const bool by_migrations = options_.home == HomeRule::kAutomatic && !source.moved.empty() &&
                             source.migrations <= options_.trusted_migrations;
  for (Allocation &allocation : trace.allocations) {
    const bool is_nowhere = options_.home == HomeRule::kNowhere || by_migrations;
    allocation.home = is_nowhere ? Home::kNowhere : Home::kHost;
  }
  if (source.moved.empty()) return;
  std::vector<uint32_t> order(lives.size());
  for (uint32_t index = 0; index < order.size(); ++index) order[index] = index;
  std::sort(order.begin(), order.end(), [&](uint32_t left, uint32_t right) {
    return std::tie(lives[left].address, lives[left].begin_ns) < std::tie(lives[right].address, lives[right].begin_ns);
  });
  // The allocation that lived at `time_ns` and holds the address: among those that begin at or before it, a few back.
  const auto allocation_at = [&](uint64_t address, int64_t time_ns) {
    auto at = std::upper_bound(order.begin(), order.end(), address,
                               [&](uint64_t wanted, uint32_t index) { return wanted < lives[index].address; });
    for (int tries = 0; at != order.begin() && tries < 64; ++tries) {
      const Life &life = lives[*--at];
      if (address - life.address < life.bytes && life.begin_ns <= time_ns && time_ns <= life.end_ns) return *at;
    }
    return kNone;
  };
  std::vector<Launch> taken_back;
  const auto by_time = [](const Moved &left, const Moved &right) { return left.time_ns < right.time_ns; };
  std::vector<Moved> moved = source.moved;
  std::stable_sort(moved.begin(), moved.end(), by_time);
  size_t next_launch = 0;
  TouchSet set;
  int64_t set_time_ns = 0;
  const auto flush = [&] {
    if (set.empty()) return;
    std::sort(set.begin(), set.end(), [](const PageSpan &left, const PageSpan &right) {
      return left.allocation != right.allocation ? left.allocation < right.allocation : left.first < right.first;
    });
    TouchSet joined;
    for (const PageSpan &span : set) {
      if (!joined.empty() && joined.back().allocation == span.allocation &&
          joined.back().first + joined.back().count >= span.first) {
        joined.back().count =
            std::max(joined.back().first + joined.back().count, span.first + span.count) - joined.back().first;
      } else {
        joined.push_back(span);
      }
    }
    Launch host;
    host.is_host = true;
    host.time_ns = set_time_ns;
    host.touches = trace.intern(joined);
    taken_back.push_back(host);
    set.clear();
  };
  for (const Moved &one : moved) {
    const uint32_t allocation = allocation_at(one.address, one.time_ns);
    if (allocation == kNone) continue;
    const Life &life = lives[allocation];
    if (!one.to_host) {
      if (by_migrations) trace.allocations[allocation].home = Home::kHost;
      continue;
    }
    // Pages that go back between the same two launches are one touch of the host.
    size_t launch = next_launch;
    while (launch < launches.size() && launches[launch].time_ns < one.time_ns) ++launch;
    if (launch != next_launch) flush();
    next_launch = launch;
    set_time_ns = one.time_ns;
    const uint64_t offset = one.address - life.address;
    const uint64_t end = std::min(offset + std::max<uint64_t>(one.bytes, 1), life.bytes);
    PageSpan span;
    span.allocation = allocation;
    span.first = static_cast<uint32_t>(offset / kPageBytes);
    span.count = static_cast<uint32_t>((end - 1) / kPageBytes + 1 - span.first);
    span.is_written = true;  // it is not known; a write is the safe assumption
    set.push_back(span);
  }
  flush();
  if (taken_back.empty()) return;
  launches.insert(launches.end(), taken_back.begin(), taken_back.end());
  std::stable_sort(launches.begin(), launches.end(),
                   [](const Launch &left, const Launch &right) { return left.time_ns < right.time_ns; });
}

// Times with all pages there: of launches of one kernel, grid and block, and of those with one set of touches where they
// are several, the shortest. A launch that has no such time gets its bytes at the device's rate.
void Profile::set_times(Source &source, const std::vector<Launch> &launches, Trace &trace) {
  const auto by_launch = [](const Kernel &left, const Kernel &right) {
    return std::tie(left.correlation, left.graph_node) < std::tie(right.correlation, right.graph_node);
  };
  if (!std::is_sorted(source.kernels.begin(), source.kernels.end(), by_launch)) {
    std::sort(source.kernels.begin(), source.kernels.end(), by_launch);
  }
  struct Least {
    int64_t ns = INT64_MAX;
    uint32_t count = 0;
    bool is_cold = false;  // only seen with touches of pages that had not been touched before
  };
  std::vector<const Kernel *> of(launches.size(), nullptr);
  std::unordered_map<uint64_t, Least> by_shape;
  std::unordered_map<uint64_t, Least> by_set;
  std::vector<bool> seen_set(trace.sets.size());
  int64_t busy_until = INT64_MIN;
  for (size_t index = 0; index < launches.size(); ++index) {
    const Launch &launch = launches[index];
    if (launch.is_host || launch.correlation == 0) continue;
    const auto wanted = std::tie(launch.correlation, launch.graph_node);
    const auto found = std::lower_bound(
        source.kernels.begin(), source.kernels.end(), wanted,
        [](const Kernel &kernel, const auto &key) { return std::tie(kernel.correlation, kernel.graph_node) < key; });
    if (found == source.kernels.end() || std::tie(found->correlation, found->graph_node) != wanted) continue;
    ++counts_.timed;
    of[index] = &*found;
    const int64_t ns = found->end_ns - found->begin_ns;
    const bool is_cold = launch.touches != 0 && !seen_set[launch.touches];
    for (Least *const least : {&by_shape[launch.shape], &by_set[uint64_t{launch.shape} << 32 | launch.touches]}) {
      least->is_cold = least->count == 0 ? is_cold : least->is_cold && is_cold;
      least->ns = std::min(least->ns, ns);
      ++least->count;
    }
    seen_set[launch.touches] = true;
    if (index != 0 && busy_until != INT64_MIN && found->begin_ns > busy_until) {
      trace.steps[index].gap_ns = static_cast<uint32_t>(std::min<int64_t>(found->begin_ns - busy_until, UINT32_MAX));
    }
    busy_until = std::max(busy_until, found->end_ns);
  }
  for (size_t index = 0; index < launches.size(); ++index) {
    const Launch &launch = launches[index];
    if (launch.is_host || of[index] == nullptr) continue;
    const Least &same = by_set[uint64_t{launch.shape} << 32 | launch.touches];
    const Least &shape = by_shape[launch.shape];
    Step &step = trace.steps[index];
    step.duration_ns = same.count >= kOftenEnough ? same.ns : shape.ns;
    const bool is_cold = same.count >= kOftenEnough ? same.is_cold : shape.is_cold;
    if (!is_cold) continue;
    uint64_t bytes = 0;
    for (const PageSpan &span : trace.sets[launch.touches]) bytes += uint64_t{span.count} * kPageBytes;
    const auto estimate = static_cast<int64_t>(static_cast<double>(bytes) / options_.device_rate * 1e9);
    step.duration_ns = std::min(step.duration_ns, std::max<int64_t>(estimate, 1000));
    step.is_estimated = true;
    ++counts_.estimated;
  }
}

}  // namespace sonde::uvm
