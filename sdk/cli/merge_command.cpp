// `sonde merge`: joins the captures of two runs of one program into one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "cli/capture_feed.h"
#include "cli/command.h"
#include "cli/merge_output.h"
#include "cli/merge_report.h"
#include "cli/merge_survey.h"
#include "cli/merge_translate.h"

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string first;
  std::string second;
  std::string output;
  double tolerance = 1;  // per cent
  bool is_forced = false;
  std::string format = "text";
  bool wants_json = false;
};

// Times of translated records.
constexpr sonde_clock_t kUnixClock = {sizeof(sonde_clock_t), SONDE_CLOCK_UNIX_NS, 0, 0, 1, 0, 0};

// One of the two captures.
struct Run {
  Run(const Host &host, const std::string &path)
      : capture(open_capture(host, path)),
        sources(sources_of(host, capture.get())),
        losses(losses_of(host, capture.get())) {}

  OwnedCapture capture;
  std::vector<sonde_source_info_t> sources;
  std::vector<sonde_loss_t> losses;
};

constexpr size_t kNone = SIZE_MAX;

struct ProcessPair {
  size_t a = kNone;  // indices of sources
  size_t b = kNone;
};

std::string program_of(const sonde_source_info_t &source) { return fs::path(source.program).filename().string(); }

std::vector<size_t> in_order_of_start(const std::vector<sonde_source_info_t> &sources) {
  std::vector<size_t> order(sources.size());
  for (size_t index = 0; index < order.size(); ++index) order[index] = index;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t left, size_t right) { return sources[left].start_ns < sources[right].start_ns; });
  return order;
}

