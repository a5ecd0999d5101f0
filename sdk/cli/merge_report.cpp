#include "cli/merge_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/capture_summary.h"
#include "cli/record_reader.h"

namespace sonde::cli {
namespace {

using nlohmann::ordered_json;
using toolkit::kNoPartner;

constexpr size_t kMostPlaces = 5;  // of each kind

// Indices without a partner, the earliest ones; `counts` says which of them count.
template <typename Time, typename Counts>
std::vector<uint32_t> first_alone(const std::vector<uint32_t> &partners, const Time &time_of, const Counts &counts) {
  std::vector<uint32_t> alone;
  const auto is_earlier = [&](uint32_t left, uint32_t right) { return time_of(left) < time_of(right); };
  for (uint32_t index = 0; index < partners.size(); ++index) {
    if (partners[index] != kNoPartner || !counts(index)) continue;
    if (alone.size() == kMostPlaces && !is_earlier(index, alone.back())) continue;
    alone.insert(std::upper_bound(alone.begin(), alone.end(), index, is_earlier), index);
    if (alone.size() > kMostPlaces) alone.pop_back();
  }
  return alone;
}

std::string place_of_launch(const Survey &survey, uint32_t index, const KernelKeys &keys, const char *run) {
  const auto &launches = survey.launches.launches();
  const toolkit::JoinLaunch &launch = launches[index];
  const toolkit::JoinLane &lane = survey.launches.lanes()[launch.lane];
  uint64_t number = 1;
  for (const toolkit::JoinLaunch &other : launches) {
    const bool is_before = other.lane == launch.lane &&
                           std::make_pair(other.time_ns, other.id) < std::make_pair(launch.time_ns, launch.id);
    if (is_before) ++number;
  }
  return fmt::format("launch only in {}: number {} of {} {:#x} (device {}, context {}): {}", run, number,
                     lane.is_graph ? "graph" : "stream", lane.stream, lane.device, lane.context,
                     keys.describe(launch.key));
}

std::string place_of_range(const Survey &survey, uint32_t index, const char *run) {
  const toolkit::RangeLives::Life &life = survey.lives[index];
  uint64_t number = 1;
  for (uint32_t other = 0; other < index; ++other) {
    if (survey.lives[other].range.group == life.range.group) ++number;
  }
  const uint32_t device = life.range.group & ~(kInnerGroups | kStaticGroups);
  return fmt::format("{} only in {}: number {} of {}, {} bytes at {:#x}",
                     life.layer != 0 ? "block of an allocator" : "allocation", run, number,
                     device == kHostGroup ? std::string("the host") : fmt::format("device {}", device),
                     life.range.bytes, life.range.address);
}

void add_places(const RunJoin &join, const KernelKeys &keys, std::vector<std::string> &places) {
  const auto launch_time = [](const Survey &survey) {
    return [&survey](uint32_t index) { return survey.launches.launches()[index].time_ns; };
  };
  const auto range_time = [](const Survey &survey) {
    return [&survey](uint32_t index) { return survey.lives[index].range.begin_ns; };
  };
  const auto any = [](uint32_t) { return true; };
  const auto comparable = [&join](const Survey &survey) {
    return [&join, &survey](uint32_t index) { return join.is_comparable(survey.lives[index].range.group); };
  };
  for (const uint32_t index : first_alone(join.launches.b_of_a, launch_time(join.a), any)) {
    places.push_back(place_of_launch(join.a, index, keys, "A"));
  }
  for (const uint32_t index : first_alone(join.launches.a_of_b, launch_time(join.b), any)) {
    places.push_back(place_of_launch(join.b, index, keys, "B"));
  }
  for (const uint32_t index : first_alone(join.ranges.b_of_a, range_time(join.a), comparable(join.a))) {
    places.push_back(place_of_range(join.a, index, "A"));
  }
  for (const uint32_t index : first_alone(join.ranges.a_of_b, range_time(join.b), comparable(join.b))) {
    places.push_back(place_of_range(join.b, index, "B"));
  }
  size_t shown = 0;
  for (uint32_t index = 0; index < join.a.lives.size() && shown < kMostPlaces; ++index) {
    const uint32_t partner = join.ranges.b_of_a[index];
    if (partner == kNoPartner || join.a.lives[index].range.bytes == join.b.lives[partner].range.bytes) continue;
    places.push_back(fmt::format("allocation of another size: {} bytes at {:#x} in A, {} bytes at {:#x} in B",
                                 join.a.lives[index].range.bytes, join.a.lives[index].range.address,
                                 join.b.lives[partner].range.bytes, join.b.lives[partner].range.address));
    ++shown;
  }
}

std::string launch_words(const ProcessJoin &process) {
  std::string text = fmt::format("{} matched, {} only in A, {} only in B", process.launches_matched,
                                 process.launches_only_a, process.launches_only_b);
  if (process.launches_out_of_order != 0) {
    text += fmt::format(" ({} of the matched out of order)", process.launches_out_of_order);
  }
  if (!process.is_exact) text += " (more might match beyond the window of the alignment)";
  return text;
}

std::string range_words(const ProcessJoin &process) {
  std::string text =
      fmt::format("{} matched, {} of these of another size, {} only in A, {} only in B", process.ranges_matched,
                  process.ranges_of_other_size, process.ranges_only_a, process.ranges_only_b);
  if (process.ranges_incomparable_a + process.ranges_incomparable_b != 0) {
    text += fmt::format(" ({} more in A and {} more in B are of kinds that not every run records)",
                        process.ranges_incomparable_a, process.ranges_incomparable_b);
  }
  return text;
}

std::string address_words(const TranslationCounts &counts) {
  return fmt::format(
      "{} translated, {} in no allocation, {} in allocations that A lacks, {} past the end of smaller ones; {} of "
      "these "
      "marked by bit 63",
      counts.addresses, counts.in_no_range, counts.only_in_b, counts.past_smaller, counts.moved);
}

std::vector<std::pair<std::string, uint64_t>> left_out(const TranslationCounts &counts, const Host &host) {
  const auto &capture = host.service<sonde_capture_service_t>();
  std::vector<std::pair<std::string, uint64_t>> named;
  for (const auto &[type, count] : counts.left_out) {
    const sonde_schema_t *schema = nullptr;
    const sonde_record_type_t *const known = find_record_type(capture, type.first, type.second);
    const bool has_space = capture.schema(type.first, &schema) == SONDE_OK;
    named.emplace_back(
        fmt::format("{}.{}", has_space ? schema->space : "unknown", known != nullptr ? known->name : "unknown"), count);
  }
  return named;
}

std::string left_out_words(const TranslationCounts &counts, const Host &host) {
  std::string text;
  for (const auto &[name, count] : left_out(counts, host)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

// What else a reader of the joined capture should know.
std::vector<std::string> doubts(const ProcessJoin &process) {
  std::vector<std::string> texts;
  const TranslationCounts &counts = process.translation;
  if (counts.pages_off != 0) {
    texts.push_back(
        fmt::format("{} page histograms are of ranges that begin elsewhere within a page in A: their pages "
                    "stand where most of each lies",
                    counts.pages_off));
  }
  if (counts.warps_split != 0) {
    texts.push_back(
        fmt::format("{} warp accesses reach over allocations that lie differently in A: they stand where "
                    "their first address lies",
                    counts.warps_split));
  }
  if (counts.modules_unknown != 0) {
    texts.push_back(
        fmt::format("{} launches are of modules that A does not show; theirs is 0", counts.modules_unknown));
  }
  if (counts.without_schema != 0) {
    texts.push_back(fmt::format("{} records of B have no schema and were taken as they are", counts.without_schema));
  }
  for (const auto &[run, is_sampled] : {std::pair("A", process.is_sampled_a), std::pair("B", process.is_sampled_b)}) {
    if (!is_sampled) continue;
    texts.push_back(fmt::format("{} was recorded under a budget: launches outside its windows have no partner", run));
  }
  if (process.lost_a + process.lost_b != 0) {
    texts.push_back(
        fmt::format("the captures themselves lack {} records (A) and {} records (B)", process.lost_a, process.lost_b));
  }
  return texts;
}

}  // namespace

ProcessJoin describe_join(const RunJoin &join, const KernelKeys &keys) {
  ProcessJoin process;
  process.launches_matched = join.launches.matched;
  process.launches_out_of_order = join.launches.out_of_order;
  process.launches_only_a = join.launches.only_a;
  process.launches_only_b = join.launches.only_b;
  process.ranges_matched = join.ranges.matched;
  process.ranges_only_a = join.ranges.only_a;
  process.ranges_only_b = join.ranges.only_b;
  process.ranges_of_other_size = join.ranges.size_differs;
  process.ranges_incomparable_a = join.incomparable_a;
  process.ranges_incomparable_b = join.incomparable_b;
  process.moments = join.warp.moments();
  process.is_exact = join.launches.is_exact && join.ranges.is_exact;
  process.is_sampled_a = join.a.count(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW) != 0;
  process.is_sampled_b = join.b.count(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW) != 0;
  add_places(join, keys, process.places);
  return process;
}

ProcessJoin describe_alone(const Survey &survey, bool is_a) {
  ProcessJoin process;
  (is_a ? process.launches_only_a : process.launches_only_b) = survey.launches.launches().size();
  (is_a ? process.ranges_only_a : process.ranges_only_b) = survey.lives.size();
  return process;
}

double mismatch_share(const std::vector<ProcessJoin> &processes) {
  uint64_t launches = 0;
  uint64_t launch_mismatches = 0;
  uint64_t ranges = 0;
  uint64_t range_mismatches = 0;
  for (const ProcessJoin &process : processes) {
    launches += process.launches();
    launch_mismatches += process.launch_mismatches();
    ranges += process.ranges();
    range_mismatches += process.range_mismatches();
  }
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return std::max(share(launch_mismatches, launches), share(range_mismatches, ranges));
}

std::vector<std::pair<uint32_t, std::string>> notes_of(const ProcessJoin &process, const Host &host) {
  constexpr uint32_t kInfo = 0;
  constexpr uint32_t kWarning = 1;
  std::vector<std::pair<uint32_t, std::string>> notes;
  const auto severity = [](bool is_warning) { return is_warning ? kWarning : kInfo; };
  notes.emplace_back(severity(process.launch_mismatches() != 0), "launches of A and B: " + launch_words(process));
  notes.emplace_back(severity(process.range_mismatches() != 0), "allocations of A and B: " + range_words(process));
  if (process.process_b == 0) return notes;
  notes.emplace_back(severity(process.translation.moved != 0), "addresses of B: " + address_words(process.translation));
  notes.emplace_back(kInfo,
                     fmt::format("times of B stand on A's time line by {} launches that both have", process.moments));
  const std::string without = left_out_words(process.translation, host);
  if (!without.empty()) notes.emplace_back(kInfo, "left out of B because A's stand: " + without);
  for (const std::string &text : doubts(process)) notes.emplace_back(kWarning, text);
  for (const std::string &place : process.places) notes.emplace_back(kWarning, place);
  return notes;
}

void print_join(const std::vector<ProcessJoin> &processes, const Host &host) {
  for (const ProcessJoin &process : processes) {
    if (process.process_a != 0 && process.process_b != 0) {
      fmt::print("process {} of A with process {} of B: {}\n", process.process_a, process.process_b,
                 visible(process.program));
    } else {
      fmt::print("process {} only in {}: {}\n", std::max(process.process_a, process.process_b),
                 process.process_a != 0 ? "A, kept as it is" : "B, left out", visible(process.program));
    }
    fmt::print("  launches     {}\n", launch_words(process));
    fmt::print("  allocations  {}\n", range_words(process));
    if (process.process_a != 0 && process.process_b != 0) {
      fmt::print("  addresses    {}\n", address_words(process.translation));
      fmt::print("  records      {} taken from B; left out because A's stand: {}\n", process.translation.taken,
                 process.translation.left_out.empty() ? "none" : left_out_words(process.translation, host));
      fmt::print("  times        of B fixed by {} launches\n", process.moments);
    }
    for (const std::string &text : doubts(process)) fmt::print("  note: {}\n", visible(text));
    for (const std::string &place : process.places) fmt::print("  {}\n", visible(place));
  }
}

ordered_json json_of(const ProcessJoin &process, const Host &host) {
  const auto or_null = [](uint64_t id) { return id == 0 ? ordered_json(nullptr) : ordered_json(id); };
  const TranslationCounts &counts = process.translation;
  ordered_json shown;
  shown["program"] = process.program;
  shown["process_a"] = or_null(process.process_a);
  shown["process_b"] = or_null(process.process_b);
  shown["file"] = process.file.empty() ? ordered_json(nullptr) : ordered_json(process.file);
  shown["launches"] = {{"matched", process.launches_matched},
                       {"out_of_order", process.launches_out_of_order},
                       {"only_a", process.launches_only_a},
                       {"only_b", process.launches_only_b}};
  shown["allocations"] = {{"matched", process.ranges_matched},
                          {"size_differs", process.ranges_of_other_size},
                          {"only_a", process.ranges_only_a},
                          {"only_b", process.ranges_only_b},
                          {"not_recorded_by_b", process.ranges_incomparable_a},
                          {"not_recorded_by_a", process.ranges_incomparable_b}};
  shown["addresses"] = {{"translated", counts.addresses},
                        {"in_no_allocation", counts.in_no_range},
                        {"only_in_b", counts.only_in_b},
                        {"past_smaller", counts.past_smaller},
                        {"marked", counts.moved},
                        {"page_histograms_shifted", counts.pages_off},
                        {"warp_accesses_split", counts.warps_split}};
  shown["records"] = {{"taken", counts.taken}, {"without_schema", counts.without_schema}};
  shown["records"]["left_out"] = ordered_json::object();
  for (const auto &[name, count] : left_out(counts, host)) shown["records"]["left_out"][name] = count;
  shown["modules_unknown"] = counts.modules_unknown;
  shown["moments"] = process.moments;
  shown["is_exact"] = process.is_exact;
  shown["lost_records"] = {{"a", process.lost_a}, {"b", process.lost_b}};
  shown["places"] = process.places;
  return shown;
}

}  // namespace sonde::cli
