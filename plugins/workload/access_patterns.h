// What the reuse graph of a kernel says about each of its instructions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "options.h"
#include "reuse_scopes.h"

namespace sonde::workload {

enum class Pattern : uint8_t {
  kAtomicContention,  // an atomic operation on words that other threads use
  kReadAfterRead,     // a thread reads again what it read: the value could stay in a register
  kReadAfterWrite,    // a thread reads what it wrote
  kWriteAfterWrite,   // a thread overwrites what it wrote
  kGridReuse,         // words that other blocks used
  kBlockReuse,        // words that the same block used, not in shared memory
  kUncoalesced,
  kStreaming,  // words used once, side by side
  kBroadcast,  // lanes read the same address
};
enum class Strength : uint8_t { kLow, kMedium, kHigh };
const char *pattern_name(Pattern pattern);
const char *strength_name(Strength strength);

struct PatternHit {
  uint32_t pc = 0;
  Pattern pattern = Pattern::kStreaming;
  Strength strength = Strength::kMedium;
  double measure = 0;  // the share or density that the threshold looked at
};

// Density of an instruction: mean sectors / mean lanes * max(1, 32 / size). 1: lanes lie side by side.
double density(const ReuseNode &node);

// In order of program counters. With W the words of the edges into an instruction (cold ones included), of at least
// reuse_least_words, cross = (block + grid) / W; thresholds are options, the README has them with their source.
std::vector<PatternHit> find_patterns(const ReuseGraph &graph, const Options &options);

}  // namespace sonde::workload
