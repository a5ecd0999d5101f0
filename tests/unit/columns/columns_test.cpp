#include <gtest/gtest.h>

#include "batches.h"

namespace sonde::test {
namespace {

sonde_reduction_t reduced(Records &records, const sonde_column_t &field) {
  sonde_reduction_t reduction = empty_reduction();
  EXPECT_EQ(columns().reduce(&records.batch(), &field, &reduction), SONDE_OK) << last_error();
  return reduction;
}

TEST(Columns, SumsAFieldOfOneTypeOnly) {
  Records records;
  records.add(copy(2000, 3000, 100));
  records.add(kernel(2000, 4000));
  records.add(copy(2000, 3000, 50));
  const sonde_reduction_t reduction = reduced(records, column("copy", "bytes"));
  EXPECT_EQ(reduction.count, 2u);
  EXPECT_EQ(reduction.exact, 1u);
  EXPECT_EQ(reduction.unsigned_values, 1u);
  EXPECT_EQ(reduction.sum_i64, 150);
  EXPECT_EQ(reduction.min_i64, 50);
  EXPECT_EQ(reduction.max_i64, 100);
  EXPECT_EQ(reduction.sum, 150.0);
}

TEST(Columns, DurationsAreConvertedByTheClock) {
  Records records(5, 1);  // 2.5 ns a unit
  records.add(kernel(2000, 2100));
  records.add(kernel(2000, 2101));
  const sonde_reduction_t reduction = reduced(records, column("kernel", "duration"));
  EXPECT_EQ(reduction.sum_i64, 250 + 252);
  EXPECT_EQ(reduction.unsigned_values, 0u);
}

TEST(Columns, TimesAreNsSince1970) {
  Records records(2, 0);
  records.add(kernel(1010, 1020));
  EXPECT_EQ(reduced(records, column("kernel", "time_ns")).sum_i64, 5'000'000 + 20);
  EXPECT_EQ(reduced(records, column("kernel", "end_ns")).sum_i64, 5'000'000 + 40);
  EXPECT_EQ(reduced(records, column("kernel", "time")).sum_i64, 1010);
}

TEST(Columns, RepairedRecordsHaveNoLength) {
  Records records;
  records.add(kernel(2000, 2100));
  records.add(kernel(0, 2500));           // no begin
  records.add(kernel(3000, 2900));        // reversed
  records.add(kernel(3000, UINT64_MAX));  // sentinel
  records.add(kernel(4000, 4010));
  ASSERT_EQ(records.batch().repair_count, 3u);
  const sonde_reduction_t reduction = reduced(records, column("kernel", "duration"));
  EXPECT_EQ(reduction.count, 5u);
  EXPECT_EQ(reduction.sum_i64, 110);
  EXPECT_EQ(reduction.min_i64, 0);
  // Begin of the first repaired record is the end of its neighbour, 2100; raw stamps stay raw.
  EXPECT_EQ(reduced(records, column("kernel", "time_ns")).min_i64, 5'000'000 + 1000);
  EXPECT_EQ(reduced(records, column("kernel", "time")).min_i64, 0);
}

TEST(Columns, AMomentHasNoLength) {
  Records records;
  sonde_device_page_fault_t fault = {};
  SONDE_RECORD_INIT(&fault, SONDE_SPACE_DEVICE, SONDE_DEVICE_PAGE_FAULT, 2000);
  records.add(fault);
  EXPECT_EQ(records.batch().repair_count, 0u);
  EXPECT_EQ(reduced(records, column("page_fault", "duration")).sum_i64, 0);
  EXPECT_EQ(reduced(records, column("page_fault", "end_ns")).sum_i64, 5'000'000 + 1000);
}

TEST(Columns, SumsPastTheRangeAreNotExact) {
  Records records;
  records.add(copy(1, 2, UINT64_MAX));
  sonde_column_t bytes = column("copy", "bytes");
  sonde_reduction_t reduction = reduced(records, bytes);
  EXPECT_EQ(reduction.exact, 1u);
  EXPECT_EQ(static_cast<uint64_t>(reduction.sum_i64), UINT64_MAX);
  EXPECT_EQ(columns().reduce(&records.batch(), &bytes, &reduction), SONDE_OK);
  EXPECT_EQ(reduction.exact, 0u);
  EXPECT_EQ(reduction.count, 2u);
  EXPECT_EQ(reduction.sum, 0x1p65);
  EXPECT_EQ(static_cast<uint64_t>(reduction.max_i64), UINT64_MAX);
}

TEST(Columns, AShorterRecordOfAnOlderWriterIsNotCounted) {
  Records records;
  sonde_device_kernel_t older = kernel(2000, 2100);
  older.header.size8 = older.header.fixed8 = 3;  // header and end only
  records.add(older, 24);
  records.add(kernel(2000, 2050));
  EXPECT_EQ(reduced(records, column("kernel", "duration")).count, 2u);
  EXPECT_EQ(reduced(records, column("kernel", "registers")).count, 1u);
}

TEST(Columns, ALongerRecordOfANewerWriterIsRead) {
  Records records;
  std::vector<uint64_t> words(sizeof(sonde_device_kernel_t) / 8 + 4, 99);
  const sonde_device_kernel_t record = kernel(2000, 2100);
  std::memcpy(words.data(), &record, sizeof(record));
  reinterpret_cast<sonde_record_t *>(words.data())->size8 = static_cast<uint16_t>(words.size());
  reinterpret_cast<sonde_record_t *>(words.data())->fixed8 = static_cast<uint16_t>(words.size() - 1);
  records.add_raw(words);
  records.add(record);
  EXPECT_EQ(reduced(records, column("kernel", "duration")).sum_i64, 200);
}

TEST(Columns, AnEmptyBatchReducesToNothing) {
  Records records;
  const sonde_reduction_t reduction = reduced(records, column("kernel", "duration"));
  EXPECT_EQ(reduction.count, 0u);
  EXPECT_EQ(reduction.exact, 1u);
  EXPECT_EQ(reduction.sum, 0.0);
}

TEST(Columns, StreamAndSourceAreTheBatchsOwn) {
  Records records;
  records.add(kernel(2000, 2100));
  int64_t value = 0;
  uint64_t count = 0;
  const sonde_column_t stream = column("kernel", "stream_id");
  ASSERT_EQ(columns().gather_i64(&records.batch(), &stream, &value, 1, &count), SONDE_OK);
  EXPECT_EQ(value, 7);
  const sonde_column_t source = column("kernel", "source_id");
  ASSERT_EQ(columns().gather_i64(&records.batch(), &source, &value, 1, &count), SONDE_OK);
  EXPECT_EQ(value, 3);
}

TEST(Columns, GatherFillsWhatFitsAndCountsAll) {
  Records records;
  for (uint64_t index = 0; index < 5; ++index) records.add(copy(2000, 2100, index));
  int64_t values[3] = {-1, -1, -1};
  uint64_t count = 0;
  const sonde_column_t bytes = column("copy", "bytes");
  ASSERT_EQ(columns().gather_i64(&records.batch(), &bytes, values, 2, &count), SONDE_OK);
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], -1);
}

