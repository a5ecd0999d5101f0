#include "workload_file.h"

#include <algorithm>

#include <sonde/status.h>

namespace sonde::uvm {

namespace {

constexpr uint64_t kMostSteps = 10'000'000;

class Reader {
 public:
  Reader(const sonde_config_service_t &service, std::string &error) : service_(service), error_(error) {}

  bool fail(const sonde_config_t *tree, const std::string &text) {
    const char *where = "";
    service_.where(tree, "", &where);
    if (error_.empty()) error_ = std::string(where) + ": " + text;
    return false;
  }

  bool has(const sonde_config_t *tree, const char *key) const {
    const sonde_config_t *child = nullptr;
    return service_.child(tree, key, &child) == SONDE_OK;
  }

  // The value at `key`, or `fallback` where there is none.
  bool number(const sonde_config_t *tree, const char *key, uint64_t fallback, uint64_t &out) {
    out = fallback;
    if (!has(tree, key)) return true;
    int64_t value = 0;
    if (service_.get_i64(tree, key, &value) != SONDE_OK || value < 0) {
      return fail(tree, std::string("'") + key + "' must be a number from 0 on");
    }
    out = static_cast<uint64_t>(value);
    return true;
  }

  bool flag(const sonde_config_t *tree, const char *key) const {
    uint32_t value = 0;
    return service_.get_bool(tree, key, &value) == SONDE_OK && value != 0;
  }

  template <typename Body>
  bool each(const sonde_config_t *tree, const char *key, Body &&body) {
    const sonde_config_t *list = nullptr;
    uint64_t count = 0;
    if (service_.child(tree, key, &list) != SONDE_OK) return true;
    service_.count(list, "", &count);
    for (uint64_t index = 0; index < count; ++index) {
      const sonde_config_t *item = nullptr;
      if (service_.child(list, std::to_string(index).c_str(), &item) != SONDE_OK) {
        return fail(list, std::string("'") + key + "' must be a list");
      }
      if (!body(item)) return false;
    }
    return true;
  }

  bool allocation(const sonde_config_t *tree, Trace &trace) {
    uint64_t bytes = 0;
    if (!number(tree, "bytes", 0, bytes)) return false;
    if (bytes == 0 || pages_of(bytes) >= kNone) return fail(tree, "an allocation needs 'bytes'");
    const char *home = "host";
    if (has(tree, "home") && service_.get_text(tree, "home", &home) != SONDE_OK)
      return fail(tree, "'home' must be text");
    const std::string word = home;
    if (word != "host" && word != "nowhere" && word != "device") {
      return fail(tree, "'" + word + "' is none of host, nowhere, device");
    }
    trace.allocate(bytes, word == "host" ? Home::kHost : word == "device" ? Home::kDevice : Home::kNowhere);
    return true;
  }

  // Pages of a range of bytes in an allocation; the range is cut at the allocation's end.
  bool range(const sonde_config_t *tree, const Trace &trace, uint64_t allocation, uint64_t &first, uint64_t &last) {
    if (allocation >= trace.allocations.size())
      return fail(tree, "there is no allocation " + std::to_string(allocation));
    const uint64_t whole = trace.allocations[allocation].bytes;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    if (!number(tree, "offset", 0, offset) || !number(tree, "bytes", whole - std::min(offset, whole), bytes))
      return false;
    if (bytes == 0 || offset >= whole || bytes > whole - offset)
      return fail(tree, "the range is not within the allocation");
    first = offset / kPageBytes;
    last = (offset + bytes - 1) / kPageBytes;
    return true;
  }

  bool touch(const sonde_config_t *tree, const Trace &trace, TouchSet &set) {
    uint64_t allocation = 0;
    uint64_t bytes = 0;
    uint64_t offset = 0;
    uint64_t stride = 0;
    uint64_t count = 1;
    double traffic = 1;
    if (!number(tree, "allocation", 0, allocation)) return false;
    uint64_t first = 0;
    uint64_t last = 0;
    if (!range(tree, trace, allocation, first, last) || !number(tree, "offset", 0, offset) ||
        !number(tree, "bytes", trace.allocations[allocation].bytes - offset, bytes) ||
        !number(tree, "stride", bytes, stride) || !number(tree, "count", 1, count)) {
      return false;
    }
    if (has(tree, "traffic") && service_.get_f64(tree, "traffic", &traffic) != SONDE_OK) {
      return fail(tree, "'traffic' must be a number");
    }
    const uint64_t whole = trace.allocations[allocation].bytes;
    if (count == 0 || stride < bytes || count > whole ||
        (count - 1) > (whole - offset - bytes) / std::max<uint64_t>(stride, 1)) {
      return fail(tree, "'stride' and 'count' lead out of the allocation");
    }
    const bool writes = flag(tree, "write");
    for (uint64_t index = 0; index < count; ++index) {
      const uint64_t begin = (offset + index * stride) / kPageBytes;
      const uint64_t end = (offset + index * stride + bytes - 1) / kPageBytes + 1;
      if (!set.empty() && set.back().allocation == allocation && set.back().is_written == writes &&
          uint64_t{set.back().first} + set.back().count >= begin) {
        set.back().count = std::max(set.back().count, static_cast<uint32_t>(end - set.back().first));
        continue;
      }
      set.push_back({static_cast<uint32_t>(allocation), static_cast<uint32_t>(begin),
                     static_cast<uint32_t>(end - begin), writes, !writes, static_cast<float>(traffic)});
    }
    return true;
  }

