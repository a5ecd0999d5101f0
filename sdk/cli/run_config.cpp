#include "cli/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/plugin_names.h"
#include "cli/yaml_text.h"

namespace sonde::cli {
namespace {

// Ports that a run uses when nothing names any, where they are installed.
constexpr std::array kUsualPorts = {"host", "cuda"};

std::string absolute(const std::string &path) { return std::filesystem::absolute(path).lexically_normal().string(); }

// What is wrong with a budget, "" when nothing is: 3%, or 0.03; above 0 and below 100 %.
std::string budget_fault(std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const bool percent = end != text.c_str() && std::string_view(end) == "%";
  if (percent) value /= 100;
  const bool whole = end != text.c_str() && (percent || *end == '\0');
  if (whole && value > 0 && value < 1) return {};
  return fmt::format("'{}' is no budget; expected a slow-down as 3% or 0.03, above 0 and below 100 %", text);
}

}  // namespace

void ConfigFlags::add_analysis_flags(CLI::App &app) {
  app.add_option("-p,--plugin", analyses, "Analysis to run: id or path of a module; may be repeated [analyses]")
      ->allow_extra_args(false);
  app.add_option("-s,--script", scripts, "Lua script to run; may be repeated [scripts]")->allow_extra_args(false);
}

void ConfigFlags::add_capture_flags(CLI::App &app) {
  app.add_option("--port", ports, "Port to capture with (default: host and cuda) [ports]")->allow_extra_args(false);
  app.add_option("--budget", budget,
                 "Greatest slow-down of the program, as 3%: device work is collected in windows chosen at random, and "
                 "`workload` scales the counts [session.budget]")
      ->check(CLI::Validator(budget_fault, "PERCENT"));
}

void ConfigFlags::add_common_flags(CLI::App &app) {
  app.add_option("-c,--config", file, "YAML configuration; flags add to it")->check(CLI::ExistingFile);
  app.add_option("--plugin-path", plugin_paths, "Folder or module to search first [plugins.path]")
      ->allow_extra_args(false);
}

RunConfig::RunConfig(const Host &host, const ConfigFlags &flags)
    : host_(host),
      service_(host.service<sonde_config_service_t>()),
      flags_(flags),
      file_(nullptr, ConfigDeleter{&service_}) {
  if (!flags.file.empty()) {
    sonde_config_t *loaded = nullptr;
    host.check(service_.load(flags.file.c_str(), &loaded));
    file_.reset(loaded);
  }
  // The search path must stand before names are looked up.
  add_plugin_paths(host, flags.plugin_paths);
  uint64_t paths = 0;
  if (has("plugins") && service_.count(file_.get(), "plugins.path", &paths) == SONDE_OK) {
    for (uint64_t index = 0; index < paths; ++index) {
      const char *path = nullptr;
      host.check(service_.get_text(file_.get(), fmt::format("plugins.path.{}", index).c_str(), &path));
      add_plugin_paths(host, {path});
    }
  }
  for (const std::string &name : flags.analyses) {
    const std::string id = plugin_id(host, name);
    if (!offers(find_plugin(host, id), SONDE_ANALYSIS_INTERFACE)) {
      throw CommandError(
          kUsage,
          fmt::format(
              "plugin {} is no analysis; `sonde describe {}` shows what it offers{}", id, id,
              offers(find_plugin(host, id), SONDE_PORT_INTERFACE) ? ", --port " + id + " captures with it" : ""));
    }
    if (std::find(analysis_ids_.begin(), analysis_ids_.end(), id) == analysis_ids_.end()) analysis_ids_.push_back(id);
  }
  for (const std::string &name : flags.ports) {
    const std::string id = plugin_id(host, name);
    if (!offers(find_plugin(host, id), SONDE_PORT_INTERFACE)) {
      throw CommandError(kUsage, fmt::format("plugin {} is no port; `sonde list ports` shows them", id));
    }
    port_ids_.push_back(id);
  }
  for (const std::string &script : flags.scripts) {
    if (!std::filesystem::exists(script)) {
      throw CommandError(kInput, fmt::format("script {}: no such file", script));
    }
  }
}

bool RunConfig::has(const char *key) const {
  const sonde_config_t *child = nullptr;
  return file_ != nullptr && service_.child(file_.get(), key, &child) == SONDE_OK;
}

std::string RunConfig::section(const char *key) const {
  if (!has(key)) return {};
  const char *text = nullptr;
  host_.check(service_.print(file_.get(), key, &text));
  return text;
}

std::string RunConfig::record_path() const {
  const char *path = nullptr;
  if (!has("record") || service_.get_text(file_.get(), "record.path", &path) != SONDE_OK) return {};
  return path;
}

std::string RunConfig::plugins_text() const {
  std::string paths;
  const auto add = [&](const std::string &path) {
    paths += fmt::format("{}{}", paths.empty() ? "" : ", ", yaml_quoted(absolute(path)));
  };
  for (const std::string &path : flags_.plugin_paths) add(path);
  for (const std::string &name : flags_.analyses) {
    if (name.find('/') != std::string::npos || name.ends_with(".so")) add(name);
  }
  for (const std::string &name : flags_.ports) {
    if (name.find('/') != std::string::npos || name.ends_with(".so")) add(name);
  }
  uint64_t count = 0;
  if (has("plugins") && service_.count(file_.get(), "plugins.path", &count) == SONDE_OK) {
    for (uint64_t index = 0; index < count; ++index) {
      const char *path = nullptr;
      host_.check(service_.get_text(file_.get(), fmt::format("plugins.path.{}", index).c_str(), &path));
      add(path);
    }
  }
  return paths.empty() ? "" : fmt::format("plugins:\n  path: [{}]\n", paths);
}

bool RunConfig::is_map(const char *key) const {
  const char *name = nullptr;
  return has(key) && service_.key(file_.get(), key, 0, &name) == SONDE_OK;
}

std::vector<std::string> RunConfig::names_in(const std::string &key) const {
  std::vector<std::string> names;
  uint64_t count = 0;
  if (!has(key.c_str()) || service_.count(file_.get(), key.c_str(), &count) != SONDE_OK) return names;
  for (uint64_t index = 0; index < count; ++index) {
    const std::string item = fmt::format("{}.{}", key, index);
    const char *name = nullptr;
    if (service_.key(file_.get(), key.c_str(), index, &name) == SONDE_OK ||
        service_.get_text(file_.get(), item.c_str(), &name) == SONDE_OK) {
      names.emplace_back(name);
    } else {
      for (std::string &inner : names_in(item)) names.push_back(std::move(inner));
    }
  }
  return names;
}

std::string RunConfig::list_items(const char *key) const {
  std::string items;
  uint64_t count = 0;
  if (!has(key) || service_.count(file_.get(), key, &count) != SONDE_OK) return items;
  for (uint64_t index = 0; index < count; ++index) {
    const char *text = nullptr;
    host_.check(service_.print(file_.get(), fmt::format("{}.{}", key, index).c_str(), &text));
    std::string item = indented(text, 4);
    if (item.size() > 4) item[2] = '-';
    items += item;
  }
  return items;
}

std::string RunConfig::plugins_section(const char *key, const std::vector<std::string> &wanted) const {
  const std::vector<std::string> present = names_in(key);
  // A file may name plugins in a map, or in a list when one of them runs twice.
  const bool is_list = !present.empty() && !is_map(key);
  std::string entries;
  if (is_list) {
    entries = list_items(key);
  } else if (!present.empty()) {
    entries = indented(section(key), 2);
  }
  for (const std::string &id : wanted) {
    if (std::find(present.begin(), present.end(), id) != present.end()) continue;
    entries += is_list ? fmt::format("  - {}\n", yaml_quoted(id)) : fmt::format("  {}: {{}}\n", yaml_quoted(id));
  }
  return entries.empty() ? "" : fmt::format("{}:\n{}", key, entries);
}

std::string RunConfig::ports_text() const {
  std::vector<std::string> wanted = port_ids_;
  if (wanted.empty() && names_in("ports").empty()) {
    for (const sonde_plugin_info_t &plugin : all_plugins(host_)) {
      const bool is_usual =
          std::find(kUsualPorts.begin(), kUsualPorts.end(), std::string_view(plugin.id)) != kUsualPorts.end();
      if (is_usual && offers(plugin, SONDE_PORT_INTERFACE) && *plugin.problem == '\0') wanted.emplace_back(plugin.id);
    }
  }
  return plugins_section("ports", wanted);
}

std::string RunConfig::scripts_text() const {
  std::string entries = list_items("scripts");
  for (const std::string &script : flags_.scripts) {
    entries += fmt::format("  - path: {}\n", yaml_quoted(absolute(script)));
  }
  return entries.empty() ? "" : "scripts:\n" + entries;
}

OwnedConfig RunConfig::parse(const std::string &text, const std::string &origin) const {
  sonde_config_t *parsed = nullptr;
  host_.check(service_.parse(text.c_str(), origin.c_str(), &parsed));
  return {parsed, ConfigDeleter{&service_}};
}

OwnedConfig RunConfig::analysing() const {
  const bool adds = !flags_.analyses.empty() || !flags_.scripts.empty() || !flags_.plugin_paths.empty();
  if (file_ != nullptr && !adds && !has("ports") && !has("record")) {
    // As it stands, so that messages name the right lines.
    sonde_config_t *loaded = nullptr;
    host_.check(service_.load(flags_.file.c_str(), &loaded));
    return {loaded, ConfigDeleter{&service_}};
  }
  std::string text;
  if (const std::string session = section("session"); !session.empty()) text += "session:\n" + indented(session, 2);
  text += plugins_text() + plugins_section("analyses", analysis_ids_) + scripts_text();
  if (const std::string outputs = section("outputs"); !outputs.empty()) text += "outputs:\n" + indented(outputs, 2);
  if (file_ != nullptr) {
    // Keys that no flag stands for are passed on, so that the run can refuse them.
    uint64_t count = 0;
    host_.check(service_.count(file_.get(), "", &count));
    for (uint64_t index = 0; index < count; ++index) {
      const char *key = nullptr;
      host_.check(service_.key(file_.get(), "", index, &key));
      constexpr std::array kKnown = {"session", "ports", "record", "analyses", "scripts", "outputs", "plugins"};
      const bool is_known = std::find(kKnown.begin(), kKnown.end(), std::string_view(key)) != kKnown.end();
      if (!is_known) text += fmt::format("{}:\n{}", yaml_quoted(key), indented(section(key), 2));
    }
  }
  return parse(text, file_ == nullptr ? "command line" : flags_.file + " with the flags");
}

std::string RunConfig::session_text() const {
  std::string text;
  uint64_t count = 0;
  if (has("session")) host_.check(service_.count(file_.get(), "session", &count));
  for (uint64_t index = 0; index < count; ++index) {
    const char *key = nullptr;
    host_.check(service_.key(file_.get(), "session", index, &key));
    if (!flags_.budget.empty() && std::string_view(key) == "budget") continue;
    const char *value = nullptr;
    host_.check(service_.print(file_.get(), fmt::format("session.{}", key).c_str(), &value));
    text += fmt::format("  {}:\n{}", yaml_quoted(key), indented(value, 4));
  }
  if (!flags_.budget.empty()) text += fmt::format("  budget: {}\n", flags_.budget);
  return text.empty() ? text : "session:\n" + text;
}

std::string RunConfig::recording_text(const std::string &directory) const {
  std::string text = "# Written by `sonde`: what the measured program captures.\n";
  text += session_text() + plugins_text() + ports_text();
  text += fmt::format("record:\n  path: {}\n", yaml_quoted(directory));
  uint64_t count = 0;
  if (has("record")) {
    host_.check(service_.count(file_.get(), "record", &count));
    for (uint64_t index = 0; index < count; ++index) {
      const char *key = nullptr;
      host_.check(service_.key(file_.get(), "record", index, &key));
      if (std::string_view(key) == "path") continue;
      const char *value = nullptr;
      host_.check(service_.print(file_.get(), fmt::format("record.{}", key).c_str(), &value));
      text += fmt::format("  {}:\n{}", yaml_quoted(key), indented(value, 4));
    }
  }
  return text;
}

}  // namespace sonde::cli
