// The walk over a batch is specialised by how a value is read. Records of one shape (equal first header word) mostly
// follow one another, so the inner loop steps by a fixed stride and compares that word: no load decides where the
// next record lies. Benchmark: tests/bench/lua_columns.cpp.
#include "core/columns.h"

#include <sonde/capture.h>
#include <sonde/schema.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/services.h"

namespace sonde::core {
namespace {

using Wide = sonde_wide_t;  // 128 bits, signed

// Values of sonde_column_t.derived.
constexpr uint32_t kField = 0;
constexpr uint32_t kTimeNs = 1;
constexpr uint32_t kEndNs = 2;
constexpr uint32_t kDuration = 3;
constexpr uint32_t kStreamId = 4;
constexpr uint32_t kSourceId = 5;

struct DerivedName {
  const char *name;
  uint32_t derived;
  bool needs_end;
};
constexpr DerivedName kDerivedNames[] = {
    {"time_ns", kTimeNs, false},     {"end_ns", kEndNs, true},        {"duration", kDuration, true},
    {"stream_id", kStreamId, false}, {"source_id", kSourceId, false},
};

template <typename Value>
Value read(const uint8_t *place) {
  Value value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

// ---- The walk ----

// First header word: size8, fixed8, space, type.
uint64_t header_word(const uint8_t *record) { return read<uint64_t>(record); }
uint64_t stride_of(uint64_t word) { return (word & 0xffff) * 8; }
uint64_t fixed_bytes_of(uint64_t word) { return ((word >> 16) & 0xffff) * 8; }

// Calls `run(first, stride, count)` for each run of equally shaped records of the column's type that carry it, in
// order. `stop` cuts runs at that address (a record begins there).
template <typename Run>
void walk_until(const sonde_column_t &column, const uint8_t *&at, const uint8_t *stop, Run &&run) {
  const uint64_t wanted = static_cast<uint64_t>(column.space) << 32 | static_cast<uint64_t>(column.type) << 48;
  constexpr uint64_t kTypeMask = 0xffffffff00000000;
  const uint64_t needed = column.offset + column.width;
  while (at < stop) {
    const uint64_t word = header_word(at);
    const uint64_t stride = stride_of(word);
    if ((word & kTypeMask) != wanted || fixed_bytes_of(word) < needed) {
      at += stride;
      continue;
    }
    const uint8_t *const first = at;
    do {
      at += stride;
    } while (at < stop && header_word(at) == word);
    run(first, stride, static_cast<uint64_t>(at - first) / stride);
  }
}

// Calls `run` as above for sound records and `repaired(record, repair)` for each record of the column's type that has
// a repair. `uses_time` is false for columns that repairs do not touch.
template <typename Run, typename Repaired>
void walk(const sonde_batch_t &batch, const sonde_column_t &column, bool uses_time, Run &&run, Repaired &&repaired) {
  const uint8_t *at = batch.data;
  const uint8_t *const end = batch.data + batch.bytes;
  if (uses_time) {
    for (uint64_t index = 0; index < batch.repair_count; ++index) {
      const sonde_repair_t &repair = batch.repairs[index];
      const uint8_t *const place = batch.data + repair.offset;
      if (place < at || place >= end) continue;  // two repairs of one record: the first counts
      walk_until(column, at, place, run);
      const uint64_t word = header_word(place);
      if (((word >> 32) & 0xffff) == column.space && word >> 48 == column.type &&
          fixed_bytes_of(word) >= column.offset + column.width) {
        repaired(place, repair);
      }
      at = place + stride_of(word);
    }
  }
  walk_until(column, at, end, run);
}

// ---- Reading values ----

// Each reader gives Value read(record) and, for time columns, Value repaired(repair).
template <typename Stored, typename Wider>
struct FieldReader {
  using Value = Wider;
  static constexpr bool kUsesTime = false;
  uint64_t offset;

  Value operator()(const uint8_t *record) const { return static_cast<Value>(read<Stored>(record + offset)); }
  Value repaired(const sonde_repair_t &) const { return 0; }
};

struct TimeReader {
  using Value = int64_t;
  static constexpr bool kUsesTime = true;
  sonde_clock_t clock;

  Value operator()(const uint8_t *record) const { return sonde_clock_ns(&clock, read<uint64_t>(record + 8)); }
  Value repaired(const sonde_repair_t &repair) const { return sonde_clock_ns(&clock, repair.begin); }
};

// An end of 0, or before the begin, that no repair covers: nothing is known of the length.
struct EndReader {
  using Value = int64_t;
  static constexpr bool kUsesTime = true;
  sonde_clock_t clock;
  uint64_t offset;

  Value operator()(const uint8_t *record) const {
    return sonde_clock_ns(&clock, std::max(read<uint64_t>(record + 8), read<uint64_t>(record + offset)));
  }
  Value repaired(const sonde_repair_t &repair) const { return sonde_clock_ns(&clock, repair.end); }
};

struct DurationReader {
  using Value = int64_t;
  static constexpr bool kUsesTime = true;
  sonde_clock_t clock;
  uint64_t offset;

  Value operator()(const uint8_t *record) const {
    const uint64_t begin = read<uint64_t>(record + 8);
    const uint64_t end = read<uint64_t>(record + offset);
    return end <= begin ? 0 : sonde_clock_duration_ns(&clock, begin, end);
  }
  Value repaired(const sonde_repair_t &repair) const {
    return repair.end <= repair.begin ? 0 : sonde_clock_duration_ns(&clock, repair.begin, repair.end);
  }
};

struct ConstantReader {
  using Value = uint64_t;
  static constexpr bool kUsesTime = false;
  uint64_t value;

  Value operator()(const uint8_t *) const { return value; }
  Value repaired(const sonde_repair_t &) const { return value; }
};

bool is_signed(const sonde_column_t &column) {
  return column.kind == SONDE_KIND_INT || column.derived == kTimeNs || column.derived == kEndNs ||
         column.derived == kDuration;
}

bool is_identity(const sonde_column_t &column) {
  return column.kind == SONDE_KIND_STRING || column.kind == SONDE_KIND_ID;
}

// Calls `body(reader)` with the reader of a column for one batch.
template <typename Body>
sonde_status with_reader(const sonde_batch_t &batch, const sonde_column_t &column, Body &&body) {
  switch (column.derived) {
    case kTimeNs:
      return body(TimeReader{*batch.clock});
    case kEndNs:
      return body(EndReader{*batch.clock, column.offset});
    case kDuration:
      return body(DurationReader{*batch.clock, column.offset});
    case kStreamId:
      return body(ConstantReader{batch.stream});
    case kSourceId:
      return body(ConstantReader{batch.source});
    default:
      break;
  }
  if (column.kind == SONDE_KIND_FLOAT) {
    if (column.width == 8) return body(FieldReader<double, double>{column.offset});
    return body(FieldReader<float, double>{column.offset});
  }
  if (column.kind == SONDE_KIND_INT) {
    switch (column.width) {
      case 1:
        return body(FieldReader<int8_t, int64_t>{column.offset});
      case 2:
        return body(FieldReader<int16_t, int64_t>{column.offset});
      case 4:
        return body(FieldReader<int32_t, int64_t>{column.offset});
      default:
        return body(FieldReader<int64_t, int64_t>{column.offset});
    }
  }
  switch (column.width) {
    case 1:
      return body(FieldReader<uint8_t, uint64_t>{column.offset});
    case 2:
      return body(FieldReader<uint16_t, uint64_t>{column.offset});
    case 4:
      return body(FieldReader<uint32_t, uint64_t>{column.offset});
    default:
      return body(FieldReader<uint64_t, uint64_t>{column.offset});
  }
}

// ---- Reductions ----

// Totals of one value type. Sums of integers are 128 bits wide: 2^64 records of any value fit.
template <typename Value>
struct Totals {
  using Sum = std::conditional_t<std::is_floating_point_v<Value>, double, Wide>;
  uint64_t count = 0;
  Sum sum = 0;
  Value min = std::numeric_limits<Value>::max();
  Value max = std::numeric_limits<Value>::lowest();

  void add(Value value) {
    ++count;
    sum += static_cast<Sum>(value);
    min = value < min ? value : min;
    max = value > max ? value : max;
  }
};

template <typename Reader>
Totals<typename Reader::Value> totals_of(const sonde_batch_t &batch, const sonde_column_t &column,
                                         const Reader &reader) {
  using Value = typename Reader::Value;
  Totals<Value> totals;
  walk(
      batch, column, Reader::kUsesTime,
      [&](const uint8_t *record, uint64_t stride, uint64_t count) {
        Totals<Value> run;
        for (uint64_t index = 0; index < count; ++index, record += stride) run.add(reader(record));
        totals.count += run.count;
        totals.sum += run.sum;
        totals.min = std::min(totals.min, run.min);
        totals.max = std::max(totals.max, run.max);
      },
      [&](const uint8_t *, const sonde_repair_t &repair) { totals.add(reader.repaired(repair)); });
  return totals;
}

// A sum that a reduction carries as the bits of int64_t or uint64_t.
template <typename Value>
bool fits(Wide sum) {
  return sum >= static_cast<Wide>(std::numeric_limits<Value>::min()) &&
         sum <= static_cast<Wide>(std::numeric_limits<Value>::max());
}

template <typename Value>
void merge(const Totals<Value> &totals, sonde_reduction_t &out) {
  const bool fresh = out.count == 0;
  if (fresh) {
    out.exact = std::is_integral_v<Value> ? 1 : 0;
    out.unsigned_values = std::is_unsigned_v<Value> ? 1 : 0;
  }
  if (totals.count == 0) return;
  out.count += totals.count;
  if constexpr (std::is_integral_v<Value>) {
    const Wide before = static_cast<Wide>(static_cast<Value>(out.sum_i64));
    const Wide sum = before + totals.sum;
    if (out.exact != 0 && fits<Value>(sum)) {
      out.sum_i64 = static_cast<int64_t>(sum);
      out.sum = static_cast<double>(sum);
    } else {
      out.exact = 0;
      out.sum_i64 = 0;
      out.sum += static_cast<double>(totals.sum);
    }
    const Value min = fresh ? totals.min : std::min(totals.min, static_cast<Value>(out.min_i64));
    const Value max = fresh ? totals.max : std::max(totals.max, static_cast<Value>(out.max_i64));
    out.min_i64 = static_cast<int64_t>(min);
    out.max_i64 = static_cast<int64_t>(max);
    out.min = static_cast<double>(min);
    out.max = static_cast<double>(max);
  } else {
    out.sum += totals.sum;
    out.min = fresh ? totals.min : std::min(out.min, totals.min);
    out.max = fresh ? totals.max : std::max(out.max, totals.max);
  }
}

sonde_status check_batch(const sonde_batch_t *batch, const sonde_column_t *column) {
  if (batch == nullptr || column == nullptr) return fail(SONDE_E_INVALID, "a batch and a column are needed");
  if (column->struct_size < sizeof(sonde_column_t) || column->width > 8 || column->derived > kSourceId ||
      std::popcount(column->width) != 1) {
    return fail(SONDE_E_INVALID, "the column was not made by find");
  }
  return SONDE_OK;
}

sonde_status check_value(const sonde_column_t &column) {
  if (!is_identity(column)) return SONDE_OK;
  return fail(SONDE_E_TYPE, "the field is an identity or a string: it has no sum; use it as the key of a group");
}

sonde_status reduce(const sonde_batch_t *batch, const sonde_column_t *column, sonde_reduction_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (const sonde_status checked = check_batch(batch, column); checked < 0) return checked;
    if (const sonde_status checked = check_value(*column); checked < 0) return checked;
    if (out == nullptr || out->struct_size < sizeof(sonde_reduction_t)) {
      return fail(SONDE_E_INVALID, "reduce: zero the reduction and set its struct_size first");
    }
    return with_reader(*batch, *column, [&](const auto &reader) {
      merge(totals_of(*batch, *column, reader), *out);
      return SONDE_OK;
    });
  });
}

// ---- Gathering ----

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, int64_t> && std::is_floating_point_v<From>) {
    // Towards zero, ends of the range kept, not-a-number is 0.
    if (std::isnan(value)) return 0;
    if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
    if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  }
  return static_cast<To>(value);
}

