// A small program's memory, recorded to a file and replayed through the plugin as a user would.
#include <gtest/gtest.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/memory.h>
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace sonde {
namespace {

const Host &host() {
  static const Host table(sonde_host());
  return table;
}

const sonde_plugin_entry_t &entry() {
  static const sonde_plugin_entry_t *const loaded = [] {
    const sonde_plugin_entry_t *found = nullptr;
    host().check(host().service<sonde_plugins_service_t>().load(SONDE_MEMORY_MODULE, &found));
    return found;
  }();
  return *loaded;
}

// The analysis of one session, with options given as YAML.
class Analysis {
 public:
  explicit Analysis(const Session &session, const std::string &yaml = "{}") {
    const auto &config = host().service<sonde_config_service_t>();
    sonde_config_t *tree = nullptr;
    host().check(config.parse(yaml.c_str(), "test.yaml", &tree));
    const sonde_status status =
        config.check(tree, "memory", entry().options, entry().option_count, entry().option_stride, &options_);
    const std::string text = host().table()->last_error();
    config.release(tree);
    if (status < 0) throw Failure(status, text);
    const void *found = nullptr;
    host().check(host().service<sonde_plugins_service_t>().interface(entry().id, SONDE_ANALYSIS_INTERFACE,
                                                                     SONDE_NEED(sonde_analysis_t, destroy), &found));
    table_ = static_cast<const sonde_analysis_t *>(found);
    host().check(table_->create(session.get(), options_, &instance_));
    host().check(table_->start(instance_));
  }
  ~Analysis() {
    table_->destroy(instance_);
    host().service<sonde_config_service_t>().release(options_);
  }
  Analysis(const Analysis &) = delete;
  Analysis &operator=(const Analysis &) = delete;

  void finish() { host().check(table_->finish(instance_)); }

 private:
  const sonde_analysis_t *table_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
};

template <typename Function>
Function *function(const char *name) {
  sonde_export_t found{};
  host().check(host().service<sonde_plugins_service_t>().function("memory", name, &found));
  return reinterpret_cast<Function *>(found.function);
}

using Row = std::map<std::string, sonde_value_t>;

std::vector<Row> rows(const Session &session, const char *name) {
  const auto &result = host().service<sonde_result_service_t>();
  sonde_table_t *table = nullptr;
  host().check(result.find_table(session.get(), "memory", name, &table));
  const sonde_table_spec_t *spec = nullptr;
  host().check(result.table_spec(table, &spec));
  uint64_t count = 0;
  host().check(result.row_count(table, &count));
  std::vector<Row> found(count);
  for (uint64_t row = 0; row < count; ++row) {
    for (uint32_t column = 0; column < spec->column_count; ++column) {
      const auto *const description = reinterpret_cast<const sonde_column_spec_t *>(
          reinterpret_cast<const uint8_t *>(spec->columns) + size_t{column} * spec->column_stride);
      host().check(result.cell(table, row, column, &found[row][description->name]));
    }
  }
  return found;
}

Row row_of(const Session &session, const char *table, const std::string &column, const std::string &text) {
  for (const Row &row : rows(session, table)) {
    if (row.at(column).kind == SONDE_VALUE_TEXT && row.at(column).as.text == text) return row;
  }
  ADD_FAILURE() << table << " has no row with " << column << " = " << text;
  return {};
}

std::map<std::string, uint32_t> verdicts(const Session &session) {
  const auto &result = host().service<sonde_result_service_t>();
  uint64_t count = 0;
  host().check(result.finding_count(session.get(), &count));
  std::map<std::string, uint32_t> found;
  for (uint64_t i = 0; i < count; ++i) {
    const sonde_finding_t *finding = nullptr;
    host().check(result.finding_at(session.get(), i, &finding));
    found[finding->rule] = finding->verdict;
  }
  return found;
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

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kInput = 0x10000000, kWork = 0x20000000, kOutput = 0x30000000, kSpare = 0x40000000,
                   kWide = 0x50000000;

// Emits a program's memory from two threads: one tells of memory and of copies, one of launches and what they touched,
// which comes late, as it does from a device. The stamps put them in order.
//
//   step   0 allocate input 4 MiB, output 2 MiB, spare 1 MiB, wide 8 MiB (15 MiB at one time: the peak)
//          1 set input, 2 copy into input                                     -> the set is a dead write
//          3 kernel "load": reads input, writes work 4 MiB (made at 2.5)
//          4 kernel "first": work; 5 kernel "second": work
//          6 kernel "store": reads work, writes output and the first MiB of wide
//          7 copy output out
//          8 free input, work, output, wide; spare is leaked, and a free of 0xdead names nothing
class Program {
 public:
  explicit Program(const Session &session) : session_(session), begin_(sonde_stamp()) {}

  void emit() {
    std::thread memory([this] { tell_memory(); });
    std::thread accesses([this] { tell_accesses(); });
    memory.join();
    accesses.join();
  }

 private:
  // Stamps are ticks; what matters is their order.
  uint64_t stamp(double step) const { return begin_ + static_cast<uint64_t>(step * 100000); }

  void tell_memory() {
    Writer writer = session_.writer();
    const auto allocate = [&](double step, uint64_t address, uint64_t bytes, const char *name) {
      sonde_memory_allocate_t record{};
      record.address = address;
      record.bytes = bytes;
      record.kind = SONDE_MEMORY_DEVICE;
      record.name = session_.intern(name);
      ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, record, stamp(step)));
    };
    const auto release = [&](double step, uint64_t address) {
      sonde_memory_free_t record{};
      record.address = address;
      record.kind = SONDE_MEMORY_DEVICE;
      ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, record, stamp(step)));
    };
    const auto transfer = [&](double step, uint64_t source, uint64_t target, uint64_t bytes, uint32_t flags) {
      sonde_access_transfer_t record{};
      record.source = source;
      record.target = target;
      record.bytes = record.width = bytes;
      record.rows = 1;
      record.flags = flags;
      record.kind = source == 0 ? SONDE_COPY_HOST_TO_DEVICE : SONDE_COPY_DEVICE_TO_HOST;
      ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER, record, stamp(step)));
    };
    allocate(0, kInput, 4 * kMiB, "input");
    allocate(0, kOutput, 2 * kMiB, "output");
    allocate(0, kSpare, kMiB, "spare");
    allocate(0, kWide, 8 * kMiB, "wide");
    transfer(1, 0, kInput, 4 * kMiB, SONDE_TRANSFER_SET);
    transfer(2, 0, kInput, 4 * kMiB, 0);
    allocate(2.5, kWork, 4 * kMiB, "work");
    transfer(7, kOutput, 0, 2 * kMiB, 0);
    for (const uint64_t address : {kInput, kWork, kOutput, kWide}) release(8, address);
    release(8, 0xdead);
  }

  void tell_accesses() {
    Writer writer = session_.writer();
    struct Access {
      uint64_t launch, address, bytes;
      uint32_t kind;  // 1 read, 2 written
      uint64_t end;   // touched from 0 on
    };
    const char *const names[] = {"load", "first", "second", "store"};
    for (uint64_t i = 0; i < 4; ++i) {
      sonde_access_launch_t launch{};
      launch.launch = i + 1;
      launch.name = session_.intern(names[i]);
      launch.flags = SONDE_LAUNCH_WATCHED;
      launch.kernel_period = launch.block_period = 1;
      ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, launch, stamp(3.0 + static_cast<double>(i))));
    }
    for (const Access &access : std::initializer_list<Access>{{1, kInput, 4 * kMiB, 1, 4 * kMiB},
                                                              {1, kWork, 4 * kMiB, 2, 4 * kMiB},
                                                              {2, kWork, 4 * kMiB, 2, 4 * kMiB},
                                                              {3, kWork, 4 * kMiB, 2, 4 * kMiB},
                                                              {4, kWork, 4 * kMiB, 1, 4 * kMiB},
                                                              {4, kOutput, 2 * kMiB, 2, 2 * kMiB},
                                                              {4, kWide, 8 * kMiB, 2, kMiB}}) {
      sonde_access_object_t object{};
      object.launch = access.launch;
      object.address = access.address;
      object.bytes = access.bytes;
      (access.kind == 1 ? object.reads : object.writes) = 1;
      object.object_kind = SONDE_OBJECT_IS_ALLOCATION;
      ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, object, stamp(9)));
      struct {
        sonde_access_intervals_t fixed;
        uint64_t edges[2];
      } record{};
      SONDE_RECORD_INIT(&record.fixed, SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, stamp(9));
      record.fixed.header.size8 = sizeof(record) / 8;
      record.fixed.launch = access.launch;
      record.fixed.address = access.address;
      record.fixed.bytes = access.bytes;
      record.fixed.kind = access.kind;
      record.fixed.granule = 1;
      record.fixed.edges = {sizeof(sonde_access_intervals_t), 2};
      record.edges[1] = access.end;
      ASSERT_TRUE(writer.emit(&record.fixed.header));
    }
  }

  const Session &session_;
  uint64_t begin_;
};

