#include "run/settings.h"

#include <filesystem>

namespace sonde::run {

namespace {

constexpr sonde_option_t kRunOptions[] = {
    {"session.policy", "drop", "what a full ring does", "", "drop|overwrite|stall", SONDE_OPTION_TEXT, 0},
    {"session.ring", "1Mi", "ring of each thread", "bytes", "64Ki..1Gi", SONDE_OPTION_I64, 0},
    {"session.memory", "64Mi", "cap of rings, batches and queues", "bytes", "1Mi..1Ti", SONDE_OPTION_I64, 0},
    {"session.stall", "1ms", "longest wait for room under the policy stall", "ns", "1us..10s", SONDE_OPTION_TIME, 0},
    {"session.period", "1ms", "longest sleep of the delivery thread", "ns", "10us..10s", SONDE_OPTION_TIME, 0},
    {"session.flush", "100ms", "time between two flushes of the ports", "ns", "1ms..1h", SONDE_OPTION_TIME, 0},
    {"session.deadline", "2s", "longest last flush", "ns", "1ms..1h", SONDE_OPTION_TIME, 0},
    {"session.finish", "30s", "at exit: longest time for analyses and outputs", "ns", "0..24h", SONDE_OPTION_TIME, 0},
    {"session.budget", "0", "greatest slow-down, for ports with an option `budget` that do not set it; 0: none", "1",
     "0..1", SONDE_OPTION_F64, 0},
    {"session.name", "run", "name of the session", "", "", SONDE_OPTION_TEXT, 0},
    {"record.path", "", "run directory; empty: nothing is recorded", "", "", SONDE_OPTION_TEXT, 0},
    {"record.start", "lazy", "in a preloaded process: at the first foreign entry, or at its start", "", "lazy|eager",
     SONDE_OPTION_TEXT, 0},
    {"record.level", "3", "zstd level", "", "0..19", SONDE_OPTION_I64, 0},
    {"record.chunk", "0", "records of a chunk before encoding; 0: fits the memory cap", "bytes", "0..64Mi",
     SONDE_OPTION_I64, 0},
    {"record.seal", "200ms", "longest time until a started chunk is sealed", "ns", "1ms..1h", SONDE_OPTION_TIME, 0},
    {"record.sync", "false", "fsync each chunk", "", "", SONDE_OPTION_BOOL, 0},
    {"record.limit", "0", "bytes of a file after which batches are dropped; 0: none", "bytes", "0..", SONDE_OPTION_I64,
     0},
    {"record.when_full", "spill", "when compression is too slow", "", "spill|drop", SONDE_OPTION_TEXT, 0},
    {"record.spaces", "[]", "spaces to record; empty: all", "", "", SONDE_OPTION_TEXTS, 0},
    {"ports", "{}", "ports and their options", "", "", SONDE_OPTION_TREE, 0},
    {"analyses", "{}", "analyses and their options; a list for several of one", "", "", SONDE_OPTION_TREE, 0},
    {"scripts", "[]", "Lua scripts", "", "", SONDE_OPTION_TREE, 0},
    {"outputs", "[]", "reports", "", "", SONDE_OPTION_TREE, 0},
    {"plugins.path", "[]", "folders or modules to search first", "", "", SONDE_OPTION_TEXTS, 0},
};

constexpr sonde_option_t kOutputOptions[] = {
    {"format", "text", "how it is written", "", "text|json|sarif|csv", SONDE_OPTION_TEXT, 0},
    {"path", "", "file; empty: standard output", "", "", SONDE_OPTION_TEXT, 0},
    {"only", "", "origin, or origin.table: what to show alone", "", "", SONDE_OPTION_TEXT, 0},
    {"rows", "0", "rows shown of a table; 0: each table's own wish", "", "0..1000000", SONDE_OPTION_I64, 0},
    {"width", "0", "columns of the terminal; 0: 100", "", "0..1000", SONDE_OPTION_I64, 0},
    {"color", "false", "terminal colours", "", "", SONDE_OPTION_BOOL, 0},
};

// Typed values of a checked tree, whose getters cannot fail on declared names.
class Values {
 public:
  Values(const sonde_config_service_t &service, const sonde_config_t *tree) : service_(service), tree_(tree) {}

