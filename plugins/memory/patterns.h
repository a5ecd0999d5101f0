// What can be wrong with an object's use of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sonde::memory {

enum class Pattern : uint8_t {
  kEarlyAllocation,
  kLateDeallocation,
  kRedundantAllocation,
  kUnusedAllocation,
  kLeak,
  kTemporaryIdleness,
  kDeadWrite,
  kOverAllocation,
  kNonUniformAccess,
  kStructuredAccess,
};

inline constexpr size_t kPatterns = 10;
inline constexpr std::array<std::string_view, kPatterns> kPatternNames = {
    "early_allocation",   "late_deallocation", "redundant_allocation", "unused_allocation",  "leak",
    "temporary_idleness", "dead_write",        "over_allocation",      "non_uniform_access", "structured_access"};

constexpr size_t index_of(Pattern pattern) { return static_cast<size_t>(pattern); }
constexpr std::string_view name_of(Pattern pattern) { return kPatternNames[index_of(pattern)]; }
constexpr Pattern pattern_at(size_t index) { return static_cast<Pattern>(index); }

// A set of patterns.
class PatternSet {
 public:
  void add(Pattern pattern) { bits_ |= 1u << index_of(pattern); }
  void remove(Pattern pattern) { bits_ &= ~(1u << index_of(pattern)); }
  bool has(Pattern pattern) const { return (bits_ >> index_of(pattern) & 1u) != 0; }
  bool empty() const { return bits_ == 0; }

 private:
  uint32_t bits_ = 0;
};

// Judged from accesses; the others need allocations and frees alone.
constexpr bool needs_accesses(Pattern pattern) { return pattern != Pattern::kLeak; }
// Judged from touched bytes or pages.
constexpr bool is_intra_object(Pattern pattern) { return pattern >= Pattern::kOverAllocation; }

}  // namespace sonde::memory