class MemoryModule : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto *const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / ("sonde-memory-" + std::to_string(getpid()) + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (std::getenv("SONDE_KEEP") == nullptr) std::filesystem::remove_all(folder_);
  }

  void record(const std::string &name) {
    const auto &store = host().service<sonde_store_service_t>();
    Session session = Session::open(host());
    sonde_recording_t *recording = nullptr;
    host().check(store.record(session.get(), (folder_ / name).c_str(), nullptr, nullptr, &recording));
    session.start();
    Program(session).emit();
    session.stop();
    host().check(store.finish(recording));
  }

  // A session through which `path` was replayed.
  Session replay(const std::filesystem::path &path, const std::string &yaml = "{}") {
    const auto &store = host().service<sonde_store_service_t>();
    sonde_capture_t *capture = nullptr;
    host().check(store.open(path.c_str(), &capture));
    Session session = Session::open(host());
    {
      Analysis analysis(session, yaml);
      session.start();
      EXPECT_EQ(store.replay(capture, session.get(), nullptr, nullptr), SONDE_OK) << host().table()->last_error();
      session.stop();
      analysis.finish();
      check_functions(session);
    }
    store.close(capture);
    return session;
  }
  virtual void check_functions(const Session &) {}

  std::filesystem::path folder_;
};