template <typename To>
sonde_status gather(const sonde_batch_t *batch, const sonde_column_t *column, To *values, uint64_t capacity,
                    uint64_t *count) {
  return at_boundary([&]() -> sonde_status {
    if (const sonde_status checked = check_batch(batch, column); checked < 0) return checked;
    if (count == nullptr || (values == nullptr && capacity != 0)) {
      return fail(SONDE_E_INVALID, "gather: a count, and a place for the values, are needed");
    }
    uint64_t found = 0;
    const sonde_status status = with_reader(*batch, *column, [&](const auto &reader) {
      walk(
          *batch, *column, std::decay_t<decltype(reader)>::kUsesTime,
          [&](const uint8_t *record, uint64_t stride, uint64_t records) {
            const uint64_t room = found < capacity ? std::min(capacity - found, records) : 0;
            for (uint64_t index = 0; index < room; ++index, record += stride) {
              values[found + index] = convert<To>(reader(record));
            }
            found += records;
          },
          [&](const uint8_t *, const sonde_repair_t &repair) {
            if (found < capacity) values[found] = convert<To>(reader.repaired(repair));
            ++found;
          });
      return SONDE_OK;
    });
    *count = found;
    return status;
  });
}

sonde_status gather_i64(const sonde_batch_t *batch, const sonde_column_t *column, int64_t *values, uint64_t capacity,
                        uint64_t *count) {
  return gather(batch, column, values, capacity, count);
}