TEST(Columns, UnknownNamesAreListed) {
  sonde_column_t out = {};
  EXPECT_EQ(columns().find("sonde.nothing", "kernel", "end", &out), SONDE_E_NOT_FOUND);
  EXPECT_EQ(columns().find("sonde.device", "kernal", "end", &out), SONDE_E_NOT_FOUND);
  EXPECT_NE(std::string(last_error()).find("it has kernel, copy"), std::string::npos) << last_error();
  EXPECT_EQ(columns().find("sonde.device", "kernel", "endd", &out), SONDE_E_NOT_FOUND);
  EXPECT_NE(std::string(last_error()).find("duration"), std::string::npos) << last_error();
  EXPECT_EQ(columns().find("sonde.memory", "allocate", "duration", &out), SONDE_E_NOT_FOUND);
}

TEST(Columns, IdentitiesHaveNoSum) {
  Records records;
  records.add(kernel(2000, 2100));
  for (const char *field : {"name", "stream", "correlation"}) {
    const sonde_column_t identity = column("kernel", field);
    sonde_reduction_t reduction = empty_reduction();
    EXPECT_EQ(columns().reduce(&records.batch(), &identity, &reduction), SONDE_E_TYPE) << field;
  }
}

TEST(Columns, MisuseIsRefused) {
  Records records;
  const sonde_column_t good = column("kernel", "duration");
  sonde_column_t bad = {};
  sonde_reduction_t reduction = empty_reduction();
  EXPECT_EQ(columns().reduce(&records.batch(), &bad, &reduction), SONDE_E_INVALID);
  reduction.struct_size = 0;
  EXPECT_EQ(columns().reduce(&records.batch(), &good, &reduction), SONDE_E_INVALID);
  EXPECT_EQ(columns().reduce(nullptr, &good, &reduction), SONDE_E_INVALID);
  sonde_groups_t *groups = nullptr;
  const sonde_column_t other = column("copy", "bytes");
  EXPECT_EQ(columns().group_open(&good, &other, &groups), SONDE_E_INVALID);
  const sonde_column_t stream = column("kernel", "stream");
  EXPECT_EQ(columns().group_open(&good, &good, &groups), SONDE_E_TYPE);
  EXPECT_EQ(columns().group_open(&stream, &stream, &groups), SONDE_E_TYPE);
  EXPECT_EQ(groups, nullptr);
}

