#include "store/record_encoder.h"

#include <sonde/record.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace sonde::store {
namespace {

constexpr uint64_t kSample = 512;  // records looked at to judge a word
constexpr uint32_t kNone = UINT32_MAX;

uint64_t load(const uint8_t *at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15u;
  return value ^ (value >> 29);
}

// 16 * c * log2(c) for counts up to kSample, so that entropies are sums of integers.
const std::array<uint32_t, kSample + 1> &count_logs() {
  static const std::array<uint32_t, kSample + 1> table = [] {
    std::array<uint32_t, kSample + 1> made{};
    for (size_t count = 2; count < made.size(); ++count) {
      made[count] = static_cast<uint32_t>(16.0 * static_cast<double>(count) * std::log2(static_cast<double>(count)));
    }
    return made;
  }();
  return table;
}

}  // namespace

RecordEncoder::RecordEncoder(int level) : blocks_(level), shape_table_(256, kNone) {}

uint32_t RecordEncoder::shape_of(uint64_t header) {
  const uint64_t mask = shape_table_.size() - 1;
  uint64_t slot = mix(header) >> 20 & mask;
  while (shape_table_[slot] != kNone) {
    if (shapes_[shape_table_[slot]].header == header) return shape_table_[slot];
    slot = (slot + 1) & mask;
  }
  const auto made = static_cast<uint32_t>(shapes_.size());
  shapes_.push_back({header, static_cast<uint32_t>(header & 0xffff), 0, nullptr});
  shape_table_[slot] = made;
  if (shapes_.size() * 2 > shape_table_.size()) {
    shape_table_.assign(shape_table_.size() * 2, kNone);
    const uint64_t wider = shape_table_.size() - 1;
    for (uint32_t index = 0; index < shapes_.size(); ++index) {
      uint64_t place = mix(shapes_[index].header) >> 20 & wider;
      while (shape_table_[place] != kNone) place = (place + 1) & wider;
      shape_table_[place] = index;
    }
  }
  return made;
}

void RecordEncoder::find_shapes(std::span<const uint8_t> records) {
  shapes_.clear();
  std::fill(shape_table_.begin(), shape_table_.end(), kNone);
  runs_.clear();
  uint64_t total = 0;
  for (uint64_t offset = 0; offset < records.size();) {
    const uint64_t header = load(records.data() + offset);
    const uint64_t bytes = (header & 0xffff) * 8;
    const uint32_t shape = shape_of(header);
    uint64_t run = 0;
    do {
      ++run;
      offset += bytes;
    } while (offset < records.size() && load(records.data() + offset) == header);
    put_varint(runs_, shape);
    put_varint(runs_, run - 1);
    shapes_[shape].count += run;
    total += run;
  }

  offsets_.resize(total);
  uint32_t *next = offsets_.data();
  for (Shape &shape : shapes_) {
    shape.offsets = next;
    next += shape.count;
    shape.count = 0;
  }
  uint32_t offset = 0;
  for (ByteReader runs(runs_); !runs.at_end();) {
    Shape &shape = shapes_[runs.varint()];
    for (uint64_t left = runs.varint() + 1; left != 0; --left) {
      shape.offsets[shape.count++] = offset;
      offset += shape.words * 8;
    }
  }
}

void RecordEncoder::encode(std::span<const uint8_t> records, Bytes &out) {
  find_shapes(records);
  put_varint(out, shapes_.size());
  for (const Shape &shape : shapes_) {
    put(out, shape.header);
    put_varint(out, shape.count);
    out.push_back(shape.by_columns() ? 1 : 0);
  }
  if (shapes_.size() > 1) {
    put_varint(out, runs_.size());
    blocks_.write(out, runs_);
  }
  for (const Shape &shape : shapes_) {
    if (shape.by_columns()) {
      encode_columns(records.data(), shape, out);
    } else {
      plane_.clear();
      for (uint64_t j = 0; j < shape.count; ++j) {
        put_bytes(plane_, records.data() + shape.offsets[j] + 8, shape.words * 8 - 8);
      }
      blocks_.write(out, plane_);
    }
  }
}