sonde_status gather_f64(const sonde_batch_t *batch, const sonde_column_t *column, double *values, uint64_t capacity,
                        uint64_t *count) {
  return gather(batch, column, values, capacity, count);
}

// ---- Groups ----

constexpr uint64_t kMaxGroups = uint64_t{1} << 22;

// Reads a key as 64 raw bits, sign-extended for INT.
struct KeyReader {
  sonde_column_t column;
  const sonde_batch_t *batch;

  uint64_t operator()(const uint8_t *record) const {
    const uint8_t *const place = record + column.offset;
    switch (column.derived) {
      case kField:
        break;
      case kStreamId:
        return batch->stream;
      case kSourceId:
        return batch->source;
      default:
        return 0;  // time columns are refused as keys
    }
    const bool extend = column.kind == SONDE_KIND_INT;
    switch (column.width) {
      case 1:
        return extend ? static_cast<uint64_t>(static_cast<int64_t>(read<int8_t>(place))) : *place;
      case 2:
        return extend ? static_cast<uint64_t>(static_cast<int64_t>(read<int16_t>(place))) : read<uint16_t>(place);
      case 4:
        return extend ? static_cast<uint64_t>(static_cast<int64_t>(read<int32_t>(place))) : read<uint32_t>(place);
      default:
        return read<uint64_t>(place);
    }
  }
};