TEST(Columns, StringsOfTwoSourcesAreKeptApart) {
  const sonde_column_t name = column("kernel", "name");
  const sonde_column_t duration = column("kernel", "duration");
  sonde_groups_t *groups = nullptr;
  ASSERT_EQ(columns().group_open(&name, &duration, &groups), SONDE_OK);
  Records records;
  records.add(kernel(2000, 2100, 5));
  records.add(kernel(2000, 2001, 4));
  records.batch().source = 2;
  ASSERT_EQ(columns().group_add(groups, &records.batch()), SONDE_OK);
  records.batch().source = 1;
  ASSERT_EQ(columns().group_add(groups, &records.batch()), SONDE_OK);
  const sonde_group_row_t *rows = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(columns().group_rows(groups, &rows, &count), SONDE_OK);
  ASSERT_EQ(count, 4u);
  EXPECT_EQ(rows[0].source, 1u);
  EXPECT_EQ(rows[0].key, 4u);
  EXPECT_EQ(rows[1].key, 5u);
  EXPECT_EQ(rows[1].value.sum_i64, 100);
  EXPECT_EQ(rows[3].source, 2u);
  ASSERT_EQ(columns().group_count(groups, &count), SONDE_OK);
  EXPECT_EQ(count, 4u);
  columns().group_close(groups);
}

TEST(Columns, NumbersOfTwoSourcesAreOneGroup) {
  const sonde_column_t kind = column("copy", "kind");
  const sonde_column_t bytes = column("copy", "bytes");
  sonde_groups_t *groups = nullptr;
  ASSERT_EQ(columns().group_open(&kind, &bytes, &groups), SONDE_OK);
  Records records;
  records.add(copy(2000, 2100, 10, 2));
  for (uint32_t source = 0; source < 3; ++source) {
    records.batch().source = source;
    ASSERT_EQ(columns().group_add(groups, &records.batch()), SONDE_OK);
  }
  const sonde_group_row_t *rows = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(columns().group_rows(groups, &rows, &count), SONDE_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(rows[0].value.sum_i64, 30);
  EXPECT_EQ(rows[0].value.count, 3u);
  columns().group_close(groups);
}

TEST(Columns, AMillionGroupsKeepTheirSums) {
  const sonde_column_t key = column("copy", "correlation");
  const sonde_column_t bytes = column("copy", "bytes");
  sonde_groups_t *groups = nullptr;
  ASSERT_EQ(columns().group_open(&key, &bytes, &groups), SONDE_OK);
  for (uint64_t part = 0; part < 10; ++part) {
    Records records;
    for (uint64_t index = 0; index < 100000; ++index) {
      sonde_device_copy_t record = copy(2000, 2100, index);
      record.correlation = part * 100000 + index;
      records.add(record);
    }
    ASSERT_EQ(columns().group_add(groups, &records.batch()), SONDE_OK);
  }
  const sonde_group_row_t *rows = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(columns().group_rows(groups, &rows, &count), SONDE_OK);
  ASSERT_EQ(count, 1000000u);
  for (const uint64_t index : {uint64_t{0}, uint64_t{54321}, uint64_t{999999}}) {
    EXPECT_EQ(rows[index].key, index);
    EXPECT_EQ(rows[index].value.sum_i64, static_cast<int64_t>(index % 100000));
  }
  columns().group_close(groups);
}

}  // namespace
}  // namespace sonde::test
