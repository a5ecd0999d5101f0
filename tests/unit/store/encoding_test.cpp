// Records survive their encoding, whatever they hold, and damaged encodings are refused.
#include <gtest/gtest.h>

#include <tuple>

#include "store/batch_table.h"
#include "store/entries.h"
#include "store/record_decoder.h"
#include "store/record_encoder.h"
#include "streams.h"

namespace sonde::store {
namespace {

using testing::Records;

Bytes encode(const Records &records) {
  RecordEncoder encoder(3);
  Bytes out;
  encoder.encode(records, out);
  return out;
}

bool decode(const Bytes &encoded, Records &rows, uint64_t count, const SpaceMap &spaces = SpaceMap()) {
  RecordDecoder decoder;
  return decoder.decode_columns(encoded, spaces, rows, count);
}

TEST(Encoding, KernelsOfTrainingRoundTrip) {
  testing::TrainingStream stream;
  const Records records = stream.take(8000);
  Records rows(records.size());
  ASSERT_TRUE(decode(encode(records), rows, 8000));
  EXPECT_EQ(rows, records);
}

// The bar of the capture file: 16 bytes a kernel of 120.
TEST(Encoding, KernelsOfTrainingTakeLessThanSixteenBytes) {
  testing::TrainingStream stream;
  EXPECT_LE(encode(stream.take(8738)).size(), 8738u * 16);
  EXPECT_LE(encode(stream.take(300)).size(), 300u * 32) << "a chunk sealed early repeats little";
}

TEST(Encoding, SmallRecordsRoundTrip) {
  const Records records = testing::small_records(5000);
  Records rows(records.size());
  ASSERT_TRUE(decode(encode(records), rows, 5000));
  EXPECT_EQ(rows, records);
}

TEST(Encoding, NoRecordsRoundTrip) {
  Records rows;
  EXPECT_TRUE(decode(encode({}), rows, 0));
  EXPECT_TRUE(RecordDecoder::decode_rows({}, SpaceMap(), rows, 0));
  EXPECT_FALSE(RecordDecoder::decode_rows({}, SpaceMap(), rows, 1));
}

TEST(Encoding, TheLargestRecordRoundTrips) {
  Records records(SONDE_RECORD_MAX_BYTES, 0x5a);
  const uint16_t header[4] = {65535, 2, 70, 3};
  std::memcpy(records.data(), header, sizeof header);
  Records rows(records.size());
  ASSERT_TRUE(decode(encode(records), rows, 1));
  EXPECT_EQ(rows, records);
}

TEST(Encoding, RandomRecordsRoundTrip) {
  std::mt19937_64 random(20);
  RecordEncoder encoder(3);
  RecordDecoder decoder;
  for (uint64_t one = 0; one < testing::cases(); ++one) {
    const Records records = testing::random_records(random);
    Bytes encoded;
    encoder.encode(records, encoded);
    Records rows(records.size(), 0xee);
    ASSERT_TRUE(decoder.decode_columns(encoded, SpaceMap(), rows, testing::count_records(records))) << "case " << one;
    ASSERT_EQ(rows, records) << "case " << one;
  }
}

TEST(Encoding, SpacesAreRenumbered) {
  Records records = testing::small_records(100);
  SpaceMap spaces;
  spaces.set(64, 99);
  Records rows(records.size());
  ASSERT_TRUE(decode(encode(records), rows, 100, spaces));
  for (size_t at = 0; at < records.size(); at += sizeof(testing::SmallRecord)) {
    reinterpret_cast<sonde_record_t *>(records.data() + at)->space = 99;
  }
  EXPECT_EQ(rows, records);
  Records plain(records.size());
  ASSERT_TRUE(RecordDecoder::decode_rows(testing::small_records(100), spaces, plain, 100));
  EXPECT_EQ(plain, records);
}

// Any outcome but a crash or a read outside is right: the checksums find the damage first.
TEST(Encoding, DamagedBytesNeverCrashTheDecoder) {
  std::mt19937_64 random(4);
  RecordDecoder decoder;
  for (uint64_t one = 0; one < testing::cases(); ++one) {
    const Records records = testing::random_records(random);
    Bytes encoded = encode(records);
    for (int change = 0; change < 20; ++change) {
      Bytes damaged = encoded;
      const uint64_t flips = 1 + random() % 4;
      for (uint64_t flip = 0; flip < flips; ++flip) damaged[random() % damaged.size()] ^= 1u << random() % 8;
      if (random() % 4 == 0) damaged.resize(random() % damaged.size());
      Records rows(records.size());
      decoder.decode_columns(damaged, SpaceMap(), rows, testing::count_records(records));
    }
  }
}

TEST(Encoding, EveryTruncationIsRefused) {
  testing::TrainingStream stream;
  Records records = stream.take(40);
  const Records small = testing::small_records(40);
  records.insert(records.end(), small.begin(), small.end());
  const Bytes encoded = encode(records);
  Records rows(records.size());
  for (size_t length = 0; length < encoded.size(); ++length) {
    ASSERT_FALSE(decode(Bytes(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(length)), rows, 80))
        << "of " << length << " bytes";
  }
}

TEST(Encoding, RowsWithImpossibleSizesAreRefused) {
  Records records = testing::small_records(3);
  Records rows(records.size());
  EXPECT_TRUE(RecordDecoder::decode_rows(records, SpaceMap(), rows, 3));
  EXPECT_FALSE(RecordDecoder::decode_rows(records, SpaceMap(), rows, 2)) << "the count is another";
  records[0] = 1;
  EXPECT_FALSE(RecordDecoder::decode_rows(records, SpaceMap(), rows, 3)) << "shorter than its header";
  records[0] = 200;
  EXPECT_FALSE(RecordDecoder::decode_rows(records, SpaceMap(), rows, 3)) << "longer than what is there";
}

TEST(BatchTable, RoundTrips) {
  BatchTable table;
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.id = 16;
  clock.base_raw = 1000;
  clock.base_ns = -5;
  clock.multiplier = 3;
  clock.shift = 1;
  clock.error_ppb = 7;
  EXPECT_EQ(table.clock_index(clock), 0u);
  clock.base_raw = 2000;
  EXPECT_EQ(table.clock_index(clock), 1u);
  EXPECT_EQ(table.clock_index(clock), 1u) << "a line that is there is used again";
  StoredBatch batch;
  batch.stream = 5;
  batch.sequence = 9;
  batch.position = 4096;
  batch.bytes = 64;
  batch.count = 4;
  batch.first_time = 100;
  batch.last_time = UINT64_MAX - 1;
  batch.watermark = 50;
  table.batches.push_back(batch);
  batch.sequence = 12;
  batch.position = 5000;
  batch.bytes = 32;
  batch.count = 2;
  batch.first_time = 0;
  batch.last_time = 0;
  batch.watermark = 0;
  batch.lost_ring = 3;
  batch.lost_overwritten = UINT64_MAX;
  batch.clock = 1;
  table.batches.push_back(batch);

  Bytes encoded;
  write_batch_table(table, encoded);
  BatchTable read;
  ASSERT_TRUE(read_batch_table(encoded, 96, 6, read));
  ASSERT_EQ(read.batches.size(), 2u);
  ASSERT_EQ(read.clocks.size(), 2u);
  const auto clock_fields = [](const sonde_clock_t &c) {
    return std::make_tuple(c.struct_size, c.id, c.base_raw, c.base_ns, c.multiplier, c.shift, c.error_ppb);
  };
  const auto batch_fields = [](const StoredBatch &b) {
    return std::make_tuple(b.stream, b.sequence, b.position, b.bytes, b.count, b.first_time, b.last_time, b.watermark,
                           b.lost_ring, b.lost_overwritten, b.clock);
  };
  for (size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(clock_fields(read.clocks[at]), clock_fields(table.clocks[at])) << at;
    EXPECT_EQ(batch_fields(read.batches[at]), batch_fields(table.batches[at])) << at;
  }
  EXPECT_FALSE(read_batch_table(encoded, 88, 6, read)) << "batches of more bytes than the chunk has";
  EXPECT_FALSE(read_batch_table(encoded, 96, 5, read)) << "of more records";
  EXPECT_FALSE(read_batch_table(encoded, 104, 6, read)) << "of fewer bytes";
  for (size_t length = 0; length < encoded.size(); ++length) {
    EXPECT_FALSE(read_batch_table(std::span(encoded).first(length), 96, 6, read)) << length;
  }
}

// Zeros and sentinels among the stamps are data; they must not move the chunk in time (faults 1 and 28).
TEST(BatchTable, TimesThatCannotBeRightAreNotItsRange) {
  BatchTable table;
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.id = SONDE_CLOCK_UNIX_NS;
  clock.multiplier = 1;
  table.clock_index(clock);
  const int64_t start = 1'760'000'000'000'000'000;
  StoredBatch batch;
  batch.first_time = 0;
  batch.last_time = static_cast<uint64_t>(start) + 500;
  table.batches.push_back(batch);
  batch.first_time = static_cast<uint64_t>(start) + 300;
  batch.last_time = uint64_t{1} << 63;
  table.batches.push_back(batch);
  int64_t first = 0;
  int64_t last = 0;
  ASSERT_TRUE(table.time_range(start, first, last));
  EXPECT_EQ(first, start + 300);
  EXPECT_EQ(last, start + 500);
  table.batches = {batch};
  table.batches[0].first_time = UINT64_MAX;
  EXPECT_FALSE(table.time_range(start, first, last));
  // A clock of a damaged file whose sum leaves the range of the type.
  table.clocks[0].base_ns = INT64_MAX;
  table.time_range(start, first, last);
}

TEST(Entries, ASchemaRoundTrips) {
  const sonde_field_t fields[] = {{"value", 16, 8, SONDE_KIND_UINT, 0, "bytes", ""},
                                  {"state", 24, 4, SONDE_KIND_ENUM, 0, "", "idle|busy"}};
  const sonde_record_type_t types[] = {{3, 32, "tick", "one tick", fields, 2, sizeof(sonde_field_t)},
                                       {9, 16, "mark", "", nullptr, 0, sizeof(sonde_field_t)}};
  const sonde_schema_t schema = {sizeof(sonde_schema_t),      2, "com.example.clock", "ticks of a clock", types,
                                 sizeof(sonde_record_type_t), 0};
  Bytes encoded;
  write_schema(77, schema, encoded);
  std::vector<StoredSchema> read;
  ASSERT_TRUE(read_schemas(encoded, 1, read));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].space, 77u);
  EXPECT_STREQ(read[0].schema().space, "com.example.clock");
  EXPECT_STREQ(read[0].schema().help, "ticks of a clock");
  ASSERT_EQ(read[0].schema().type_count, 2u);
  const sonde_record_type_t &tick = read[0].schema().types[0];
  EXPECT_EQ(tick.type, 3u);
  EXPECT_EQ(tick.fixed_bytes, 32u);
  EXPECT_STREQ(tick.name, "tick");
  EXPECT_STREQ(tick.help, "one tick");
  ASSERT_EQ(tick.field_count, 2u);
  EXPECT_STREQ(tick.fields[0].unit, "bytes");
  EXPECT_EQ(tick.fields[1].offset, 24u);
  EXPECT_EQ(tick.fields[1].width, 4u);
  EXPECT_EQ(tick.fields[1].kind, SONDE_KIND_ENUM);
  EXPECT_STREQ(tick.fields[1].names, "idle|busy");
  EXPECT_EQ(read[0].schema().types[1].field_count, 0u);
  for (size_t length = 0; length < encoded.size(); ++length) {
    EXPECT_FALSE(read_schemas(std::span(encoded).first(length), 1, read)) << length;
  }
}