// Rows in an open-addressing table of their indices; keys and totals lie in one array in order of appearance.
template <typename Value>
class GroupTable {
 public:
  struct Row {
    uint64_t key;
    uint32_t source;
    Totals<Value> totals;
  };

  GroupTable() { slots_.assign(kFirstSlots, kEmpty); }

  // The row of (source, key), made when new; nullptr when there are kMaxGroups already.
  Row *at(uint32_t source, uint64_t key) {
    if (last_ < rows_.size() && rows_[last_].key == key && rows_[last_].source == source) return &rows_[last_];
    uint64_t slot = hash(source, key) & (slots_.size() - 1);
    while (slots_[slot] != kEmpty) {
      Row &row = rows_[slots_[slot]];
      if (row.key == key && row.source == source) {
        last_ = slots_[slot];
        return &row;
      }
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (rows_.size() >= kMaxGroups) return nullptr;
    last_ = static_cast<uint32_t>(rows_.size());
    slots_[slot] = last_;
    rows_.push_back({key, source, {}});
    if (rows_.size() * 2 > slots_.size()) grow();
    return &rows_[last_];
  }

  const std::vector<Row> &rows() const { return rows_; }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  static constexpr uint64_t kFirstSlots = 256;

  static uint64_t hash(uint32_t source, uint64_t key) {
    const uint64_t mixed = (key ^ (static_cast<uint64_t>(source) << 48)) * 0x9e3779b97f4a7c15u;
    return mixed ^ (mixed >> 32);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (uint32_t index = 0; index < rows_.size(); ++index) {
      uint64_t slot = hash(rows_[index].source, rows_[index].key) & (slots_.size() - 1);
      while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = index;
    }
  }

  std::vector<uint32_t> slots_;
  std::vector<Row> rows_;
  uint32_t last_ = 0;
};

class Groups {
 public:
  Groups(const sonde_column_t &key, const sonde_column_t &value) : key_(key), value_(value) {
    // A record belongs to a group when it carries both fields: the walk asks for the farther one.
    reach_ = value;
    if (key.offset + key.width > value.offset + value.width) {
      reach_.offset = key.offset;
      reach_.width = key.width;
    }
    scoped_ = is_identity(key);
  }

  sonde_status add(const sonde_batch_t &batch) {
    sorted_ = false;
    if (value_.kind == SONDE_KIND_FLOAT) return add_to(floats_, batch);
    return is_signed(value_) ? add_to(signed_, batch) : add_to(unsigned_, batch);
  }