std::string programs_of(const std::vector<sonde_source_info_t> &sources) {
  std::string names;
  for (const sonde_source_info_t &source : sources) {
    const std::string name = program_of(source);
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// In order of start: those of one program and one command line first, then those of one program, then (forced) any.
std::vector<ProcessPair> pair_processes(const Run &a, const Run &b, bool is_forced) {
  std::vector<size_t> partner(a.sources.size(), kNone);
  std::vector<bool> is_taken(b.sources.size(), false);
  const std::vector<size_t> a_order = in_order_of_start(a.sources);
  const std::vector<size_t> b_order = in_order_of_start(b.sources);
  const auto pair_by = [&](const auto &fits) {
    for (const size_t one : a_order) {
      for (const size_t other : b_order) {
        if (partner[one] != kNone || is_taken[other] || !fits(a.sources[one], b.sources[other])) continue;
        partner[one] = other;
        is_taken[other] = true;
      }
    }
  };
  const auto same_program = [](const sonde_source_info_t &one, const sonde_source_info_t &other) {
    return program_of(one) == program_of(other);
  };
  pair_by([&](const auto &one, const auto &other) {
    return same_program(one, other) && std::string_view(one.command) == other.command;
  });
  pair_by(same_program);
  if (std::all_of(partner.begin(), partner.end(), [](size_t other) { return other == kNone; }) && !is_forced) {
    throw CommandError(kUsage, fmt::format("the captures are of different programs: {} and {}; --force joins them in "
                                           "order of start all the same",
                                           programs_of(a.sources), programs_of(b.sources)));
  }
  if (is_forced) pair_by([](const auto &, const auto &) { return true; });
  std::vector<ProcessPair> pairs;
  for (const size_t one : a_order) pairs.push_back({one, partner[one]});
  for (const size_t other : b_order) {
    if (!is_taken[other]) pairs.push_back({kNone, other});
  }
  return pairs;
}

// A directory that takes its name when everything in it is written, and goes away otherwise.
class NewDirectory {
 public:
  explicit NewDirectory(const std::string &path) : path_(path), partial_(path + fmt::format(".partial-{}", getpid())) {
    std::error_code error;
    const bool is_there = fs::exists(fs::symlink_status(path, error));
    if (is_there && !(fs::is_directory(path, error) && fs::is_empty(path, error))) {
      throw CommandError(kUsage, fmt::format("{} exists already; give a new or an empty directory", path));
    }
    if (!fs::create_directory(partial_, error)) {
      throw CommandError(kInput, fmt::format("cannot make directory {}: {}", partial_, error.message()));
    }
  }
  ~NewDirectory() {
    std::error_code ignored;
    if (!partial_.empty()) fs::remove_all(partial_, ignored);
  }
  NewDirectory(const NewDirectory &) = delete;
  NewDirectory &operator=(const NewDirectory &) = delete;

  std::string file(const std::string &name) const { return partial_ + "/" + name; }

  void keep() {
    std::error_code error;
    fs::rename(partial_, path_, error);
    if (error) throw CommandError(kInput, fmt::format("cannot make directory {}: {}", path_, error.message()));
    partial_.clear();
  }

 private:
  std::string path_;
  std::string partial_;
};

class Merge {
 public:
  Merge(const Host &host, const Flags &flags)
      : host_(host), flags_(flags), a_(host, flags.first), b_(host, flags.second) {}

  int run() {
    const std::vector<ProcessPair> pairs = pair_processes(a_, b_, flags_.is_forced);
    NewDirectory directory(flags_.output);
    for (const ProcessPair &pair : pairs) processes_.push_back(join(pair, directory));
    if (kernels_of_a_ == 0) {
      throw CommandError(kUsage, fmt::format("{} has no kernels of the device to join with; the capture of the trace "
                                             "port stands first",
                                             flags_.first));
    }
    const double share = mismatch_share(processes_);
    const bool is_good = share * 100 <= flags_.tolerance;
    const bool is_written = is_good || flags_.is_forced;
    if (is_written) directory.keep();
    print(share, is_written);
    return is_written ? kOk : kFound;
  }

 private:
  ProcessJoin join(const ProcessPair &pair, const NewDirectory &directory) {
    const sonde_source_info_t *const a = pair.a == kNone ? nullptr : &a_.sources[pair.a];
    const sonde_source_info_t *const b = pair.b == kNone ? nullptr : &b_.sources[pair.b];
    KernelKeys keys;
    Survey first = survey(a, Role::kTraced, keys);
    Survey second = survey(b, Role::kAccessed, keys);
    kernels_of_a_ += first.launches.launches().size();
    if (has_accesses(first)) {
      throw CommandError(kUsage,
                         fmt::format("{} has access records itself; the capture of the trace port stands first, "
                                     "the one with accesses second",
                                     flags_.first));
    }
    ProcessJoin process;
    if (a != nullptr && b != nullptr) {
      RunJoin joined(std::move(first), std::move(second));
      process = describe_join(joined, keys);
      name(process, a, b);
      write(process, pair, directory, joined.a.last_stream, &joined);
    } else {
      process = describe_alone(a != nullptr ? first : second, a != nullptr);
      name(process, a, b);
      if (a != nullptr) write(process, pair, directory, first.last_stream, nullptr);
    }
    return process;
  }

  Survey survey(const sonde_source_info_t *source, Role role, KernelKeys &keys) const {
    if (source == nullptr || source->records == 0) return {};
    return survey_capture(host_, source->path, role, keys);
  }

  static bool has_accesses(const Survey &survey) {
    return std::any_of(survey.counts.begin(), survey.counts.end(),
                       [](const auto &count) { return count.first.first == SONDE_SPACE_ACCESS; });
  }

  void name(ProcessJoin &process, const sonde_source_info_t *a, const sonde_source_info_t *b) const {
    process.program = program_of(a != nullptr ? *a : *b);
    process.process_a = a != nullptr ? a->process : 0;
    process.process_b = b != nullptr ? b->process : 0;
    if (a != nullptr) process.file = fs::path(a->path).filename().string();
  }

  // `joined` is NULL where only the first run has the process.
  void write(ProcessJoin &process, const ProcessPair &pair, const NewDirectory &directory, uint64_t first_run_streams,
             RunJoin *joined) {
    const sonde_source_info_t &a = a_.sources[pair.a];
    const uint64_t second_run_streams = joined != nullptr ? joined->b.last_stream : 0;
    OutputFile output(host_, directory.file(process.file), a);
    write_records(process, pair, joined, output);

    process.lost_a = carry_losses(a_, pair.a, 0, output);
    if (joined != nullptr) process.lost_b = carry_losses(b_, pair.b, first_run_streams, output);
    write_notes(process, pair, first_run_streams, first_run_streams + second_run_streams + 1, output);
    output.complete(a.stop_ns);
  }

  void write_records(ProcessJoin &process, const ProcessPair &pair, RunJoin *joined, OutputFile &output) const {
    TurnTaking turns;
    std::exception_ptr failure_of_b;
    std::thread second;
    const auto take_side = [&turns](int side, const auto &body) {
      std::exception_ptr failure;
      try {
        body();
      } catch (...) {
        failure = std::current_exception();
      }
      turns.done(side, failure != nullptr);
      return failure;
    };
    if (joined == nullptr || b_.sources[pair.b].records == 0) {
      turns.done(1, false);
    } else {
      second = std::thread([&] {
        failure_of_b = take_side(1, [&] { feed_second(process, b_.sources[pair.b].path, *joined, turns, output); });
      });
    }
    const std::exception_ptr failure_of_a = take_side(0, [&] {
      if (a_.sources[pair.a].records != 0) feed_first(a_.sources[pair.a].path, turns, output);
    });
    if (second.joinable()) second.join();
    for (const std::exception_ptr &failure : {failure_of_a, failure_of_b}) {
      if (failure != nullptr) std::rethrow_exception(failure);
    }
  }

  void feed_first(const char *path, TurnTaking &turns, OutputFile &output) const {
    CaptureFeed feed(host_, path);
    FirstRun run(host_, feed.session().get());
    feed.subscribe_all("merge.first", [&](const Batch &batch) {
      const sonde_batch_t &raw = batch.raw();
      const std::span<const uint64_t> words = run.translate(batch);
      if (!turns.wait(0, sonde_clock_ns(raw.clock, raw.first_time))) return SONDE_E_STOP;
      output.append(raw, words, raw.stream, *raw.clock, raw.watermark);
      return SONDE_OK;
    });
    feed.run();
  }

  void feed_second(ProcessJoin &process, const char *path, RunJoin &joined, TurnTaking &turns,
                   OutputFile &output) const {
    CaptureFeed feed(host_, path);
    SecondRun run(host_, feed.session().get(), joined);
    feed.subscribe_all("merge.second", [&](const Batch &batch) {
      const sonde_batch_t &raw = batch.raw();
      const std::span<const uint64_t> words = run.translate(batch);
      if (!turns.wait(1, run.time_ns(*raw.clock, raw.first_time))) return SONDE_E_STOP;
      const uint64_t watermark = raw.watermark == 0 ? 0 : static_cast<uint64_t>(run.time_ns(*raw.clock, raw.watermark));
      output.append(raw, words, run.stream(raw.stream), kUnixClock, watermark);
      return SONDE_OK;
    });
    feed.run();
    process.translation = run.counts();
  }

  // Rows of one source; how many records they are, as far as that is known.
  static uint64_t carry_losses(const Run &run, size_t source, uint64_t shift, OutputFile &output) {
    uint64_t sum = 0;
    for (sonde_loss_t row : run.losses) {
      if (row.source != source + 1) continue;
      if (row.stream != 0) row.stream += shift;
      output.lose(row);
      if (row.records != UINT64_MAX && row.cause != SONDE_LOSS_LATE) sum += row.records;
    }
    return sum;
  }

  // In a stream of their own, at the end of the run.
  void write_notes(const ProcessJoin &process, const ProcessPair &pair, uint64_t first_run_streams, uint64_t stream,
                   OutputFile &output) const {
    const sonde_source_info_t &a = a_.sources[pair.a];
    std::vector<std::pair<uint32_t, std::string>> notes;
    if (pair.b != kNone) {
      const sonde_source_info_t &b = b_.sources[pair.b];
      notes.emplace_back(0,
                         fmt::format("this capture (A) is joined with that of another run (B): process {} on {}, {}; "
                                     "B's streams are those from {} on",
                                     b.process, b.host, b.command, first_run_streams + 1));
      if (b.complete == 0) notes.emplace_back(2, "B's process ended before its capture was closed");
      if (b.damaged_bytes != 0) notes.emplace_back(2, fmt::format("B's capture is damaged: {}", b.damage));
    }
    if (a.complete == 0) notes.emplace_back(2, "A's process ended before its capture was closed");
    if (a.damaged_bytes != 0) notes.emplace_back(2, fmt::format("A's capture is damaged: {}", a.damage));
    for (auto &note : notes_of(process, host_)) notes.push_back(std::move(note));

    const auto &capture = host_.service<sonde_capture_service_t>();
    const auto intern = [&](const std::string &text) {
      sonde_string_t id = 0;
      host_.check(capture.intern(text.data(), text.size(), &id));
      return id;
    };
    std::vector<uint64_t> words;
    const auto add = [&](auto &record, uint32_t type) {
      SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, type, static_cast<uint64_t>(a.stop_ns));
      const size_t at = words.size();
      words.resize(at + sizeof record / 8);
      std::memcpy(words.data() + at, &record, sizeof record);
    };
    sonde_session_stream_t begin{};
    begin.stream = stream;
    begin.kind = SONDE_STREAM_PORT;
    begin.name = intern("merge");
    add(begin, SONDE_SESSION_STREAM);
    for (const auto &[severity, text] : notes) {
      sonde_session_note_t note{};
      note.severity = severity;
      note.origin = begin.name;
      note.text = intern(text);
      add(note, SONDE_SESSION_NOTE);
    }
    const sonde_batch_t nothing_before{};
    output.append(nothing_before, words, stream, kUnixClock, 0);
  }

  void print(double share, bool is_written) const {
    if (flags_.format == "json" || flags_.wants_json) {
      nlohmann::ordered_json shown;
      shown["output"] = is_written ? nlohmann::ordered_json(flags_.output) : nlohmann::ordered_json(nullptr);
      shown["mismatch_share"] = share;
      shown["tolerance"] = flags_.tolerance / 100;
      shown["processes"] = nlohmann::ordered_json::array();
      for (const ProcessJoin &process : processes_) shown["processes"].push_back(json_of(process, host_));
      fmt::print("{}\n", shown.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      print_join(processes_, host_);
      fmt::print("mismatches: {:.4g} %, tolerated {:.4g} %\n", share * 100, flags_.tolerance);
    }
    if (is_written) return;
    std::fflush(stdout);
    fmt::print(stderr,
               "sonde: {:.4g} % of the launches or allocations do not match, more than --tolerance {:.4g}: nothing was "
               "written; --force writes it all the same\n",
               share * 100, flags_.tolerance);
    for (const ProcessJoin &process : processes_) {
      if (process.places.empty()) continue;
      fmt::print(stderr, "sonde: the first in process {}: {}\n", process.process_a, visible(process.places.front()));
    }
  }

  Host host_;
  const Flags &flags_;
  Run a_;
  Run b_;
  std::vector<ProcessJoin> processes_;
  uint64_t kernels_of_a_ = 0;
};

}  // namespace

Subcommand add_merge(CLI::App &root) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("merge", "Join the captures of two runs of one program");
  app->footer(
      "A is recorded with the trace port (kernels with times, allocations), B with a port that cannot run beside it\n"
      "(accesses). The result is A with what only B has: B's launches carry A's correlation ids, streams and "
      "contexts,\n"
      "its addresses are those of A's allocations, its times lie on A's time line. So an analysis sees one run.\n"
      "\n"
      "Launches are matched stream by stream (by what runs on them, then in order of first use) as a longest common\n"
      "sequence of (name, grid, block), allocations device by device by order and size, processes by program, command\n"
      "line and order of start. What does not match is counted and named, here and in notes of the result.\n"
      "\n"
      "Exit status 0: written; 1: more mismatches than tolerated, nothing is written; 2: the captures do not belong\n"
      "together; 3: one cannot be read.\n"
      "Examples:\n"
      "  sonde merge trace accesses -o joined\n"
      "  sonde merge trace accesses -o joined --tolerance 5 --json\n"
      "  sonde replay joined -p uvm");
  app->add_option("A", flags->first, "Run directory or .sonde file of the traced run")->required();
  app->add_option("B", flags->second, "Run directory or .sonde file of the other run")->required();
  app->add_option("-o,--output", flags->output, "Run directory to make")->required();
  app->add_option("--tolerance", flags->tolerance, "Mismatching launches or allocations that are tolerated, per cent")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app->add_flag("--force", flags->is_forced, "Join whatever matches, also of different programs");
  app->add_option("--format", flags->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app->add_flag("--json", flags->wants_json, "The same as --format json");
  return {app, [flags](const Context &context) { return Merge(context.host, *flags).run(); }};
}

}  // namespace sonde::cli
