// Replay: order, progress, several files, damage.
#include <sonde/spaces/host.h>
#include <sonde/spaces/session.h>

#include "core/feed.h"
#include "house.h"
#include "store/chunk_writer.h"
#include "store/file_reader.h"
#include "streams.h"

namespace sonde::store::testing {
namespace {

sonde_clock_t unix_clock() {
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.id = SONDE_CLOCK_UNIX_NS;
  clock.multiplier = 1;
  return clock;
}

Records calls(uint64_t count, uint64_t first_time, uint64_t step) {
  Records out;
  for (uint64_t index = 0; index < count; ++index) {
    sonde_host_call_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_HOST, SONDE_HOST_CALL, first_time + index * step);
    record.end = record.header.time + 5;
    record.correlation = index;
    append(out, record);
  }
  return out;
}

// A file without a session: one chunk for each begin.
void make_file(const std::string &path, const std::string &boot, const std::vector<uint64_t> &begins,
               uint64_t records_each = 20, uint64_t chunk_bytes = kMinChunkRecordBytes) {
  install_services();
  ChunkWriterOptions options;
  options.path = path;
  options.chunk_bytes = chunk_bytes;
  options.start.texts.boot = boot;
  options.start.process = begins.empty() ? 0 : begins[0];
  ChunkWriterHooks hooks;
  hooks.ledger = [] { return std::vector<sonde_loss_t>(); };
  hooks.lose = [](uint64_t, uint64_t, uint64_t) { FAIL(); };
  hooks.fail = [](const Error &error) { FAIL() << error.text; };
  ChunkWriter writer(options, hooks);
  const sonde_clock_t clock = unix_clock();
  uint64_t sequence = 0;
  uint64_t position = 0;
  for (const uint64_t begin : begins) {
    const Records records = calls(records_each, begin, 10);
    sonde_batch_t batch{};
    batch.struct_size = sizeof batch;
    batch.stream = 1;
    batch.sequence = sequence++;
    batch.data = records.data();
    batch.bytes = records.size();
    batch.count = records_each;
    batch.first_time = begin;
    batch.last_time = begin + (records_each - 1) * 10;
    batch.position = position += records.size();
    batch.spaces = uint64_t{1} << SONDE_SPACE_HOST;
    batch.clock = &clock;
    writer.add(batch, false);
    writer.seal(false);
  }
  ASSERT_TRUE(writer.finish(1));
}

std::vector<std::pair<uint32_t, uint64_t>> order_of(const Collector &collector) {
  std::vector<std::pair<uint32_t, uint64_t>> order;
  for (const Collector::Batch &batch : collector.batches) order.emplace_back(batch.source, batch.first_time);
  return order;
}

using Order = std::vector<std::pair<uint32_t, uint64_t>>;

TEST(Replay, FilesOfOneBootAreMergedByTheirChunks) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000, 3000, 5000});
  make_file(folder.file("b.sonde"), "boot", {2000, 3000, 9000});
  const TestCapture capture(folder.path());
  ASSERT_EQ(capture.sources(), 2u);
  EXPECT_EQ(order_of(capture.replay()), (Order{{1, 1000}, {2, 2000}, {1, 3000}, {2, 3000}, {1, 5000}, {2, 9000}}));
}

TEST(Replay, FilesOfDifferentBootsFollowOneAfterTheOther) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "one", {5000, 7000});
  make_file(folder.file("b.sonde"), "two", {1000});
  make_file(folder.file("c.sonde"), "one", {6000});
  const TestCapture capture(folder.path());
  EXPECT_EQ(order_of(capture.replay()), (Order{{1, 5000}, {3, 6000}, {1, 7000}, {2, 1000}}));
}

TEST(Replay, OtherThingsInTheDirectoryAreIgnored) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000});
  write_file(folder.file("run.json"), {'{', '}'});
  write_file(folder.file("notes.txt"), {'x'});
  EXPECT_EQ(TestCapture(folder.path()).sources(), 1u);
}

TEST(Replay, AFileThatIsNoneBesideGoodOnesIsASourceThatSaysSo) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000});
  write_file(folder.file("b.sonde"), {});
  const TestCapture capture(folder.path());
  ASSERT_EQ(capture.status(), SONDE_OK) << capture.error();
  ASSERT_EQ(capture.sources(), 2u);
  EXPECT_STRNE(capture.info(1).damage, "");
  EXPECT_EQ(capture.info(1).complete, 0u);
  EXPECT_EQ(capture.replay().batches.size(), 1u);
}

TEST(Replay, AnEmptyDirectoryIsAnError) {
  const Folder folder;
  const TestCapture capture(folder.path());
  EXPECT_EQ(capture.status(), SONDE_E_NOT_FOUND);
  EXPECT_NE(capture.error().find(folder.path()), std::string::npos);
}

TEST(Replay, AFileWithAHeaderOnlyIsAnUnfinishedSourceOfUnknownLoss) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000});
  std::vector<uint8_t> bytes = read_file(folder.file("a.sonde"));
  FileHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.resize(header.header_bytes);
  write_file(folder.file("a.sonde"), bytes);
  const TestCapture capture(folder.file("a.sonde"));
  ASSERT_EQ(capture.status(), SONDE_OK) << capture.error();
  EXPECT_EQ(capture.info().records, 0u);
  EXPECT_EQ(capture.info().complete, 0u);
  ASSERT_EQ(capture.losses().size(), 1u);
  EXPECT_EQ(capture.losses()[0].cause, SONDE_LOSS_TAIL);
  EXPECT_EQ(capture.losses()[0].records, UINT64_MAX);
  EXPECT_TRUE(capture.replay().batches.empty());
}

