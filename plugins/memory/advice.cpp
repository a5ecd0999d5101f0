#include "advice.h"

#include <sonde/toolkit/text.h>

#include <algorithm>

namespace sonde::memory {

using toolkit::format_bytes;
using toolkit::format_share;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

const char *level_name(ObjectLevel level) { return level == ObjectLevel::kAllocation ? "allocation" : "tensor"; }

std::string pattern_list(const PatternSet &patterns) {
  std::string out;
  for (size_t i = 0; i < kPatterns; ++i) {
    if (!patterns.has(pattern_at(i))) continue;
    if (!out.empty()) out += ", ";
    out += kPatternNames[i];
  }
  return out;
}

std::string use_name(const Memory &memory, const Use &use) {
  const std::string kernel = "kernel " + std::to_string(use.kernels);
  if (use.is_kernel()) return kernel + " (" + memory.kernel_name(use.name) + ")";
  return std::string(use.kind == OperationKind::kSet ? "the set" : "the copy") + " before " + kernel;
}

std::string object_title(const Memory &memory, const Usage &usage) {
  std::string out = std::string(level_name(usage.object.level)) + " " + memory.name_of_object(usage.object) + " (" +
                    format_bytes(usage.object.bytes) + ")";
  if (usage.scope_name != 0) out += " of " + memory.text(usage.scope_name);
  return out;
}

std::string suggestion(const Memory &memory, const Usage &usage, Pattern pattern) {
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      return "Allocate it, and fill it where the host does, just before " + use_name(memory, usage.first) + ".";
    case Pattern::kLateDeallocation:
      return "Free it right after " + use_name(memory, usage.last) + ".";
    case Pattern::kRedundantAllocation:
      return "Use the memory of object " + std::to_string(usage.shares_with) + ", whose last use is over by then.";
    case Pattern::kUnusedAllocation:
      return "Do not allocate it: no kernel touched it and nothing was read from it.";
    case Pattern::kLeak:
      return usage.uses == 0 ? std::string("Free it.") : "Free it after " + use_name(memory, usage.last) + ".";
    case Pattern::kTemporaryIdleness: {
      if (usage.idle.empty()) return "Free it, or move it to the host, while it rests.";
      const auto longest = std::max_element(usage.idle.begin(), usage.idle.end(),
                                            [](const IdleSlice &a, const IdleSlice &b) { return a.gap < b.gap; });
      return "Free it and make it again, or move it to the host, between " + use_name(memory, longest->from) + " and " +
             use_name(memory, longest->to) + ".";
    }
    case Pattern::kDeadWrite:
      return "Leave out the writes whose bytes are overwritten before anybody reads them.";
    case Pattern::kOverAllocation:
      return "Make it smaller: " + format_bytes(usage.intra.widest_unused.bytes) + " from byte " +
             std::to_string(usage.intra.widest_unused.begin) + " on are never accessed.";
    case Pattern::kNonUniformAccess:
      return "Keep its hot part where access is cheap (shared memory, a persisting part of the L2 cache, a buffer of "
             "its "
             "own): a tenth of its touched pages gets " +
             format_share(usage.intra.hottest_share) + " of the accesses.";
    case Pattern::kStructuredAccess:
      return "Give each step a buffer of one slice (" + format_bytes(usage.intra.largest_slice) +
             ") that the next step uses again.";
  }
  return "";
}

}  // namespace sonde::memory
