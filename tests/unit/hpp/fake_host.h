// A host made of maps: what an analysis asks of it is answered from here, and what it publishes lies here to be read.
// It has the services session, capture, delivery, config and result, as far as the C++ layer and analyses use them.
#pragma once

#include <sonde/sonde.h>

#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sonde::testing {

struct FakeValue {
  uint32_t kind = SONDE_VALUE_NONE;
  int64_t i64 = 0;  // of integers and truth values
  double f64 = 0;
  std::string text;

  static FakeValue of(const sonde_value_t &value);
  // As written in an expectation: integers in decimal, text as it is, "" for an empty cell.
  std::string str() const;
};

struct FakeTable {
  std::string origin, name, title, help;
  struct Column {
    std::string name, unit, help;
    uint32_t kind, flags;
  };
  std::vector<Column> columns;
  std::vector<std::vector<FakeValue>> rows;

  // Index of a column; fails the test when there is none.
  size_t column(std::string_view name) const;
  const FakeValue &at(size_t row, std::string_view column) const;
  // The row whose key column holds `key` as text; fails the test when there is none.
  size_t row_where(std::string_view column, std::string_view key) const;
};

struct FakeFinding {
  std::string origin, rule, message, advice, reason, formula;
  uint32_t severity = 0, verdict = 0;
  double gain_seconds = 0, confidence = 0, sampling_scale = 0;
  std::map<std::string, FakeValue> evidence;
  std::map<std::string, std::string> units;  // of evidence
};

struct FakeSubscription {
  std::string name;
  std::vector<sonde_interest_t> interests;
  sonde_subscription_t raw{};
  bool ended = false;
};

// One for the process, since the tables are functions without a user pointer; reset it in each test.
class FakeHost {
 public:
  static FakeHost &get();
  static const sonde_host_t *table();
  void reset();

  // A session of this host; all handles mean the same one.
  static sonde_session_t *session();

  // Id of a text, the same for every source.
  sonde_string_t intern(std::string_view text);

  const FakeTable &find_table(std::string_view name) const;
  std::vector<FakeFinding> find(std::string_view rule) const;

  // Ends the subscriptions: on_end, then drop_user.
  void end_subscriptions();

  std::map<std::string, std::string> options;  // what config getters answer
  std::deque<FakeTable> tables;
  std::vector<FakeFinding> findings;
  std::vector<FakeSubscription> subscriptions;
  std::vector<std::vector<uint8_t>> emitted;  // through writers
  std::vector<std::string> texts{""};
  std::string last_error;
  uint64_t demand = 0;  // every space's word
  sonde_status add_finding_answer = SONDE_OK;
  bool has_result_service = true;
  std::vector<uint8_t> ring;  // of the one writer
  sonde_writer_t writer{};
  uint64_t published = 0;
};

// Records of one stream, put together by hand. Its clock counts ns since 1970, so stamps are what interval() gives.
class BatchBuilder {
 public:
  explicit BatchBuilder(uint32_t source = 0, uint64_t stream = 1) : source_(source), stream_(stream) {}

  // Adds a record; `fill` sets the fields behind the header.
  template <typename T, typename Fill>
  BatchBuilder &add(uint32_t space, uint32_t type, uint64_t time, Fill &&fill) {
    T record;
    std::memset(static_cast<void *>(&record), 0, sizeof(record));
    SONDE_RECORD_INIT(&record, space, type, time);
    fill(record);
    append(&record, sizeof(record));
    return *this;
  }
  void append(const void *record, size_t bytes);
  // Marks the last record as repaired.
  BatchBuilder &repaired(uint64_t begin, uint64_t end, uint32_t reason);

  // Valid as long as the builder is not changed.
  const sonde_batch_t &batch();

  sonde_batch_t raw{};  // counters to set by hand; the rest is filled by batch()

 private:
  uint32_t source_;
  uint64_t stream_;
  uint64_t last_offset_ = 0;
  uint64_t count_ = 0;
  uint64_t spaces_ = 0;
  std::vector<uint64_t> words_;  // aligned storage of the records
  std::vector<sonde_repair_t> repairs_;
};

}  // namespace sonde::testing
