// What a capture lacks and what in it cannot be right: the findings of `doctor`.
#pragma once

#include <sonde/sonde.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sonde::cli {

// Begins and ends of one kind of interval.
struct Pairing {
  uint64_t begins = 0;
  uint64_t ends = 0;
  uint64_t open = 0;      // begins without an end
  uint64_t unopened = 0;  // ends without a begin
};

struct MemoryBalance {
  uint64_t allocations = 0;
  uint64_t frees = 0;
  uint64_t unmatched_frees = 0;  // of an address that is not allocated then
  uint64_t replaced = 0;         // allocations at an address that was not freed
  uint64_t live = 0;             // never freed
  uint64_t live_bytes = 0;
};

struct Note {
  uint32_t source = 0;
  uint32_t severity = 0;  // 0 info, 1 warning, 2 error, 3 no data
  std::string origin;
  std::string text;

  auto operator<=>(const Note &) const = default;
};

struct ClockState {
  uint32_t error_ppb = 0;       // greatest over the source's batches
  uint64_t pairs = 0;           // clock pairs seen
  uint64_t uncertainty_ns = 0;  // greatest of a pair
};

// Windows of a port that keeps a budget.
struct Windows {
  uint64_t left_out = 0;
  int64_t span_ns = 0;
  int64_t collected_ns = 0;
};

// Collects from batches and, for memory, from records in order of time.
class Examination {
 public:
  explicit Examination(const Session &session) : session_(&session) {}

  // [delivery], one thread at a time
  void on_batch(const Batch &batch);
  // [delivery], records of sonde.memory, merged; another thread than on_batch is allowed
  void on_memory(const sonde_merged_t &merged);
  // After the last record.
  void finish();

  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;  // records by (space, type)
  std::array<uint64_t, 5> repairs{};                         // by SONDE_REPAIR_*; 0: unknown reasons
  Pairing calls;
  Pairing operators;
  Pairing scopes;
  Pairing ranges;
  MemoryBalance memory;
  MemoryBalance sub_memory;
  std::set<Note> notes;
  std::map<uint32_t, ClockState> clocks;  // by source
  std::map<uint32_t, Windows> windows;    // by source
  uint64_t launches_checked = 0;          // device records compared with the call that made them
  uint64_t begun_early = 0;               // of these, begun before their call
  int64_t greatest_lead_ns = 0;
  bool is_partial = false;  // too many open things to keep: the counts are lower bounds

 private:
  using Identity = std::tuple<uint32_t, uint64_t, uint64_t>;  // source and two numbers
  struct IdentityHash {
    size_t operator()(const Identity &identity) const;
  };
  using OpenCounts = std::unordered_map<Identity, uint64_t, IdentityHash>;
  using Live = std::unordered_map<Identity, uint64_t, IdentityHash>;  // bytes

  void open(OpenCounts &map, Pairing &pairing, const Identity &identity);
  void close(OpenCounts &map, Pairing &pairing, const Identity &identity);
  void on_host(const Record &record, uint32_t source);
  void on_framework(const Record &record, uint32_t source);
  void on_session(const Record &record, uint32_t source);
  void on_device(const Record &record, uint32_t source);
  void launched(uint32_t source, uint64_t correlation, int64_t time_ns);
  void begun(uint32_t source, uint64_t correlation, int64_t time_ns);
  void compare(int64_t call_ns, int64_t device_ns);

  const Session *session_;
  OpenCounts open_calls_;
  OpenCounts open_operators_;
  OpenCounts open_scopes_;
  std::unordered_map<Identity, int64_t, IdentityHash> range_balance_;  // starts minus ends
  Live live_;
  Live sub_live_;
  std::unordered_map<Identity, int64_t, IdentityHash> call_times_;
  std::unordered_map<Identity, int64_t, IdentityHash> early_devices_;  // seen before their call: least begin
};

}  // namespace sonde::cli
