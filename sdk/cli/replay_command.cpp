#include "cli/replay_command.h"

#include <fmt/format.h>

#include "cli/capture_summary.h"
#include "cli/command.h"

namespace sonde::cli {

Analysing::Analysing(const Host &host, const RunConfig &config)
    : host_(host), service_(host.service<sonde_run_service_t>()), run_(nullptr, RunDeleter{&service_}) {
  const OwnedConfig tree = config.analysing();
  sonde_run_t *run = nullptr;
  host.check(service_.open(tree.get(), &run));
  run_.reset(run);
  collect_notes();
}

void Analysing::collect_notes() {
  Session session = Session::borrow(host_, this->session());
  notes_subscription_ = session.subscribe(
      "notes", {only(SONDE_SPACE_SESSION, {SONDE_SESSION_NOTE})}, [this, handle = session.get()](const Batch &batch) {
        const Session session = Session::borrow(host_, handle);
        batch.for_each<sonde_session_note_t>(
            SONDE_SPACE_SESSION, SONDE_SESSION_NOTE, [&](const sonde_session_note_t &note) {
              if (note.severity == 0) return;
              constexpr const char *kWords[] = {"", "warning of", "error in", "no data from"};
              const std::lock_guard hold(notes_mutex_);
              notes_.emplace(note.severity, fmt::format("{} {}: {}", kWords[note.severity < 4 ? note.severity : 1],
                                                        session.text(batch.source(), note.origin),
                                                        session.text(batch.source(), note.text)));
            });
      });
}

void Analysing::print_notes() {
  const std::lock_guard hold(notes_mutex_);
  for (const auto &[severity, text] : notes_) fmt::print(stderr, "sonde: {}\n", visible(text));
}

sonde_session_t *Analysing::session() const {
  sonde_session_t *session = nullptr;
  host_.check(service_.session(run_.get(), &session));
  return session;
}

void Analysing::replay(const std::string &capture) {
  {
    Progress progress;
    host_.check(service_.replay(run_.get(), capture.c_str(), &Progress::update, &progress));
  }
  host_.check(service_.finish(run_.get()));
  print_notes();
}

int Analysing::report(const std::string &capture, const RunConfig &config, const ReportFlags &flags) {
  replay(capture);
  if (!config.has_outputs() || flags.is_explicit()) write_report(host_, session(), flags);
  return judge(host_, session(), flags);
}

Subcommand add_replay(CLI::App &root) {
  struct Flags {
    std::string capture;
    ConfigFlags config;
    ReportFlags report;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("replay", "Run analyses over a capture and report");
  app->footer(
      "Examples:\n"
      "  sonde replay capture -p workload\n"
      "  sonde replay capture -p workload -s top_kernels.lua --format json -o report.json\n"
      "  sonde replay capture -c analyses.yaml --fail-on warning");
  app->add_option("CAPTURE", flags->capture, "Run directory or .sonde file")->required();
  flags->config.add_analysis_flags(*app);
  flags->config.add_common_flags(*app);
  flags->report.add(*app, "-o,--output");
  return {app, [flags](const Context &context) {
            const RunConfig config(context.host, flags->config);
            if (!config.has_analyses()) {
              throw CommandError(kUsage, "no analysis given; name one with -p, -s or -c (`sonde list` shows them)");
            }
            Analysing analysing(context.host, config);
            return analysing.report(flags->capture, config, flags->report);
          }};
}

}  // namespace sonde::cli
