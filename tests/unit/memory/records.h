// Records of one source for the memory analysis, put together by hand; times from kStart on.
#pragma once

#include <fake_host.h>
#include <gtest/gtest.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/session.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memory.h"
#include "publish.h"

namespace sonde::memory {

constexpr uint64_t kStart = 1'000'000;

class Records {
 public:
  explicit Records(uint32_t source = 0) : builder(source) {}

  Records &process(uint64_t id) {
    builder.add<sonde_session_start_t>(SONDE_SPACE_SESSION, SONDE_SESSION_START, kStart,
                                       [&](auto &r) { r.process = id; });
    return *this;
  }
  Records &allocate(uint64_t address, uint64_t bytes, uint64_t at, std::string_view name = "", uint32_t flags = 0,
                    uint64_t stream = 0) {
    builder.add<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, kStart + at, [&](auto &r) {
      r.address = address;
      r.bytes = bytes;
      r.kind = SONDE_MEMORY_DEVICE;
      r.name = intern(name);
      r.flags = flags;
      r.stream = stream;
    });
    return *this;
  }
  Records &free(uint64_t address, uint64_t at, uint32_t flags = 0, uint64_t stream = 0) {
    builder.add<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, kStart + at, [&](auto &r) {
      r.address = address;
      r.flags = flags;
      r.stream = stream;
    });
    return *this;
  }
  Records &tensor(uint64_t address, uint64_t bytes, uint64_t at, uint64_t scope = 0) {
    builder.add<sonde_framework_tensor_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_TENSOR_ALLOCATE, kStart + at,
                                          [&](auto &r) {
                                            r.address = address;
                                            r.bytes = bytes;
                                            r.scope = scope;
                                          });
    return *this;
  }
  Records &tensor_free(uint64_t address, uint64_t at) {
    builder.add<sonde_framework_tensor_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_TENSOR_FREE, kStart + at,
                                          [&](auto &r) { r.address = address; });
    return *this;
  }
  Records &scope(uint64_t id, std::string_view name, uint64_t at) {
    builder.add<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, kStart + at, [&](auto &r) {
      r.scope = id;
      r.name = intern(name);
    });
    return *this;
  }
  Records &launch(uint64_t number, std::string_view name, uint64_t at, uint32_t flags = SONDE_LAUNCH_WATCHED,
                  uint64_t stream = 0) {
    builder.add<sonde_access_launch_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, kStart + at, [&](auto &r) {
      r.launch = number;
      r.name = intern(name);
      r.flags = flags;
      r.stream = stream;
      r.kernel_period = r.block_period = 1;
    });
    return *this;
  }
  Records &touch(uint64_t launch, uint64_t address, uint64_t bytes, uint64_t reads, uint64_t writes = 0,
                 uint32_t kind = SONDE_OBJECT_IS_ALLOCATION) {
    builder.add<sonde_access_object_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, kStart, [&](auto &r) {
      r.launch = launch;
      r.address = address;
      r.bytes = bytes;
      r.reads = reads;
      r.writes = writes;
      r.object_kind = kind;
    });
    return *this;
  }
  // kind: 1 read, 2 written.
  Records &interval(uint64_t launch, uint64_t address, uint64_t bytes, uint32_t kind, uint64_t begin, uint64_t end) {
    struct {
      sonde_access_intervals_t fixed;
      uint64_t edges[2];
    } record;
    std::memset(static_cast<void *>(&record), 0, sizeof(record));
    SONDE_RECORD_INIT(&record.fixed, SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, kStart);
    record.fixed.header.size8 = sizeof(record) / 8;
    record.fixed.launch = launch;
    record.fixed.address = address;
    record.fixed.bytes = bytes;
    record.fixed.kind = kind;
    record.fixed.granule = 1;
    record.fixed.edges = {sizeof(sonde_access_intervals_t), 2};
    record.edges[0] = begin;
    record.edges[1] = end;
    builder.append(&record, sizeof(record));
    return *this;
  }
  // 0 as source: a copy in; as target: a copy out.
  Records &copy(uint64_t source, uint64_t target, uint64_t bytes, uint64_t at) {
    builder.add<sonde_access_transfer_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER, kStart + at, [&](auto &r) {
      r.source = source;
      r.target = target;
      r.bytes = r.width = bytes;
      r.rows = 1;
      r.kind = source == 0 ? SONDE_COPY_HOST_TO_DEVICE : SONDE_COPY_DEVICE_TO_HOST;
    });
    return *this;
  }
  Records &sync(uint32_t kind, uint64_t stream, uint64_t begin, uint64_t end) {
    builder.add<sonde_device_sync_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC, kStart + begin, [&](auto &r) {
      r.end = kStart + end;
      r.kind = kind;
      r.stream = stream;
    });
    return *this;
  }

  testing::BatchBuilder builder;

 private:
  static sonde_string_t intern(std::string_view text) { return testing::FakeHost::get().intern(text); }
};

// An analysis with results in the fake host.
class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::FakeHost::get().reset(); }

  static const char *fetch(uint32_t, sonde_string_t id) {
    const auto &texts = testing::FakeHost::get().texts;
    return id < texts.size() ? texts[id].c_str() : nullptr;
  }

  void run(std::initializer_list<Records *> streams) {
    memory = std::make_unique<Memory>(options, &MemoryTest::fetch);
    for (Records *const stream : streams) memory->consume(stream->builder.batch());
    memory->finish();
    if (memory->trace() != nullptr) memory->trace()->finish(*memory);
    const Host host(testing::FakeHost::table());
    publish_tables(*memory, host, testing::FakeHost::session());
    publish_findings(*memory, host, testing::FakeHost::session(), {});
  }
  void run(Records &stream) { run({&stream}); }

  static const testing::FakeTable &table(std::string_view name) { return testing::FakeHost::get().find_table(name); }
  static std::string cell(std::string_view name, std::string_view key, std::string_view value,
                          std::string_view column) {
    const testing::FakeTable &found = table(name);
    return found.at(found.row_where(key, value), column).str();
  }
  static std::vector<testing::FakeFinding> findings(std::string_view rule) {
    return testing::FakeHost::get().find("memory." + std::string(rule));
  }
  static testing::FakeFinding finding(std::string_view rule) {
    const auto found = findings(rule);
    EXPECT_EQ(found.size(), 1u) << rule;
    return found.empty() ? testing::FakeFinding{} : found[0];
  }

  Options options;
  std::unique_ptr<Memory> memory;
};

}  // namespace sonde::memory
