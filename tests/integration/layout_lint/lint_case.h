// A module as text, linted through the host.
#pragma once

#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lint.h"

namespace sonde::layout_lint {

// A function around `body`, for `warps` warps of a device with ldmatrix and stmatrix.
inline std::string module_text(const std::string &aliases, const std::string &arguments, const std::string &body,
                               int warps = 1) {
  return aliases + "#smem = #ttg.shared_memory\nmodule attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = " +
         std::to_string(warps) + " : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32} {\n" +
         "  tt.func public @kernel(" + arguments + ") {\n" + body + "    tt.return\n  } loc(\"k.py\":1:0)\n}\n";
}

inline FileResult lint(const std::string &text, Options options = {}) {
  return Lint(Host(sonde_host()), std::move(options)).check("case.ttgir", text);
}

inline const Site &site_of(const FileResult &result, std::string_view operation, size_t which = 0) {
  static const Site none;
  for (const Site &site : result.sites) {
    if (site.operation == operation && which-- == 0) return site;
  }
  ADD_FAILURE() << "no site " << operation << " " << result.error;
  return none;
}

inline bool breaks(const Site &site, std::string_view rule) {
  return std::any_of(site.issues.begin(), site.issues.end(), [&](const Issue &issue) { return issue.rule == rule; });
}

inline std::vector<std::string> rules_of(const Site &site) {
  std::vector<std::string> rules;
  for (const Issue &issue : site.issues) rules.push_back(issue.rule);
  return rules;
}

}  // namespace sonde::layout_lint
