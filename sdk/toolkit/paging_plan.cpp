#include "paging_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include <sonde/status.h>

namespace sonde::toolkit {

namespace {

constexpr std::array kAdviceNames = {"read_mostly", "prefer_device", "prefer_host", "accessed_by"};

// One map of the tree, whose keys must all be known.
class Map {
 public:
  Map(const sonde_config_service_t &service, const sonde_config_t *tree, std::string &error)
      : service_(service), tree_(tree), error_(error) {}

  bool fail(const char *path, const std::string &text) const {
    if (!error_.empty()) return false;
    const char *where = "";
    if (service_.where(tree_, path, &where) != SONDE_OK) service_.where(tree_, "", &where);
    error_ = std::string(where) + ": " + text;
    return false;
  }

  bool is_map() const {
    const char *key = nullptr;
    return service_.key(tree_, "", 0, &key) == SONDE_OK || fail("", "a map was expected");
  }

  bool has(const char *key) const {
    const sonde_config_t *child = nullptr;
    return service_.child(tree_, key, &child) == SONDE_OK;
  }

  template <size_t count>
  bool only(const std::array<const char *, count> &known) const {
    uint64_t entries = 0;
    service_.count(tree_, "", &entries);
    for (uint64_t index = 0; index < entries; ++index) {
      const char *key = "";
      service_.key(tree_, "", index, &key);
      if (std::find(known.begin(), known.end(), std::string_view(key)) == known.end()) {
        return fail(key, std::string("a plan has no '") + key + "' here");
      }
    }
    return true;
  }

  bool number(const char *key, uint64_t &out, bool is_optional = false) const {
    int64_t value = 0;
    if (is_optional && !has(key)) return true;
    if (!has(key)) return fail("", std::string("'") + key + "' is missing");
    if (service_.get_i64(tree_, key, &value) != SONDE_OK || value < 0) {
      return fail(key, std::string("'") + key + "' must be a number from 0 on");
    }
    out = static_cast<uint64_t>(value);
    return true;
  }

  bool text(const char *key, std::string &out, bool is_optional = false) const {
    const char *value = nullptr;
    if (is_optional && !has(key)) return true;
    if (!has(key)) return fail("", std::string("'") + key + "' is missing");
    if (service_.get_text(tree_, key, &value) != SONDE_OK) return fail(key, std::string("'") + key + "' must be text");
    out = value;
    return true;
  }

  // Calls `body` with each entry of the list at `key`; none when it is not there.
  template <typename Body>
  bool each(const char *key, Body &&body) const {
    uint64_t entries = 0;
    const sonde_config_t *list = nullptr;
    if (service_.child(tree_, key, &list) != SONDE_OK) return true;
    const char *text = nullptr;
    if (service_.get_text(list, "", &text) == SONDE_OK || service_.key(list, "", 0, &text) == SONDE_OK) {
      return fail(key, std::string("'") + key + "' must be a list");
    }
    service_.count(list, "", &entries);
    for (uint64_t index = 0; index < entries; ++index) {
      const sonde_config_t *item = nullptr;
      if (service_.child(list, std::to_string(index).c_str(), &item) != SONDE_OK) return fail(key, "an entry is empty");
      const Map entry(service_, item, error_);
      if (!entry.is_map() || !body(entry)) return false;
    }
    return true;
  }

 private:
  const sonde_config_service_t &service_;
  const sonde_config_t *tree_;
  std::string &error_;
};

// Offset and bytes within an allocation of `whole` bytes; both left out mean all of it.
bool read_range(const Map &map, uint64_t whole, uint64_t &offset, uint64_t &bytes) {
  offset = 0;
  if (!map.number("offset", offset, true)) return false;
  bytes = whole > offset ? whole - offset : 0;
  if (!map.number("bytes", bytes, true)) return false;
  if (bytes == 0 || offset > whole || bytes > whole - offset) {
    return map.fail("", "the range of " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                            " is not within the allocation, which has " + std::to_string(whole) + " bytes");
  }
  return true;
}

bool read_allocation(const Map &map, PlannedAllocation &out) {
  if (!map.only(std::array{"allocation", "bytes", "name", "advise"}) || !map.number("allocation", out.allocation) ||
      !map.number("bytes", out.bytes)) {
    return false;
  }
  return map.each("advise", [&](const Map &entry) {
    PlannedAdvice advice;
    std::string name;
    if (!entry.only(std::array{"advice", "offset", "bytes"}) || !entry.text("advice", name) ||
        !read_range(entry, out.bytes, advice.offset, advice.bytes)) {
      return false;
    }
    const auto *const found =
        std::find_if(kAdviceNames.begin(), kAdviceNames.end(), [&](const char *known) { return name == known; });
    if (found == kAdviceNames.end()) {
      return entry.fail("advice", "'" + name + "' is none of read_mostly, prefer_device, prefer_host, accessed_by");
    }
    advice.advice = static_cast<PagingAdvice>(found - kAdviceNames.begin());
    out.advise.push_back(advice);
    return true;
  });
}

bool read_move(const Map &map, const std::map<uint64_t, uint64_t> &bytes_of, uint64_t launch, PlannedMove &out) {
  if (!map.only(std::array{"prefetch", "evict", "offset", "bytes", "needed"})) return false;
  out.is_eviction = map.has("evict");
  if (out.is_eviction == map.has("prefetch")) return map.fail("", "a move is either 'prefetch' or 'evict'");
  const char *const verb = out.is_eviction ? "evict" : "prefetch";
  if (!map.number(verb, out.allocation)) return false;
  const auto found = bytes_of.find(out.allocation);
  if (found == bytes_of.end()) {
    return map.fail(verb, "allocation " + std::to_string(out.allocation) + " is not among the plan's allocations");
  }
  if (!read_range(map, found->second, out.offset, out.bytes) || !map.number("needed", out.needed, true)) return false;
  if (map.has("needed") && out.needed < launch) {
    return map.fail("needed",
                    "launch " + std::to_string(out.needed) + " is before the launch at which the move is asked for");
  }
  return true;
}

bool read_step(const Map &map, const PagingPlan &plan, const std::map<uint64_t, uint64_t> &bytes_of, PlannedStep &out) {
  std::string when = "host";
  if (!map.only(std::array{"launch", "kernel", "occurrence", "when", "moves"}) || !map.number("launch", out.launch) ||
      !map.text("kernel", out.kernel, true) || !map.number("occurrence", out.occurrence, true) ||
      !map.text("when", when, true)) {
    return false;
  }
  if (when != "host" && when != "device") return map.fail("when", "'" + when + "' is neither host nor device");
  out.waits_for_device = when == "device";
  if (!plan.steps.empty() && out.launch <= plan.steps.back().launch) {
    return map.fail("launch", "launch " + std::to_string(out.launch) + " does not come after launch " +
                                  std::to_string(plan.steps.back().launch) + " of the step before");
  }
  return map.each("moves", [&](const Map &entry) {
    PlannedMove move;
    if (!read_move(entry, bytes_of, out.launch, move)) return false;
    out.moves.push_back(move);
    return true;
  });
}

}  // namespace

const char *paging_advice_name(PagingAdvice advice) { return kAdviceNames[static_cast<size_t>(advice)]; }

std::string exact_bytes_text(uint64_t bytes) {
  constexpr std::array kUnits = {"", "Ki", "Mi", "Gi"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

std::string quoted_text(const std::string &text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20 || byte == 0x7f) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", byte);
      out += code;
    } else {
      out += character;
    }
  }
  return out + "\"";
}

