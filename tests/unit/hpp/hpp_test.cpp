// The C++ layer over a fake host.
#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <memory>
#include <string>
#include <vector>

#include "fake_host.h"

namespace sonde {
namespace {

using testing::BatchBuilder;
using testing::FakeHost;

class Hpp : public ::testing::Test {
 protected:
  void SetUp() override { FakeHost::get().reset(); }
  FakeHost &fake_ = FakeHost::get();
  Host host_{FakeHost::table()};
};

void add_kernel(BatchBuilder &batch, uint64_t begin, uint64_t end) {
  batch.add<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin,
                                   [&](sonde_device_kernel_t &kernel) { kernel.end = end; });
}

std::vector<Interval> intervals(const sonde_batch_t &batch) {
  std::vector<Interval> seen;
  Batch(&batch).for_each<sonde_device_kernel_t>(
      SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
      [&](const sonde_device_kernel_t &, const Interval &interval) { seen.push_back(interval); });
  return seen;
}

TEST_F(Hpp, AMissingServiceIsAFailureWithTheHostsText) {
  try {
    (void)host_.service<sonde_store_service_t>();
    FAIL() << "nothing was thrown";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status(), SONDE_E_NOT_FOUND);
    EXPECT_STREQ(failure.what(), "no service sonde.store/1");
  }
}

TEST_F(Hpp, AnEmptyBatchHasNoRecords) {
  BatchBuilder batch;
  EXPECT_TRUE(intervals(batch.batch()).empty());
}

TEST_F(Hpp, IntervalsAreRepairedByTheTableOfTheBatch) {
  BatchBuilder batch;
  add_kernel(batch, 10, 20);
  add_kernel(batch, 0, 0);
  batch.repaired(15, 15, SONDE_REPAIR_ZERO);
  add_kernel(batch, 30, 45);
  add_kernel(batch, INT64_MAX, 5);
  batch.repaired(50, 50, SONDE_REPAIR_SENTINEL);
  const auto seen = intervals(batch.batch());
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].length_ns(), 10);
  EXPECT_TRUE(seen[0].valid());
  EXPECT_EQ(seen[1].begin_ns, 15);
  EXPECT_EQ(seen[1].repair, SONDE_REPAIR_ZERO);
  EXPECT_EQ(seen[2].length_ns(), 15);
  EXPECT_EQ(seen[3].repair, SONDE_REPAIR_SENTINEL);
  EXPECT_EQ(seen[3].length_ns(), 0);
}

TEST_F(Hpp, ImpossibleStampsWithoutARepairHaveNoLength) {
  BatchBuilder batch;
  add_kernel(batch, 20, 10);
  add_kernel(batch, 0, 0);
  const auto seen = intervals(batch.batch());
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].repair, SONDE_REPAIR_REVERSED);
  EXPECT_EQ(seen[0].length_ns(), 0);
  EXPECT_EQ(seen[1].repair, SONDE_REPAIR_ZERO);
}

TEST_F(Hpp, FieldsThatAnOlderWriterDidNotKnowReadZero) {
  // A kernel record that ends after `stream`: 16 + 24 bytes.
  struct Old {
    sonde_record_t header;
    uint64_t end, correlation, stream;
  };
  Old old{};
  SONDE_RECORD_INIT(&old, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, 5);
  old.end = 9;
  old.stream = 0x7f1234567890;
  BatchBuilder batch;
  batch.append(&old, sizeof(old));
  add_kernel(batch, 100, 200);
  std::vector<uint64_t> streams;
  std::vector<uint32_t> registers;
  Batch(&batch.batch())
      .for_each<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
                                       [&](const sonde_device_kernel_t &kernel) {
                                         streams.push_back(kernel.stream);
                                         registers.push_back(kernel.registers);
                                       });
  EXPECT_EQ(streams, (std::vector<uint64_t>{0x7f1234567890, 0}));
  EXPECT_EQ(registers, (std::vector<uint32_t>{0, 0}));
}

TEST_F(Hpp, SpansOutsideTheirRecordAreEmpty) {
  struct Path {
    sonde_object_call_path_t fixed;
    uint32_t frames[2];
  };
  Path path{};
  path.fixed.header = {sizeof(Path) / 8, sizeof(sonde_object_call_path_t) / 8, SONDE_SPACE_OBJECT,
                       SONDE_OBJECT_CALL_PATH, 1};
  path.fixed.frames = {sizeof(sonde_object_call_path_t), 2};
  path.frames[0] = 7;
  path.frames[1] = 9;
  BatchBuilder batch;
  batch.append(&path, sizeof(path));
  path.fixed.frames.count = 3;
  batch.append(&path, sizeof(path));
  std::vector<size_t> sizes;
  Batch(&batch.batch())
      .for_each<sonde_object_call_path_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_CALL_PATH,
                                          [&](const sonde_object_call_path_t &typed, const Record &record) {
                                            const auto frames = record.elements<sonde_string_t>(typed.frames);
                                            sizes.push_back(frames.size());
                                            if (frames.size() == 2) {
                                              EXPECT_EQ(frames[1], 9u);
                                            }
                                          });
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 0}));
}

