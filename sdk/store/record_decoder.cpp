#include "store/record_decoder.h"

#include <sonde/record.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sonde::store {
namespace {

uint64_t load(const uint8_t *at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void save(uint8_t *at, uint64_t value) { std::memcpy(at, &value, sizeof value); }

uint64_t with_space(uint64_t header, const SpaceMap &spaces) {
  return (header & ~(uint64_t{0xffff} << 32)) | uint64_t{spaces.here(header >> 32 & 0xffff)} << 32;
}

bool sizes_fit(uint64_t header) {
  const uint64_t words = header & 0xffff;
  const uint64_t fixed = header >> 16 & 0xffff;
  return words >= 2 && fixed >= 2 && fixed <= words;
}

// Puts planes [from, from + count) together. The number of planes is a constant for the compiler, so that the loop
// over records becomes a few vector instructions.
template <size_t kCount>
void combine(const uint8_t *const *bytes, const uint8_t *shifts, uint64_t constant, uint64_t from, uint32_t count,
             uint64_t *out) {
  const uint8_t *plane[kCount + 1];
  unsigned shift[kCount + 1];
  for (size_t index = 0; index < kCount; ++index) {
    plane[index] = bytes[index] + from;
    shift[index] = shifts[index];
  }
  for (uint32_t j = 0; j < count; ++j) {
    uint64_t value = constant;
    for (size_t index = 0; index < kCount; ++index) value |= uint64_t{plane[index][j]} << shift[index];
    out[j] = value;
  }
}

using Combine = void (*)(const uint8_t *const *, const uint8_t *, uint64_t, uint64_t, uint32_t, uint64_t *);
constexpr Combine kCombine[] = {combine<0>, combine<1>, combine<2>, combine<3>, combine<4>,
                                combine<5>, combine<6>, combine<7>, combine<8>};

// Copies one row of the dictionary for each record. kWords 0: any number of words.
template <uint32_t kWords>
void copy_templates(const uint64_t *templates, uint32_t words, const uint16_t *entries, uint8_t *const *rows,
                    uint32_t count) {
  for (uint32_t j = 0; j < count; ++j) {
    if constexpr (kWords != 0) {
      std::memcpy(rows[j], templates + size_t{entries[j]} * kWords, kWords * 8);
    } else {
      std::memcpy(rows[j], templates + size_t{entries[j]} * words, size_t{words} * 8);
    }
  }
}

using CopyTemplates = void (*)(const uint64_t *, uint32_t, const uint16_t *, uint8_t *const *, uint32_t);

template <uint32_t... kWords>
constexpr std::array<CopyTemplates, sizeof...(kWords)> copies(std::integer_sequence<uint32_t, kWords...>) {
  return {copy_templates<kWords>...};
}
constexpr auto kCopyTemplates = copies(std::make_integer_sequence<uint32_t, 25>());

}  // namespace

SpaceMap::SpaceMap() {
  for (size_t space = 0; space < numbers_.size(); ++space) numbers_[space] = static_cast<uint16_t>(space);
}

void SpaceMap::set(uint32_t in_file, uint32_t here) {
  if (in_file >= numbers_.size()) return;
  numbers_[in_file] = static_cast<uint16_t>(here);
  identity_ = true;
  for (size_t space = 0; space < numbers_.size(); ++space) identity_ = identity_ && numbers_[space] == space;
}

uint8_t *RecordDecoder::scratch(uint64_t bytes) {
  if (arena_used_ == arena_.size()) arena_.emplace_back();
  Bytes &place = arena_[arena_used_++];
  if (place.size() < bytes) place.resize(bytes);
  return place.data();
}

bool RecordDecoder::read_shapes(ByteReader &in, const SpaceMap &spaces, uint64_t record_bytes, uint64_t record_count) {
  shapes_.clear();
  const uint64_t shape_count = in.varint_up_to(record_count);
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (uint64_t index = 0; index < shape_count && in.good(); ++index) {
    Shape shape{};
    const auto header = in.get<uint64_t>();
    shape.header = with_space(header, spaces);
    shape.words = static_cast<uint32_t>(header & 0xffff);
    shape.count = in.varint_up_to(record_count - records);
    shape.by_columns = in.get<uint8_t>() == 1;
    if (!sizes_fit(header) || shape.count == 0) return false;
    if (shape.by_columns && shape.words > kMaxColumnWords) return false;
    records += shape.count;
    bytes += shape.count * shape.words * 8;
    if (bytes > record_bytes) return false;
    shapes_.push_back(shape);
  }
  return in.good() && records == record_count && bytes == record_bytes;
}

bool RecordDecoder::read_runs(ByteReader &in) {
  uint64_t records = 0;
  for (const Shape &shape : shapes_) records += shape.count;
  const uint64_t run_bytes = in.varint_up_to(records * 10);
  const std::span<const uint8_t> stored = blocks_.read(in, run_bytes, scratch(run_bytes));
  if (!in.good()) return false;
  offsets_.resize(records);
  uint32_t *next = offsets_.data();
  for (Shape &shape : shapes_) {
    shape.offsets = next;
    next += shape.count;
  }
  std::vector<uint64_t> made(shapes_.size(), 0);
  uint32_t offset = 0;  // fits: kMaxChunkRecordBytes is less
  ByteReader runs(stored);
  while (!runs.at_end()) {
    const uint64_t index = runs.varint_up_to(shapes_.size() - 1);
    const Shape &shape = shapes_[index];
    const uint64_t run = runs.varint_up_to(records - 1) + 1;
    if (!runs.good() || run > shape.count - made[index]) return false;
    uint32_t *const out = shape.offsets + made[index];
    const uint32_t step = shape.words * 8;
    for (uint64_t j = 0; j < run; ++j) {
      out[j] = offset;
      offset += step;
    }
    made[index] += run;
  }
  for (size_t index = 0; index < shapes_.size(); ++index) {
    if (made[index] != shapes_[index].count) return false;
  }
  return runs.good();
}

bool RecordDecoder::read_rows(ByteReader &in, const Shape &shape, uint8_t *rows) {
  const uint64_t row_bytes = uint64_t{shape.words} * 8 - 8;
  const uint64_t bytes = row_bytes * shape.count;
  const std::span<const uint8_t> stored = blocks_.read(in, bytes, scratch(bytes));
  if (!in.good()) return false;
  for (uint64_t j = 0; j < shape.count; ++j) {
    uint8_t *const row = rows + (shapes_.size() == 1 ? j * (row_bytes + 8) : shape.offsets[j]);
    save(row, shape.header);
    std::memcpy(row + 8, stored.data() + j * row_bytes, row_bytes);
  }
  return true;
}

bool RecordDecoder::read_planes(ByteReader &in, uint64_t count, bool with_constant, Planes &out) {
  const auto mask = in.get<uint8_t>();
  out.constant = with_constant ? in.varint() : 0;
  out.count = 0;
  for (unsigned plane = 0; plane < 8; ++plane) {
    if ((mask >> plane & 1) == 0) continue;
    const std::span<const uint8_t> bytes = blocks_.read(in, count, scratch(count));
    if (!in.good()) return false;
    out.bytes[out.count] = bytes.data();
    out.shifts[out.count++] = static_cast<uint8_t>(plane * 8);
  }
  return in.good();
}

bool RecordDecoder::read_dictionary(ByteReader &in, const Shape &shape) {
  entries_ = static_cast<uint32_t>(in.varint_up_to(std::min<uint64_t>(shape.count, kMaxEntries)));
  const std::span<const uint8_t> mask = in.bytes((shape.words + 7) / 8);
  if (!in.good() || entries_ == 0) return false;
  uint32_t words = 0;
  for (uint32_t word = 0; word < shape.words; ++word) {
    static_words_[word] = (mask[word / 8] >> word % 8 & 1) != 0;
    words += static_words_[word] ? 1 : 0;
  }
  if (static_words_[0]) return false;
  const uint64_t bytes = uint64_t{words} * 8 * entries_;
  const std::span<const uint8_t> stored = blocks_.read(in, bytes, scratch(bytes));
  if (!in.good()) return false;
  templates_.assign(uint64_t{shape.words} * entries_, 0);
  for (uint32_t entry = 0; entry < entries_; ++entry) templates_[uint64_t{entry} * shape.words] = shape.header;
  const uint8_t *at = stored.data();
  for (uint32_t word = 1; word < shape.words; ++word) {
    if (!static_words_[word]) continue;
    for (unsigned byte = 0; byte < 8; ++byte) {
      for (uint32_t entry = 0; entry < entries_; ++entry) {
        templates_[uint64_t{entry} * shape.words + word] |= uint64_t{*at++} << byte * 8;
      }
    }
  }
  entry_planes_ = {};
  if (entries_ == 1) return true;
  if (!read_planes(in, shape.count, false, entry_planes_)) return false;
  // Every index must be an entry, whatever the planes say: checked once here, trusted below.
  std::array<uint64_t, kBlock> values;
  uint64_t greatest = 0;
  for (uint64_t from = 0; from < shape.count; from += kBlock) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBlock, shape.count - from));
    kCombine[entry_planes_.count](entry_planes_.bytes.data(), entry_planes_.shifts.data(), 0, from, count,
                                  values.data());
    for (uint32_t j = 0; j < count; ++j) greatest = std::max(greatest, values[j]);
  }
  return greatest < entries_;
}