// A word is a candidate for the dictionary when it takes few values in a sample spread over the records.
void RecordEncoder::choose_static_words(const uint8_t *records, const Shape &shape) {
  const uint64_t count = shape.count;
  const uint64_t taken = std::min(count, kSample);
  const uint64_t table_size = std::bit_ceil(taken * 2);
  distinct_.assign(shape.words, 0);
  static_words_.clear();
  for (uint32_t word = 1; word < shape.words; ++word) {
    sample_table_.assign(table_size, 0);
    bool zero_seen = false;
    uint32_t distinct = 0;
    for (uint64_t step = 0; step < taken && distinct <= taken / 4; ++step) {
      const uint64_t value = load(records + shape.offsets[step * count / taken] + word * 8);
      if (value == 0) {
        distinct += zero_seen ? 0 : 1;
        zero_seen = true;
        continue;
      }
      uint64_t slot = mix(value) >> 24 & (table_size - 1);
      while (sample_table_[slot] != 0 && sample_table_[slot] != value) slot = (slot + 1) & (table_size - 1);
      if (sample_table_[slot] == 0) {
        sample_table_[slot] = value;
        ++distinct;
      }
    }
    distinct_[word] = distinct;
    if (distinct <= std::max<uint64_t>(1, taken / 4)) static_words_.push_back(word);
  }
}

bool RecordEncoder::try_dictionary(const uint8_t *records, const Shape &shape, uint64_t limit) {
  const uint64_t count = shape.count;
  const uint64_t mask = std::bit_ceil(limit * 2 + 2) - 1;
  entry_table_.assign(mask + 1, kNone);
  entry_record_.clear();
  entry_of_.resize(count);
  const auto same = [&](const uint8_t *left, const uint8_t *right) {
    for (const uint32_t word : static_words_) {
      if (load(left + word * 8) != load(right + word * 8)) return false;
    }
    return true;
  };
  for (uint64_t record = 0; record < count; ++record) {
    const uint8_t *const row = records + shape.offsets[record];
    uint64_t sum = 0;
    uint64_t odd = 0x9e3779b97f4a7c15u;
    for (const uint32_t word : static_words_) {
      const uint64_t value = load(row + word * 8);
      sum += (value ^ (value >> 32)) * odd;
      odd += 0xbf58476d1ce4e5bau;  // even, so `odd` stays odd
    }
    uint64_t slot = mix(sum) >> 24 & mask;
    for (;;) {
      const uint32_t entry = entry_table_[slot];
      if (entry == kNone) {
        if (entry_record_.size() == limit) return false;
        entry_table_[slot] = static_cast<uint32_t>(entry_record_.size());
        entry_of_[record] = static_cast<uint16_t>(entry_record_.size());
        entry_record_.push_back(static_cast<uint32_t>(record));
        break;
      }
      if (same(row, records + shape.offsets[entry_record_[entry]])) {
        entry_of_[record] = static_cast<uint16_t>(entry);
        break;
      }
      slot = (slot + 1) & mask;
    }
  }
  return true;
}

// Words of few values that vary independently make too many combinations; then the most varied one becomes a column.
void RecordEncoder::build_dictionary(const uint8_t *records, const Shape &shape) {
  choose_static_words(records, shape);
  const uint64_t limit = std::clamp<uint64_t>(shape.count / 4, 1, kMaxEntries);
  while (!try_dictionary(records, shape, limit)) {
    static_words_.erase(std::max_element(static_words_.begin(), static_words_.end(),
                                         [&](uint32_t a, uint32_t b) { return distinct_[a] < distinct_[b]; }));
  }
  if (entry_record_.size() == 1) entry_of_.clear();
}

