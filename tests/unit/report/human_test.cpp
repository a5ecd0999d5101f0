#include "report/human.h"

#include <gtest/gtest.h>

#include "report_fixture.h"

namespace sonde::report {
namespace {

std::string human(const sonde_value_t &value, std::string_view unit) { return human_value(value, unit).joined(); }

TEST(Human, ShowsTimesInTheUnitThatFits) {
  EXPECT_EQ(human(u64_value(0), "ns"), "0 ns");
  EXPECT_EQ(human(u64_value(999), "ns"), "999 ns");
  EXPECT_EQ(human(u64_value(1000), "ns"), "1.00 us");
  EXPECT_EQ(human(u64_value(12345), "ns"), "12.3 us");
  EXPECT_EQ(human(u64_value(123456789), "ns"), "123 ms");
  EXPECT_EQ(human(u64_value(1500000000), "ns"), "1.50 s");
  EXPECT_EQ(human(i64_value(-1780000), "ns"), "-1.78 ms");
  EXPECT_EQ(human(f64_value(0.25), "ns"), "0.25 ns");
}

TEST(Human, CarriesIntoTheNextUnitWhenRoundingReachesIt) {
  EXPECT_EQ(human(u64_value(999'400), "ns"), "999 us");
  EXPECT_EQ(human(u64_value(999'600), "ns"), "1.00 ms");
  EXPECT_EQ(human(u64_value(9'996), "ns"), "10.0 us");
  EXPECT_EQ(human(u64_value(1024 * 1024 - 1), "bytes"), "1.00 MiB");
}

// Fault 88: 81,352,720,384 bytes on an 80 GiB card must not read as "81 GB"; 81352720384 / 2^30 = 75.76...
TEST(Human, ShowsBytesInBinaryUnits) {
  EXPECT_EQ(human_bytes(81'352'720'384), "75.8 GiB");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
}

TEST(Human, ShowsRatesInDecimalUnits) { EXPECT_EQ(human(f64_value(4.8e12), "bytes/s"), "4.80 TB/s"); }

TEST(Human, ShowsSharesWithThreeDigits) {
  EXPECT_EQ(human(f64_value(0), "%"), "0 %");
  EXPECT_EQ(human(f64_value(100), "%"), "100 %");
  EXPECT_EQ(human(f64_value(45.678), "%"), "45.7 %");
  EXPECT_EQ(human(f64_value(1.234), "%"), "1.23 %");
  EXPECT_EQ(human(f64_value(0.0001), "%"), "<0.01 %");
}

TEST(Human, GroupsCountsButNotNamesThatAreNumbers) {
  EXPECT_EQ(human(u64_value(1234567), "1"), "1,234,567");
  EXPECT_EQ(human(u64_value(123), "1"), "123");
  EXPECT_EQ(human(i64_value(-123456), "1"), "-123,456");
  EXPECT_EQ(human(u64_value(1234567), ""), "1234567");
  EXPECT_EQ(human(u64_value(18446744073709551615u), "1"), "18,446,744,073,709,551,615");
  EXPECT_EQ(human(u64_value(0xffff800012345678), "address"), "0xffff800012345678");
}

TEST(Human, ShowsAMomentInUtc) {
  // 1672924881 s = 2023-01-05 13:21:21 UTC
  EXPECT_EQ(human(i64_value(1672924881307000296), "unix_ns"), "2023-01-05T13:21:21.307000296Z");
}

TEST(Human, KeepsUnitsItDoesNotKnow) { EXPECT_EQ(human(u64_value(12000), "blocks"), "12,000 blocks"); }

TEST(Human, ShowsEmptyCellsTextsAndTruth) {
  EXPECT_EQ(human(sonde_value_t{}, "ns"), "-");
  EXPECT_EQ(human(text_value("a\x01"), ""), "a\\x01");
  EXPECT_EQ(human(bool_value(true), ""), "yes");
}

}  // namespace
}  // namespace sonde::report
