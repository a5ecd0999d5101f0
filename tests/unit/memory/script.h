// A program's memory as a script: objects, kernels and operations of the host, told to the analysis one after another.
#pragma once

#include <gtest/gtest.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/device.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "objects.h"

namespace sonde::memory {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// What a kernel did to an object. Without edges and pages it is counts alone, as SONDE_LEVEL_OBJECT_SUMMARY gives them.
struct Touch {
  char object;
  std::vector<uint64_t> read = {};
  std::vector<uint64_t> written = {};
  std::vector<uint64_t> pages = {};
  std::vector<uint64_t> page_counts = {};
  uint64_t reads = 1;
  uint64_t writes = 0;
  uint64_t atomics = 0;
  uint32_t granule = 1;
};

// Objects are named by letters; a letter may name another object after it was freed. Every event takes 10 ns.
class Script {
 public:
  explicit Script(const Options &options = {}) : objects(options) {}

  // Sets the time of the next event.
  Script &at(int64_t ns) {
    now_ = ns;
    return *this;
  }
  Script &on(uint64_t stream) {
    stream_ = stream;
    return *this;
  }
  Script &of(uint32_t source) {
    source_ = source;
    return *this;
  }
  MemoryObject &next() { return next_; }  // what the next allocation will have beside its size

  Script &allocate(char name, uint64_t bytes) {
    MemoryObject &object = live_[name];
    object = next_;
    next_ = MemoryObject{};
    object.id = ++last_id_;
    ids_[name] = object.id;
    object.source = source_;
    if (object.kind == 0) object.kind = SONDE_MEMORY_DEVICE;
    if (object.address == 0) object.address = uint64_t{object.id} << 40;
    object.bytes = bytes;
    object.stream = stream_;
    object.begin_ns = now_;
    object.begin_operation = counters_[source_].operations;
    object.begin_kernel = counters_[source_].kernels;
    objects.object_begins(object);
    return pass();
  }
  Script &tensor(char name, char parent, uint64_t offset, uint64_t bytes) {
    next_.level = ObjectLevel::kTensor;
    next_.parent = live_.at(parent).id;
    next_.address = live_.at(parent).address + offset;
    return allocate(name, bytes);
  }
  Script &free(char name, ObjectEnd how = ObjectEnd::kFreed) {
    MemoryObject object = live_.at(name);
    live_.erase(name);
    object.end = how;
    object.end_ns = now_;
    object.end_stream = stream_;
    object.is_end_stream_ordered = object.is_stream_ordered;
    object.end_operation = counters_[object.source].operations;
    object.end_kernel = counters_[object.source].kernels;
    objects.object_ends(object);
    return pass();
  }

  Script &kernel(std::initializer_list<Touch> touches, uint32_t flags = SONDE_LAUNCH_WATCHED, bool is_late = false) {
    MemoryOperation operation = begin(OperationKind::kKernel);
    operation.launch_flags = flags;
    operation.is_late = is_late;
    if (!is_late) ++counters_[source_].kernels;
    return tell(operation, touches);
  }
  // Kernels that touch nothing.
  Script &kernels(int count) {
    for (int i = 0; i < count; ++i) kernel({});
    return *this;
  }
  // Of the first `bytes`, 0: all.
  Script &copy_in(char name, uint64_t bytes = 0, uint64_t offset = 0) {
    MemoryOperation operation = begin(OperationKind::kCopy);
    operation.copy_kind = SONDE_COPY_HOST_TO_DEVICE;
    return host(operation, name, bytes, offset, true);
  }
  Script &copy_out(char name, uint64_t bytes = 0, uint64_t offset = 0) {
    MemoryOperation operation = begin(OperationKind::kCopy);
    operation.copy_kind = SONDE_COPY_DEVICE_TO_HOST;
    return host(operation, name, bytes, offset, false);
  }
  Script &set(char name, uint64_t bytes = 0, uint64_t offset = 0) {
    return host(begin(OperationKind::kSet), name, bytes, offset, true);
  }
  Script &copy_within(char source, char target) {
    MemoryOperation operation = begin(OperationKind::kCopy);
    operation.copy_kind = SONDE_COPY_DEVICE_TO_DEVICE;
    return tell(operation, {{source, {0, live_.at(source).bytes}, {}, {}, {}, 1},
                            {target, {}, {0, live_.at(target).bytes}, {}, {}, 0, 1}});
  }
  Script &prefetch(char name) { return tell(begin(OperationKind::kPrefetch), {{name, {}, {}, {}, {}, 0}}); }

