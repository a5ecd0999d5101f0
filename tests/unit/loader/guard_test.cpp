#include "loader/guard.h"

#include <sonde/analysis.h>

#include <stdexcept>

#include "fixture.h"

namespace sonde::loader {
namespace {

TEST_F(LoaderTest, ExceptionsOfAPluginBecomeErrors) {
  ASSERT_EQ(load(module("throws")), SONDE_OK) << error_;
  const void *table = nullptr;
  ASSERT_EQ(plugins_->interface("throws", SONDE_ANALYSIS_INTERFACE, sizeof(sonde_analysis_t), &table), SONDE_OK);
  const auto &analysis = *static_cast<const sonde_analysis_t *>(table);
  void *instance = nullptr;
  EXPECT_EQ(analysis.create(nullptr, nullptr, &instance), SONDE_E_INTERNAL);
  EXPECT_STREQ(host_table()->last_error(), "plugin throws: analysis.create threw: no such thing");
  EXPECT_EQ(analysis.start(instance), SONDE_E_INTERNAL);
  EXPECT_STREQ(host_table()->last_error(), "plugin throws: analysis.start threw");
  EXPECT_EQ(analysis.finish(instance), SONDE_E_RANGE);
}

TEST_F(LoaderTest, QuarantinesAPluginThatKeepsFailingButLetsItEnd) {
  ASSERT_EQ(load(module("throws")), SONDE_OK) << error_;
  const void *table = nullptr;
  ASSERT_EQ(plugins_->interface("throws", SONDE_ANALYSIS_INTERFACE, sizeof(sonde_analysis_t), &table), SONDE_OK);
  const auto &analysis = *static_cast<const sonde_analysis_t *>(table);
  sonde_export_t destroyed{};
  ASSERT_EQ(plugins_->function("throws", "destroyed_count", &destroyed), SONDE_OK);
  void *instance = nullptr;
  uint32_t calls = 0;
  while (analysis.finish(instance) != SONDE_E_STATE && calls < 100) ++calls;
  EXPECT_LE(calls, kQuarantineErrors);
  EXPECT_NE(std::string(host_table()->last_error()).find("is in quarantine after 16 errors in a row"),
            std::string::npos);
  EXPECT_TRUE(Registry::instance().statistics("throws")->quarantined);
  analysis.destroy(instance);
  int64_t count = 0;
  reinterpret_cast<sonde_status (*)(int64_t *)>(destroyed.function)(&count);
  EXPECT_EQ(count, 1);
}

TEST(Guard, CountsTimesAndForgivesAfterASuccess) {
  Guard guard("tested");
  for (int round = 0; round < 3; ++round) {
    for (uint32_t error = 0; error + 1 < kQuarantineErrors; ++error) {
      EXPECT_EQ(guard.run("work", false, [] { return SONDE_E_IO; }), SONDE_E_IO);
    }
    EXPECT_EQ(guard.run("work", false, [] { return SONDE_OK; }), SONDE_OK);
  }
  for (uint32_t index = 0; index < 2 * kQuarantineErrors; ++index) {
    EXPECT_EQ(guard.run("entry", false, [] { return SONDE_E_UNIMPLEMENTED; }), SONDE_E_UNIMPLEMENTED);
  }
  const Guard::Statistics statistics = guard.statistics();
  EXPECT_EQ(statistics.calls, 3u * kQuarantineErrors + 2u * kQuarantineErrors);
  EXPECT_EQ(statistics.errors, 3u * (kQuarantineErrors - 1));
  EXPECT_FALSE(statistics.quarantined);
  EXPECT_GE(statistics.busy_ns, statistics.longest_ns);
}

TEST(Guard, KnowsTheCurrentPluginInNestedCalls) {
  Guard outer("outer");
  Guard inner("inner");
  outer.run("a", false, [&] {
    inner.run("b", false, [&] {
      EXPECT_STREQ(CurrentPlugin::id(), "inner");
      return SONDE_OK;
    });
    EXPECT_STREQ(CurrentPlugin::id(), "outer");
    return SONDE_OK;
  });
  EXPECT_EQ(CurrentPlugin::id(), nullptr);
}

}  // namespace
}  // namespace sonde::loader
