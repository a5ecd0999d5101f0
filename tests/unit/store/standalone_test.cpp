// Capture files written without a session, read back by a replay.
#include <gtest/gtest.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/session.h>

#include <string>
#include <vector>

#include "house.h"

namespace sonde::store::testing {
namespace {

constexpr sonde_clock_t kUnix{sizeof(sonde_clock_t), SONDE_CLOCK_UNIX_NS, 0, 0, 1, 0, 0};
constexpr int64_t kStart = 1'700'000'000'000'000'000;

sonde_string_t intern(const char *text) {
  sonde_string_t id = 0;
  EXPECT_EQ(capture().intern(text, UINT64_MAX, &id), SONDE_OK);
  return id;
}

sonde_device_kernel_t kernel(const char *name, uint64_t begin) {
  sonde_device_kernel_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin);
  record.end = begin + 10;
  record.name = intern(name);
  return record;
}

// A batch of the records given; it lives as long as they do.
template <typename Record>
sonde_batch_t batch_of(const std::vector<Record> &records, uint64_t stream, uint64_t sequence) {
  sonde_batch_t batch{};
  batch.struct_size = sizeof batch;
  batch.stream = stream;
  batch.sequence = sequence;
  batch.data = reinterpret_cast<const uint8_t *>(records.data());
  batch.bytes = records.size() * sizeof(Record);
  batch.clock = &kUnix;
  return batch;
}

class Standalone : public ::testing::Test {
 protected:
  sonde_file_writer_t *create(const std::string &path) {
    sonde_source_info_t source{};
    source.struct_size = sizeof source;
    source.host = "there";
    source.program = "/bin/other";
    source.command = "other --now";
    source.boot = nullptr;
    source.process = 4321;
    source.parent_process = 1234;
    source.start_ns = kStart;
    sonde_file_writer_t *writer = nullptr;
    EXPECT_EQ(store_service().create(path.c_str(), &source, nullptr, &writer), SONDE_OK) << last_error();
    return writer;
  }