TEST_F(Hpp, ASubscriptionHandsOnBatchesAndTurnsExceptionsIntoStatuses) {
  Session session = Session::borrow(host_, FakeHost::session());
  uint64_t records = 0;
  bool ended = false;
  auto witness = std::make_shared<int>(0);
  Subscription subscription = session.subscribe(
      "counter", {only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_KERNEL})},
      [&records, witness](const Batch &batch) {
        records += batch.raw().count;
        if (records > 1) throw Failure(SONDE_E_CORRUPT, "too many");
      },
      [&] { ended = true; });
  const testing::FakeSubscription &made = fake_.subscriptions.at(0);
  EXPECT_EQ(made.name, "counter");
  ASSERT_EQ(made.interests.size(), 1u);
  EXPECT_EQ(made.interests[0].types, uint64_t{1} << SONDE_DEVICE_KERNEL);
  BatchBuilder batch;
  add_kernel(batch, 1, 2);
  EXPECT_EQ(made.raw.on_batch(made.raw.user, &batch.batch()), SONDE_OK);
  EXPECT_EQ(made.raw.on_batch(made.raw.user, &batch.batch()), SONDE_E_CORRUPT);
  EXPECT_EQ(fake_.last_error, "too many");
  EXPECT_EQ(subscription.status().batches, 7u);
  EXPECT_EQ(witness.use_count(), 2);
  fake_.end_subscriptions();
  EXPECT_TRUE(ended);
  EXPECT_EQ(witness.use_count(), 1) << "the handler is dropped with its subscription";
  subscription.reset();  // ended already: no error
}

TEST_F(Hpp, ASubscriptionEndsWithItsObject) {
  Session session = Session::borrow(host_, FakeHost::session());
  {
    Subscription subscription = session.subscribe("short", {every(SONDE_SPACE_HOST)}, [](const Batch &) {});
  }
  EXPECT_TRUE(fake_.subscriptions.at(0).ended);
}

TEST_F(Hpp, ASessionThrowsWhatTheHostRefuses) {
  Session session = Session::open(host_);
  session.start();
  EXPECT_EQ(session.status().records, 42u);
  const auto losses = session.losses();
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[1].records, 20u);
  EXPECT_THROW(session.flush(), Failure);
  session.stop();
}

TEST_F(Hpp, AWriterFillsTheHeaderAndSaysWhenItDropped) {
  Session session = Session::borrow(host_, FakeHost::session());
  Writer writer = session.writer();
  sonde_framework_metric_t metric{};
  metric.value = 2.5;
  ASSERT_TRUE(writer.emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_METRIC, metric, 77));
  const auto *const written = reinterpret_cast<const sonde_framework_metric_t *>(fake_.ring.data());
  EXPECT_EQ(written->header.time, 77u);
  EXPECT_EQ(written->header.size8, sizeof(metric) / 8);
  EXPECT_EQ(written->value, 2.5);
  EXPECT_EQ(fake_.published, sizeof(metric));
  while (writer.emit(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_METRIC, metric)) {
  }
  EXPECT_EQ(fake_.published / sizeof(metric), 1024 / sizeof(metric));
  const Demand demand = session.demand(SONDE_SPACE_FRAMEWORK);
  EXPECT_FALSE(demand.wants(SONDE_FRAMEWORK_METRIC));
  fake_.demand = uint64_t{1} << SONDE_FRAMEWORK_METRIC;
  EXPECT_TRUE(demand.wants(SONDE_FRAMEWORK_METRIC));
}

TEST_F(Hpp, ATableTakesCellsOfEveryKind) {
  Table table(host_, FakeHost::session(), "test", "things", "Things", "What there is.");
  table.text("name", "", SONDE_COLUMN_KEY)
      .u64("count", "1", "")
      .i64("change", "ns", "")
      .f64("mean", "ns", "")
      .boolean("ok", "");
  table.row({std::string("a"), 5, -3, 2.5, true});
  table.row({"b", uint64_t{UINT64_MAX}, std::optional<int64_t>(), std::optional<double>(1.0), false});
  const testing::FakeTable &made = fake_.find_table("things");
  EXPECT_EQ(made.origin, "test");
  ASSERT_EQ(made.rows.size(), 2u);
  EXPECT_EQ(made.at(0, "change").i64, -3);
  EXPECT_EQ(made.at(0, "ok").str(), "true");
  EXPECT_EQ(made.at(1, "count").str(), "18446744073709551615");
  EXPECT_EQ(made.at(1, "change").kind, SONDE_VALUE_NONE);
  EXPECT_EQ(made.columns[2].unit, "ns");
}

