// Records and batches: typed visits, repaired intervals, span fields. See sonde/sonde.hpp.
#ifndef SONDE_CPP_RECORDS_HPP
#define SONDE_CPP_RECORDS_HPP

#include <sonde/capture.h>
#include <sonde/delivery.h>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>

namespace sonde {

// When something happened, ns since 1970. `repair` is SONDE_REPAIR_* when the raw stamps cannot be right; then the
// length is 0 and means nothing.
struct Interval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t repair = 0;

  int64_t length_ns() const { return end_ns - begin_ns; }
  bool valid() const { return repair == 0; }
};

// One record of a batch; valid as long as the batch.
class Record {
 public:
  Record(const sonde_batch_t *batch, const sonde_record_t *header, const sonde_repair_t *repair)
      : batch_(batch), header_(header), repair_(repair) {}

  const sonde_record_t *header() const { return header_; }
  bool is(uint32_t space, uint32_t type) const { return header_->space == space && header_->type == type; }

  // The record as a T. Fields that its writer did not know yet read 0; `storage` is used only then.
  template <typename T>
  const T &as(T &storage) const {
    const size_t have = size_t{header_->fixed8} * 8;
    if (have >= sizeof(T)) return *reinterpret_cast<const T *>(header_);
    storage = T{};
    std::memcpy(static_cast<void *>(&storage), header_, have);
    return storage;
  }

  // Elements of a span field; empty when the span does not lie inside the record.
  template <typename Element>
  std::span<const Element> elements(sonde_span_t span) const {
    const uint64_t end = uint64_t{span.offset} + uint64_t{span.count} * sizeof(Element);
    if (span.count == 0 || span.offset % alignof(Element) != 0 || end > SONDE_RECORD_BYTES(header_)) return {};
    return {reinterpret_cast<const Element *>(reinterpret_cast<const uint8_t *>(header_) + span.offset), span.count};
  }

  int64_t time_ns() const { return sonde_clock_ns(batch_->clock, repair_ != nullptr ? repair_->begin : header_->time); }

  // The repaired interval from the record's time to `end` (raw). A stamp that is 0 or an end before the begin counts
  // as repaired even where the host has no entry for it.
  Interval interval(uint64_t end) const {
    const sonde_clock_t *const clock = batch_->clock;
    if (repair_ != nullptr) {
      return {sonde_clock_ns(clock, repair_->begin), sonde_clock_ns(clock, repair_->end), repair_->reason};
    }
    const int64_t begin_ns = sonde_clock_ns(clock, header_->time);
    if (end == 0 || header_->time == 0) return {begin_ns, begin_ns, SONDE_REPAIR_ZERO};
    if (end < header_->time) return {begin_ns, begin_ns, SONDE_REPAIR_REVERSED};
    return {begin_ns, sonde_clock_ns(clock, end), 0};
  }

 private:
  const sonde_batch_t *batch_;
  const sonde_record_t *header_;
  const sonde_repair_t *repair_;
};

// A view of a batch: a range of Record. [delivery], or wherever the batch is retained
class Batch {
 public:
  explicit Batch(const sonde_batch_t *batch) : batch_(batch) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Record;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Record;

    Iterator() = default;
    Iterator(const sonde_batch_t *batch, const sonde_record_t *record) : batch_(batch), record_(record) {}

    Record operator*() const {
      const uint64_t offset = static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(record_) - batch_->data);
      while (repair_ < batch_->repair_count && batch_->repairs[repair_].offset < offset) ++repair_;
      const bool repaired = repair_ < batch_->repair_count && batch_->repairs[repair_].offset == offset;
      return {batch_, record_, repaired ? batch_->repairs + repair_ : nullptr};
    }
    Iterator &operator++() {
      record_ = sonde_batch_next(batch_, record_);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator &other) const { return record_ == other.record_; }

   private:
    const sonde_batch_t *batch_ = nullptr;
    const sonde_record_t *record_ = nullptr;
    mutable uint64_t repair_ = 0;  // repairs are sorted by offset, so one walk serves all records
  };

  Iterator begin() const { return {batch_, sonde_batch_next(batch_, nullptr)}; }
  Iterator end() const { return {}; }

  const sonde_batch_t &raw() const { return *batch_; }
  uint32_t source() const { return batch_->source; }
  uint64_t stream() const { return batch_->stream; }

  // False when the batch certainly holds no record of `space`.
  bool may_have(uint32_t space) const { return (batch_->spaces >> (space < 64 ? space : 0) & 1u) != 0; }

  // Calls fn(record), fn(record, interval) for types with an `end`, or fn(record, Record) for each record of a type.
  template <typename T, typename Function>
  void for_each(uint32_t space, uint32_t type, Function &&fn) const {
    if (!may_have(space)) return;
    T storage;
    for (const Record record : *this) {
      if (record.is(space, type)) visit(record, record.as<T>(storage), fn);
    }
  }

 private:
  template <typename T, typename Function>
  static void visit(const Record &record, const T &typed, Function &fn) {
    if constexpr (std::invocable<Function &, const T &, const Interval &>) {
      fn(typed, record.interval(typed.end));
    } else if constexpr (std::invocable<Function &, const T &, const Record &>) {
      fn(typed, record);
    } else {
      fn(typed);
    }
  }

  const sonde_batch_t *batch_;
};

// An interest in every record, or in the types given, of a space.
inline sonde_interest_t every(uint32_t space) { return {space, SONDE_LEVEL_RECORDS, UINT64_MAX}; }
inline sonde_interest_t only(uint32_t space, std::initializer_list<uint32_t> types) {
  uint64_t mask = 0;
  for (const uint32_t type : types) mask |= uint64_t{1} << type;
  return {space, SONDE_LEVEL_RECORDS, mask};
}

}  // namespace sonde

#endif
