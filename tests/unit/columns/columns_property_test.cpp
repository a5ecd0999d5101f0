// Random batches of random records, read by the service and by a reader that takes one record and one field at a time.
#include <gtest/gtest.h>
#include <sonde/capture.h>

#include <map>
#include <random>

#include "batches.h"

namespace sonde::test {
namespace {

struct NaiveField {
  std::string name;
  uint32_t offset;
  uint32_t width;
  uint32_t kind;
};

struct NaiveType {
  std::string space;
  std::string name;
  uint32_t space_number;
  uint32_t number;
  uint32_t bytes;
  uint32_t end_offset = 0;
  std::vector<NaiveField> fields;
};

std::vector<NaiveType> schema_types() {
  columns();
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  std::vector<NaiveType> types;
  for (const char *space : {"sonde.device", "sonde.memory", "sonde.framework", "sonde.host"}) {
    uint32_t number = 0;
    EXPECT_EQ(capture.find_space(space, &number), SONDE_OK);
    const sonde_schema_t *schema = nullptr;
    EXPECT_EQ(capture.schema(number, &schema), SONDE_OK);
    for (uint32_t index = 0; index < schema->type_count; ++index) {
      const auto &type = *reinterpret_cast<const sonde_record_type_t *>(
          reinterpret_cast<const uint8_t *>(schema->types) + index * schema->type_stride);
      NaiveType naive = {space, type.name, number, type.type, type.fixed_bytes, 0, {}};
      for (uint32_t field = 0; field < type.field_count; ++field) {
        const auto &description = *reinterpret_cast<const sonde_field_t *>(
            reinterpret_cast<const uint8_t *>(type.fields) + field * type.field_stride);
        if (description.kind >= SONDE_KIND_SPAN_UINT) continue;
        if (std::string(description.name) == "end") naive.end_offset = description.offset;
        naive.fields.push_back({description.name, description.offset, description.width, description.kind});
      }
      types.push_back(naive);
    }
  }
  return types;
}

using Wide = sonde_wide_t;

struct NaiveTotals {
  uint64_t count = 0;
  Wide sum = 0;
  Wide min = 0;
  Wide max = 0;
  double float_sum = 0;
  double float_min = 0;
  double float_max = 0;