TEST_F(Hpp, AFindingKeepsTheTextOfItsEvidence) {
  {
    Finding finding("test", "test.rule");
    std::string passing = "sm_90";
    finding.violation(SONDE_SEVERITY_ERROR, "wrong").advice("mend it").evidence("target", "", passing);
    passing = "overwritten";
    finding.evidence("count", "1", 3).gain_seconds(0.25).formula("count > 2").publish(host_, FakeHost::session());
  }
  ASSERT_EQ(fake_.findings.size(), 1u);
  const testing::FakeFinding &finding = fake_.findings[0];
  EXPECT_EQ(finding.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(finding.severity, SONDE_SEVERITY_ERROR);
  EXPECT_EQ(finding.evidence.at("target").text, "sm_90");
  EXPECT_EQ(finding.evidence.at("count").i64, 3);
  EXPECT_EQ(finding.gain_seconds, 0.25);
  EXPECT_EQ(finding.confidence, 1);
  EXPECT_EQ(finding.sampling_scale, 1);
}

TEST_F(Hpp, ConfigThrowsOnANameThatIsNotDeclared) {
  fake_.options = {{"rows", "12"}, {"share", "0.5"}, {"wait", "3ms"}, {"all", "true"}, {"name", "x"}};
  const Config config(host_, nullptr);
  EXPECT_EQ(config.i64("rows"), 12);
  EXPECT_EQ(config.f64("share"), 0.5);
  EXPECT_EQ(config.time_ns("wait"), 3'000'000);
  EXPECT_TRUE(config.boolean("all"));
  EXPECT_EQ(config.text("name"), "x");
  EXPECT_THROW((void)config.i64("absent"), Failure);
}

// An analysis that does what the test tells it.
struct Scripted {
  static inline int alive = 0;
  static inline bool throw_in_create = false;
  enum class Throw { kNothing, kFailure, kException, kOther } what = Throw::kNothing;

  Scripted(Session, Config) {
    if (throw_in_create) throw Failure(SONDE_E_DENIED, "not here");
    ++alive;
  }
  ~Scripted() { --alive; }
  void start() {}
  void finish() {
    switch (what) {
      case Throw::kNothing:
        return;
      case Throw::kFailure:
        throw Failure(SONDE_E_RANGE, "out of range");
      case Throw::kException:
        throw std::runtime_error("broken");
      case Throw::kOther:
        throw 5;
    }
  }
};

TEST_F(Hpp, AnAnalysisFromAClassLetsNoExceptionThrough) {
  using Plugin = AnalysisPlugin<Scripted>;
  ASSERT_EQ(Plugin::init(FakeHost::table()), SONDE_OK);
  EXPECT_EQ(Plugin::get_interface("sonde.port/1"), nullptr);
  const auto *const analysis = static_cast<const sonde_analysis_t *>(Plugin::get_interface(SONDE_ANALYSIS_INTERFACE));
  ASSERT_NE(analysis, nullptr);

  Scripted::throw_in_create = true;
  void *instance = nullptr;
  EXPECT_EQ(analysis->create(FakeHost::session(), nullptr, &instance), SONDE_E_DENIED);
  EXPECT_EQ(instance, nullptr);
  Scripted::throw_in_create = false;
  EXPECT_EQ(Plugin::with(FakeHost::session(), [](Scripted &) {}), SONDE_E_NOT_FOUND);

  ASSERT_EQ(analysis->create(FakeHost::session(), nullptr, &instance), SONDE_OK);
  EXPECT_EQ(analysis->start(instance), SONDE_OK);
  const auto finish_with = [&](Scripted::Throw what) {
    Plugin::with(FakeHost::session(), [&](Scripted &scripted) { scripted.what = what; });
    return analysis->finish(instance);
  };
  EXPECT_EQ(finish_with(Scripted::Throw::kNothing), SONDE_OK);
  EXPECT_EQ(finish_with(Scripted::Throw::kFailure), SONDE_E_RANGE);
  EXPECT_EQ(fake_.last_error, "out of range");
  EXPECT_EQ(finish_with(Scripted::Throw::kException), SONDE_E_INTERNAL);
  EXPECT_EQ(fake_.last_error, "broken");
  EXPECT_EQ(finish_with(Scripted::Throw::kOther), SONDE_E_INTERNAL);
  EXPECT_EQ(Scripted::alive, 1);
  analysis->destroy(instance);
  EXPECT_EQ(Scripted::alive, 0);
  EXPECT_EQ(Plugin::with(FakeHost::session(), [](Scripted &) {}), SONDE_E_NOT_FOUND);
}

}  // namespace
}  // namespace sonde
