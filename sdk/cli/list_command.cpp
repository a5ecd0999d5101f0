// `sonde list` and `sonde describe`: what is installed, without opening any plugin.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/plugin_names.h"
#include "cli/signature_text.h"

namespace sonde::cli {
namespace {

// Rows of text in aligned columns; the last is not padded.
class Columns {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void print(const char *when_empty) const {
    if (rows_.empty()) fmt::print("{}\n", when_empty);
    std::vector<size_t> widths;
    for (const auto &row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t column = 0; column < row.size(); ++column) {
        widths[column] = std::max(widths[column], row[column].size());
      }
    }
    for (const auto &row : rows_) {
      std::string line;
      for (size_t column = 0; column < row.size(); ++column) {
        line += column + 1 == row.size() ? row[column] : fmt::format("{:<{}}  ", row[column], widths[column]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct Service {
  const char *id;
  const char *help;
};

constexpr std::array kServices = {
    Service{SONDE_SESSION_SERVICE, "sessions: open, start, stop, losses"},
    Service{SONDE_CAPTURE_SERVICE, "emitting records, strings, spaces, clocks"},
    Service{SONDE_DELIVERY_SERVICE, "receiving batches of records"},
    Service{SONDE_MERGE_SERVICE, "records of all streams in order of time"},
    Service{SONDE_COLUMNS_SERVICE, "reductions over a field of many records"},
    Service{SONDE_STORE_SERVICE, "capture files: record, open, replay"},
    Service{SONDE_PLUGINS_SERVICE, "finding and loading plugins"},
    Service{SONDE_REFLECT_SERVICE, "calling functions by signature"},
    Service{SONDE_CONFIG_SERVICE, "typed options from YAML"},
    Service{SONDE_RESULT_SERVICE, "tables and findings"},
    Service{SONDE_REPORT_SERVICE, "reports: text, JSON, SARIF, CSV"},
    Service{SONDE_RUN_SERVICE, "a whole run from one configuration"},
    Service{SONDE_LAYOUT_SERVICE, "tensor layouts: building, algebra, inversion, tables"},
    Service{SONDE_LAYOUT_SHAPE_SERVICE, "dims of layouts, and questions about them"},
    Service{SONDE_LAYOUT_ENCODING_SERVICE, "a compiler's encodings as layouts"},
    Service{SONDE_LAYOUT_PLAN_SERVICE, "conversions between layouts, swizzles, costs of accesses"},
    Service{SONDE_LAYOUT_SEARCH_SERVICE, "layouts from what they must do"},
    Service{SONDE_LAYOUT_MODULAR_SERVICE, "layouts with dims of any size"},
    Service{SONDE_CUTE_SERVICE, "CuTe's algebra with verified results"},
};

std::string state_of(const sonde_plugin_info_t &plugin) {
  return *plugin.problem == '\0' ? plugin.summary : fmt::format("UNUSABLE: {}", plugin.problem);
}

void list_modules(const Host &host, const char *interface, const char *when_empty) {
  Columns columns;
  for (const sonde_plugin_info_t &plugin : all_plugins(host)) {
    if (interface != nullptr && !offers(plugin, interface)) continue;
    columns.add({plugin.id, plugin.version, state_of(plugin)});
  }
  columns.print(when_empty);
}

void list_services(const Host &host) {
  Columns columns;
  for (const Service &service : kServices) {
    const void *table = nullptr;
    const bool exists = host.table()->get_service(service.id, sizeof(uint32_t), &table) == SONDE_OK;
    columns.add({service.id, exists ? service.help : "absent in this build"});
  }
  for (const sonde_plugin_info_t &plugin : all_plugins(host)) {
    std::string interfaces = plugin.interfaces;
    for (size_t begin = 0; begin < interfaces.size();) {
      const size_t end = std::min(interfaces.find(' ', begin), interfaces.size());
      const std::string name = interfaces.substr(begin, end - begin);
      begin = end + 1;
      if (!name.empty() && name != SONDE_ANALYSIS_INTERFACE && name != SONDE_PORT_INTERFACE) {
        columns.add({name, fmt::format("of plugin {}", plugin.id)});
      }
    }
  }
  columns.print("no services");
}

void add_functions(const Host &host, const sonde_plugin_info_t &plugin, Columns &columns) {
  const auto &service = host.service<sonde_plugins_service_t>();
  for (uint64_t index = 0; index < plugin.export_count; ++index) {
    const char *name = nullptr;
    const char *signature = nullptr;
    const char *help = nullptr;
    host.check(service.export_at(plugin.id, index, &name, &signature, &help));
    columns.add({fmt::format("{}.{}", plugin.id, name), readable_signature(host, signature), help});
  }
}

const char *type_name(uint32_t type) {
  switch (type) {
    case SONDE_OPTION_BOOL:
      return "bool";
    case SONDE_OPTION_I64:
      return "integer";
    case SONDE_OPTION_F64:
      return "number";
    case SONDE_OPTION_TEXT:
      return "text";
    case SONDE_OPTION_TEXTS:
      return "list of text";
    case SONDE_OPTION_TIME:
      return "time";
    default:
      return "tree";
  }
}

void describe(const Host &host, const std::string &id) {
  const sonde_plugin_info_t plugin = find_plugin(host, id);
  fmt::print("{} {}\n  {}\n", plugin.id, plugin.version, plugin.summary);
  if (*plugin.path != '\0') fmt::print("  module      {}\n", plugin.path);
  if (*plugin.interfaces != '\0') fmt::print("  interfaces  {}\n", plugin.interfaces);
  if (*plugin.problem != '\0') fmt::print("  unusable    {}\n", plugin.problem);

  fmt::print("\nOptions\n");
  const auto &service = host.service<sonde_plugins_service_t>();
  Columns options;
  for (uint64_t index = 0; index < plugin.option_count; ++index) {
    sonde_option_t option{};
    host.check(service.option_at(plugin.id, index, &option));
    std::string range = type_name(option.type);
    if (*option.unit != '\0' && std::string_view(option.unit) != "1") range += fmt::format(" in {}", option.unit);
    if (*option.choices != '\0') range += fmt::format(", {}", option.choices);
    const std::string fallback = option.fallback == nullptr
                                     ? "required"
                                     : fmt::format("default {}", *option.fallback == '\0' ? "\"\"" : option.fallback);
    options.add({fmt::format("  {}", option.name), range, fallback, option.help});
  }
  options.print("  none");

  fmt::print("\nFunctions\n");
  Columns functions;
  add_functions(host, plugin, functions);
  functions.print("  none");
}

}  // namespace

Subcommand add_list(CLI::App &root) {
  struct Flags {
    std::string what = "plugins";
    std::vector<std::string> plugin_paths;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("list", "List plugins, ports, services or functions");
  app->footer("Examples:\n  sonde list\n  sonde list functions\n  sonde list plugins --plugin-path ./build");
  app->add_option("WHAT", flags->what, "plugins, ports, services or functions")
      ->check(CLI::IsMember({"plugins", "ports", "services", "functions"}))
      ->capture_default_str();
  app->add_option("--plugin-path", flags->plugin_paths, "Folder or module to search before the others");
  return {app, [flags](const Context &context) {
            add_plugin_paths(context.host, flags->plugin_paths);
            if (flags->what == "plugins") list_modules(context.host, nullptr, "no plugins found");
            if (flags->what == "ports") list_modules(context.host, SONDE_PORT_INTERFACE, "no ports found");
            if (flags->what == "services") list_services(context.host);
            if (flags->what == "functions") {
              Columns columns;
              for (const sonde_plugin_info_t &plugin : all_plugins(context.host)) {
                add_functions(context.host, plugin, columns);
              }
              columns.print("no functions");
            }
            return kOk;
          }};
}

Subcommand add_describe(CLI::App &root) {
  struct Flags {
    std::string plugin;
    std::vector<std::string> plugin_paths;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("describe", "Show a plugin's options with defaults, and its functions");
  app->footer("Example:\n  sonde describe workload");
  app->add_option("PLUGIN", flags->plugin, "Id of a plugin, or path of its module")->required();
  app->add_option("--plugin-path", flags->plugin_paths, "Folder or module to search before the others");
  return {app, [flags](const Context &context) {
            add_plugin_paths(context.host, flags->plugin_paths);
            describe(context.host, plugin_id(context.host, flags->plugin));
            return kOk;
          }};
}

}  // namespace sonde::cli
