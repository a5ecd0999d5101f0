#include "cli/layout_lint.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/report_output.h"
#include "cli/run_config.h"
#include "cli/yaml_text.h"

namespace sonde::cli {
namespace {

constexpr const char *kAnalysis = "layout";

struct Flags {
  std::vector<std::string> files;
  std::vector<std::string> settings;
  std::vector<std::string> plugin_paths;
  ReportFlags report;
};

// The run that the analysis is part of, as YAML.
std::string run_text(const Flags &flags) {
  std::string text = fmt::format("analyses:\n  {}:\n    files:\n", kAnalysis);
  for (const std::string &file : flags.files) text += fmt::format("      - {}\n", yaml_quoted(file));
  for (const std::string &setting : flags.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw CommandError(kUsage, fmt::format("--set {}: NAME=VALUE was expected", setting));
    }
    text += fmt::format("    {}: {}\n", yaml_quoted(setting.substr(0, equals)), setting.substr(equals + 1));
  }
  return text;
}

// The value in the only row of the analysis' table `summary`.
uint64_t summary_value(const nlohmann::ordered_json &report, std::string_view name) {
  const auto &table = report.at("tables").at(fmt::format("{}.summary", kAnalysis));
  for (size_t i = 0; i < table.at("columns").size(); ++i) {
    if (table.at("columns")[i].at("name") == name) return table.at("rows").at(0).at(i).get<uint64_t>();
  }
  throw CommandError(kInternal, fmt::format("the summary has no column {}", name));
}

// The report with the counts as its first members, so that a script need not look for a column.
void print_json(const Host &host, sonde_session_t *session) {
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = "json";
  options.only = "";
  std::string text;
  const auto append = [](void *user, const char *piece, uint64_t bytes) -> sonde_status {
    static_cast<std::string *>(user)->append(piece, bytes);
    return SONDE_OK;
  };
  host.check(host.service<sonde_report_service_t>().render(session, &options, append, &text));
  const auto report = nlohmann::ordered_json::parse(text);
  nlohmann::ordered_json counts;
  for (const char *const name : {"sites", "unparsed", "unsupported"}) counts[name] = summary_value(report, name);
  // The rendered report goes out as it is, behind the counts: its layout of lines is made for reading.
  const std::string head = counts.dump();
  fmt::print("{},{}", head.substr(0, head.size() - 1), text.substr(text.find('{') + 1));
}

int lint(const Host &host, const Flags &flags) {
  for (const std::string &file : flags.files) {
    if (!std::filesystem::exists(file)) throw CommandError(kInput, fmt::format("{}: no such file or folder", file));
  }
  add_plugin_paths(host, flags.plugin_paths);
  const auto &configs = host.service<sonde_config_service_t>();
  sonde_config_t *parsed = nullptr;
  host.check(configs.parse(run_text(flags).c_str(), "command line", &parsed));
  const OwnedConfig config(parsed, ConfigDeleter{&configs});

  const auto &runs = host.service<sonde_run_service_t>();
  sonde_run_t *opened = nullptr;
  host.check(runs.open(config.get(), &opened));
  const auto close = [&runs](sonde_run_t *run) { runs.close(run); };
  const std::unique_ptr<sonde_run_t, decltype(close)> run(opened, close);
  host.check(runs.start(run.get()));
  host.check(runs.finish(run.get()));
  sonde_session_t *session = nullptr;
  host.check(runs.session(run.get(), &session));

  const ReportFlags &report = flags.report;
  if (report.format == "json" && report.file.empty() && report.only.empty()) {
    print_json(host, session);
  } else {
    write_report(host, session, report);
  }
  return judge(host, session, report);
}

}  // namespace

Subcommand add_layout_lint(CLI::App &layout) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = layout.add_subcommand("lint", "Find costly conversions and memory accesses in TTGIR files");
  app->footer(
      "Triton writes TTGIR files into its cache (~/.triton/cache), and to $TRITON_DUMP_DIR with TRITON_KERNEL_DUMP=1.\n"
      "Options of --set: `sonde describe layout` lists them.\n"
      "Examples:\n"
      "  sonde layout lint kernel.ttgir\n"
      "  sonde layout lint --format sarif -o lint.sarif ~/.triton/cache\n"
      "  sonde layout lint --set least_vector_bits=64 --fail-on warning kernel.ttgir");
  app->add_option("FILE", flags->files, "TTGIR files, and folders to search for *.ttgir")->required();
  app->add_option("--set", flags->settings, "NAME=VALUE: an option of the analysis; may be repeated [analyses.layout]")
      ->allow_extra_args(false);
  app->add_option("--plugin-path", flags->plugin_paths, "Folder or module to search first [plugins.path]")
      ->allow_extra_args(false);
  flags->report.add(*app, "-o,--output");
  return {app, [flags](const Context &context) { return lint(context.host, *flags); }};
}

}  // namespace sonde::cli