bool RecordDecoder::read_column(ByteReader &in, const Shape &shape, uint32_t word) {
  if (column_count_ == columns_.size()) columns_.emplace_back();
  Column &column = columns_[column_count_++];
  const auto byte = in.get<uint8_t>();
  column.word = word;
  column.predictor = {};
  column.predictor.base = static_cast<Base>(byte & 0x0f);
  column.predictor.by_entry = (byte & kByEntryFlag) != 0;
  column.previous = 0;
  column.first = 0;
  if ((byte & 0x0f) > static_cast<uint8_t>(Base::kPreviousEnd) || (byte & ~(0x0f | kByEntryFlag)) != 0) return false;
  if (column.predictor.by_entry && (entries_ < 2 || column.predictor.base == Base::kNone)) return false;
  if (column.predictor.base == Base::kTime && word == 1) return false;
  if (column.predictor.base == Base::kPreviousEnd) {
    if (word != 1) return false;
    column.predictor.end_word = static_cast<uint32_t>(in.varint_up_to(shape.words - 1));
    // The interval's length must be known before its time.
    const bool known = std::any_of(columns_.begin(), columns_.begin() + column_count_ - 1, [&](const Column &other) {
      return other.word == column.predictor.end_word && other.predictor.base == Base::kTime;
    });
    if (!known) return false;
  }
  if (column.predictor.base != Base::kNone) column.first = unzigzag(in.varint());
  if (column.predictor.by_entry) column.last_of_entry.assign(entries_, 0);
  return read_planes(in, shape.count, true, column.planes);
}