TEST_F(MemoryModule, FindsWhatTheProgramDoes) {
  record("run.sonde");
  const Session session = replay(folder_ / "run.sonde");
  const auto patterns = [&](const char *object) {
    return std::string(row_of(session, "objects", "object", object).at("patterns").as.text);
  };
  // input is used by "load" alone, three kernels before its free.
  EXPECT_EQ(patterns("input"), "late_deallocation, dead_write");
  EXPECT_EQ(row_of(session, "objects", "object", "input").at("late_gap").as.u64, 3u);
  EXPECT_EQ(row_of(session, "objects", "object", "input").at("dead_bytes").as.u64, 4 * kMiB);
  // output and wide wait for load, first and second.
  EXPECT_EQ(patterns("output"), "early_allocation");
  EXPECT_EQ(row_of(session, "objects", "object", "output").at("early_gap").as.u64, 3u);
  EXPECT_EQ(patterns("wide"), "early_allocation, over_allocation");
  EXPECT_DOUBLE_EQ(row_of(session, "objects", "object", "wide").at("access_rate").as.f64, 0.125);
  EXPECT_EQ(row_of(session, "objects", "object", "wide").at("widest_unused").as.u64, 7 * kMiB);
  EXPECT_EQ(patterns("spare"), "unused_allocation, leak");
  EXPECT_EQ(patterns("work"), "");

  const Row peak = rows(session, "peak").at(0);
  EXPECT_EQ(peak.at("peak").as.u64, 19 * kMiB) << "4 + 2 + 1 + 8 + 4";
  // Needed: "load" input + work = 8 MiB; "store" work + output + wide = 14 MiB.
  EXPECT_EQ(peak.at("needed").as.u64, 14 * kMiB);
  EXPECT_EQ(peak.at("shared_offsets").as.u64, 14 * kMiB);
  EXPECT_EQ(peak.at("touched").as.u64, 14 * kMiB);
  EXPECT_STREQ(peak.at("touched_by").as.text, "store");
  // From the first use on: "store" sees input + work + output + wide = 18. Until the last use: "load" sees input, output, wide and
  // work, which is 18 too; spare, which is never used, only for a moment before work is made.
  EXPECT_EQ(peak.at("without_early").as.u64, 18 * kMiB);
  EXPECT_EQ(peak.at("without_late").as.u64, 18 * kMiB);

  const auto at_peak = [&](const char *pattern) {
    return row_of(session, "patterns", "pattern", pattern).at("at_peak").as.u64;
  };
  EXPECT_EQ(at_peak("early_allocation"), 10 * kMiB) << "output and wide, when work is made";
  EXPECT_EQ(at_peak("unused_allocation"), kMiB);
  EXPECT_EQ(at_peak("over_allocation"), 7 * kMiB);
  EXPECT_EQ(rows(session, "live_at_peak").size(), 5u);
  EXPECT_EQ(rows(session, "unmatched_frees").at(0).at("address").as.u64, 0xdeadu);

  auto found = verdicts(session);
  for (const char *const rule : {"early_allocation", "late_deallocation", "unused_allocation", "leak", "dead_write",
                                 "over_allocation", "peak", "unmatched_free"}) {
    EXPECT_EQ(found.at(std::string("memory.") + rule), SONDE_VERDICT_VIOLATION) << rule;
  }
  for (const char *const rule : {"redundant_allocation", "temporary_idleness", "structured_access", "complete"}) {
    EXPECT_EQ(found.at(std::string("memory.") + rule), SONDE_VERDICT_OK) << rule;
  }
  for (const char *const rule : {"non_uniform_access", "reserved_unused", "fragmentation", "stream_ordered_free"}) {
    EXPECT_EQ(found.at(std::string("memory.") + rule), SONDE_VERDICT_UNSUPPORTED) << rule;
  }
}

