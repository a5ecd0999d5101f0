#include <gtest/gtest.h>
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "module.h"

namespace sonde {
namespace {

// Two threads, each with its own stream: a scope of launches, kernels of 1,000 to 10,000 stamps, allocations.
constexpr uint64_t kThreads = 2;
constexpr uint64_t kSteps = 50;

void emit(const Session &session, uint64_t thread) {
  Writer writer = session.writer();
  const sonde_string_t names[] = {session.intern("_Z9vectorAddPfS_i"), session.intern("gemm")};
  const sonde_string_t scope_name = session.intern("step"), domain = session.intern("test");
  const sonde_string_t call_name = session.intern("launch");
  for (uint64_t step = 0; step < kSteps; ++step) {
    sonde_framework_scope_t push{};
    push.thread = thread;
    push.name = scope_name;
    push.domain = domain;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, push));
    const uint64_t correlation = thread * 1000 + step + 1;
    sonde_host_call_t call{};
    call.thread = thread;
    call.correlation = correlation;
    call.function = call_name;
    call.domain = domain;
    const uint64_t now = sonde_stamp();
    call.end = now + 10;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_HOST, SONDE_HOST_CALL, call, now));
    sonde_device_kernel_t kernel{};
    kernel.correlation = correlation;
    kernel.stream = thread;
    kernel.name = names[step % 2];
    kernel.end = now + 1000 * (1 + step % 10);
    kernel.grid[0] = kernel.grid[1] = kernel.grid[2] = 1;
    kernel.block[0] = 128;
    kernel.block[1] = kernel.block[2] = 1;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kernel, now + 20));
    sonde_memory_allocate_t allocate{};
    allocate.address = thread << 32 | (step + 1) << 12;
    allocate.bytes = 4096;
    allocate.kind = SONDE_MEMORY_DEVICE;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, allocate));
    sonde_framework_scope_end_t pop{};
    pop.thread = thread;
    pop.domain = domain;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_POP, pop));
  }
}

void emit_all(const Session &session) {
  std::vector<std::thread> threads;
  for (uint64_t thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([&session, thread] { emit(session, thread); });
  }
  for (std::thread &thread : threads) thread.join();
}

std::string render(const Session &session, const char *format) {
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = format;
  options.only = "";
  std::string text;
  host().check(host().service<sonde_report_service_t>().render(
      session.get(), &options,
      [](void *user, const char *piece, uint64_t bytes) {
        static_cast<std::string *>(user)->append(piece, bytes);
        return SONDE_OK;
      },
      &text));
  return text;
}