  uint64_t size() const { return floats_.rows().size() + signed_.rows().size() + unsigned_.rows().size(); }

  const std::vector<sonde_group_row_t> &rows() {
    if (!sorted_) {
      result_.clear();
      result_.reserve(size());
      append(floats_);
      append(signed_);
      append(unsigned_);
      const bool signed_key = key_.kind == SONDE_KIND_INT;
      std::sort(result_.begin(), result_.end(), [&](const sonde_group_row_t &a, const sonde_group_row_t &b) {
        if (a.source != b.source) return a.source < b.source;
        if (signed_key) return static_cast<int64_t>(a.key) < static_cast<int64_t>(b.key);
        return a.key < b.key;
      });
      sorted_ = true;
    }
    return result_;
  }

 private:
  template <typename Value>
  sonde_status add_to(GroupTable<Value> &table, const sonde_batch_t &batch) {
    const uint32_t source = scoped_ ? batch.source : 0;
    const KeyReader key{key_, &batch};
    bool full = false;
    const sonde_status status = with_reader(batch, value_, [&](const auto &reader) -> sonde_status {
      using Reader = std::decay_t<decltype(reader)>;
      if constexpr (std::is_same_v<typename Reader::Value, Value>) {
        walk(
            batch, reach_, Reader::kUsesTime,
            [&](const uint8_t *record, uint64_t stride, uint64_t count) {
              for (uint64_t index = 0; index < count; ++index, record += stride) {
                auto *const row = table.at(source, key(record));
                if (row == nullptr) {
                  full = true;
                  return;
                }
                row->totals.add(reader(record));
              }
            },
            [&](const uint8_t *record, const sonde_repair_t &repair) {
              auto *const row = table.at(source, key(record));
              if (row == nullptr) {
                full = true;
                return;
              }
              row->totals.add(reader.repaired(repair));
            });
      }
      return SONDE_OK;
    });
    if (full) {
      return fail(SONDE_E_FULL, "more than " + std::to_string(kMaxGroups) + " groups; the key is not one to group by");
    }
    return status;
  }

  template <typename Value>
  void append(const GroupTable<Value> &table) {
    for (const auto &row : table.rows()) {
      sonde_group_row_t out = {};
      out.key = row.key;
      out.source = row.source;
      out.value.struct_size = sizeof(sonde_reduction_t);
      merge(row.totals, out.value);
      result_.push_back(out);
    }
  }

  sonde_column_t key_;
  sonde_column_t value_;
  sonde_column_t reach_;
  bool scoped_;
  GroupTable<double> floats_;
  GroupTable<int64_t> signed_;
  GroupTable<uint64_t> unsigned_;
  bool sorted_ = false;
  std::vector<sonde_group_row_t> result_;
};

sonde_status group_open(const sonde_column_t *key, const sonde_column_t *value, sonde_groups_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (key == nullptr || value == nullptr || out == nullptr) {
      return fail(SONDE_E_INVALID, "group_open: a key, a value and a place for the groups are needed");
    }
    *out = nullptr;
    if (key->space != value->space || key->type != value->type) {
      return fail(SONDE_E_INVALID, "group_open: key and value belong to different record types");
    }
    if (key->derived == kTimeNs || key->derived == kEndNs || key->derived == kDuration ||
        key->kind == SONDE_KIND_FLOAT) {
      return fail(SONDE_E_TYPE, "group_open: a time or a floating-point field is no key");
    }
    if (const sonde_status checked = check_value(*value); checked < 0) return checked;
    *out = reinterpret_cast<sonde_groups_t *>(new Groups(*key, *value));
    return SONDE_OK;
  });
}

Groups *inside(sonde_groups_t *groups) { return reinterpret_cast<Groups *>(groups); }

sonde_status group_add(sonde_groups_t *groups, const sonde_batch_t *batch) {
  return at_boundary([&]() -> sonde_status {
    if (groups == nullptr || batch == nullptr) return fail(SONDE_E_INVALID, "group_add: groups and batch are needed");
    return inside(groups)->add(*batch);
  });
}

sonde_status group_rows(sonde_groups_t *groups, const sonde_group_row_t **rows, uint64_t *count) {
  return at_boundary([&]() -> sonde_status {
    if (groups == nullptr || rows == nullptr || count == nullptr) {
      return fail(SONDE_E_INVALID, "group_rows: groups and places for rows and count are needed");
    }
    const std::vector<sonde_group_row_t> &sorted = inside(groups)->rows();
    *rows = sorted.data();
    *count = sorted.size();
    return SONDE_OK;
  });
}

