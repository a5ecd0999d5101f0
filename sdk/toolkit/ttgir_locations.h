// Source lines behind "loc(...)". Used by the reader in ttgir.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ttgir.h"

namespace sonde::toolkit::ttgir {

// Turns texts of locations into frames: "f":l:c, "name"(loc), callsite(callee at caller), fused[a, b], unknown, and
// "#loc12", which means what its alias says. Each text is looked at once; cycles and nesting deeper than kMostNesting
// are unknown. Both arguments must outlive the table.
class LocationTable {
 public:
  static constexpr int kMostNesting = 100;

  LocationTable(const std::unordered_map<std::string_view, std::string_view> &aliases, std::vector<Location> &frames)
      : aliases_(aliases), frames_(frames) {}

  // The innermost frame, an index of `frames`; kNone when unknown.
  uint32_t resolve(std::string_view text) { return resolve(text, 0); }

 private:
  uint32_t resolve(std::string_view text, int depth);
  uint32_t resolve_new(std::string_view text, int depth);
  uint32_t quoted(std::string_view text, int depth);
  // The frames of `callee` with those of `caller` behind them.
  uint32_t joined(uint32_t callee, uint32_t caller);

  const std::unordered_map<std::string_view, std::string_view> &aliases_;
  std::vector<Location> &frames_;
  std::unordered_map<std::string_view, uint32_t> known_;
};

}  // namespace sonde::toolkit::ttgir