TEST(Replay, TwoReplaysDeliverTheSame) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000, 3000, 5000}, 700);
  make_file(folder.file("b.sonde"), "boot", {2000, 3000, 9000}, 900);
  const TestCapture capture(folder.path());
  const Collector first = capture.replay();
  const Collector second = capture.replay();
  ASSERT_EQ(first.batches.size(), second.batches.size());
  for (size_t index = 0; index < first.batches.size(); ++index) {
    EXPECT_EQ(first.batches[index].source, second.batches[index].source);
    EXPECT_EQ(first.batches[index].data, second.batches[index].data);
  }
}

TEST(Replay, DamageIsCountedWithItsRecordsInTheReplayingSession) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000, 2000, 3000});
  std::vector<uint8_t> bytes = read_file(folder.file("a.sonde"));
  Result<std::unique_ptr<FileReader>> reader = FileReader::open(memory_source(bytes));
  ASSERT_TRUE(reader);
  uint64_t seen = 0;
  uint64_t chunk_bytes = 0;
  for (const FoundChunk &chunk : (*reader)->chunks()) {
    if (chunk.header.type != static_cast<uint32_t>(ChunkType::kRecords) || ++seen != 2) continue;
    bytes[chunk.offset + sizeof(ChunkHeader) + 3] ^= 1;
    chunk_bytes = sizeof(ChunkHeader) + padded(chunk.header.payload_bytes);
  }
  write_file(folder.file("a.sonde"), bytes);
  const TestCapture capture(folder.file("a.sonde"));
  EXPECT_EQ(capture.info().damaged_bytes, chunk_bytes);
  EXPECT_NE(std::string(capture.info().damage).find("damaged"), std::string::npos);
  ASSERT_EQ(capture.losses().size(), 1u);
  EXPECT_EQ(capture.losses()[0].cause, SONDE_LOSS_DAMAGED);
  EXPECT_EQ(capture.losses()[0].records, 20u);
  EXPECT_EQ(capture.losses()[0].bytes, chunk_bytes);

  Collector collector;
  TestSession session;
  collector.attach(session, {SONDE_SPACE_HOST});
  SONDE_ASSERT_OK(sessions().start(session));
  SONDE_ASSERT_OK(store_service().replay(capture, session, nullptr, nullptr));
  const std::vector<sonde_loss_t> losses = session.losses();
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].cause, SONDE_LOSS_DAMAGED);
  EXPECT_EQ(losses[0].source, 1u);
  EXPECT_EQ(losses[0].records, 20u);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  EXPECT_EQ(order_of(collector), (Order{{1, 1000}, {1, 3000}}));
  EXPECT_EQ(collector.batches[1].sequence, 2u) << "the gap shows in the sequence";
}

TEST(Replay, ProgressEndsWithAllAndItsErrorEndsTheReplay) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000, 3000, 5000});
  const TestCapture capture(folder.file("a.sonde"));
  TestSession session;
  SONDE_ASSERT_OK(sessions().start(session));
  std::pair<uint64_t, uint64_t> last{};
  SONDE_EXPECT_OK(store_service().replay(
      capture, session,
      [](void *user, uint64_t done, uint64_t total) -> sonde_status {
        *static_cast<std::pair<uint64_t, uint64_t> *>(user) = {done, total};
        return SONDE_OK;
      },
      &last));
  EXPECT_EQ(last.first, 60u);
  EXPECT_EQ(last.second, 60u);
  EXPECT_EQ(store_service().replay(
                capture, session, [](void *, uint64_t, uint64_t) -> sonde_status { return SONDE_E_USER; }, nullptr),
            SONDE_E_USER);
}

TEST(Replay, NeedsARunningSession) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000});
  const TestCapture capture(folder.file("a.sonde"));
  TestSession session;
  EXPECT_EQ(store_service().replay(capture, session, nullptr, nullptr), SONDE_E_STATE);
  EXPECT_EQ(store_service().replay(nullptr, session, nullptr, nullptr), SONDE_E_INVALID);
}

// Batches larger than the cap allows are delivered in pieces; none is lost and the numbers stay right.
TEST(Replay, ASmallMemoryCapIsEnough) {
  const Folder folder;
  make_file(folder.file("a.sonde"), "boot", {1000, 1000000}, 12000, kDefaultChunkRecordBytes);
  const TestCapture capture(folder.file("a.sonde"));
  Collector collector;
  TestSession session(1 << 20);
  collector.attach(session, {SONDE_SPACE_HOST});
  SONDE_ASSERT_OK(sessions().start(session));
  SONDE_ASSERT_OK(store_service().replay(capture, session, nullptr, nullptr));
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  Records expected = calls(12000, 1000, 10);
  const Records more = calls(12000, 1000000, 10);
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(collector.records(1, 1), expected);
  EXPECT_GT(collector.batches.size(), 10u);
  uint64_t position = 0;
  for (size_t index = 0; index < collector.batches.size(); ++index) {
    position += collector.batches[index].data.size();
    EXPECT_EQ(collector.batches[index].sequence, index);
    EXPECT_EQ(collector.batches[index].position, position);
  }
  EXPECT_LE(session.status().memory_peak, (1 << 20) * 11 / 10);
}

}  // namespace
}  // namespace sonde::store::testing
