// `sonde call`: a plugin's published function from the command line.
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.h"
#include "cli/plugin_names.h"
#include "cli/replay_command.h"
#include "cli/signature_text.h"

namespace sonde::cli {
namespace {

struct Flags {
  std::string plugin;
  std::string function;
  std::vector<std::string> arguments;
  std::string capture;
  ConfigFlags config;
};

// An argument as the function wants it. Lists are kept here while the call runs.
struct Argument {
  sonde_value_t value{};
  std::vector<int64_t> integers;
  std::vector<double> numbers;
};

[[noreturn]] void refuse(const std::string &text, const char *wanted) {
  throw CommandError(kUsage, fmt::format("argument \"{}\": {} was expected", text, wanted));
}

int64_t signed_of(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0) refuse(text, "a signed 64-bit integer");
  return value;
}

uint64_t unsigned_of(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || errno != 0 || text[0] == '-') refuse(text, "an unsigned 64-bit integer");
  return value;
}

double number_of(const std::string &text) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') refuse(text, "a number");
  return value;
}

std::vector<std::string> pieces_of(const std::string &text) {
  std::vector<std::string> pieces;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, ',');) pieces.push_back(piece);
  return pieces;
}

Argument read_argument(const std::string &text, const sonde_parameter_t &parameter) {
  Argument argument;
  sonde_value_t &value = argument.value;
  value.kind = parameter.kind;
  switch (parameter.kind) {
    case SONDE_VALUE_I64:
      value.as.i64 = signed_of(text);
      break;
    case SONDE_VALUE_U64:
      value.as.u64 = unsigned_of(text);
      break;
    case SONDE_VALUE_F64:
      value.as.f64 = number_of(text);
      break;
    case SONDE_VALUE_TEXT:
      value.as.text = text.c_str();
      value.count = text.size();
      break;
    case SONDE_VALUE_BYTES:
      value.as.pointer = text.data();
      value.count = text.size();
      break;
    case SONDE_VALUE_I64S:
      for (const std::string &piece : pieces_of(text)) argument.integers.push_back(signed_of(piece));
      value.as.pointer = argument.integers.data();
      value.count = argument.integers.size();
      break;
    case SONDE_VALUE_F64S:
      for (const std::string &piece : pieces_of(text)) argument.numbers.push_back(number_of(piece));
      value.as.pointer = argument.numbers.data();
      value.count = argument.numbers.size();
      break;
    default:
      throw CommandError(kUsage, "the function takes a callback or an object; call it from Lua or Python");
  }
  return argument;
}

void print_result(const sonde_value_t &value) {
  switch (value.kind) {
    case SONDE_VALUE_I64:
      fmt::print("{}\n", value.as.i64);
      break;
    case SONDE_VALUE_U64:
      fmt::print("{}\n", value.as.u64);
      break;
    case SONDE_VALUE_F64:
      fmt::print("{}\n", value.as.f64);
      break;
    case SONDE_VALUE_BOOL:
      fmt::print("{}\n", value.as.u64 != 0);
      break;
    case SONDE_VALUE_TEXT:
      fmt::print("{}\n", value.as.text == nullptr ? std::string_view() : std::string_view(value.as.text, value.count));
      break;
    default:
      fmt::print("a value of kind {} that cannot be shown\n", value.kind);
  }
}

int call(const Host &host, const Flags &flags) {
  const RunConfig config(host, flags.config);
  const std::string id = plugin_id(host, flags.plugin);
  const auto &plugins = host.service<sonde_plugins_service_t>();
  const auto &reflect = host.service<sonde_reflect_service_t>();
  const sonde_plugin_entry_t *entry = nullptr;
  host.check(plugins.load(id.c_str(), &entry));
  sonde_export_t function{};
  host.check(plugins.function(id.c_str(), flags.function.c_str(), &function));
  const sonde_signature_t *signature = nullptr;
  host.check(reflect.prepare(function.signature, &signature));

  std::unique_ptr<Analysing> analysing;
  if (!flags.capture.empty()) {
    analysing = std::make_unique<Analysing>(host, config);
    analysing->replay(flags.capture);
  }
  std::vector<Argument> arguments;
  size_t given = 0;
  for (uint64_t index = 0;; ++index) {
    sonde_parameter_t parameter{};
    parameter.struct_size = sizeof(parameter);
    if (reflect.parameter(signature, index, &parameter) != SONDE_OK) break;
    if (parameter.is_out != 0) continue;
    if (parameter.kind == SONDE_VALUE_HANDLE && std::string_view(parameter.handle) == "S") {
      if (analysing == nullptr) {
        throw CommandError(kUsage,
                           fmt::format("{}.{} works on a session; name a capture with --capture", id, flags.function));
      }
      Argument argument;
      argument.value.kind = SONDE_VALUE_HANDLE;
      argument.value.as.pointer = analysing->session();
      arguments.push_back(std::move(argument));
      continue;
    }
    if (given == flags.arguments.size()) {
      throw CommandError(kUsage, fmt::format("{}.{}{} needs more arguments", id, flags.function,
                                             readable_signature(host, function.signature)));
    }
    arguments.push_back(read_argument(flags.arguments[given++], parameter));
  }
  if (given != flags.arguments.size()) {
    throw CommandError(kUsage,
                       fmt::format("{}.{}{} takes {} arguments, {} are given", id, flags.function,
                                   readable_signature(host, function.signature), given, flags.arguments.size()));
  }
  std::vector<sonde_value_t> values;
  for (const Argument &argument : arguments) values.push_back(argument.value);
  std::vector<sonde_value_t> results(16);
  uint64_t count = 0;
  host.check(
      reflect.call(signature, function.function, values.data(), values.size(), results.data(), results.size(), &count));
  for (uint64_t index = 0; index < count && index < results.size(); ++index) print_result(results[index]);
  return kOk;
}

}  // namespace

Subcommand add_call(CLI::App &root) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("call", "Call a function that a plugin publishes");
  app->footer(
      "`sonde list functions` shows them. Lists are written 1,2,3. A session parameter is not written: it is the\n"
      "session that --capture is replayed into, with the analyses of -p.\n"
      "Examples:\n"
      "  sonde call mine add 3 4\n"
      "  sonde call workload kernel_count --capture capture -p workload");
  app->add_option("PLUGIN", flags->plugin, "Id of a plugin, or path of its module")->required();
  app->add_option("FUNCTION", flags->function, "Name of the function")->required();
  app->add_option("ARGUMENTS", flags->arguments, "Its arguments");
  app->add_option("--capture", flags->capture, "Capture to replay before the call");
  flags->config.add_analysis_flags(*app);
  flags->config.add_common_flags(*app);
  return {app, [flags](const Context &context) { return call(context.host, *flags); }};
}

}  // namespace sonde::cli