TEST(Entries, AFieldOutsideItsRecordIsRefused) {
  const sonde_field_t field = {"value", 24, 8, SONDE_KIND_UINT, 0, "", ""};
  const sonde_record_type_t type = {1, 24, "tick", "", &field, 1, sizeof(sonde_field_t)};
  const sonde_schema_t schema = {sizeof(sonde_schema_t),      1, "com.example.clock", "", &type,
                                 sizeof(sonde_record_type_t), 0};
  Bytes encoded;
  write_schema(77, schema, encoded);
  std::vector<StoredSchema> read;
  EXPECT_FALSE(read_schemas(encoded, 1, read));
}

TEST(Entries, LossesAndIndexRoundTrip) {
  const std::vector<sonde_loss_t> rows = {{7, 3, 48, SONDE_LOSS_RING_FULL, 0, 0},
                                          {0, UINT64_MAX, UINT64_MAX, SONDE_LOSS_VENDOR, 0, 0}};
  Bytes encoded;
  write_losses(rows, encoded);
  std::vector<sonde_loss_t> read;
  ASSERT_TRUE(read_losses(encoded, 2, read));
  EXPECT_EQ(std::memcmp(read.data(), rows.data(), sizeof(sonde_loss_t) * 2), 0);

  Index index;
  index.stop_ns = 12345;
  index.entries = {{128, 64, 1, 0, 4, 0, 0}, {256, 1024, 3, 4096, 30, -100, 100}, {1280, 72, 3, 48, 3, -500, -500}};
  encoded.clear();
  write_index(index, encoded);
  Index read_back;
  ASSERT_TRUE(read_index(encoded, 3, read_back));
  EXPECT_EQ(read_back.stop_ns, 12345);
  ASSERT_EQ(read_back.entries.size(), 3u);
  for (size_t at = 0; at < 3; ++at) {
    const IndexEntry &is = read_back.entries[at];
    const IndexEntry &was = index.entries[at];
    EXPECT_EQ(std::tie(is.offset, is.bytes, is.type, is.record_bytes, is.record_count, is.first_ns, is.last_ns),
              std::tie(was.offset, was.bytes, was.type, was.record_bytes, was.record_count, was.first_ns, was.last_ns))
        << at;
  }
}

TEST(Bytes, VarintsRoundTripAndOverlongOnesAreRefused) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 63, UINT64_MAX}) {
    Bytes encoded;
    put_varint(encoded, value);
    ByteReader in(encoded);
    EXPECT_EQ(in.varint(), value);
    EXPECT_TRUE(in.good());
    EXPECT_TRUE(in.at_end());
  }
  const Bytes overlong(11, 0x80);
  ByteReader in(overlong);
  in.varint();
  EXPECT_FALSE(in.good());
}

}  // namespace
}  // namespace sonde::store