TEST_F(MemoryModule, GivesTheSameBytesForTheSameCapture) {
  record("run.sonde");
  const Session first = replay(folder_ / "run.sonde"), second = replay(folder_ / "run.sonde");
  EXPECT_GT(render(first, "json").size(), 1000u);
  EXPECT_EQ(render(first, "json"), render(second, "json"));
}

TEST_F(MemoryModule, KeepsTwoProcessesOfARunApart) {
  record("a.sonde");
  record("b.sonde");
  const Session session = replay(folder_);
  ASSERT_EQ(rows(session, "peak").size(), 2u);
  for (const Row &row : rows(session, "peak")) EXPECT_EQ(row.at("peak").as.u64, 19 * kMiB);
  EXPECT_EQ(rows(session, "unmatched_frees").size(), 2u);
}

TEST_F(MemoryModule, WritesPicturesAndATrace) {
  record("run.sonde");
  const std::string base = folder_.string();
  replay(folder_ / "run.sonde",
         "{svg: " + base + "/m.svg, html: " + base + "/m.html, perfetto: " + base + "/m.json, axis: operations}");
  for (const char *const file : {"m.svg", "m.html", "m.json"}) {
    EXPECT_GT(std::filesystem::file_size(folder_ / file), 1000u) << file;
  }
}

TEST_F(MemoryModule, AFileThatCannotBeWrittenIsAFinding) {
  record("run.sonde");
  const Session session = replay(folder_ / "run.sonde", "{svg: /nonexistent/m.svg}");
  EXPECT_EQ(verdicts(session).at("memory.files"), SONDE_VERDICT_VIOLATION);
}

class MemoryFunctions : public MemoryModule {
 protected:
  void check_functions(const Session &session) override {
    using Number = sonde_status(sonde_session_t *, uint32_t, uint64_t *);
    using Count = sonde_status(sonde_session_t *, uint32_t, const char *, uint64_t *);
    uint64_t value = 0;
    ASSERT_EQ(function<Number>("peak_bytes")(session.get(), 0, &value), SONDE_OK);
    EXPECT_EQ(value, 19 * kMiB);
    ASSERT_EQ(function<Number>("needed_peak_bytes")(session.get(), 0, &value), SONDE_OK);
    EXPECT_EQ(value, 14 * kMiB);
    ASSERT_EQ(function<Number>("shared_peak_bytes")(session.get(), 0, &value), SONDE_OK);
    EXPECT_EQ(value, 14 * kMiB);
    ASSERT_EQ(function<Number>("peak_bytes")(session.get(), 1, &value), SONDE_OK);
    EXPECT_EQ(value, 0u) << "no tensors";
    EXPECT_EQ(function<Number>("peak_bytes")(session.get(), 2, &value), SONDE_E_INVALID);
    ASSERT_EQ(function<Count>("pattern_count")(session.get(), 0, "early_allocation", &value), SONDE_OK);
    EXPECT_EQ(value, 2u);
    EXPECT_EQ(function<Count>("pattern_count")(session.get(), 0, "early", &value), SONDE_E_INVALID);
    ASSERT_EQ(function<sonde_status(sonde_session_t *, uint64_t *)>("unmatched_frees")(session.get(), &value),
              SONDE_OK);
    EXPECT_EQ(value, 1u);
    struct Seen {
      std::vector<std::string> names;
      int dropped = 0;
    } seen;
    using Worst = sonde_status(sonde_session_t *, uint32_t, uint64_t, sonde_callback_t, void *, sonde_drop_user_t);
    const auto callback = [](void *user, const sonde_value_t *arguments, uint64_t count, sonde_value_t *) {
      if (count != 4) return SONDE_E_INVALID;
      static_cast<Seen *>(user)->names.emplace_back(arguments[0].as.text);
      return SONDE_OK;
    };
    ASSERT_EQ(function<Worst>("worst_objects")(session.get(), 0, 1, callback, &seen,
                                               [](void *user) { ++static_cast<Seen *>(user)->dropped; }),
              SONDE_OK);
    // wide: 7 MiB for 8 steps; or 8 MiB for the 6 steps before its use. input: 4 MiB for 5 steps.
    EXPECT_EQ(seen.names, std::vector<std::string>{"wide"});
    EXPECT_EQ(seen.dropped, 1);
    called_ = true;
  }
  bool called_ = false;
};