void expect_all_kernels(const Session &session, uint64_t processes) {
  const auto kernels = rows(session, "kernels");
  uint64_t count = 0;
  for (const Row &row : kernels) {
    count += row.at("count").as.u64;
    EXPECT_EQ(row.at("untimed").as.u64, 0u);
    EXPECT_STREQ(row.at("grid").as.text, "(1, 1, 1)");
  }
  EXPECT_EQ(count, processes * kThreads * kSteps);
  EXPECT_EQ(kernels.size(), processes * 2);
  for (const Row &row : rows(session, "scopes")) {
    EXPECT_STREQ(row.at("scope").as.text, "step");
    EXPECT_EQ(row.at("count").as.u64, kThreads * kSteps);
    EXPECT_EQ(row.at("kernels").as.u64, kThreads * kSteps) << "each kernel is joined with its launch's scope";
  }
  for (const Row &row : rows(session, "memory")) {
    EXPECT_EQ(row.at("peak").as.u64, kThreads * kSteps * 4096);
    EXPECT_EQ(row.at("live").as.u64, kThreads * kSteps);
  }
  for (const Row &row : rows(session, "launches")) EXPECT_EQ(row.at("joined").as.u64, kThreads * kSteps);
  EXPECT_EQ(rows(session, "launches").size(), processes);
  EXPECT_EQ(verdict(session, "workload.complete"), SONDE_VERDICT_OK);
  EXPECT_EQ(verdict(session, "workload.invalid_times"), SONDE_VERDICT_OK);
  EXPECT_EQ(verdict(session, "workload.scope_device_time"), SONDE_VERDICT_OK);
  EXPECT_EQ(verdict(session, "workload.live_memory"), SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(verdict(session, "workload.tiny_copies"), SONDE_VERDICT_UNSUPPORTED);
}

class WorkloadModule : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto *const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / ("sonde-workload-" + std::to_string(getpid()) + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Records one session to a file of the folder.
  void record(const std::string &name) {
    const auto &store = host().service<sonde_store_service_t>();
    Session session = Session::open(host());
    sonde_recording_t *recording = nullptr;
    host().check(store.record(session.get(), (folder_ / name).c_str(), nullptr, nullptr, &recording));
    session.start();
    emit_all(session);
    session.stop();
    host().check(store.finish(recording));
  }

  // Replays a capture through a new session and gives its report.
  std::string replay(const std::filesystem::path &path, uint64_t processes) {
    const auto &store = host().service<sonde_store_service_t>();
    sonde_capture_t *capture = nullptr;
    host().check(store.open(path.c_str(), &capture));
    Session session = Session::open(host());
    Analysis analysis(session);
    session.start();
    const sonde_status status = store.replay(capture, session.get(), nullptr, nullptr);
    EXPECT_EQ(status, SONDE_OK) << host().table()->last_error();
    session.stop();
    analysis.finish();
    store.close(capture);
    expect_all_kernels(session, processes);
    return render(session, "json");
  }

  std::filesystem::path folder_;
};

TEST_F(WorkloadModule, SeesALiveSession) {
  Session session = Session::open(host());
  Analysis analysis(session);
  session.start();
  emit_all(session);
  session.flush();
  uint64_t so_far = 0;
  ASSERT_EQ(function<sonde_status(sonde_session_t *, uint64_t *)>("kernel_count")(session.get(), &so_far), SONDE_OK);
  EXPECT_EQ(so_far, kThreads * kSteps) << "functions may be called while the run goes on";
  session.stop();
  analysis.finish();
  expect_all_kernels(session, 1);
}

TEST_F(WorkloadModule, PublishesFunctions) {
  Session session = Session::open(host());
  Analysis analysis(session);
  session.start();
  emit_all(session);
  session.stop();
  analysis.finish();
  uint64_t peak = 0;
  ASSERT_EQ(function<sonde_status(sonde_session_t *, uint32_t, uint64_t *)>("peak_bytes")(session.get(), 0, &peak),
            SONDE_OK);
  EXPECT_EQ(peak, kThreads * kSteps * 4096);
  double idle = -1;
  ASSERT_EQ(function<sonde_status(sonde_session_t *, uint32_t, double *)>("device_idle_share")(session.get(), 0, &idle),
            SONDE_OK);
  EXPECT_EQ(idle, rows(session, "devices").at(0).at("idle_share").as.f64);
  int64_t total = 0;
  ASSERT_EQ(function<sonde_status(sonde_session_t *, int64_t *)>("total_kernel_time")(session.get(), &total), SONDE_OK);

  struct Seen {
    std::vector<std::string> names;
    int64_t total = 0;
    int dropped = 0;
  } seen;
  const auto callback = [](void *user, const sonde_value_t *arguments, uint64_t count, sonde_value_t *) {
    auto *const self = static_cast<Seen *>(user);
    if (count != 4) return SONDE_E_INVALID;
    self->names.emplace_back(arguments[0].as.text);
    self->total += arguments[2].as.i64;
    return SONDE_OK;
  };
  using Top = sonde_status(sonde_session_t *, uint64_t, sonde_callback_t, void *, sonde_drop_user_t);
  ASSERT_EQ(function<Top>("top_kernels")(session.get(), 10, callback, &seen,
                                         [](void *user) { ++static_cast<Seen *>(user)->dropped; }),
            SONDE_OK);
  EXPECT_EQ(seen.names.size(), 2u);
  EXPECT_EQ(seen.total, total);
  EXPECT_EQ(seen.dropped, 1);
}

TEST_F(WorkloadModule, FunctionsOfASessionWithoutItSaySo) {
  Session session = Session::open(host());
  (void)entry();
  uint64_t count = 0;
  EXPECT_EQ(function<sonde_status(sonde_session_t *, uint64_t *)>("kernel_count")(session.get(), &count),
            SONDE_E_NOT_FOUND);
}

TEST_F(WorkloadModule, GivesTheSameBytesForTheSameCapture) {
  record("run.sonde");
  const std::string first = replay(folder_ / "run.sonde", 1);
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(first, replay(folder_ / "run.sonde", 1));
}

TEST_F(WorkloadModule, KeepsTwoProcessesOfARunApart) {
  record("a.sonde");
  record("b.sonde");
  replay(folder_, 2);
}

TEST_F(WorkloadModule, TakesOptionsAndRefusesUnknownOnes) {
  Session session = Session::open(host());
  { Analysis analysis(session, "{idle_share: 30%, launch_gap: 50us, tiny_copy_bytes: 16Ki}"); }
  try {
    Analysis analysis(session, "{idel_share: 0.3}");
    FAIL() << "an unknown option was taken";
  } catch (const Failure &failure) {
    EXPECT_NE(std::string(failure.what()).find("idel_share"), std::string::npos) << failure.what();
    EXPECT_NE(std::string(failure.what()).find("test.yaml:1"), std::string::npos) << failure.what();
  }
  EXPECT_THROW(Analysis(session, "{idle_share: 2}"), Failure) << "outside 0..1";
}

TEST_F(WorkloadModule, DeclaredDefaultsAreValid) {
  Session session = Session::open(host());
  EXPECT_NO_THROW(Analysis(session, "{}"));
}

// A number of the JSON object that torch.profiler's counts of the same run were written to.
uint64_t torch_number(const std::filesystem::path &path, const std::string &key) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t at = text.find("\"" + key + "\":");
  if (at == std::string::npos) {
    ADD_FAILURE() << path << " has no " << key;
    return 0;
  }
  return std::stoull(text.substr(at + key.size() + 3));
}

