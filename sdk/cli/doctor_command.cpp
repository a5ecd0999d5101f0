// `sonde doctor`: what a capture lacks, and what in it cannot be right.
#include <fmt/format.h>
#include <toolkit/text.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/capture_feed.h"
#include "cli/command.h"
#include "cli/examination.h"
#include "cli/record_reader.h"

namespace sonde::cli {
namespace {

using nlohmann::ordered_json;

// A slope that is wrong by more than 0.01 % shifts an event by more than 100 us within one second.
constexpr uint32_t kMostErrorPpb = 100'000;
// Two clocks that were read more than this apart do not fix each other well enough to order launches and kernels.
constexpr uint64_t kMostUncertaintyNs = 100'000;

constexpr const char *kSeverities[] = {"info", "warning", "error", "no data"};

const char *severity_words(uint32_t severity) { return severity < 4 ? kSeverities[severity] : "note"; }

std::string plural(uint64_t count, const char *one, const char *many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

struct Diagnosis {
  std::vector<sonde_source_info_t> sources;
  std::vector<sonde_loss_t> losses;
  uint64_t lost_records = 0;
  bool is_loss_exact = true;
  std::vector<std::string> limits;   // what results cannot know
  std::vector<std::string> remarks;  // what is odd, and kept as it is
};

std::string process_name(const Diagnosis &diagnosis, uint32_t source) {
  if (source == 0 || source > diagnosis.sources.size()) return "the capture";
  return fmt::format("process {}", diagnosis.sources[source - 1].process);
}

void judge_sources(Diagnosis &diagnosis) {
  std::set<std::string> boots;
  for (const sonde_source_info_t &source : diagnosis.sources) {
    boots.insert(source.boot);
    if (source.complete == 0) {
      diagnosis.limits.push_back(fmt::format("process {} ended before its capture was closed", source.process));
    }
    if (source.damaged_bytes != 0 || *source.damage != '\0') {
      diagnosis.limits.push_back(fmt::format("process {}: {} cannot be read{}{}", source.process,
                                             toolkit::format_bytes(source.damaged_bytes),
                                             *source.damage != '\0' ? ": " : "", source.damage));
    }
  }
  if (boots.size() > 1) {
    diagnosis.limits.push_back(
        fmt::format("the files come from {} boots of machines; their times cannot be compared", boots.size()));
  }
}

void judge_losses(Diagnosis &diagnosis) {
  for (const sonde_loss_t &loss : diagnosis.losses) {
    if (loss.cause == SONDE_LOSS_LATE) {
      diagnosis.remarks.push_back(fmt::format("{} came late and out of order", loss_words(loss)));
      continue;
    }
    if (loss.records == std::numeric_limits<uint64_t>::max()) {
      diagnosis.is_loss_exact = false;
    } else {
      diagnosis.lost_records += loss.records;
    }
  }
  if (diagnosis.lost_records != 0) {
    diagnosis.limits.push_back(plural(diagnosis.lost_records, "record was lost", "records were lost"));
  }
  if (!diagnosis.is_loss_exact) diagnosis.limits.emplace_back("an unknown number of records was lost");
}

void judge_notes(const Examination &examination, Diagnosis &diagnosis) {
  for (const Note &note : examination.notes) {
    if (note.severity == 3) diagnosis.limits.push_back(fmt::format("no data from {}: {}", note.origin, note.text));
    if (note.severity == 2) diagnosis.limits.push_back(fmt::format("error in {}: {}", note.origin, note.text));
    if (note.severity == 1) diagnosis.remarks.push_back(fmt::format("{} warned: {}", note.origin, note.text));
  }
}

// What was left out on purpose is missing all the same.
void judge_windows(const Examination &examination, Diagnosis &diagnosis) {
  for (const auto &[source, windows] : examination.windows) {
    if (windows.left_out == 0) continue;
    diagnosis.limits.push_back(fmt::format(
        "{} was sampled to keep a budget: {} left out, device work collected for {:.3g} % of {}",
        process_name(diagnosis, source), plural(windows.left_out, "window was", "windows were"),
        100.0 * static_cast<double>(windows.collected_ns) / static_cast<double>(std::max<int64_t>(windows.span_ns, 1)),
        toolkit::format_ns(windows.span_ns)));
  }
}

void judge_clocks(const Examination &examination, Diagnosis &diagnosis) {
  for (const auto &[source, clock] : examination.clocks) {
    if (clock.error_ppb > kMostErrorPpb) {
      diagnosis.limits.push_back(fmt::format("clock of {}: the slope may be wrong by {:.4g} %",
                                             process_name(diagnosis, source), clock.error_ppb * 1e-7));
    }
    if (clock.uncertainty_ns > kMostUncertaintyNs) {
      diagnosis.remarks.push_back(fmt::format("clocks of {} were read up to {} apart", process_name(diagnosis, source),
                                              toolkit::format_ns(static_cast<int64_t>(clock.uncertainty_ns))));
    }
  }
  if (examination.begun_early != 0) {
    diagnosis.remarks.push_back(fmt::format(
        "{} of {} device records begin before the call that made them, by up to {}: the device's clock is "
        "off",
        examination.begun_early, examination.launches_checked, toolkit::format_ns(examination.greatest_lead_ns)));
  }
}

void judge_pairs(const Examination &examination, Diagnosis &diagnosis) {
  const auto check = [&](const char *what, const Pairing &pairing) {
    if (pairing.open != 0)
      diagnosis.remarks.push_back(fmt::format("{}: {} without an end", what, plural(pairing.open, "begin", "begins")));
    if (pairing.unopened != 0)
      diagnosis.remarks.push_back(fmt::format("{}: {} without a begin", what, plural(pairing.unopened, "end", "ends")));
  };
  check("calls", examination.calls);
  check("operators", examination.operators);
  check("scopes", examination.scopes);
  check("ranges", examination.ranges);
  const auto balance = [&](const char *what, const MemoryBalance &memory) {
    if (memory.unmatched_frees != 0) {
      diagnosis.remarks.push_back(fmt::format("{}: {} of an address that was not allocated", what,
                                              plural(memory.unmatched_frees, "free", "frees")));
    }
    if (memory.replaced != 0) {
      diagnosis.remarks.push_back(fmt::format("{}: {} at an address that was not freed", what,
                                              plural(memory.replaced, "allocation", "allocations")));
    }
  };
  balance("memory", examination.memory);
  balance("memory within allocations", examination.sub_memory);
  uint64_t repaired = 0;
  for (const uint64_t count : examination.repairs) repaired += count;
  if (repaired != 0) {
    diagnosis.remarks.push_back(fmt::format("{} could not be right; analyses count these records apart",
                                            plural(repaired, "time stamp", "time stamps")));
  }
  if (examination.is_partial) {
    diagnosis.remarks.emplace_back("too many open intervals to keep: the numbers of unmatched ones are lower bounds");
  }
}

std::string verdict_of(const Diagnosis &diagnosis) {
  if (diagnosis.sources.empty()) return "empty: there is no capture file";
  if (!diagnosis.limits.empty()) {
    return fmt::format("limited: {}", plural(diagnosis.limits.size(), "thing is missing", "things are missing"));
  }
  return diagnosis.remarks.empty()
             ? "complete: nothing lost, nothing odd"
             : fmt::format("complete: nothing lost, {}", plural(diagnosis.remarks.size(), "remark", "remarks"));
}

void print_text(const Diagnosis &diagnosis, const Examination &examination, const RecordReader &names) {
  fmt::print("Sources: {}\n", diagnosis.sources.size());
  for (const sonde_source_info_t &source : diagnosis.sources) {
    fmt::print("  process {} on {}: {}\n", source.process, visible(source.host), visible(source.command));
    fmt::print("    {}, {} records, {} chunks, {} in the file, {} before encoding\n",
               source.complete != 0 ? "complete" : "not closed in order", source.records, source.chunks,
               toolkit::format_bytes(source.file_bytes), toolkit::format_bytes(source.record_bytes));
    if (*source.damage != '\0') {
      fmt::print("    damage: {} ({})\n", visible(source.damage), toolkit::format_bytes(source.damaged_bytes));
    }
  }
  fmt::print("Records\n");
  for (const auto &[key, count] : examination.counts) {
    fmt::print("  {}.{}: {}\n", visible(names.space_name(key.first)), visible(names.type_name(key.first, key.second)),
               count);
  }
  fmt::print("Losses: {}{}\n", diagnosis.lost_records, diagnosis.is_loss_exact ? "" : " and an unknown number");
  for (const sonde_loss_t &loss : diagnosis.losses) {
    fmt::print("  {}: {}, {}, stream {}\n", cause_words(loss.cause), loss_words(loss),
               process_name(diagnosis, loss.source), loss.stream);
  }
  fmt::print("Repaired time stamps\n");
  for (uint32_t reason = 1; reason < examination.repairs.size(); ++reason) {
    fmt::print("  {}: {}\n", repair_words(reason), examination.repairs[reason]);
  }
  fmt::print("Unmatched\n");
  const auto pairing = [](const char *what, const Pairing &pairs) {
    fmt::print("  {}: {} begins, {} ends; {} begins without an end, {} ends without a begin\n", what, pairs.begins,
               pairs.ends, pairs.open, pairs.unopened);
  };
  pairing("calls", examination.calls);
  pairing("operators", examination.operators);
  pairing("scopes", examination.scopes);
  pairing("ranges", examination.ranges);
  const auto balance = [](const char *what, const MemoryBalance &memory) {
    fmt::print("  {}: {} allocations, {} frees; {} frees without an allocation, {} never freed ({})\n", what,
               memory.allocations, memory.frees, memory.unmatched_frees, memory.live,
               toolkit::format_bytes(memory.live_bytes));
  };
  balance("memory", examination.memory);
  balance("memory within allocations", examination.sub_memory);
  fmt::print("Clocks\n");
  for (const auto &[source, clock] : examination.clocks) {
    fmt::print("  {}: slope known to {:.3g} parts in a million, {} pairs, read within {}\n",
               process_name(diagnosis, source), clock.error_ppb * 1e-3, clock.pairs,
               toolkit::format_ns(static_cast<int64_t>(clock.uncertainty_ns)));
  }
  fmt::print("  device records before their call: {} of {}\n", examination.begun_early, examination.launches_checked);
  fmt::print("Notes: {}\n", examination.notes.size());
  for (const Note &note : examination.notes) {
    fmt::print("  {}: {} ({}): {}\n", process_name(diagnosis, note.source), severity_words(note.severity),
               visible(note.origin), visible(note.text));
  }
  for (const std::string &limit : diagnosis.limits) fmt::print("Missing: {}\n", visible(limit));
  for (const std::string &remark : diagnosis.remarks) fmt::print("Remark: {}\n", visible(remark));
  fmt::print("Verdict: {}\n", verdict_of(diagnosis));
}

ordered_json json_of(const Pairing &pairing) {
  return {{"begins", pairing.begins},
          {"ends", pairing.ends},
          {"begins_without_end", pairing.open},
          {"ends_without_begin", pairing.unopened}};
}

ordered_json json_of(const MemoryBalance &memory) {
  return {{"allocations", memory.allocations},
          {"frees", memory.frees},
          {"frees_without_allocation", memory.unmatched_frees},
          {"allocations_over_live", memory.replaced},
          {"never_freed", memory.live},
          {"never_freed_bytes", memory.live_bytes}};
}

void print_json(const Diagnosis &diagnosis, const Examination &examination, const RecordReader &names) {
  ordered_json shown;
  shown["verdict"] = verdict_of(diagnosis);
  shown["limits"] = diagnosis.limits;
  shown["remarks"] = diagnosis.remarks;
  shown["sources"] = ordered_json::array();
  for (const sonde_source_info_t &source : diagnosis.sources) {
    shown["sources"].push_back({{"process", source.process},
                                {"parent_process", source.parent_process},
                                {"host", source.host},
                                {"program", source.program},
                                {"command", source.command},
                                {"boot", source.boot},
                                {"path", source.path},
                                {"complete", source.complete != 0},
                                {"start_ns", source.start_ns},
                                {"stop_ns", source.stop_ns},
                                {"records", source.records},
                                {"chunks", source.chunks},
                                {"file_bytes", source.file_bytes},
                                {"record_bytes", source.record_bytes},
                                {"damaged_bytes", source.damaged_bytes},
                                {"damage", source.damage}});
  }
  shown["records"] = ordered_json::object();
  for (const auto &[key, count] : examination.counts) {
    shown["records"][names.space_name(key.first) + "." + names.type_name(key.first, key.second)] = count;
  }
  shown["losses"] = {{"records", diagnosis.lost_records}, {"exact", diagnosis.is_loss_exact}};
  shown["losses"]["rows"] = ordered_json::array();
  for (const sonde_loss_t &loss : diagnosis.losses) {
    const bool is_unknown = loss.records == std::numeric_limits<uint64_t>::max();
    shown["losses"]["rows"].push_back({{"source", loss.source},
                                       {"stream", loss.stream},
                                       {"cause", cause_words(loss.cause)},
                                       {"records", is_unknown ? ordered_json(nullptr) : ordered_json(loss.records)},
                                       {"bytes", loss.bytes}});
  }
  shown["repairs"] = ordered_json::object();
  for (uint32_t reason = 1; reason < examination.repairs.size(); ++reason) {
    shown["repairs"][std::string(repair_words(reason))] = examination.repairs[reason];
  }
  shown["unmatched"] = {{"calls", json_of(examination.calls)},   {"operators", json_of(examination.operators)},
                        {"scopes", json_of(examination.scopes)}, {"ranges", json_of(examination.ranges)},
                        {"memory", json_of(examination.memory)}, {"sub_memory", json_of(examination.sub_memory)}};
  shown["clocks"] = {{"device_records_checked", examination.launches_checked},
                     {"device_records_before_their_call", examination.begun_early},
                     {"greatest_lead_ns", examination.greatest_lead_ns}};
  shown["clocks"]["sources"] = ordered_json::array();
  for (const auto &[source, clock] : examination.clocks) {
    shown["clocks"]["sources"].push_back({{"source", source},
                                          {"error_ppb", clock.error_ppb},
                                          {"pairs", clock.pairs},
                                          {"uncertainty_ns", clock.uncertainty_ns}});
  }
  shown["notes"] = ordered_json::array();
  for (const Note &note : examination.notes) {
    shown["notes"].push_back({{"source", note.source},
                              {"severity", severity_words(note.severity)},
                              {"origin", note.origin},
                              {"text", note.text}});
  }
  fmt::print("{}\n", shown.dump(1, ' ', false, ordered_json::error_handler_t::replace));
}

// Memory is balanced in order of time over all streams.
void subscribe_memory(const Host &host, Session &session, Examination &examination) {
  const sonde_interest_t interest = every(SONDE_SPACE_MEMORY);
  sonde_merge_options_t options{};
  options.struct_size = sizeof(options);
  options.interest_count = 1;
  options.interests = &interest;
  options.name = "doctor.memory";
  options.on_record = [](void *user, const sonde_merged_t *merged) -> sonde_status {
    static_cast<Examination *>(user)->on_memory(*merged);
    return SONDE_OK;
  };
  options.user = &examination;
  uint64_t id = 0;
  host.check(host.service<sonde_merge_service_t>().subscribe(session.get(), &options, &id));
}

}  // namespace

Subcommand add_doctor(CLI::App &root) {
  struct Flags {
    std::string capture;
    std::string format = "text";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("doctor", "Say what a capture lacks and what in it cannot be right");
  app->footer(
      "Exit status 0: complete; 1: something is missing; 3: it cannot be read at all.\n"
      "Examples:\n"
      "  sonde doctor capture\n"
      "  sonde doctor capture --format json");
  app->add_option("CAPTURE", flags->capture, "Run directory or .sonde file")->required();
  app->add_option("--format", flags->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) {
            CaptureFeed feed(context.host, flags->capture);
            Examination examination(feed.session());
            feed.subscribe_all("doctor", [&](const Batch &batch) {
              examination.on_batch(batch);
              return SONDE_OK;
            });
            subscribe_memory(context.host, feed.session(), examination);
            feed.run();
            examination.finish();

            Diagnosis diagnosis;
            diagnosis.sources = sources_of(context.host, feed.capture());
            diagnosis.losses = losses_of(context.host, feed.capture());
            judge_sources(diagnosis);
            judge_losses(diagnosis);
            judge_notes(examination, diagnosis);
            judge_windows(examination, diagnosis);
            judge_clocks(examination, diagnosis);
            judge_pairs(examination, diagnosis);
            const RecordReader names(context.host, feed.session().get());
            if (flags->format == "json") {
              print_json(diagnosis, examination, names);
            } else {
              print_text(diagnosis, examination, names);
            }
            return diagnosis.limits.empty() && !diagnosis.sources.empty() ? kOk : kFound;
          }};
}

}  // namespace sonde::cli