std::string paging_plan_text(const PagingPlan &plan, uint32_t indent) {
  const std::string margin(indent, ' ');
  std::string out;
  const auto line = [&](const std::string &text) { out += margin + text + "\n"; };
  line("version: " + std::to_string(PagingPlan::kVersion));
  line("device: " + std::to_string(plan.device));
  line(plan.allocations.empty() ? "allocations: []" : "allocations:");
  const auto range = [](uint64_t offset, uint64_t bytes) {
    return "offset: " + exact_bytes_text(offset) + ", bytes: " + exact_bytes_text(bytes);
  };
  for (const PlannedAllocation &allocation : plan.allocations) {
    line("  - allocation: " + std::to_string(allocation.allocation));
    line("    bytes: " + exact_bytes_text(allocation.bytes));
    if (allocation.advise.empty()) continue;
    line("    advise:");
    for (const PlannedAdvice &advice : allocation.advise) {
      line(std::string("      - {advice: ") + paging_advice_name(advice.advice) + ", " +
           range(advice.offset, advice.bytes) + "}");
    }
  }
  line(plan.steps.empty() ? "steps: []" : "steps:");
  for (const PlannedStep &step : plan.steps) {
    line("  - launch: " + std::to_string(step.launch));
    line("    kernel: " + quoted_text(step.kernel));
    if (step.occurrence != PlannedStep::kAny) line("    occurrence: " + std::to_string(step.occurrence));
    line(std::string("    when: ") + (step.waits_for_device ? "device" : "host"));
    line(step.moves.empty() ? "    moves: []" : "    moves:");
    for (const PlannedMove &move : step.moves) {
      std::string text = std::string("      - {") + (move.is_eviction ? "evict: " : "prefetch: ") +
                         std::to_string(move.allocation) + ", " + range(move.offset, move.bytes);
      if (move.needed != PlannedMove::kNobody) text += ", needed: " + std::to_string(move.needed);
      line(text + "}");
    }
  }
  return out;
}

bool read_paging_plan(const sonde_config_service_t &service, const sonde_config_t *tree, PagingPlan &plan,
                      std::string &error) {
  plan = {};
  error.clear();
  const Map map(service, tree, error);
  uint64_t version = 0;
  uint64_t device = 0;
  if (!map.is_map() || !map.only(std::array{"version", "device", "allocations", "steps"}) ||
      !map.number("version", version) || !map.number("device", device, true)) {
    return false;
  }
  if (version != PagingPlan::kVersion) {
    return map.fail("version", "a plan of version " + std::to_string(version) + "; this reads version " +
                                   std::to_string(PagingPlan::kVersion));
  }
  plan.device = static_cast<uint32_t>(device);
  std::map<uint64_t, uint64_t> bytes_of;
  const bool read = map.each("allocations", [&](const Map &entry) {
    PlannedAllocation allocation;
    if (!read_allocation(entry, allocation)) return false;
    if (!bytes_of.emplace(allocation.allocation, allocation.bytes).second) {
      return entry.fail("allocation", "allocation " + std::to_string(allocation.allocation) + " is listed twice");
    }
    plan.allocations.push_back(std::move(allocation));
    return true;
  }) && map.each("steps", [&](const Map &entry) {
    PlannedStep step;
    if (!read_step(entry, plan, bytes_of, step)) return false;
    plan.steps.push_back(std::move(step));
    return true;
  });
  if (!read) return false;
  std::sort(plan.allocations.begin(), plan.allocations.end(),
            [](const auto &left, const auto &right) { return left.allocation < right.allocation; });
  return true;
}

}  // namespace sonde::toolkit