// Recorded on an H200 while torch.profiler counted too (tests/data/README.md).
TEST_F(WorkloadModule, AgreesWithTorchProfilerOnARecordedTrainingRun) {
  const std::filesystem::path data = std::filesystem::path(SONDE_TEST_SOURCE_DIR) / "tests" / "data";
  const auto &store = host().service<sonde_store_service_t>();
  sonde_capture_t *capture = nullptr;
  ASSERT_EQ(store.open((data / "pytorch_train").c_str(), &capture), SONDE_OK) << host().table()->last_error();
  Session session = Session::open(host());
  Analysis analysis(session);
  session.start();
  ASSERT_EQ(store.replay(capture, session.get(), nullptr, nullptr), SONDE_OK) << host().table()->last_error();
  session.stop();
  analysis.finish();
  store.close(capture);
  uint64_t kernels = 0;
  uint64_t time = 0;
  for (const Row &row : rows(session, "kernels")) {
    kernels += row.at("count").as.u64;
    time += row.at("total").as.u64;
  }
  EXPECT_EQ(kernels, torch_number(data / "pytorch_train.torch.json", "kernel_total"));
  // The two tools bring the same device stamps to their own host clock and round there: up to 1 ns a kernel.
  EXPECT_NEAR(static_cast<double>(time),
              static_cast<double>(torch_number(data / "pytorch_train.torch.json", "kernel_time_ns")),
              static_cast<double>(kernels));
  EXPECT_EQ(verdict(session, "workload.scope_device_time"), SONDE_VERDICT_OK) << "every kernel has its launch";
}

#ifdef SONDE_LUA_MODULE
// The example of plugins/workload, run as a user would: options, a script that calls the analysis, two outputs.
TEST_F(WorkloadModule, RunsItsExample) {
  record("run.sonde");
  for (const char *const file : {"example.yaml", "example.lua"}) {
    std::filesystem::copy_file(std::filesystem::path(SONDE_WORKLOAD_FOLDER) / file, folder_ / file);
  }
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const auto &plugins = host().service<sonde_plugins_service_t>();
  host().check(plugins.add_path(SONDE_WORKLOAD_MODULE));
  host().check(plugins.add_path(SONDE_LUA_MODULE));
  const auto &runs = host().service<sonde_run_service_t>();
  sonde_config_t *config = nullptr;
  host().check(host().service<sonde_config_service_t>().load("example.yaml", &config));
  sonde_run_t *run = nullptr;
  const sonde_status opened = runs.open(config, &run);
  ASSERT_EQ(opened, SONDE_OK) << host().table()->last_error();
  ASSERT_EQ(runs.replay(run, "run.sonde", nullptr, nullptr), SONDE_OK) << host().table()->last_error();
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(runs.finish(run), SONDE_OK) << host().table()->last_error();
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("Kernels that make up 80 % of the kernel time"), std::string::npos) << text;
  EXPECT_NE(text.find("100 kernels ran"), std::string::npos) << text;
  EXPECT_GT(std::filesystem::file_size("report.json"), 1000u);
  runs.close(run);
  host().service<sonde_config_service_t>().release(config);
  std::filesystem::current_path(before);
}
#endif

}  // namespace
}  // namespace sonde