bool RecordDecoder::read_columns(ByteReader &in, const Shape &shape, uint8_t *rows) {
  if (!read_dictionary(in, shape)) return false;
  column_count_ = 0;
  for (uint32_t word = 2; word < shape.words; ++word) {
    if (!static_words_[word] && !read_column(in, shape, word)) return false;
  }
  if (!static_words_[1]) {
    if (!read_column(in, shape, 1)) return false;
  } else {
    // Without a column of the time, its value comes from the dictionary.
    for (uint32_t index = 0; index < column_count_; ++index) {
      if (columns_[index].predictor.base == Base::kPreviousEnd) return false;
    }
  }
  make_rows(shape, rows);
  return true;
}

// Residuals of one block, up to the base: what is added to it.
void RecordDecoder::make_differences(Column &column, uint64_t from, uint32_t count, const uint16_t *entries) {
  uint64_t *const values = column.values.data();
  kCombine[column.planes.count](column.planes.bytes.data(), column.planes.shifts.data(), column.planes.constant, from,
                                count, values);
  if (column.predictor.base == Base::kNone) return;
  if (column.predictor.by_entry) {
    uint64_t *const last = column.last_of_entry.data();
    for (uint32_t j = 0; j < count; ++j) values[j] = last[entries[j]] += unzigzag(values[j]);
  } else {
    for (uint32_t j = 0; j < count; ++j) values[j] = unzigzag(values[j]);
  }
  if (from == 0) values[0] = column.first;
  if (column.predictor.base == Base::kPrevious) {
    uint64_t previous = column.previous;
    for (uint32_t j = 0; j < count; ++j) values[j] = previous += values[j];
    column.previous = previous;
  }
}

