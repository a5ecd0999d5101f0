// What `sonde merge` says of a join: to people, to programs, and in the joined capture itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/merge_survey.h"
#include "cli/merge_translate.h"

namespace sonde::cli {

// One process of the joined run. Without a partner everything that it has is a mismatch.
struct ProcessJoin {
  std::string program;
  uint64_t process_a = 0;  // 0: none
  uint64_t process_b = 0;
  std::string file;  // written; "" where only the second run has the process
  uint64_t launches_matched = 0;
  uint64_t launches_out_of_order = 0;
  uint64_t launches_only_a = 0;
  uint64_t launches_only_b = 0;
  uint64_t ranges_matched = 0;
  uint64_t ranges_only_a = 0;
  uint64_t ranges_only_b = 0;
  uint64_t ranges_of_other_size = 0;
  uint64_t ranges_incomparable_a = 0;
  uint64_t ranges_incomparable_b = 0;
  uint64_t moments = 0;       // that fix the second run's times
  bool is_exact = true;       // false: more might match beyond the window
  bool is_sampled_a = false;  // recorded under a budget: what lies outside its windows has no partner
  bool is_sampled_b = false;
  uint64_t lost_a = 0;  // records that the captures themselves lack
  uint64_t lost_b = 0;
  TranslationCounts translation;
  std::vector<std::string> places;  // first mismatches in words

  uint64_t launch_mismatches() const { return launches_only_a + launches_only_b; }
  uint64_t range_mismatches() const { return ranges_only_a + ranges_only_b + ranges_of_other_size; }
  uint64_t launches() const { return launches_matched + launch_mismatches(); }
  uint64_t ranges() const { return ranges_matched + ranges_only_a + ranges_only_b; }
};

// Fills everything but translation, processes, file and losses.
ProcessJoin describe_join(const RunJoin &join, const KernelKeys &keys);
// A process that only one run has.
ProcessJoin describe_alone(const Survey &survey, bool is_a);

// The greater of the two shares, launches and ranges, over all processes; 0 to 1.
double mismatch_share(const std::vector<ProcessJoin> &processes);

// Sentences for the joined capture: (severity, text).
std::vector<std::pair<uint32_t, std::string>> notes_of(const ProcessJoin &process, const Host &host);

void print_join(const std::vector<ProcessJoin> &processes, const Host &host);
nlohmann::ordered_json json_of(const ProcessJoin &process, const Host &host);

}  // namespace sonde::cli
