// Second pass of `sonde merge`: records of either run as records of the joined one.
#pragma once

#include <toolkit/run_join.h>
#include <sonde/sonde.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/merge_survey.h"

namespace sonde::cli {

// What the translation met.
struct TranslationCounts {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> left_out;  // records by (space, type): the first run has them
  uint64_t taken = 0;                                          // records of the second run
  uint64_t without_schema = 0;                                 // taken as they are
  uint64_t addresses = 0;                                      // translated
  uint64_t in_no_range = 0;                                    // kept
  uint64_t only_in_b = 0;                                      // in a range that the first run lacks
  uint64_t past_smaller = 0;     // beyond the end of a range that is smaller in the first run
  uint64_t moved = 0;            // of these three: marked, because the first run has something else there
  uint64_t pages_off = 0;        // page histograms of a range that begins elsewhere within a page
  uint64_t warps_split = 0;      // warp accesses over several ranges, translated by the first
  uint64_t modules_unknown = 0;  // launches whose module the first run does not show
};

// Texts of a capture as strings of this process.
class StringTable {
 public:
  StringTable(const Host &host, sonde_session_t *session)
      : capture_(host.service<sonde_capture_service_t>()), session_(session) {}

  sonde_string_t here(uint32_t source, sonde_string_t id);

 private:
  const sonde_capture_service_t &capture_;
  sonde_session_t *session_;
  std::unordered_map<sonde_string_t, sonde_string_t> known_;
};

// What a field of a record type needs.
enum class FieldAction : uint8_t {
  kString,
  kStrings,
  kTime,
  kAddress,
  kCorrelation,
  kStream,
  kContext,
  kGraphExec,
  kGraphNode,
};

struct FieldStep {
  uint32_t offset;
  uint32_t width;
  FieldAction action;
};

struct TypePlan {
  bool has_schema = false;
  std::vector<FieldStep> steps;
  // Offsets of fields that give the others their meaning; 0: the type has none.
  uint32_t bytes = 0;    // length of the range at `address`
  uint32_t launch = 0;   // the launch that the record is of
  uint32_t context = 0;  // of the stream
};

// Plans by schema, made when a type is first seen.
class TypePlans {
 public:
  explicit TypePlans(const Host &host) : capture_(host.service<sonde_capture_service_t>()) {}
  const TypePlan &plan(uint32_t space, uint32_t type);

 private:
  const sonde_capture_service_t &capture_;
  std::array<std::array<std::unique_ptr<TypePlan>, SONDE_TYPE_COUNT>, SONDE_SPACE_COUNT> plans_;
};

// Records of the first run: only their strings change.
class FirstRun {
 public:
  FirstRun(const Host &host, sonde_session_t *session) : strings_(host, session), plans_(host) {}

  // The batch's records; valid until the next call.
  std::span<const uint64_t> translate(const Batch &batch);

 private:
  StringTable strings_;
  TypePlans plans_;
  std::vector<uint64_t> words_;
};

// What two surveys have in common.
struct RunJoin {
  RunJoin(Survey first_run, Survey second_run);

  // False for kinds of ranges (the host's, blocks of allocators) that only one of the runs records, because the other's
  // port does not look, and for variables of modules.
  bool is_comparable(uint32_t group) const;

  Survey a;
  Survey b;
  toolkit::Join launches;
  toolkit::Join ranges;
  uint64_t incomparable_a = 0;  // ranges that are not comparable; in none of the counts
  uint64_t incomparable_b = 0;
  toolkit::TimeWarp warp;
  toolkit::AddressTranslation addresses;

 private:
  bool both_record_host_ = false;
  bool both_record_inner_ = false;
};

// Records of the second run. Left out is what the first one has too: of each type that both have, the first run's
// records stand.
class SecondRun {
 public:
  SecondRun(const Host &host, sonde_session_t *session, RunJoin &join);

  // Records that are taken, times in ns since 1970 on the first run's time line; valid until the next call.
  std::span<const uint64_t> translate(const Batch &batch);

  uint64_t stream(uint64_t stream_of_b) const { return stream_of_b == 0 ? 0 : stream_of_b + join_.a.last_stream; }
  int64_t time_ns(const sonde_clock_t &clock, uint64_t raw) const { return join_.warp(sonde_clock_ns(&clock, raw)); }
  const TranslationCounts &counts() const { return counts_; }

 private:
  using Place = toolkit::AddressTranslation::Place;

  bool is_taken(const sonde_record_t &header, const Record &record);
  void change(uint8_t *record, const Batch &batch, const Record &original);
  void change_session(uint8_t *record);
  void change_launch(uint8_t *record);
  void change_pages(uint8_t *record, uint64_t shift);
  void change_warps(uint8_t *record, int64_t time_ns);
  void change_events(uint8_t *record, int64_t time_ns);
  void change_warp(uint8_t *entry, const sonde_warp_access_t &head, int64_t time_ns);

  uint64_t address(uint64_t address, int64_t time_ns, uint64_t bytes = 1);
  uint64_t raw_time(const sonde_clock_t &clock, uint64_t raw) const;
  std::optional<uint32_t> launch_of(uint64_t id) const;
  uint64_t correlation(uint64_t of_b) const;
  uint64_t stream_handle(uint32_t context, uint64_t stream) const;
  uint32_t context(uint32_t context) const;
  uint64_t graph_exec(uint64_t of_b) const;
  uint64_t module(uint64_t of_b);

  RunJoin &join_;
  StringTable strings_;
  TypePlans plans_;
  TranslationCounts counts_;
  std::vector<uint64_t> words_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> streams_;  // context and stream of b
  std::map<uint32_t, uint32_t> contexts_;
  std::map<uint64_t, uint64_t> graphs_;
  std::map<uint64_t, uint64_t> modules_;
  std::vector<uint64_t> a_streams_;  // sorted
};

}  // namespace sonde::cli