// Times of one block from the ends of the intervals before.
void RecordDecoder::make_times(Column &column, const Column *interval, uint32_t count) {
  uint64_t *const values = column.values.data();
  uint64_t end = column.previous;
  for (uint32_t j = 0; j < count; ++j) {
    values[j] += end;
    end = values[j] + interval->values[j];
  }
  column.previous = end;
}

void RecordDecoder::make_rows(const Shape &shape, uint8_t *rows) {
  std::array<uint16_t, kBlock> entries{};
  std::array<uint64_t, kBlock> times;
  std::array<uint8_t *, kBlock> row;
  Column *const columns = columns_.data();
  Column *const time = !static_words_[1] ? &columns[column_count_ - 1] : nullptr;
  const Column *interval = nullptr;
  if (time != nullptr && time->predictor.base == Base::kPreviousEnd) {
    interval = std::find_if(columns, columns + column_count_,
                            [&](const Column &column) { return column.word == time->predictor.end_word; });
  }
  const CopyTemplates copy = kCopyTemplates[shape.words < kCopyTemplates.size() ? shape.words : 0];
  const bool alone = shapes_.size() == 1;
  const uint64_t stride = uint64_t{shape.words} * 8;

  for (uint64_t from = 0; from < shape.count; from += kBlock) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBlock, shape.count - from));
    if (entries_ > 1) {
      kCombine[entry_planes_.count](entry_planes_.bytes.data(), entry_planes_.shifts.data(), 0, from, count,
                                    times.data());
      for (uint32_t j = 0; j < count; ++j) entries[j] = static_cast<uint16_t>(times[j]);
    }
    if (alone) {
      for (uint32_t j = 0; j < count; ++j) row[j] = rows + (from + j) * stride;
    } else {
      for (uint32_t j = 0; j < count; ++j) row[j] = rows + shape.offsets[from + j];
    }
    copy(templates_.data(), shape.words, entries.data(), row.data(), count);

    for (uint32_t index = 0; index < column_count_; ++index) {
      make_differences(columns[index], from, count, entries.data());
    }
    if (interval != nullptr) make_times(*time, interval, count);
    const uint64_t *base = nullptr;
    if (time != nullptr) {
      base = time->values.data();
    } else {
      for (uint32_t j = 0; j < count; ++j) times[j] = templates_[uint64_t{entries[j]} * shape.words + 1];
      base = times.data();
    }
    for (uint32_t index = 0; index < column_count_; ++index) {
      const uint64_t *const values = columns[index].values.data();
      const uint64_t place = uint64_t{columns[index].word} * 8;
      if (columns[index].predictor.base == Base::kTime) {
        for (uint32_t j = 0; j < count; ++j) save(row[j] + place, base[j] + values[j]);
      } else {
        for (uint32_t j = 0; j < count; ++j) save(row[j] + place, values[j]);
      }
    }
  }
}

bool RecordDecoder::decode_columns(std::span<const uint8_t> encoded, const SpaceMap &spaces, std::span<uint8_t> rows,
                                   uint64_t record_count) {
  ByteReader in(encoded);
  arena_used_ = 0;
  if (!read_shapes(in, spaces, rows.size(), record_count)) return false;
  if (shapes_.size() > 1 && !read_runs(in)) return false;
  for (const Shape &shape : shapes_) {
    arena_used_ = 0;
    if (!(shape.by_columns ? read_columns(in, shape, rows.data()) : read_rows(in, shape, rows.data()))) return false;
  }
  return in.at_end();
}

bool RecordDecoder::decode_rows(std::span<const uint8_t> encoded, const SpaceMap &spaces, std::span<uint8_t> rows,
                                uint64_t record_count) {
  if (encoded.size() != rows.size()) return false;
  if (rows.empty()) return record_count == 0;
  std::memcpy(rows.data(), encoded.data(), rows.size());
  uint64_t records = 0;
  for (uint64_t offset = 0; offset < rows.size(); ++records) {
    if (rows.size() - offset < sizeof(sonde_record_t)) return false;
    const uint64_t header = load(rows.data() + offset);
    const uint64_t bytes = (header & 0xffff) * 8;
    if (!sizes_fit(header) || bytes > rows.size() - offset) return false;
    if (!spaces.identity()) save(rows.data() + offset, with_space(header, spaces));
    offset += bytes;
  }
  return records == record_count;
}

}  // namespace sonde::store