  Folder folder_;
};

TEST_F(Standalone, AFileSaysWhoseRecordsItHas) {
  const std::string path = folder_.file("a.sonde");
  sonde_file_writer_t *const writer = create(path);
  const std::vector<sonde_device_kernel_t> first = {kernel("add", kStart + 100), kernel("multiply", kStart + 50)};
  const std::vector<sonde_device_kernel_t> second = {kernel("add", kStart + 900)};
  sonde_batch_t batch = batch_of(first, 7, 0);
  SONDE_ASSERT_OK(store_service().append(writer, &batch));
  batch = batch_of(second, 9, 0);
  SONDE_ASSERT_OK(store_service().append(writer, &batch));
  SONDE_ASSERT_OK(store_service().complete(writer, kStart + 1000));

  sonde_capture_t *opened = nullptr;
  SONDE_ASSERT_OK(store_service().open(path.c_str(), &opened));
  sonde_source_info_t info{};
  info.struct_size = sizeof info;
  SONDE_ASSERT_OK(store_service().source_at(opened, 0, &info));
  EXPECT_EQ(info.complete, 1u);
  EXPECT_STREQ(info.host, "there");
  EXPECT_STREQ(info.program, "/bin/other");
  EXPECT_STREQ(info.command, "other --now");
  EXPECT_STREQ(info.boot, "");
  EXPECT_EQ(info.process, 4321u);
  EXPECT_EQ(info.parent_process, 1234u);
  EXPECT_EQ(info.start_ns, kStart);
  EXPECT_EQ(info.stop_ns, kStart + 1000);
  EXPECT_EQ(info.records, 3u);
  SONDE_ASSERT_OK(store_service().close(opened));
}

TEST_F(Standalone, LossesOfOneStreamAndCauseAddUp) {
  const std::string path = folder_.file("a.sonde");
  sonde_file_writer_t *const writer = create(path);
  const std::vector<sonde_device_kernel_t> records = {kernel("add", kStart)};
  const sonde_batch_t batch = batch_of(records, 1, 0);
  SONDE_ASSERT_OK(store_service().append(writer, &batch));
  for (const sonde_loss_t row :
       {sonde_loss_t{1, 5, 80, SONDE_LOSS_RING_FULL, 3, 9}, sonde_loss_t{0, 1, 16, SONDE_LOSS_VENDOR, 0, 0},
        sonde_loss_t{1, 6, 96, SONDE_LOSS_RING_FULL, 0, 0}, sonde_loss_t{2, UINT64_MAX, 10, SONDE_LOSS_TAIL, 0, 0},
        sonde_loss_t{2, 3, 10, SONDE_LOSS_TAIL, 0, 0}}) {
    SONDE_ASSERT_OK(store_service().lose(writer, &row));
  }
  SONDE_ASSERT_OK(store_service().complete(writer, kStart));

  sonde_capture_t *opened = nullptr;
  SONDE_ASSERT_OK(store_service().open(path.c_str(), &opened));
  sonde_loss_t rows[8];
  uint64_t count = 0;
  SONDE_ASSERT_OK(store_service().losses(opened, rows, 8, &count));
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(rows[0].cause, SONDE_LOSS_VENDOR);
  EXPECT_EQ(rows[1].records, 11u);
  EXPECT_EQ(rows[1].bytes, 176u);
  EXPECT_EQ(rows[2].records, UINT64_MAX);
  EXPECT_EQ(rows[2].bytes, 20u);
  SONDE_ASSERT_OK(store_service().close(opened));
}

TEST_F(Standalone, AppendRefusesWhatContradictsItself) {
  sonde_file_writer_t *const writer = create(folder_.file("a.sonde"));
  std::vector<sonde_device_kernel_t> records = {kernel("add", kStart)};
  const auto refused = [&](const char *what, const auto &spoil) {
    std::vector<sonde_device_kernel_t> spoilt = records;
    sonde_batch_t batch = batch_of(spoilt, 1, 5);
    spoil(batch, spoilt[0].header);
    EXPECT_EQ(store_service().append(writer, &batch), SONDE_E_INVALID) << what;
  };
  refused("no data", [](sonde_batch_t &batch, sonde_record_t &) { batch.data = nullptr; });
  refused("no clock", [](sonde_batch_t &batch, sonde_record_t &) { batch.clock = nullptr; });
  refused("half a record", [](sonde_batch_t &batch, sonde_record_t &) { batch.bytes -= 8; });
  refused("four bytes", [](sonde_batch_t &batch, sonde_record_t &) { batch.bytes = 4; });
  refused("not aligned", [](sonde_batch_t &batch, sonde_record_t &) { batch.data += 4; });
  refused("no size", [](sonde_batch_t &, sonde_record_t &record) { record.size8 = 0; });
  refused("more fixed than size", [](sonde_batch_t &, sonde_record_t &record) { record.fixed8 = record.size8 + 1; });
  refused("padding", [](sonde_batch_t &, sonde_record_t &record) { record.space = 0; });
  refused("no such space", [](sonde_batch_t &, sonde_record_t &record) { record.space = SONDE_SPACE_COUNT; });
  refused("no such type", [](sonde_batch_t &, sonde_record_t &record) { record.type = SONDE_TYPE_COUNT; });
  const sonde_batch_t good = batch_of(records, 1, 5);
  SONDE_EXPECT_OK(store_service().append(writer, &good));
  EXPECT_EQ(store_service().append(writer, &good), SONDE_E_INVALID) << "the sequence does not rise";
  EXPECT_EQ(store_service().append(nullptr, &good), SONDE_E_INVALID);
  EXPECT_EQ(store_service().lose(writer, nullptr), SONDE_E_INVALID);
  SONDE_EXPECT_OK(store_service().complete(writer, kStart));
  EXPECT_EQ(store_service().complete(writer, kStart), SONDE_E_INVALID) << "it is gone";
}

TEST_F(Standalone, AFileIsNotWrittenOver) {
  const std::string path = folder_.file("a.sonde");
  write_file(path, {1, 2, 3});
  sonde_source_info_t source{};
  source.struct_size = sizeof source;
  sonde_file_writer_t *writer = nullptr;
  EXPECT_EQ(store_service().create(path.c_str(), &source, nullptr, &writer), SONDE_E_EXISTS);
  EXPECT_EQ(writer, nullptr);
  EXPECT_EQ(store_service().create((folder_.path() + "/no/a.sonde").c_str(), &source, nullptr, &writer), SONDE_E_IO);
  source.struct_size = 8;
  EXPECT_EQ(store_service().create(folder_.file("b.sonde").c_str(), &source, nullptr, &writer), SONDE_E_INVALID);
}

TEST_F(Standalone, NothingAppendedLeavesNoFile) {
  const std::string path = folder_.file("a.sonde");
  SONDE_ASSERT_OK(store_service().complete(create(path), kStart));
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace sonde::store::testing