TEST_F(MemoryFunctions, AnswerWhatTheTablesSay) {
  record("run.sonde");
  replay(folder_ / "run.sonde");
  EXPECT_TRUE(called_);
}

TEST_F(MemoryModule, TakesOptionsAndRefusesUnknownOnes) {
  Session session = Session::open(host());
  { Analysis analysis(session, "{early_kernels: 10%, host_uses: all, reuse_tolerance: 5%}"); }
  EXPECT_NO_THROW(Analysis(session, "{}"));
  try {
    Analysis analysis(session, "{early_kernel: 3}");
    FAIL() << "an unknown option was taken";
  } catch (const Failure &failure) {
    EXPECT_NE(std::string(failure.what()).find("early_kernel"), std::string::npos) << failure.what();
  }
  EXPECT_THROW(Analysis(session, "{host_uses: sometimes}"), Failure);
  EXPECT_THROW(Analysis(session, "{access_rate: 2}"), Failure);
}

// Recordings of the port cuda, which says nothing of accesses (tests/data/README.md).
TEST_F(MemoryModule, RecordingsWithoutAccessesStillHavePeaksPoolsAndLeaks) {
  const std::filesystem::path data = std::filesystem::path(SONDE_TEST_SOURCE_DIR) / "tests" / "data";
  const Session session = replay(data / "cuda_streams");
  EXPECT_GE(rows(session, "peak").at(0).at("peak").as.u64, 16 * kMiB);
  EXPECT_EQ(rows(session, "peak").at(0).at("needed").kind, SONDE_VALUE_NONE);
  EXPECT_EQ(rows(session, "pools").size(), 3u);
  EXPECT_EQ(verdicts(session).at("memory.leak"), SONDE_VERDICT_OK) << "the program frees all that it allocates";
  EXPECT_EQ(verdicts(session).at("memory.early_allocation"), SONDE_VERDICT_UNSUPPORTED);
}

#ifdef SONDE_LUA_MODULE
// The example of plugins/memory, run as a user would.
TEST_F(MemoryModule, RunsItsExample) {
  record("run.sonde");
  for (const char *const file : {"example.yaml", "example.lua"}) {
    std::filesystem::copy_file(std::filesystem::path(SONDE_MEMORY_FOLDER) / file, folder_ / file);
  }
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const auto &plugins = host().service<sonde_plugins_service_t>();
  host().check(plugins.add_path(SONDE_MEMORY_MODULE));
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
  EXPECT_NE(text.find("Patterns of allocations and tensors"), std::string::npos) << text;
  EXPECT_NE(text.find("The peak is 19922944 bytes; 14680064 would do. Worst object: wide"), std::string::npos) << text;
  for (const char *const file : {"report.json", "memory.svg", "memory.html", "memory.trace.json"}) {
    EXPECT_GT(std::filesystem::file_size(file), 1000u) << file;
  }
  runs.close(run);
  host().service<sonde_config_service_t>().release(config);
  std::filesystem::current_path(before);
}
#endif

}  // namespace
}  // namespace sonde
