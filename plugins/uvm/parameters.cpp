#include "parameters.h"

#include <cmath>
#include <cstdio>
#include <functional>

namespace sonde::uvm {

namespace {

struct Entry {
  const char *name;
  double least;
  double greatest;
  std::function<double(const PagingParameters &)> get;
  std::function<void(PagingParameters &, double)> set;
};

template <typename Member>
Entry entry(const char *name, Member PagingParameters::*member, double least, double greatest) {
  return {name, least, greatest, [member](const PagingParameters &all) { return static_cast<double>(all.*member); },
          [member](PagingParameters &all, double value) { all.*member = static_cast<Member>(value); }};
}

const std::vector<Entry> &entries() {
  constexpr double kMostNs = 1e12;
  constexpr double kMostRate = 1e14;
  static const std::vector<Entry> all = {
      entry("to_device", &PagingParameters::to_device, 1, kMostRate),
      entry("to_host", &PagingParameters::to_host, 1, kMostRate),
      entry("prefetch_call_ns", &PagingParameters::prefetch_call_ns, 0, kMostNs),
      entry("batch_ns", &PagingParameters::batch_ns, 0, kMostNs),
      entry("block_ns", &PagingParameters::block_ns, 0, kMostNs),
      entry("fault_rate", &PagingParameters::fault_rate, 1, kMostRate),
      entry("window_bytes", &PagingParameters::window_bytes, 1, 1e15),
      entry("tree_threshold", &PagingParameters::tree_threshold, 0, 2),
      entry("populate_rate", &PagingParameters::populate_rate, 1, kMostRate),
      entry("evict_ns", &PagingParameters::evict_ns, 0, kMostNs),
      entry("order_by_access", &PagingParameters::order_by_access, 0, 1),
      entry("host_fault_ns", &PagingParameters::host_fault_ns, 0, kMostNs),
      entry("host_fault_rate", &PagingParameters::host_fault_rate, 1, kMostRate),
      entry("remote_rate", &PagingParameters::remote_rate, 1, kMostRate),
      entry("launch_ns", &PagingParameters::launch_ns, 0, kMostNs),
  };
  return all;
}

}  // namespace

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Entry &one : entries()) names.emplace_back(one.name);
  return names;
}

bool set_parameter(PagingParameters &parameters, const std::string &name, double value) {
  for (const Entry &one : entries()) {
    if (name != one.name) continue;
    if (!std::isfinite(value) || value < one.least || value > one.greatest) return false;
    one.set(parameters, value);
    return true;
  }
  return false;
}

double get_parameter(const PagingParameters &parameters, const std::string &name) {
  for (const Entry &one : entries()) {
    if (name == one.name) return one.get(parameters);
  }
  return NAN;
}

std::string parameters_text(const PagingParameters &parameters) {
  std::string text = "# " + parameters.source + "\nparameters:\n";
  for (const Entry &one : entries()) {
    char line[96];
    std::snprintf(line, sizeof(line), "  %s: %.9g\n", one.name, one.get(parameters));
    text += line;
  }
  return text;
}

}  // namespace sonde::uvm
