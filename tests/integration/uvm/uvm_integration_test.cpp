#include <gtest/gtest.h>
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <sonde/toolkit/paging_plan.h>

namespace sonde {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBytes = 64 * kMiB;
constexpr uint64_t kPairs = 4;
constexpr uint64_t kLaunches = 5;

const Host &host() {
  static const Host table(sonde_host());
  return table;
}

struct ConfigRelease {
  void operator()(sonde_config_t *config) const { host().service<sonde_config_service_t>().release(config); }
};
using OwnedConfig = std::unique_ptr<sonde_config_t, ConfigRelease>;

OwnedConfig parse(const std::string &yaml) {
  sonde_config_t *tree = nullptr;
  host().check(host().service<sonde_config_service_t>().parse(yaml.c_str(), "test.yaml", &tree));
  return OwnedConfig(tree);
}

// Raw stamps of the host's clock that lie some ns after a base.
class Clock {
 public:
  explicit Clock(sonde_session_t *session) : base_(sonde_stamp()) {
    line_.struct_size = sizeof(line_);
    host().check(host().service<sonde_capture_service_t>().clock(session, SONDE_CLOCK_STAMP, &line_));
  }
  uint64_t operator()(uint64_t ns) const {
    return base_ + static_cast<uint64_t>((static_cast<sonde_wide_t>(ns) << line_.shift) / line_.multiplier);
  }

 private:
  uint64_t base_;
  sonde_clock_t line_{};
};

class OpenRun {
 public:
  explicit OpenRun(const std::string &yaml) {
    const OwnedConfig tree = parse(yaml);
    host().check(service_.open(tree.get(), &run_));
  }
  ~OpenRun() { service_.close(run_); }
  OpenRun(const OpenRun &) = delete;
  OpenRun &operator=(const OpenRun &) = delete;

  Session session() const {
    sonde_session_t *session = nullptr;
    host().check(service_.session(run_, &session));
    return Session::borrow(host(), session);
  }
  void start() { host().check(service_.start(run_)); }
  void replay(const std::string &path) { host().check(service_.replay(run_, path.c_str(), nullptr, nullptr)); }
  void finish() { host().check(service_.finish(run_)); }