void RecordEncoder::encode_dictionary(const uint8_t *records, const Shape &shape, Bytes &out) {
  put_varint(out, entry_record_.size());
  Bytes mask((shape.words + 7) / 8, 0);
  for (const uint32_t word : static_words_) mask[word / 8] = static_cast<uint8_t>(mask[word / 8] | 1u << word % 8);
  put_bytes(out, mask.data(), mask.size());
  // By word, then by byte of the word, then by entry.
  const uint64_t entries = entry_record_.size();
  plane_.resize(static_words_.size() * 8 * entries);
  uint8_t *at = plane_.data();
  for (const uint32_t word : static_words_) {
    for (uint32_t byte = 0; byte < 8; ++byte) {
      for (uint64_t entry = 0; entry < entries; ++entry) {
        *at++ = records[shape.offsets[entry_record_[entry]] + word * 8 + byte];
      }
    }
  }
  blocks_.write(out, plane_);
  if (entries > 1) {
    residuals_.assign(entry_of_.begin(), entry_of_.end());
    write_planes(entry_of_.size(), false, out);
  }
}

void RecordEncoder::residuals(const uint8_t *records, const Shape &shape, uint32_t word, const Predictor &predictor) {
  const uint64_t count = shape.count;
  const uint32_t *const offsets = shape.offsets;
  residuals_.resize(count);
  uint64_t *const out = residuals_.data();
  switch (predictor.base) {
    case Base::kNone:
      for (uint64_t j = 0; j < count; ++j) out[j] = load(records + offsets[j] + word * 8);
      return;
    case Base::kPrevious: {
      uint64_t previous = 0;
      for (uint64_t j = 0; j < count; ++j) {
        const uint64_t value = load(records + offsets[j] + word * 8);
        out[j] = value - previous;
        previous = value;
      }
      break;
    }
    case Base::kTime:
      for (uint64_t j = 0; j < count; ++j) {
        out[j] = load(records + offsets[j] + word * 8) - load(records + offsets[j] + 8);
      }
      break;
    case Base::kPreviousEnd: {
      uint64_t previous = 0;
      for (uint64_t j = 0; j < count; ++j) {
        out[j] = load(records + offsets[j] + word * 8) - previous;
        previous = load(records + offsets[j] + predictor.end_word * 8);
      }
      break;
    }
  }
  // The first residual is a whole stamp or so; it is stored apart, so that it does not widen the planes.
  first_ = zigzag(out[0]);
  out[0] = 0;
  if (predictor.by_entry) {
    last_of_entry_.assign(entry_record_.size(), 0);
    for (uint64_t j = 0; j < count; ++j) {
      uint64_t &last = last_of_entry_[entry_of_[j]];
      const uint64_t value = out[j];
      out[j] = value - last;
      last = value;
    }
  }
  for (uint64_t j = 0; j < count; ++j) out[j] = zigzag(out[j]);
}

// Entropy of the byte planes of a sample of residuals_, in 1/16 bit.
uint64_t RecordEncoder::cost(uint64_t count) const {
  const uint64_t taken = std::min(count, kSample);
  std::array<uint64_t, kSample> sample;
  uint64_t any = 0;
  for (uint64_t step = 0; step < taken; ++step) {
    sample[step] = residuals_[step * count / taken];
    any |= sample[step];
  }
  const auto &logs = count_logs();
  uint64_t total = 0;
  for (unsigned shift = 0; shift < 64 && any >> shift != 0; shift += 8) {
    std::array<uint16_t, 256> histogram{};
    for (uint64_t step = 0; step < taken; ++step) ++histogram[sample[step] >> shift & 0xff];
    uint64_t known = 0;
    for (const uint16_t entries : histogram) known += logs[entries];
    total += logs[taken] - std::min<uint64_t>(logs[taken], known);
  }
  return total;
}