  void add(Wide value) {
    sum += value;
    min = count == 0 || value < min ? value : min;
    max = count == 0 || value > max ? value : max;
    ++count;
  }
  void add(double value) {
    float_sum += value;
    float_min = count == 0 || value < float_min ? value : float_min;
    float_max = count == 0 || value > float_max ? value : float_max;
    ++count;
  }
};

Wide naive_integer(const uint8_t *record, const NaiveField &field) {
  uint64_t bits = 0;
  std::memcpy(&bits, record + field.offset, field.width);
  if (field.kind != SONDE_KIND_INT) return static_cast<Wide>(bits);
  const uint32_t unused = 64 - 8 * field.width;
  return static_cast<Wide>(static_cast<int64_t>(bits << unused) >> unused);
}

double naive_float(const uint8_t *record, const NaiveField &field) {
  if (field.width == 4) {
    float value = 0;
    std::memcpy(&value, record + field.offset, 4);
    return value;
  }
  double value = 0;
  std::memcpy(&value, record + field.offset, 8);
  return value;
}

// ns of a record's interval, by the definition in delivery.h and columns.h.
void naive_interval(const sonde_batch_t &batch, const uint8_t *record, const NaiveType &type, Wide &begin_ns,
                    Wide &end_ns, Wide &duration) {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::memcpy(&begin, record + 8, 8);
  std::memcpy(&end, record + type.end_offset, 8);
  for (uint64_t index = 0; index < batch.repair_count; ++index) {
    if (batch.data + batch.repairs[index].offset != record) continue;
    begin = batch.repairs[index].begin;
    end = batch.repairs[index].end;
  }
  if (end < begin) end = begin;
  begin_ns = sonde_clock_ns(batch.clock, begin);
  end_ns = sonde_clock_ns(batch.clock, end);
  duration = sonde_clock_duration_ns(batch.clock, begin, end);
}

Records random_batch(std::mt19937_64 &random, const std::vector<NaiveType> &types) {
  Records records(random() % 4 == 0 ? 1 : 1 + random() % 1000000, random() % 4 == 0 ? 0 : 1 + random() % 20);
  const uint64_t count = random() % 200;
  size_t type = random() % types.size();
  for (uint64_t index = 0; index < count; ++index) {
    if (random() % 3 == 0) type = random() % types.size();  // runs of one shape, as in real batches
    const NaiveType &chosen = types[type];
    uint64_t fixed = chosen.bytes / 8;
    if (random() % 8 == 0) fixed = 2 + random() % (fixed - 1);       // an older writer
    uint64_t size = fixed + (random() % 8 == 0 ? random() % 5 : 0);  // variable data
    std::vector<uint64_t> words(size);
    for (uint64_t &word : words) {
      word = random();
      if (random() % 3 == 0) word &= 0xffff;
      if (random() % 9 == 0) word = 0;
      if (random() % 30 == 0) word = UINT64_MAX;
    }
    auto *const header = reinterpret_cast<sonde_record_t *>(words.data());
    header->size8 = static_cast<uint16_t>(size);
    header->fixed8 = static_cast<uint16_t>(fixed);
    header->space = static_cast<uint16_t>(chosen.space_number);
    header->type = static_cast<uint16_t>(chosen.number);
    if (random() % 4 != 0) {
      // A plausible interval, so that not everything is repaired.
      header->time = 1000 + random() % 1000000;
      if (chosen.end_offset != 0 && size > 2) words[chosen.end_offset / 8] = header->time + random() % 100000;
    }
    // Not-a-number compares with nothing; reals are small integers, whose sums are exact in any order.
    for (const NaiveField &field : chosen.fields) {
      if (field.kind != SONDE_KIND_FLOAT || field.offset + field.width > fixed * 8) continue;
      const double real = static_cast<double>(random() % 1000);
      const auto narrow = static_cast<float>(real);
      auto *const place = reinterpret_cast<uint8_t *>(words.data()) + field.offset;
      std::memcpy(place, field.width == 8 ? static_cast<const void *>(&real) : &narrow, field.width);
    }
    records.add_raw(words);
  }
  return records;
}

void check(const sonde_reduction_t &got, const NaiveTotals &naive, bool floating, bool is_signed,
           const std::string &where) {
  ASSERT_EQ(got.count, naive.count) << where;
  if (naive.count == 0) return;
  if (floating) {
    EXPECT_EQ(got.exact, 0u) << where;
    EXPECT_EQ(got.sum, naive.float_sum) << where;
    EXPECT_EQ(got.min, naive.float_min) << where;
    EXPECT_EQ(got.max, naive.float_max) << where;
    return;
  }
  const Wide least = is_signed ? static_cast<Wide>(INT64_MIN) : 0;
  const Wide greatest = is_signed ? static_cast<Wide>(INT64_MAX) : static_cast<Wide>(UINT64_MAX);
  const bool fits = naive.sum >= least && naive.sum <= greatest;
  EXPECT_EQ(got.exact, fits ? 1u : 0u) << where;
  EXPECT_EQ(got.unsigned_values, is_signed ? 0u : 1u) << where;
  if (fits) {
    EXPECT_EQ(static_cast<uint64_t>(got.sum_i64), static_cast<uint64_t>(naive.sum)) << where;
  }
  EXPECT_EQ(static_cast<uint64_t>(got.min_i64), static_cast<uint64_t>(naive.min)) << where;
  EXPECT_EQ(static_cast<uint64_t>(got.max_i64), static_cast<uint64_t>(naive.max)) << where;
  EXPECT_DOUBLE_EQ(got.sum, static_cast<double>(naive.sum)) << where;
}

uint64_t cases() {
  const char *const wanted = std::getenv("SONDE_CASES");
  return (wanted == nullptr ? 2000 : std::strtoull(wanted, nullptr, 10)) / 20 + 1;
}

template <typename Visit>
void each_record(const sonde_batch_t &batch, const NaiveType &type, uint32_t reach, Visit &&visit) {
  for (const sonde_record_t *record = sonde_batch_next(&batch, nullptr); record != nullptr;
       record = sonde_batch_next(&batch, record)) {
    if (record->space == type.space_number && record->type == type.number && record->fixed8 * 8u >= reach) {
      visit(reinterpret_cast<const uint8_t *>(record));
    }
  }
}

TEST(ColumnsProperty, EveryFieldOfEveryType) {
  const std::vector<NaiveType> types = schema_types();
  ASSERT_GT(types.size(), 15u);
  std::mt19937_64 random(1);
  for (uint64_t round = 0; round < cases(); ++round) {
    Records records = random_batch(random, types);
    const sonde_batch_t &batch = records.batch();
    for (const NaiveType &type : types) {
      for (const NaiveField &field : type.fields) {
        if (field.kind == SONDE_KIND_STRING || field.kind == SONDE_KIND_ID) continue;
        NaiveTotals naive;
        const bool floating = field.kind == SONDE_KIND_FLOAT;
        each_record(batch, type, field.offset + field.width, [&](const uint8_t *record) {
          if (floating) {
            naive.add(naive_float(record, field));
          } else {
            naive.add(naive_integer(record, field));
          }
        });
        const sonde_column_t handle = column(type.name.c_str(), field.name.c_str(), type.space.c_str());
        sonde_reduction_t reduction = empty_reduction();
        ASSERT_EQ(columns().reduce(&batch, &handle, &reduction), SONDE_OK) << last_error();
        check(reduction, naive, floating, field.kind == SONDE_KIND_INT, type.name + "." + field.name);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ColumnsProperty, IntervalsOfEveryType) {
  const std::vector<NaiveType> types = schema_types();
  std::mt19937_64 random(2);
  uint64_t repaired = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    Records records = random_batch(random, types);
    const sonde_batch_t &batch = records.batch();
    repaired += batch.repair_count;
    for (const NaiveType &type : types) {
      if (type.end_offset == 0) continue;
      NaiveTotals begins;
      NaiveTotals ends;
      NaiveTotals durations;
      std::vector<int64_t> expected;
      each_record(batch, type, type.end_offset + 8, [&](const uint8_t *record) {
        Wide begin = 0;
        Wide end = 0;
        Wide duration = 0;
        naive_interval(batch, record, type, begin, end, duration);
        begins.add(begin);
        ends.add(end);
        durations.add(duration);
        expected.push_back(static_cast<int64_t>(duration));
      });
      const sonde_column_t duration = column(type.name.c_str(), "duration", type.space.c_str());
      sonde_reduction_t reduction = empty_reduction();
      ASSERT_EQ(columns().reduce(&batch, &duration, &reduction), SONDE_OK);
      check(reduction, durations, false, true, type.name + ".duration");
      const sonde_column_t end = column(type.name.c_str(), "end_ns", type.space.c_str());
      reduction = empty_reduction();
      ASSERT_EQ(columns().reduce(&batch, &end, &reduction), SONDE_OK);
      check(reduction, ends, false, true, type.name + ".end_ns");
      std::vector<int64_t> gathered(expected.size() + 1);
      uint64_t count = 0;
      ASSERT_EQ(columns().gather_i64(&batch, &duration, gathered.data(), gathered.size(), &count), SONDE_OK);
      gathered.resize(count);
      EXPECT_EQ(gathered, expected) << type.name;
    }
  }
  EXPECT_GT(repaired, cases() / 20) << "the batches hold stamps to repair";
}

TEST(ColumnsProperty, GroupsOfRandomKeys) {
  const std::vector<NaiveType> types = schema_types();
  std::mt19937_64 random(3);
  for (uint64_t round = 0; round < cases(); ++round) {
    const NaiveType &type = types[random() % types.size()];
    std::vector<const NaiveField *> keys;
    std::vector<const NaiveField *> values;
    for (const NaiveField &field : type.fields) {
      const bool identity = field.kind == SONDE_KIND_STRING || field.kind == SONDE_KIND_ID;
      if (field.kind != SONDE_KIND_FLOAT) keys.push_back(&field);
      if (!identity && field.kind != SONDE_KIND_FLOAT) values.push_back(&field);
    }
    if (keys.empty() || values.empty()) continue;
    const NaiveField &key = *keys[random() % keys.size()];
    const NaiveField &value = *values[random() % values.size()];
    const sonde_column_t key_column = column(type.name.c_str(), key.name.c_str(), type.space.c_str());
    const sonde_column_t value_column = column(type.name.c_str(), value.name.c_str(), type.space.c_str());
    sonde_groups_t *groups = nullptr;
    ASSERT_EQ(columns().group_open(&key_column, &value_column, &groups), SONDE_OK) << last_error();
    std::map<std::pair<uint32_t, uint64_t>, NaiveTotals> naive;
    const bool scoped = key.kind == SONDE_KIND_STRING || key.kind == SONDE_KIND_ID;
    for (uint32_t part = 0; part < 3; ++part) {
      Records records = random_batch(random, types);
      sonde_batch_t &batch = records.batch();
      batch.source = part;
      const uint32_t reach = std::max(key.offset + key.width, value.offset + value.width);
      each_record(batch, type, reach, [&](const uint8_t *record) {
        const auto bits = static_cast<uint64_t>(naive_integer(record, key));
        naive[{scoped ? part : 0, bits}].add(naive_integer(record, value));
      });
      ASSERT_EQ(columns().group_add(groups, &batch), SONDE_OK);
    }
    const sonde_group_row_t *rows = nullptr;
    uint64_t count = 0;
    ASSERT_EQ(columns().group_rows(groups, &rows, &count), SONDE_OK);
    ASSERT_EQ(count, naive.size());
    for (uint64_t index = 0; index < count; ++index) {
      const auto found = naive.find({rows[index].source, rows[index].key});
      ASSERT_NE(found, naive.end());
      check(rows[index].value, found->second, false, value.kind == SONDE_KIND_INT, type.name + "." + value.name);
      if (index != 0) {
        const bool ascending = rows[index - 1].source != rows[index].source
                                   ? rows[index - 1].source < rows[index].source
                               : key.kind == SONDE_KIND_INT
                                   ? static_cast<int64_t>(rows[index - 1].key) < static_cast<int64_t>(rows[index].key)
                                   : rows[index - 1].key < rows[index].key;
        EXPECT_TRUE(ascending);
      }
    }
    columns().group_close(groups);
  }
}

}  // namespace
}  // namespace sonde::test