  std::string text(const char *name) const {
    const char *value = "";
    service_.get_text(tree_, name, &value);
    return value;
  }
  uint64_t number(const char *name) const {
    int64_t value = 0;
    service_.get_i64(tree_, name, &value);
    return static_cast<uint64_t>(value);
  }
  double real(const char *name) const {
    double value = 0;
    service_.get_f64(tree_, name, &value);
    return value;
  }
  bool flag(const char *name) const {
    uint32_t value = 0;
    service_.get_bool(tree_, name, &value);
    return value != 0;
  }
  std::vector<std::string> texts(const char *name) const {
    uint64_t count = 0;
    service_.count(tree_, name, &count);
    std::vector<std::string> values;
    for (uint64_t index = 0; index < count; ++index) values.push_back(text(fmt::format("{}.{}", name, index).c_str()));
    return values;
  }

 private:
  const sonde_config_service_t &service_;
  const sonde_config_t *tree_;
};

std::string absolute(const std::string &path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

class SettingsReader {
 public:
  SettingsReader(const Services &services, Settings &settings)
      : config_(*services.config), settings_(settings), root_(settings.tree.get()), values_(config_, root_) {}

  Result<void> read() {
    read_session();
    read_record();
    for (const std::string &path : values_.texts("plugins.path")) settings_.plugin_paths.push_back(absolute(path));
    read_plugins("ports", settings_.ports);
    read_plugins("analyses", settings_.analyses);
    read_scripts();
    read_outputs();
    if (!faults_.empty()) return Error{SONDE_E_INVALID, faults_};
    return {};
  }

 private:
  void read_session() {
    const std::string policy = values_.text("session.policy");
    settings_.policy = policy == "overwrite" ? SONDE_POLICY_OVERWRITE
                       : policy == "stall"   ? SONDE_POLICY_STALL
                                             : SONDE_POLICY_DROP;
    settings_.ring_bytes = values_.number("session.ring");
    settings_.memory_cap = values_.number("session.memory");
    settings_.stall_ns = values_.number("session.stall");
    settings_.period_ns = values_.number("session.period");
    settings_.flush_period_ns = values_.number("session.flush");
    settings_.deadline_ns = values_.number("session.deadline");
    settings_.finish_deadline_ns = values_.number("session.finish");
    settings_.budget = values_.real("session.budget");
    settings_.name = values_.text("session.name");
  }

  void read_record() {
    settings_.record_path = absolute(values_.text("record.path"));
    settings_.record_eager = values_.text("record.start") == "eager";
    settings_.writer.struct_size = sizeof(settings_.writer);
    settings_.writer.when_full = values_.text("record.when_full") == "drop" ? SONDE_FULL_DROP : SONDE_FULL_SPILL;
    settings_.writer.chunk_bytes = values_.number("record.chunk");
    settings_.writer.seal_ns = values_.number("record.seal");
    settings_.writer.level = static_cast<int32_t>(values_.number("record.level"));
    settings_.writer.sync = values_.flag("record.sync") ? 1 : 0;
    settings_.writer.file_limit = values_.number("record.limit");
    for (const std::string &space : values_.texts("record.spaces")) {
      settings_.record_spaces += (settings_.record_spaces.empty() ? "" : " ") + space;
    }
  }

  std::string where(const std::string &path) const {
    const char *text = "";
    config_.where(root_, path.c_str(), &text);
    return text;
  }
  void fault(const std::string &path, std::string_view text) {
    faults_ += fmt::format("{}{}: {}", faults_.empty() ? "" : "\n", where(path), text);
  }
  const sonde_config_t *child(const std::string &path) const {
    const sonde_config_t *node = nullptr;
    config_.child(root_, path.c_str(), &node);
    return node;
  }
  uint64_t count(const std::string &path) const {
    uint64_t value = 0;
    config_.count(root_, path.c_str(), &value);
    return value;
  }
  bool is_map(const std::string &path) const {
    const char *key = nullptr;
    return config_.key(root_, path.c_str(), 0, &key) == SONDE_OK;
  }

  // {id: options, ...}, or a list of such maps.
  void read_plugins(const std::string &path, std::vector<PluginWish> &wishes) {
    const uint64_t entries = count(path);
    const char *text = nullptr;
    if (config_.get_text(root_, path.c_str(), &text) == SONDE_OK) {
      fault(path, fmt::format("'{}' is text; expected a map of plugin ids", path));
      return;
    }
    if (entries == 0) return;
    if (is_map(path)) {
      for (uint64_t index = 0; index < entries; ++index) {
        const char *id = "";
        config_.key(root_, path.c_str(), index, &id);
        add_wish(path + "." + id, id, wishes);
      }
      return;
    }
    for (uint64_t index = 0; index < entries; ++index) {
      const std::string item = fmt::format("{}.{}", path, index);
      if (config_.get_text(root_, item.c_str(), &text) == SONDE_OK) {
        wishes.push_back({text, text, where(item), nullptr});
      } else if (is_map(item)) {
        read_plugins(item, wishes);
      } else {
        fault(item, "expected a plugin's id, or a map of ids and options");
      }
    }
  }

  void add_wish(const std::string &path, const char *id, std::vector<PluginWish> &wishes) {
    const char *text = nullptr;
    if (config_.get_text(root_, path.c_str(), &text) == SONDE_OK) {
      fault(path, fmt::format("the options of {} are text; expected a map", id));
      return;
    }
    wishes.push_back({id, id, where(path), child(path)});
  }

  // A script is an instance of the plugin `lua`, whose own options say what an entry may hold.
  void read_scripts() {
    const uint64_t entries = count("scripts");
    if (is_map("scripts")) {
      fault("scripts", "'scripts' is a map; expected a list");
      return;
    }
    for (uint64_t index = 0; index < entries; ++index) {
      const std::string item = fmt::format("scripts.{}", index);
      const char *path = nullptr;
      if (config_.get_text(root_, item.c_str(), &path) == SONDE_OK) {
        // "scripts: [top.lua]": the path alone.
        const std::string origin = where(item);
        sonde_config_t *tree = nullptr;
        const char *quoted = "";
        config_.print(root_, item.c_str(), &quoted);
        const std::string yaml = fmt::format("path: {}", quoted);
        if (config_.parse(yaml.c_str(), origin.c_str(), &tree) != SONDE_OK) {
          fault(item, last_error());
          continue;
        }
        settings_.others.emplace_back(tree);
        settings_.analyses.push_back({"lua", path, origin, tree});
        continue;
      }
      if (!is_map(item)) {
        fault(item, "expected a script's path, or a map with 'path'");
        continue;
      }
      std::string label = "script";
      if (config_.get_text(root_, (item + ".path").c_str(), &path) == SONDE_OK) label = path;
      settings_.analyses.push_back({"lua", label, where(item), child(item)});
    }
  }

  void read_outputs() {
    const uint64_t entries = count("outputs");
    if (is_map("outputs")) {
      fault("outputs", "'outputs' is a map; expected a list");
      return;
    }
    for (uint64_t index = 0; index < entries; ++index) {
      const std::string item = fmt::format("outputs.{}", index);
      sonde_config_t *checked = nullptr;
      const sonde_status status = config_.check(child(item), "an output", kOutputOptions, std::size(kOutputOptions),
                                                sizeof(sonde_option_t), &checked);
      if (status != SONDE_OK) {
        faults_ += (faults_.empty() ? "" : "\n") + error_text(status);
        continue;
      }
      const OwnedConfig owned(checked);
      const Values values(config_, checked);
      settings_.outputs.push_back({values.text("format"), absolute(values.text("path")), values.text("only"),
                                   static_cast<uint32_t>(values.number("rows")),
                                   static_cast<uint32_t>(values.number("width")), values.flag("color")});
    }
  }

  const sonde_config_service_t &config_;
  Settings &settings_;
  const sonde_config_t *const root_;
  const Values values_;
  std::string faults_;
};

}  // namespace

Result<Settings> read_settings(const Services &services, const sonde_config_t *config) {
  Settings settings;
  sonde_config_t *checked = nullptr;
  const sonde_status status =
      services.config->check(config, "a run", kRunOptions, std::size(kRunOptions), sizeof(sonde_option_t), &checked);
  if (status != SONDE_OK) return Error{status, error_text(status)};
  settings.tree.reset(checked);
  if (Result<void> read = SettingsReader(services, settings).read(); !read) return read.error();
  return settings;
}

}  // namespace sonde::run