  Script &finish() {
    for (auto &[name, live] : live_) {
      MemoryObject object = live;
      object.end = ObjectEnd::kAlive;
      object.end_operation = counters_[object.source].operations;
      object.end_kernel = counters_[object.source].kernels;
      objects.object_ends(object);
    }
    live_.clear();
    objects.finish();
    return *this;
  }

  uint64_t id(char name) const { return ids_.at(name); }
  const Group &group(ObjectLevel level = ObjectLevel::kAllocation, uint32_t source = 0, uint32_t device = 0) const {
    return *objects.groups().at({source, level, device});
  }
  // Of the object that had the name last; finish first.
  const Usage &usage(char name) const {
    for (const auto &[key, group] : objects.groups()) {
      for (const Usage *const usage : group->worst.sorted()) {
        if (usage->object.id == id(name)) return *usage;
      }
    }
    ADD_FAILURE() << "nothing is known of " << name;
    static const Usage none;
    return none;
  }
  bool has(char name, Pattern pattern) const { return usage(name).patterns.has(pattern); }
  bool is_uncertain(char name, Pattern pattern) const { return usage(name).uncertain.has(pattern); }
  uint64_t count(Pattern pattern, ObjectLevel level = ObjectLevel::kAllocation) const {
    return objects.totals(level, pattern).objects;
  }

  Objects objects;

 private:
  struct Counters {
    uint64_t operations = 0;
    uint64_t kernels = 0;
  };

  Script &pass() {
    now_ += 10;
    return *this;
  }
  MemoryOperation begin(OperationKind kind) {
    MemoryOperation operation;
    operation.kind = kind;
    operation.source = source_;
    operation.stream = stream_;
    operation.time_ns = now_;
    operation.kernels = counters_[source_].kernels;
    operation.index = counters_[source_].operations++;
    return operation;
  }
  Script &host(const MemoryOperation &operation, char name, uint64_t bytes, uint64_t offset, bool is_write) {
    const std::vector<uint64_t> edges = {offset, bytes == 0 ? live_.at(name).bytes : offset + bytes};
    if (is_write) return tell(operation, {{name, {}, edges, {}, {}, 0, 1}});
    return tell(operation, {{name, edges}});
  }
  Script &tell(const MemoryOperation &operation, std::initializer_list<Touch> touches) {
    std::vector<MemoryTouch> told;
    for (const Touch &touch : touches) {
      MemoryTouch &one = told.emplace_back();
      one.object = &live_.at(touch.object);
      one.reads = touch.reads;
      one.writes = touch.writes;
      one.atomics = touch.atomics;
      one.read_edges = touch.read;
      one.write_edges = touch.written;
      one.pages = touch.pages;
      one.page_counts = touch.page_counts;
      one.page_bytes = touch.pages.empty() ? 0 : 4096;
      one.granule = touch.granule;
    }
    objects.operation(operation, told);
    return pass();
  }

  int64_t now_ = 1000;
  uint64_t stream_ = 0;
  uint32_t source_ = 0;
  uint64_t last_id_ = 0;
  MemoryObject next_;
  std::map<char, MemoryObject> live_;
  std::map<char, uint64_t> ids_;
  std::map<uint32_t, Counters> counters_;
};

}  // namespace sonde::memory