 private:
  const sonde_run_service_t &service_ = host().service<sonde_run_service_t>();
  sonde_run_t *run_ = nullptr;
};

// Rows of a table as maps.
std::vector<std::map<std::string, sonde_value_t>> rows(const Session &session, const char *name) {
  const auto &result = host().service<sonde_result_service_t>();
  sonde_table_t *table = nullptr;
  host().check(result.find_table(session.get(), "uvm", name, &table));
  const sonde_table_spec_t *spec = nullptr;
  host().check(result.table_spec(table, &spec));
  uint64_t count = 0;
  host().check(result.row_count(table, &count));
  std::vector<std::map<std::string, sonde_value_t>> found(count);
  for (uint64_t row = 0; row < count; ++row) {
    for (uint32_t column = 0; column < spec->column_count; ++column) {
      const auto *const description = reinterpret_cast<const sonde_column_spec_t *>(
          reinterpret_cast<const uint8_t *>(spec->columns) + size_t{column} * spec->column_stride);
      host().check(result.cell(table, row, column, &found[row][description->name]));
    }
  }
  return found;
}

struct Judged {
  uint32_t verdict = UINT32_MAX;
  std::string message, reason;
};

Judged finding(const Session &session, const std::string &rule) {
  const auto &result = host().service<sonde_result_service_t>();
  uint64_t count = 0;
  host().check(result.finding_count(session.get(), &count));
  for (uint64_t index = 0; index < count; ++index) {
    const sonde_finding_t *found = nullptr;
    host().check(result.finding_at(session.get(), index, &found));
    if (rule == found->rule) return {found->verdict, found->message, found->reason};
  }
  return {};
}

// Pairs of objects, each read and written by a few launches: the first launch of a pair is slow, as if it faulted.
void emit_streaming(const Session &session, bool with_times, bool with_accesses) {
  Writer writer = session.writer();
  const Clock at(session.get());
  const sonde_string_t kernel_name = session.intern("_Z5scalePKfPf");
  sonde_object_device_t device{};
  device.memory_bytes = uint64_t{8} << 30;
  ASSERT_TRUE(writer.emit(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE, device, at(0)));
  const auto address_of = [](uint64_t object) { return (uint64_t{1} << 40) + object * kBytes; };
  for (uint64_t object = 0; object < 2 * kPairs; ++object) {
    sonde_memory_allocate_t allocate{};
    allocate.address = address_of(object);
    allocate.bytes = kBytes;
    allocate.kind = SONDE_MEMORY_MANAGED;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, allocate, at(1000 + object)));
  }
  uint64_t kernel_begin = 1'000'000;
  for (uint64_t number = 0; number < kPairs * kLaunches; ++number) {
    const uint64_t pair = number / kLaunches;
    const bool is_cold = number % kLaunches == 0;
    if (with_accesses) {
      sonde_access_launch_t launch{};
      launch.launch = number + 1;
      launch.correlation = 100 + number;
      launch.stream = 7;
      launch.name = kernel_name;
      launch.flags = SONDE_LAUNCH_WATCHED;
      launch.kernel_period = launch.block_period = 1;
      launch.grid[0] = 1024;
      launch.block[0] = 256;
      ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, launch, at(100'000 + number * 1000)));
      for (uint64_t side = 0; side < 2; ++side) {
        struct {
          sonde_access_intervals_t record;
          uint64_t edges[2];
        } touched{};
        SONDE_RECORD_INIT(&touched.record, SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, at(100'500 + number * 1000));
        touched.record.header.size8 = sizeof(touched) / 8;
        touched.record.launch = number + 1;
        touched.record.address = address_of(2 * pair + side);
        touched.record.bytes = kBytes;
        touched.record.touched = kBytes;
        touched.record.kind = side == 0 ? 1 : 2;
        touched.record.granule = 1;
        touched.record.edges = {sizeof(touched.record), 2};
        touched.edges[1] = kBytes;
        ASSERT_TRUE(writer.emit(&touched.record.header));
      }
    }
    if (with_times) {
      sonde_device_kernel_t kernel{};
      kernel.correlation = 100 + number;
      kernel.stream = 7;
      kernel.name = kernel_name;
      kernel.grid[0] = 1024;
      kernel.block[0] = 256;
      kernel.end = at(kernel_begin + (is_cold ? 18'000'000 : 60'000));
      ASSERT_TRUE(writer.emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kernel, at(kernel_begin)));
      kernel_begin += is_cold ? 18'000'000 : 60'000;
    }
  }
}

class Uvm : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sonde-uvm-" + std::to_string(getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char *name) const { return (folder_ / name).string(); }

  void record(bool with_times = true, bool with_accesses = true) {
    OpenRun run("record: {path: \"" + path("capture") + "\"}\nports: {}\n");
    run.start();
    emit_streaming(run.session(), with_times, with_accesses);
    run.finish();
  }

  std::string replay_config(const std::string &options) const {
    return "plugins: {path: [\"" SONDE_UVM_MODULE "\"]}\nanalyses:\n  uvm: {plan: \"" + path("plan.yaml") + "\"" +
           (options.empty() ? "" : ", " + options) + "}\n";
  }

  toolkit::PagingPlan read_plan() const {
    const auto &service = host().service<sonde_config_service_t>();
    sonde_config_t *tree = nullptr;
    host().check(service.load(path("plan.yaml").c_str(), &tree));
    const OwnedConfig owned(tree);
    const sonde_config_t *part = nullptr;
    host().check(service.child(tree, "ports.cuda_paging.plan", &part));
    toolkit::PagingPlan plan;
    std::string error;
    EXPECT_TRUE(toolkit::read_paging_plan(service, part, plan, error)) << error;
    return plan;
  }

  fs::path folder_;
};

TEST_F(Uvm, ACaptureBecomesAPlanThatARunCanRead) {
  record();
  OpenRun run(replay_config(""));
  run.replay(path("capture"));
  run.finish();
  const Session session = run.session();
  EXPECT_EQ(finding(session, "uvm.data").verdict, SONDE_VERDICT_OK) << finding(session, "uvm.data").message;
  EXPECT_EQ(finding(session, "uvm.prefetch").verdict, SONDE_VERDICT_VIOLATION)
      << finding(session, "uvm.prefetch").message;
  EXPECT_EQ(finding(session, "uvm.oversubscription").verdict, SONDE_VERDICT_OK);

  const toolkit::PagingPlan plan = read_plan();
  ASSERT_EQ(plan.allocations.size(), 2 * kPairs);
  EXPECT_EQ(plan.allocations[7].bytes, kBytes);
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(plan.steps[0].launch, 0u);
  EXPECT_EQ(plan.steps[0].kernel, "_Z5scalePKfPf");
  // Every byte comes once, before or at the first launch of its pair.
  std::vector<uint64_t> moved(2 * kPairs, 0);
  for (const toolkit::PlannedStep &step : plan.steps) {
    for (const toolkit::PlannedMove &move : step.moves) {
      EXPECT_FALSE(move.is_eviction);
      EXPECT_EQ(move.needed, move.allocation / 2 * kLaunches);
      EXPECT_LE(step.launch, move.needed);
      moved[move.allocation] += move.bytes;
    }
  }
  EXPECT_EQ(moved, std::vector<uint64_t>(2 * kPairs, kBytes));

  // Kernels with their pages there take 60 us, although the first of each pair was seen to take 18 ms.
  const auto predictions = rows(session, "prediction");
  ASSERT_FALSE(predictions.empty());
  const double transfer_ns = 2.0 * kPairs * kBytes / 32.7e9 * 1e9;
  EXPECT_NEAR(static_cast<double>(predictions[0].at("plan").as.i64), transfer_ns + 5 * 60'000, 0.02 * transfer_ns);
  EXPECT_GT(predictions[0].at("no_prefetch").as.i64, 3 * predictions[0].at("plan").as.i64);
  EXPECT_EQ(predictions[0].at("extrapolated").as.u64, 0u);
  EXPECT_EQ(predictions.back().at("extrapolated").as.u64, 1u);
  const auto objects = rows(session, "objects");
  ASSERT_EQ(objects.size(), 2 * kPairs);
  EXPECT_EQ(objects[0].at("launches").as.u64, kLaunches);
}

TEST_F(Uvm, APlanIsMadeAnewButAnEditedOneIsKept) {
  record();
  for (int round = 0; round < 2; ++round) {
    OpenRun run(replay_config(""));
    run.replay(path("capture"));
    run.finish();
    EXPECT_EQ(finding(run.session(), "uvm.plan_file").verdict, UINT32_MAX) << "written over without a word";
  }
  {
    std::ofstream file(path("plan.yaml"), std::ios::app);
    file << "# mine\n";
  }
  OpenRun run(replay_config(""));
  run.replay(path("capture"));
  run.finish();
  EXPECT_EQ(finding(run.session(), "uvm.plan_file").verdict, SONDE_VERDICT_VIOLATION);
  std::ifstream file(path("plan.yaml"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("# mine"), std::string::npos);
}

TEST_F(Uvm, APlanOfAnotherRunIsPredicted) {
  record();
  {
    OpenRun run(replay_config(""));
    run.replay(path("capture"));
    run.finish();
  }
  OpenRun run(replay_config("predict: \"" + path("plan.yaml") + "\", overwrite: true"));
  run.replay(path("capture"));
  run.finish();
  const auto predictions = rows(run.session(), "prediction");
  EXPECT_EQ(predictions[0].at("given").as.i64, predictions[0].at("plan").as.i64) << "it is the same plan";
}

TEST_F(Uvm, WithoutAccessesItSaysThatItCouldNotLook) {
  record(true, false);
  OpenRun run(replay_config(""));
  run.replay(path("capture"));
  run.finish();
  const Judged data = finding(run.session(), "uvm.data");
  EXPECT_EQ(data.verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_NE(data.reason.find("cuda_access"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("plan.yaml")));
}

TEST_F(Uvm, WithoutTimesItPlansByTheLinkAloneAndSaysSo) {
  record(false, true);
  OpenRun run(replay_config(""));
  run.replay(path("capture"));
  run.finish();
  EXPECT_EQ(finding(run.session(), "uvm.data").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_TRUE(fs::exists(path("plan.yaml")));
}

TEST_F(Uvm, WithLittleMemoryEverythingIsCalledExtrapolation) {
  record();
  // A third of what is touched.
  OpenRun run(replay_config("capacity: " + std::to_string(2 * kPairs * kBytes / 3)));
  run.replay(path("capture"));
  run.finish();
  const Session session = run.session();
  EXPECT_EQ(finding(session, "uvm.oversubscription").verdict, SONDE_VERDICT_VIOLATION);
  for (const char *rule : {"uvm.oversubscription", "uvm.prefetch", "uvm.object_level"}) {
    EXPECT_NE(finding(session, rule).message.find("extrapolation"), std::string::npos) << rule;
  }
  bool has_eviction = false;
  for (const toolkit::PlannedStep &step : read_plan().steps) {
    EXPECT_TRUE(step.waits_for_device);
    for (const toolkit::PlannedMove &move : step.moves) has_eviction |= move.is_eviction;
  }
  EXPECT_TRUE(has_eviction);
  std::ifstream file(path("plan.yaml"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("extrapolation"), std::string::npos);
}

TEST_F(Uvm, ParametersOfAFileAreUsed) {
  record();
  {
    std::ofstream file(path("parameters.yaml"));
    file << "parameters:\n  to_device: 65.4e9\n";
  }
  OpenRun run(replay_config("calibration: \"" + path("parameters.yaml") + "\""));
  run.replay(path("capture"));
  run.finish();
  EXPECT_EQ(finding(run.session(), "uvm.calibration").verdict, SONDE_VERDICT_OK);
  const double transfer_ns = 2.0 * kPairs * kBytes / 65.4e9 * 1e9;
  EXPECT_NEAR(static_cast<double>(rows(run.session(), "prediction")[0].at("plan").as.i64), transfer_ns + 5 * 60'000,
              0.02 * transfer_ns);
}

TEST_F(Uvm, WhatAPortToldOfItsPlanBecomesAFinding) {
  {
    OpenRun run("record: {path: \"" + path("capture") + "\"}\nports: {}\n");
    run.start();
    const Session session = run.session();
    Writer writer = session.writer();
    sonde_memory_advise_t move{};
    move.bytes = 4096;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_PREFETCH, move));
    move.device = -1;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_PREFETCH, move));
    const auto &capture = host().service<sonde_capture_service_t>();
    host().check(capture.note(session.get(), 0, "cuda_paging", "applied: all of it"));
    host().check(capture.note(session.get(), 1, "other", "not of the port"));
    run.finish();
  }
  OpenRun run(replay_config("mode: applied"));
  run.replay(path("capture"));
  run.finish();
  EXPECT_EQ(finding(run.session(), "uvm.applied").verdict, SONDE_VERDICT_OK);
  const auto applied = rows(run.session(), "applied");
  EXPECT_EQ(applied[0].at("prefetched").as.u64, 4096u);
  EXPECT_EQ(applied[0].at("evictions").as.u64, 1u);
  EXPECT_FALSE(fs::exists(path("plan.yaml"))) << "a run that applies a plan makes none";
}

#ifdef SONDE_LUA_MODULE

TEST_F(Uvm, TheExampleRunsAsItStands) {
  record();
  const fs::path before = fs::current_path();
  for (const char *name : {"example.yaml", "example.lua"})
    fs::copy_file(fs::path(SONDE_UVM_FOLDER) / name, folder_ / name);
  fs::current_path(folder_);
  std::ifstream file("example.yaml");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  {
    OpenRun run("plugins: {path: [\"" SONDE_UVM_MODULE "\", \"" SONDE_LUA_MODULE "\"]}\n" + text);
    run.replay("capture");
    ::testing::internal::CaptureStdout();
    run.finish();
    const std::string report = ::testing::internal::GetCapturedStdout();
    EXPECT_NE(report.find("Simulated time on smaller devices"), std::string::npos) << report;
    EXPECT_NE(report.find("no_prefetch"), std::string::npos);
    EXPECT_EQ(report.find("script failed"), std::string::npos);
  }
  EXPECT_TRUE(fs::exists("plan.yaml"));
  EXPECT_GT(fs::file_size("report.json"), 1000u);
  fs::current_path(before);
}

#endif

#ifdef SONDE_PLAYER

// Lines that a command prints.
std::vector<std::string> lines_of(const std::string &command, int *status) {
  std::vector<std::string> lines;
  FILE *const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    lines.emplace_back(line);
    while (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
  }
  *status = ::pclose(pipe);
  return lines;
}

TEST_F(Uvm, ThePlanIsAppliedByARunOfTheCommand) {
  record();
  {
    OpenRun run(replay_config(""));
    run.replay(path("capture"));
    run.finish();
  }
  const std::string command =
      "SONDE_CUPTI_PATH=" SONDE_FAKE_PAGING " " SONDE_COMMAND " run -c " + path("plan.yaml") +
      " --plugin-path " SONDE_UVM_MODULE " --plugin-path " SONDE_PAGING_MODULE " --format json --report " +
      path("report.json") + " -- " SONDE_PLAYER " " SONDE_FAKE_PAGING " " + std::to_string(2 * kPairs) + " " +
      std::to_string(kBytes) + " " + std::to_string(kPairs * kLaunches) + " _Z5scalePKfPf 2>&1";
  int status = -1;
  const std::vector<std::string> lines = lines_of(command, &status);
  std::string all;
  for (const std::string &line : lines) all += line + "\n";
  EXPECT_EQ(status, 0) << all;
  uint64_t moved = 0;
  uint64_t launches = 0;
  uint64_t waits = 0;
  for (const std::string &line : lines) {
    unsigned long long address = 0;
    unsigned long long bytes = 0;
    if (std::sscanf(line.c_str(), "in %llx %llu", &address, &bytes) == 2) moved += bytes;
    if (line == "launch") {
      ++launches;
      // The launches of a pair come behind a wait for its moves.
      if (launches % kLaunches == 1) {
        EXPECT_GT(waits, 0u) << "before launch " << launches << "\n" << all;
        waits = 0;
      }
    }
    if (line.starts_with("1 waits for")) ++waits;
  }
  EXPECT_EQ(moved, 2 * kPairs * kBytes) << all;
  EXPECT_EQ(launches, kPairs * kLaunches);
  std::ifstream file(path("report.json"));
  const std::string report((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(report.find("The plan was applied: "), std::string::npos) << report << all;
}

#endif

}  // namespace
}  // namespace sonde
