// Small synthetic captures for the workload analysis, and its results.
#pragma once

#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include "fake_host.h"
#include "publish.h"
#include "workload.h"

namespace sonde::workload {

// Stamps are ns since 1970; a day long past keeps them away from 0, which means "no time".
inline constexpr uint64_t kStart = 1'000'000'000;

struct KernelArguments {
  uint64_t stream = 7;
  uint32_t device = 0;
  uint64_t correlation = 0;
  uint32_t graph = 0;
  uint32_t grid = 1;
  uint32_t block = 32;
};

// Records of one source; times are given from kStart on.
class Capture {
 public:
  explicit Capture(uint32_t source = 0) : builder(source) {}

  Capture &process(uint64_t id, uint64_t at = 0) {
    builder.add<sonde_session_start_t>(SONDE_SPACE_SESSION, SONDE_SESSION_START, kStart + at, [&](auto &r) {
      r.process = id;
      r.program = intern("program");
    });
    return *this;
  }
  Capture &kernel(std::string_view name, uint64_t begin, uint64_t end, const KernelArguments &arguments = {}) {
    return kernel_at(name, kStart + begin, kStart + end, arguments);
  }
  // Raw stamps.
  Capture &kernel_at(std::string_view name, uint64_t begin, uint64_t end, const KernelArguments &arguments = {}) {
    builder.add<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin, [&](auto &r) {
      r.end = end;
      r.name = intern(name);
      r.stream = arguments.stream;
      r.device = arguments.device;
      r.correlation = arguments.correlation;
      r.graph_exec = arguments.graph;
      r.grid[0] = arguments.grid;
      r.grid[1] = r.grid[2] = 1;
      r.block[0] = arguments.block;
      r.block[1] = r.block[2] = 1;
      r.registers = 40;
    });
    return *this;
  }
  Capture &copy(uint32_t kind, uint64_t bytes, uint64_t begin, uint64_t end, bool asynchronous,
                uint32_t host_memory = SONDE_MEMORY_PINNED, uint64_t stream = 7) {
    builder.add<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, kStart + begin, [&](auto &r) {
      r.end = kStart + end;
      r.kind = kind;
      r.bytes = bytes;
      r.stream = stream;
      r.source_memory = kind == SONDE_COPY_HOST_TO_DEVICE ? host_memory : uint32_t{SONDE_MEMORY_DEVICE};
      r.destination_memory = kind == SONDE_COPY_DEVICE_TO_HOST ? host_memory : uint32_t{SONDE_MEMORY_DEVICE};
      r.flags = asynchronous ? 1 : 0;
    });
    return *this;
  }
  Capture &set(uint64_t bytes, uint64_t begin, uint64_t end) {
    builder.add<sonde_device_set_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET, kStart + begin, [&](auto &r) {
      r.end = kStart + end;
      r.bytes = bytes;
      r.stream = 7;
      r.memory = SONDE_MEMORY_DEVICE;
      r.flags = 1;
    });
    return *this;
  }
  Capture &call(std::string_view function, uint64_t begin, uint64_t end, uint64_t correlation, uint64_t thread = 1,
                int32_t result = 0) {
    builder.add<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, kStart + begin, [&](auto &r) {
      r.end = end == 0 ? 0 : kStart + end;
      r.function = intern(function);
      r.domain = intern("cuda.runtime");
      r.correlation = correlation;
      r.thread = thread;
      r.result = result;
    });
    return *this;
  }
  Capture &call_begin(std::string_view function, uint64_t at, uint64_t correlation, uint64_t thread = 1) {
    builder.add<sonde_host_call_begin_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL_BEGIN, kStart + at, [&](auto &r) {
      r.function = intern(function);
      r.domain = intern("cuda.runtime");
      r.correlation = correlation;
      r.thread = thread;
    });
    return *this;
  }
  Capture &call_end(uint64_t at, uint64_t correlation, uint64_t thread = 1) {
    builder.add<sonde_host_call_end_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL_END, kStart + at, [&](auto &r) {
      r.correlation = correlation;
      r.thread = thread;
    });
    return *this;
  }
  Capture &begin(uint32_t type, std::string_view name, uint64_t at, uint64_t thread = 1, uint64_t scope = 0) {
    builder.add<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, type, kStart + at, [&](auto &r) {
      r.name = intern(name);
      r.domain = intern("python");
      r.thread = thread;
      r.scope = scope;
    });
    return *this;
  }
  Capture &end(uint32_t type, uint64_t at, uint64_t thread = 1, uint64_t scope = 0) {
    builder.add<sonde_framework_scope_end_t>(SONDE_SPACE_FRAMEWORK, type, kStart + at, [&](auto &r) {
      r.domain = intern("python");
      r.thread = thread;
      r.scope = scope;
    });
    return *this;
  }
  Capture &push(std::string_view name, uint64_t at, uint64_t thread = 1, uint64_t scope = 0) {
    return begin(SONDE_FRAMEWORK_SCOPE_PUSH, name, at, thread, scope);
  }
  Capture &pop(uint64_t at, uint64_t thread = 1, uint64_t scope = 0) {
    return end(SONDE_FRAMEWORK_SCOPE_POP, at, thread, scope);
  }
  Capture &allocate(uint64_t address, uint64_t bytes, uint64_t at, uint32_t device = 0,
                    uint32_t kind = SONDE_MEMORY_DEVICE, uint32_t type = SONDE_MEMORY_ALLOCATE) {
    builder.add<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) {
      r.address = address;
      r.bytes = bytes;
      r.device = device;
      r.kind = kind;
    });
    return *this;
  }
  Capture &free(uint64_t address, uint64_t at, uint32_t device = 0, uint32_t kind = SONDE_MEMORY_DEVICE,
                uint32_t type = SONDE_MEMORY_FREE) {
    builder.add<sonde_memory_free_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) {
      r.address = address;
      r.device = device;
      r.kind = kind;
    });
    return *this;
  }
  Capture &pool(uint32_t type, uint64_t id, uint64_t reserved, uint64_t used, uint64_t at) {
    builder.add<sonde_memory_pool_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) {
      r.pool = id;
      r.reserved_bytes = reserved;
      r.used_bytes = used;
    });
    return *this;
  }
  Capture &map(uint32_t type, uint64_t address, uint64_t bytes, uint64_t at) {
    builder.add<sonde_memory_map_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) {
      r.address = address;
      r.bytes = bytes;
    });
    return *this;
  }
  Capture &graph_made(uint32_t graph_exec, uint32_t nodes, uint64_t at, uint32_t state = 0) {
    builder.add<sonde_object_graph_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH, kStart + at, [&](auto &r) {
      r.graph_exec = graph_exec;
      r.nodes = nodes;
      r.state = state;
    });
    return *this;
  }

  Capture &device_named(uint32_t device, std::string_view name) {
    builder.add<sonde_object_device_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE, kStart, [&](auto &r) {
      r.device = device;
      r.name = intern(name);
    });
    return *this;
  }
  Capture &stream_named(uint64_t stream, std::string_view name) {
    builder.add<sonde_object_name_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_NAME, kStart, [&](auto &r) {
      r.object = stream;
      r.kind = SONDE_NAMED_STREAM;
      r.name = intern(name);
    });
    return *this;
  }

  testing::BatchBuilder builder;

 private:
  static sonde_string_t intern(std::string_view text) { return testing::FakeHost::get().intern(text); }
};