  bool move(const sonde_config_t *tree, const Trace &trace, Move &out, uint64_t &needed) {
    out.is_eviction = has(tree, "evict");
    if (out.is_eviction == has(tree, "prefetch")) return fail(tree, "a move is either 'prefetch' or 'evict'");
    uint64_t allocation = 0;
    uint64_t first = 0;
    uint64_t last = 0;
    if (!number(tree, out.is_eviction ? "evict" : "prefetch", 0, allocation) ||
        !range(tree, trace, allocation, first, last) || !number(tree, "needed", kNobody, needed)) {
      return false;
    }
    out.allocation = static_cast<uint32_t>(allocation);
    out.first = static_cast<uint32_t>(first);
    out.count = static_cast<uint32_t>(last - first + 1);
    return true;
  }

 private:
  const sonde_config_service_t &service_;
  std::string &error_;
};

}  // namespace

bool read_workload(const sonde_config_service_t &service, const sonde_config_t *tree, HandWorkload &out,
                   std::string &error) {
  out = {};
  error.clear();
  Reader reader(service, error);
  Trace &trace = out.trace;
  if (!reader.each(tree, "allocations", [&](const sonde_config_t *item) { return reader.allocation(item, trace); })) {
    return false;
  }
  if (trace.allocations.empty()) return reader.fail(tree, "there are no 'allocations'");
  const uint32_t kernel = trace.kernel("kernel");
  std::vector<std::pair<size_t, size_t>> order;  // groups and moves whose `needed` is a launch
  std::vector<uint64_t> needed;
  const bool read = reader.each(tree, "steps", [&](const sonde_config_t *item) {
    uint64_t repeat = 1;
    uint64_t duration = 0;
    uint64_t gap = 0;
    TouchSet set;
    if (!reader.number(item, "repeat", 1, repeat) || !reader.number(item, "duration_ns", 0, duration) ||
        !reader.number(item, "gap_ns", 0, gap) ||
        !reader.each(item, "touches", [&](const sonde_config_t *touch) { return reader.touch(touch, trace, set); })) {
      return false;
    }
    if (repeat + trace.steps.size() > kMostSteps) return reader.fail(item, "there are more than 10 million steps");
    std::stable_sort(set.begin(), set.end(), [](const PageSpan &left, const PageSpan &right) {
      return left.allocation != right.allocation ? left.allocation < right.allocation : left.first < right.first;
    });
    MoveGroup group;
    group.step = static_cast<uint32_t>(trace.steps.size());
    const char *when = "host";
    if (reader.has(item, "when") && service.get_text(item, "when", &when) != SONDE_OK) {
      return reader.fail(item, "'when' must be host or device");
    }
    group.waits_for_device = std::string_view(when) == "device";
    const bool moves = reader.each(item, "moves", [&](const sonde_config_t *entry) {
      Move move;
      uint64_t launch = kNobody;
      if (!reader.move(entry, trace, move, launch)) return false;
      order.emplace_back(out.schedule.groups.size(), group.moves.size());
      needed.push_back(launch);
      group.moves.push_back(move);
      return true;
    });
    if (!moves) return false;
    if (!group.moves.empty()) out.schedule.groups.push_back(std::move(group));
    const uint32_t number = trace.intern(std::move(set));
    for (uint64_t index = 0; index < repeat; ++index) {
      if (reader.flag(item, "host")) {
        trace.host_touch(number);
        continue;
      }
      Step &step = trace.launch(kernel, number, static_cast<int64_t>(duration));
      step.gap_ns = static_cast<uint32_t>(std::min<uint64_t>(gap, UINT32_MAX));
    }
    return true;
  });
  if (!read) return false;
  // Launches to steps.
  std::vector<uint32_t> step_of;
  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    if (!trace.steps[index].is_host()) step_of.push_back(index);
  }
  for (size_t index = 0; index < order.size(); ++index) {
    if (needed[index] >= step_of.size()) continue;
    out.schedule.groups[order[index].first].moves[order[index].second].needed = step_of[needed[index]];
  }
  return true;
}

}  // namespace sonde::uvm
