// Capture files as bytes: what is written comes back, and what is damaged is found, counted and passed over.
#include <gtest/gtest.h>

#include <set>

#include "house.h"
#include "store/chunk_writer.h"
#include "store/file_reader.h"
#include "streams.h"

namespace sonde::store {
namespace {

using testing::Folder;
using testing::Records;

// A file of `chunks` chunks of small records in two streams, made without a session.
struct Made {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> record_chunks;  // records of each record chunk
  uint64_t header_bytes = 0;
};

sonde_batch_t batch_of(const Records &records, uint64_t stream, uint64_t sequence, uint64_t position,
                       const sonde_clock_t &clock) {
  sonde_batch_t batch{};
  batch.struct_size = sizeof batch;
  batch.stream = stream;
  batch.sequence = sequence;
  batch.data = records.data();
  batch.bytes = records.size();
  batch.count = testing::count_records(records);
  batch.first_time = reinterpret_cast<const sonde_record_t *>(records.data())->time;
  batch.last_time = UINT64_MAX;
  batch.position = position;
  batch.spaces = 1;
  batch.clock = &clock;
  return batch;
}

Made make_file(uint64_t chunks, bool finished) {
  testing::install_services();
  const Folder folder;
  ChunkWriterOptions options;
  options.path = folder.file("a.sonde");
  options.chunk_bytes = kMinChunkRecordBytes;
  options.start.process = 4711;
  options.start.texts = {"host", "/bin/program", "program --flag", "boot"};
  ChunkWriterHooks hooks;
  hooks.ledger = [] { return std::vector<sonde_loss_t>{{3, 5, 80, SONDE_LOSS_RING_FULL, 0, 0}}; };
  hooks.lose = [](uint64_t, uint64_t, uint64_t) { FAIL() << "the disk took everything"; };
  hooks.fail = [](const Error &error) { FAIL() << error.text; };
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.multiplier = 1;
  Made made;
  {
    ChunkWriter writer(options, hooks);
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const Records records = testing::small_records(50 + chunk, chunk);
      writer.add(batch_of(records, 1 + chunk % 2, chunk / 2, (chunk / 2 + 1) * records.size(), clock), false);
      writer.seal(chunk % 3 == 2);
      made.record_chunks.push_back(50 + chunk);
    }
    if (finished) {
      EXPECT_TRUE(writer.finish(777));
    }
  }
  made.bytes = testing::read_file(options.path);
  return made;
}

std::unique_ptr<FileReader> read(const std::vector<uint8_t> &bytes) {
  Result<std::unique_ptr<FileReader>> reader = FileReader::open(memory_source(bytes));
  return reader ? std::move(*reader) : nullptr;
}

uint64_t damaged_bytes(const FileReader &reader) {
  uint64_t bytes = 0;
  for (const Damage &damage : reader.damages()) bytes += damage.bytes;
  return bytes;
}

// Every record chunk that was found decodes; the number of records in them.
uint64_t decode_all(FileReader &reader) {
  uint64_t records = 0;
  RecordDecoder decoder;
  BatchTable table;
  for (const FoundChunk &chunk : reader.chunks()) {
    if (chunk.header.type != static_cast<uint32_t>(ChunkType::kRecords)) continue;
    std::span<const uint8_t> encoded;
    Records rows(chunk.header.record_bytes);
    EXPECT_TRUE(reader.read_batches(chunk, table, encoded));
    EXPECT_TRUE(chunk.header.codec == static_cast<uint32_t>(Codec::kColumns)
                    ? decoder.decode_columns(encoded, SpaceMap(), rows, chunk.header.record_count)
                    : RecordDecoder::decode_rows(encoded, SpaceMap(), rows, chunk.header.record_count));
    records += chunk.header.record_count;
  }
  return records;
}

TEST(File, AFinishedFileReadsBack) {
  const Made made = make_file(7, true);
  const auto reader = read(made.bytes);
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE(reader->complete());
  EXPECT_EQ(reader->header().process, 4711u);
  EXPECT_EQ(reader->texts().host, "host");
  EXPECT_EQ(reader->texts().program, "/bin/program");
  EXPECT_EQ(reader->texts().command, "program --flag");
  EXPECT_EQ(reader->texts().boot, "boot");
  EXPECT_EQ(reader->stop_ns(), 777);
  EXPECT_EQ(reader->records(), 50u + 51 + 52 + 53 + 54 + 55 + 56);
  EXPECT_EQ(decode_all(*reader), reader->records());
  EXPECT_TRUE(reader->damages().empty());
  ASSERT_EQ(reader->ledger().size(), 1u);
  EXPECT_EQ(reader->ledger()[0].records, 5u);
}

// A process can be killed between any two bytes: what was sealed before is read, the rest is counted to the byte.
TEST(File, CutAtEveryByteAllSealedChunksReadBack) {
  const Made made = make_file(5, true);
  const auto whole = read(made.bytes);
  ASSERT_NE(whole, nullptr);
  for (size_t length = 0; length < made.bytes.size(); ++length) {
    const std::vector<uint8_t> cut(made.bytes.begin(), made.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const auto reader = read(cut);
    if (length < whole->header().header_bytes) {
      ASSERT_EQ(reader, nullptr) << length;
      continue;
    }
    ASSERT_NE(reader, nullptr) << length;
    uint64_t sealed = 0;
    uint64_t sealed_end = whole->header().header_bytes;
    bool index_sealed = false;
    for (const FoundChunk &chunk : whole->chunks()) {
      const uint64_t end = chunk.offset + sizeof(ChunkHeader) + chunk.header.payload_bytes;
      if (end > length) break;
      sealed_end = std::min<uint64_t>(padded(end), length);
      if (chunk.header.type == static_cast<uint32_t>(ChunkType::kRecords)) sealed += chunk.header.record_count;
      index_sealed = index_sealed || chunk.header.type == static_cast<uint32_t>(ChunkType::kIndex);
    }
    ASSERT_EQ(reader->records(), sealed) << length;
    ASSERT_EQ(decode_all(*reader), sealed) << length;
    ASSERT_EQ(damaged_bytes(*reader), length - sealed_end) << length;
    ASSERT_EQ(reader->complete(), index_sealed) << length;
  }
}

// One wrong byte costs at most the chunk that it is in; the index says how many records that were.
TEST(File, AnyFlippedByteCostsOneChunkAtMost) {
  const Made made = make_file(5, true);
  const auto whole = read(made.bytes);
  ASSERT_NE(whole, nullptr);
  for (size_t at = 0; at < made.bytes.size(); ++at) {
    std::vector<uint8_t> damaged = made.bytes;
    damaged[at] ^= static_cast<uint8_t>(1u << at % 8);
    const auto reader = read(damaged);
    if (at < whole->header().header_bytes) {
      ASSERT_EQ(reader, nullptr) << at;
      continue;
    }
    ASSERT_NE(reader, nullptr) << at;
    uint64_t hit = 0;
    bool padding = false;
    uint64_t hit_bytes = sizeof(Trailer);
    for (const FoundChunk &chunk : whole->chunks()) {
      const uint64_t end = chunk.offset + sizeof(ChunkHeader) + padded(chunk.header.payload_bytes);
      if (at < chunk.offset || at >= end) continue;
      if (chunk.header.type == static_cast<uint32_t>(ChunkType::kRecords)) hit = chunk.header.record_count;
      padding = at >= chunk.offset + sizeof(ChunkHeader) + chunk.header.payload_bytes;
      hit_bytes = end - chunk.offset;
    }
    if (padding) {
      ASSERT_EQ(reader->records(), whole->records()) << at;
      continue;
    }
    ASSERT_TRUE(reader->complete()) << at;
    ASSERT_EQ(reader->records(), whole->records() - hit) << at;
    ASSERT_EQ(reader->damages().size(), 1u) << at;
    ASSERT_EQ(reader->damages()[0].bytes, hit_bytes) << at;
    // Where the index itself was hit, the header of the lost chunk still knows.
    ASSERT_EQ(reader->damages()[0].records, hit) << at;
    ASSERT_EQ(decode_all(*reader), reader->records()) << at;
  }
}

TEST(File, BytesLostInTheMiddleCostOnlyTheChunksTheyTouch) {
  const Made made = make_file(12, true);
  const auto whole = read(made.bytes);
  std::mt19937_64 random(5);
  for (uint64_t one = 0; one < testing::cases(); ++one) {
    std::vector<uint8_t> damaged = made.bytes;
    const size_t first = whole->header().header_bytes + random() % (damaged.size() - whole->header().header_bytes);
    const size_t count = std::min<size_t>(1 + random() % 3000, damaged.size() - first);
    const size_t last = first + count;
    const auto begin = damaged.begin() + static_cast<std::ptrdiff_t>(first);
    damaged.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
    const auto reader = read(damaged);
    ASSERT_NE(reader, nullptr);
    uint64_t untouched = 0;
    for (const FoundChunk &chunk : whole->chunks()) {
      const uint64_t end = chunk.offset + sizeof(ChunkHeader) + chunk.header.payload_bytes;
      const bool touched = first < end && last > chunk.offset;
      if (!touched && chunk.header.type == static_cast<uint32_t>(ChunkType::kRecords)) {
        untouched += chunk.header.record_count;
      }
    }
    // More only where what moved up into the gap is what was there.
    ASSERT_GE(reader->records(), untouched) << "without " << count << " bytes from " << first;
    ASSERT_LE(reader->records(), whole->records());
    ASSERT_EQ(decode_all(*reader), reader->records());
  }
}

TEST(File, AnUnfinishedFileIsNotComplete) {
  const Made made = make_file(3, false);
  const auto reader = read(made.bytes);
  ASSERT_NE(reader, nullptr);
  EXPECT_FALSE(reader->complete());
  EXPECT_EQ(reader->records(), 50u + 51 + 52);
  EXPECT_TRUE(reader->damages().empty());
}

TEST(File, OtherFilesAreRefusedWithTheReason) {
  const auto reason = [](const std::vector<uint8_t> &bytes) {
    Result<std::unique_ptr<FileReader>> reader = FileReader::open(memory_source(bytes));
    return reader ? Error{SONDE_OK, ""} : reader.error();
  };
  EXPECT_EQ(reason({}).code, SONDE_E_CORRUPT);
  EXPECT_EQ(reason(std::vector<uint8_t>(4096, 0)).code, SONDE_E_CORRUPT);
  std::vector<uint8_t> later = make_file(1, true).bytes;
  later[8] = 99;
  const Error error = reason(later);
  EXPECT_EQ(error.code, SONDE_E_TOO_OLD);
  EXPECT_NE(error.text.find("99"), std::string::npos) << error.text;
}

TEST(File, AChunkOfAnUnknownTypeIsSkipped) {
  testing::install_services();
  const Folder folder;
  FileWriter file;
  BlockWriter blocks(3);
  ASSERT_TRUE(file.create(folder.file("a.sonde"), FileStart{}, false));
  const Bytes inside = {1, 2, 3};
  ASSERT_TRUE(file.write_entries(static_cast<ChunkType>(900), inside, 1, blocks));
  ASSERT_TRUE(file.finish(1, blocks));
  const std::vector<uint8_t> bytes = testing::read_file(folder.file("a.sonde"));
  const auto reader = read(bytes);
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE(reader->complete());
  EXPECT_TRUE(reader->damages().empty());
}

// Batches that are larger than a chunk are cut between records; positions and sequence numbers stay right.
TEST(File, ABatchLargerThanAChunkIsSplitBetweenRecords) {
  testing::install_services();
  const Folder folder;
  ChunkWriterOptions options;
  options.path = folder.file("a.sonde");
  options.chunk_bytes = kMinChunkRecordBytes;
  ChunkWriterHooks hooks;
  hooks.ledger = [] { return std::vector<sonde_loss_t>(); };
  hooks.lose = [](uint64_t, uint64_t, uint64_t) { FAIL(); };
  hooks.fail = [](const Error &error) { FAIL() << error.text; };
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.multiplier = 1;
  const Records records = testing::small_records(10000);
  ChunkWriter writer(options, hooks);
  sonde_batch_t batch = batch_of(records, 1, 4, records.size() + 320, clock);
  batch.lost_ring = 10;
  batch.watermark = 55;
  writer.add(batch, false);
  batch = batch_of(records, 1, 7, 2 * records.size() + 320, clock);  // two were lost to the recording
  writer.add(batch, false);
  ASSERT_TRUE(writer.finish(1));
  const std::vector<uint8_t> bytes = testing::read_file(options.path);
  const auto reader = read(bytes);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->records(), 20000u);
  BatchTable table;
  std::span<const uint8_t> encoded;
  uint64_t position = 320;
  uint64_t lost = 0;
  uint64_t skipped = 0;
  uint64_t next = 0;
  for (const FoundChunk &chunk : reader->chunks()) {
    if (chunk.header.type != static_cast<uint32_t>(ChunkType::kRecords)) continue;
    ASSERT_TRUE(reader->read_batches(chunk, table, encoded));
    for (const StoredBatch &stored : table.batches) {
      position += stored.bytes;
      EXPECT_EQ(stored.position, position);
      lost += stored.lost_ring;
      skipped += stored.sequence - next;
      next = stored.sequence + 1;
    }
  }
  EXPECT_EQ(position, 2 * records.size() + 320);
  EXPECT_EQ(lost, 10u);
  EXPECT_EQ(skipped, 4u + 2) << "batches before the first, and between the two";
}

}  // namespace
}  // namespace sonde::store