Predictor RecordEncoder::choose(const uint8_t *records, const Shape &shape, uint32_t word) {
  const bool entries = entry_record_.size() > 1;
  std::array<Predictor, 8> candidates;
  size_t candidate_count = 0;
  const auto add = [&](Base base, bool by_entry) {
    candidates[candidate_count++] = {base, by_entry, base == Base::kPreviousEnd ? interval_word_ : 0};
  };
  if (word != 1) add(Base::kNone, false);
  add(Base::kPrevious, false);
  if (entries) add(Base::kPrevious, true);
  if (word != 1) {
    add(Base::kTime, false);
    if (entries) add(Base::kTime, true);
  } else if (interval_word_ != 0) {
    add(Base::kPreviousEnd, false);
    if (entries) add(Base::kPreviousEnd, true);
  }
  Predictor best = candidates[0];
  uint64_t least = UINT64_MAX;
  for (size_t index = 0; index < candidate_count; ++index) {
    residuals(records, shape, word, candidates[index]);
    const uint64_t bits = cost(shape.count);
    if (bits < least) {
      least = bits;
      best = candidates[index];
    }
  }
  return best;
}

// Planes of residuals_[0, count): a mask of the planes that vary, the bytes of those that do not, the blocks.
void RecordEncoder::write_planes(uint64_t count, bool with_constant, Bytes &out) {
  const uint64_t first = residuals_[0];
  uint64_t differing = 0;
  for (uint64_t j = 0; j < count; ++j) differing |= residuals_[j] ^ first;
  uint8_t mask = 0;
  uint64_t constant = first;
  for (unsigned plane = 0; plane < 8; ++plane) {
    if ((differing >> plane * 8 & 0xff) == 0) continue;
    mask = static_cast<uint8_t>(mask | 1u << plane);
    constant &= ~(uint64_t{0xff} << plane * 8);
  }
  out.push_back(mask);
  if (with_constant) put_varint(out, constant);
  plane_.resize(count);
  for (unsigned plane = 0; plane < 8; ++plane) {
    if ((mask >> plane & 1) == 0) continue;
    for (uint64_t j = 0; j < count; ++j) plane_[j] = static_cast<uint8_t>(residuals_[j] >> plane * 8);
    blocks_.write(out, plane_);
  }
}

void RecordEncoder::encode_column(const uint8_t *records, const Shape &shape, uint32_t word, Bytes &out) {
  const Predictor predictor = choose(records, shape, word);
  residuals(records, shape, word, predictor);
  out.push_back(static_cast<uint8_t>(static_cast<uint8_t>(predictor.base) | (predictor.by_entry ? kByEntryFlag : 0)));
  if (predictor.base == Base::kPreviousEnd) put_varint(out, predictor.end_word);
  if (predictor.base == Base::kTime && interval_word_ == 0) interval_word_ = word;
  if (predictor.base != Base::kNone) put_varint(out, first_);
  write_planes(shape.count, true, out);
}

void RecordEncoder::encode_columns(const uint8_t *records, const Shape &shape, Bytes &out) {
  build_dictionary(records, shape);
  encode_dictionary(records, shape, out);
  interval_word_ = 0;
  // The time comes last: its base may be the end of an interval, which is known by then.
  auto next_static = static_words_.begin();
  bool time_varies = true;
  for (uint32_t word = 1; word < shape.words; ++word) {
    if (next_static != static_words_.end() && *next_static == word) {
      ++next_static;
      if (word == 1) time_varies = false;
    } else if (word != 1) {
      encode_column(records, shape, word, out);
    }
  }
  if (time_varies) encode_column(records, shape, 1, out);
}

uint64_t RecordEncoder::memory() const {
  uint64_t bytes = blocks_.memory() + shapes_.capacity() * sizeof(Shape) + shape_table_.capacity() * 4 +
                   offsets_.capacity() * 4 + runs_.capacity() + entry_of_.capacity() * 2 + entry_table_.capacity() * 4 +
                   entry_record_.capacity() * 4 + residuals_.capacity() * 8 + last_of_entry_.capacity() * 8 +
                   plane_.capacity() + sample_table_.capacity() * 8;
  return bytes;
}

}  // namespace sonde::store
