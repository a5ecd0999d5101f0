#include "cli/signature_text.h"

#include <fmt/format.h>

namespace sonde::cli {
namespace {

std::string word_of(const sonde_parameter_t &parameter) {
  switch (static_cast<char>(parameter.code)) {
    case 'e':
      return "status";
    case 'v':
      return "none";
    case 'i':
      return "i32";
    case 'I':
      return "u32";
    case 'q':
      return "i64";
    case 'Q':
      return "u64";
    case 'd':
      return "f64";
    case 's':
      return "text";
    case 'y':
      return "bytes";
    case 'L':
      return "i64s";
    case 'D':
      return "f64s";
    case 'c':
      return "callback";
    case 'h': {
      const std::string_view handle = parameter.handle;
      if (handle == "S") return "session";
      if (handle == "T") return "table";
      if (handle == "C") return "config";
      if (handle == "R") return "results";
      return std::string(handle);
    }
    default:
      return "?";
  }
}

}  // namespace

std::string readable_signature(const Host &host, const char *signature) {
  const auto &reflect = host.service<sonde_reflect_service_t>();
  const sonde_signature_t *prepared = nullptr;
  if (reflect.prepare(signature, &prepared) != SONDE_OK) return signature;
  std::string inputs;
  std::string results;
  const auto add = [](std::string &list, const std::string &word) {
    if (!list.empty()) list += ", ";
    list += word;
  };
  sonde_parameter_t parameter{};
  parameter.struct_size = sizeof(parameter);
  if (reflect.parameter(prepared, UINT64_MAX, &parameter) == SONDE_OK && parameter.code != 'e' &&
      parameter.code != 'v') {
    add(results, word_of(parameter));
  }
  for (uint64_t index = 0;; ++index) {
    parameter = {};
    parameter.struct_size = sizeof(parameter);
    if (reflect.parameter(prepared, index, &parameter) != SONDE_OK) break;
    add(parameter.is_out != 0 ? results : inputs, word_of(parameter));
  }
  return results.empty() ? fmt::format("({})", inputs) : fmt::format("({}) -> {}", inputs, results);
}

}  // namespace sonde::cli