sonde_status group_count(sonde_groups_t *groups, uint64_t *out) {
  if (groups == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "group_count: groups and out are needed");
  *out = inside(groups)->size();
  return SONDE_OK;
}

sonde_status group_close(sonde_groups_t *groups) {
  delete inside(groups);
  return SONDE_OK;
}

// ---- Looking a column up ----

void list(std::string &names, const char *name) {
  if (!names.empty()) names += ", ";
  names += name;
}

const sonde_record_type_t *find_type(const sonde_schema_t &schema, std::string_view name, std::string &known) {
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    const auto *type = reinterpret_cast<const sonde_record_type_t *>(reinterpret_cast<const uint8_t *>(schema.types) +
                                                                     uint64_t{index} * schema.type_stride);
    if (type->name == name) return type;
    list(known, type->name);
  }
  return nullptr;
}

const sonde_field_t *find_field(const sonde_record_type_t &type, std::string_view name, std::string &known) {
  for (uint32_t index = 0; index < type.field_count; ++index) {
    const auto *field = reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const uint8_t *>(type.fields) +
                                                                uint64_t{index} * type.field_stride);
    if (field->name == name) return field;
    list(known, field->name);
  }
  return nullptr;
}

sonde_status find(const char *space, const char *type_name, const char *field_name, sonde_column_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (space == nullptr || type_name == nullptr || field_name == nullptr || out == nullptr) {
      return fail(SONDE_E_INVALID, "find: space, type, field and out are needed");
    }
    const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    uint32_t number = 0;
    if (const sonde_status status = capture.find_space(space, &number); status < 0) return status;
    const sonde_schema_t *schema = nullptr;
    if (const sonde_status status = capture.schema(number, &schema); status < 0) return status;
    std::string known;
    const sonde_record_type_t *const type = find_type(*schema, type_name, known);
    if (type == nullptr) {
      return fail(SONDE_E_NOT_FOUND, std::string(space) + " has no type \"" + type_name + "\"; it has " + known);
    }
    *out = {};
    out->struct_size = sizeof(sonde_column_t);
    out->space = static_cast<uint16_t>(number);
    out->type = static_cast<uint16_t>(type->type);
    known.clear();
    const sonde_field_t *const field = find_field(*type, field_name, known);
    if (field != nullptr) {
      if (field->kind >= SONDE_KIND_SPAN_UINT || std::popcount(field->width) != 1 || field->width > 8) {
        return fail(SONDE_E_TYPE,
                    std::string(space) + "." + type_name + "." + field_name + " is not one number a record");
      }
      out->offset = field->offset;
      out->width = field->width;
      out->kind = field->kind;
      return SONDE_OK;
    }
    // `time` of the header is a column too, though no schema lists it.
    if (std::string_view(field_name) == "time") {
      out->offset = offsetof(sonde_record_t, time);
      out->width = 8;
      out->kind = SONDE_KIND_TIME;
      return SONDE_OK;
    }
    std::string ignored;
    const sonde_field_t *const end = find_field(*type, "end", ignored);
    const bool has_end = end != nullptr && end->kind == SONDE_KIND_TIME;
    for (const DerivedName &name : kDerivedNames) {
      if (name.needs_end && !has_end) continue;
      list(known, name.name);
      if (std::string_view(name.name) != field_name) continue;
      out->derived = name.derived;
      out->offset = name.needs_end ? end->offset : static_cast<uint32_t>(offsetof(sonde_record_t, time));
      out->width = 8;
      out->kind = name.derived == kStreamId || name.derived == kSourceId ? SONDE_KIND_ID : SONDE_KIND_INT;
      return SONDE_OK;
    }
    return fail(SONDE_E_NOT_FOUND, std::string(space) + "." + type_name + " has no field \"" + field_name +
                                       "\"; it has " + known + ", time");
  });
}

constexpr sonde_columns_service_t kService = {
    sizeof(sonde_columns_service_t),
    0,
    find,
    reduce,
    gather_i64,
    gather_f64,
    group_open,
    group_add,
    group_rows,
    group_close,
    group_count,
};

}  // namespace

void install_columns() { add_service(SONDE_COLUMNS_SERVICE, &kService); }

}  // namespace sonde::core