// An analysis with results in the fake host.
class WorkloadTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::FakeHost::get().reset(); }

  static const char *fetch(uint32_t, sonde_string_t id) {
    const auto &texts = testing::FakeHost::get().texts;
    return id < texts.size() ? texts[id].c_str() : nullptr;
  }

  // Feeds the streams in order, finishes and publishes.
  void run(std::initializer_list<Capture *> streams) {
    workload = std::make_unique<Workload>(options, &WorkloadTest::fetch);
    for (Capture *const stream : streams) workload->consume(stream->builder.batch());
    finish();
  }
  void run(Capture &stream) { run({&stream}); }
  void finish() {
    workload->finish();
    const Host host(testing::FakeHost::table());
    publish_tables(*workload, host, testing::FakeHost::session());
    publish_findings(*workload, host, testing::FakeHost::session());
  }

  static const testing::FakeTable &table(std::string_view name) { return testing::FakeHost::get().find_table(name); }
  // A cell as text, of the row whose `key` column holds `value`.
  static std::string cell(std::string_view name, std::string_view key, std::string_view value,
                          std::string_view column) {
    const testing::FakeTable &found = table(name);
    return found.at(found.row_where(key, value), column).str();
  }
  // The one finding of a rule.
  static testing::FakeFinding finding(std::string_view rule) {
    const auto found = testing::FakeHost::get().find("workload." + std::string(rule));
    EXPECT_EQ(found.size(), 1u) << rule;
    return found.empty() ? testing::FakeFinding{} : found[0];
  }

  Options options;
  std::unique_ptr<Workload> workload;
};

}  // namespace sonde::workload
