#include "plan_text.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

namespace sonde::uvm {

namespace {

using toolkit::PagingAdvice;
using toolkit::PagingPlan;
using toolkit::PlannedAllocation;
using toolkit::PlannedMove;
using toolkit::PlannedStep;

constexpr char kChecksum[] = "# checksum: ";

// FNV-1a of 64 bits, of everything but the line of the checksum itself.
std::string checksum_of(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
  char out[20];
  std::snprintf(out, sizeof(out), "%016llx", static_cast<unsigned long long>(hash));
  return out;
}

PagingAdvice advice_of(AdviceKind kind) { return static_cast<PagingAdvice>(kind); }
static_assert(static_cast<int>(AdviceKind::kReadMostly) == static_cast<int>(PagingAdvice::kReadMostly));
static_assert(static_cast<int>(AdviceKind::kPreferDevice) == static_cast<int>(PagingAdvice::kPreferDevice));
static_assert(static_cast<int>(AdviceKind::kPreferHost) == static_cast<int>(PagingAdvice::kPreferHost));
static_assert(static_cast<int>(AdviceKind::kAccessedBy) == static_cast<int>(PagingAdvice::kAccessedBy));

// Bytes of pages within an allocation.
void range_of(const Allocation &allocation, uint32_t first, uint32_t count, uint64_t &offset, uint64_t &bytes) {
  offset = uint64_t{first} * kPageBytes;
  bytes = std::min(uint64_t{count} * kPageBytes, allocation.bytes - std::min(offset, allocation.bytes));
}

}  // namespace

PagingPlan plan_of(const Trace &trace, const Schedule &schedule) {
  PagingPlan plan;
  plan.device = trace.device;
  std::map<uint32_t, PlannedAllocation> used;
  const auto use = [&](uint32_t allocation) -> PlannedAllocation & {
    PlannedAllocation &planned = used[allocation];
    planned.allocation = trace.allocations[allocation].ordinal;
    planned.bytes = trace.allocations[allocation].bytes;
    return planned;
  };
  for (const Advice &advice : schedule.advice) {
    toolkit::PlannedAdvice planned;
    planned.advice = advice_of(advice.kind);
    range_of(trace.allocations[advice.allocation], advice.first, advice.count, planned.offset, planned.bytes);
    use(advice.allocation).advise.push_back(planned);
  }
  for (const MoveGroup &group : schedule.groups) {
    const Step &step = trace.steps[group.step];
    if (step.launch == kNobody) continue;
    if (plan.steps.empty() || plan.steps.back().launch != step.launch) {
      PlannedStep planned;
      planned.launch = step.launch;
      planned.kernel = step.is_graph ? "" : trace.kernels[step.kernel];
      planned.occurrence = step.occurrence;
      planned.waits_for_device = group.waits_for_device;
      plan.steps.push_back(std::move(planned));
    }
    for (const Move &move : group.moves) {
      PlannedMove planned;
      planned.is_eviction = move.is_eviction;
      planned.allocation = use(move.allocation).allocation;
      range_of(trace.allocations[move.allocation], move.first, move.count, planned.offset, planned.bytes);
      if (move.needed != kNone) planned.needed = trace.steps[move.needed].launch;
      plan.steps.back().moves.push_back(planned);
    }
  }
  for (auto &[number, allocation] : used) plan.allocations.push_back(std::move(allocation));
  std::sort(plan.allocations.begin(), plan.allocations.end(),
            [](const auto &left, const auto &right) { return left.allocation < right.allocation; });
  return plan;
}

Schedule schedule_of(const Trace &trace, const PagingPlan &plan, uint64_t &unknown) {
  Schedule schedule;
  unknown = 0;
  std::map<uint64_t, uint32_t> allocation_of;
  for (uint32_t index = 0; index < trace.allocations.size(); ++index) {
    allocation_of[trace.allocations[index].ordinal] = index;
  }
  const auto find = [&](uint64_t ordinal, uint64_t bytes) {
    const auto found = allocation_of.find(ordinal);
    return found == allocation_of.end() || trace.allocations[found->second].bytes != bytes ? kNone : found->second;
  };
  std::map<uint64_t, uint64_t> bytes_of;
  for (const PlannedAllocation &allocation : plan.allocations) bytes_of[allocation.allocation] = allocation.bytes;
  const auto pages = [](uint64_t offset, uint64_t bytes, uint32_t &first, uint32_t &count) {
    first = static_cast<uint32_t>(offset / kPageBytes);
    count = static_cast<uint32_t>(pages_of(offset + bytes) - first);
  };
  for (const PlannedAllocation &allocation : plan.allocations) {
    for (const toolkit::PlannedAdvice &planned : allocation.advise) {
      Advice advice;
      advice.allocation = find(allocation.allocation, allocation.bytes);
      if (advice.allocation == kNone) {
        ++unknown;
        continue;
      }
      advice.kind = static_cast<AdviceKind>(planned.advice);
      pages(planned.offset, planned.bytes, advice.first, advice.count);
      schedule.advice.push_back(advice);
    }
  }
  // The first step of a launch, or of the first launch after it that the trace has. Launches ascend.
  std::vector<std::pair<uint64_t, uint32_t>> launches;
  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    const Step &step = trace.steps[index];
    if (!step.is_host() && (launches.empty() || launches.back().first != step.launch)) {
      launches.emplace_back(step.launch, index);
    }
  }
  const auto step_of = [&](uint64_t launch) {
    const auto found = std::lower_bound(launches.begin(), launches.end(), std::make_pair(launch, uint32_t{0}));
    return found == launches.end() ? kNone : found->second;
  };
  for (const PlannedStep &planned : plan.steps) {
    MoveGroup group;
    group.step = step_of(planned.launch);
    group.waits_for_device = planned.waits_for_device;
    for (const PlannedMove &one : planned.moves) {
      Move move;
      move.allocation = find(one.allocation, bytes_of[one.allocation]);
      if (move.allocation == kNone || group.step == kNone) {
        ++unknown;
        continue;
      }
      move.is_eviction = one.is_eviction;
      pages(one.offset, one.bytes, move.first, move.count);
      if (one.needed != PlannedMove::kNobody) move.needed = step_of(one.needed);
      group.moves.push_back(move);
    }
    if (!group.moves.empty()) schedule.groups.push_back(std::move(group));
  }
  return schedule;
}

std::string plan_file_text(const PagingPlan &plan, const std::string &remarks) {
  std::string head =
      "# A plan for managed memory, made by the analysis `uvm`. Apply it: sonde run -c THIS_FILE -- PROGRAM\n"
      "# It may be edited by hand; the port's README says what it may hold. An edited file is not written over.\n";
  std::string line;
  for (const char character : remarks + (remarks.empty() || remarks.back() == '\n' ? "" : "\n")) {
    if (character != '\n') {
      line += character;
      continue;
    }
    head += "# " + line + "\n";
    line.clear();
  }
  const std::string body = "ports:\n  cuda_paging:\n    plan:\n" + toolkit::paging_plan_text(plan, 6) +
                           "analyses:\n  uvm:\n    mode: applied\n";
  return head + kChecksum + checksum_of(head + body) + "\n" + body;
}

bool is_unedited(const std::string &text) {
  const size_t begin = text.find(kChecksum);
  if (begin == std::string::npos || (begin != 0 && text[begin - 1] != '\n')) return false;
  const size_t end = text.find('\n', begin);
  if (end == std::string::npos) return false;
  const size_t value = begin + sizeof(kChecksum) - 1;
  return text.substr(value, end - value) == checksum_of(text.substr(0, begin) + text.substr(end + 1));
}

bool write_plan_file(const std::string &path, const std::string &text, bool overwrite, std::string &error) {
  {
    std::ifstream present(path, std::ios::binary);
    if (present && !overwrite) {
      const std::string old((std::istreambuf_iterator<char>(present)), std::istreambuf_iterator<char>());
      if (!old.empty() && !is_unedited(old)) {
        error = path + " was edited, or is no plan of this analysis, and was left as it is; see the option overwrite";
        return false;
      }
    }
  }
  // Written aside and renamed, so that a plan is whole or not there.
  const std::string aside = path + ".partial";
  std::ofstream file(aside, std::ios::binary);
  file << text;
  file.close();
  if (!file || std::rename(aside.c_str(), path.c_str()) != 0) {
    std::remove(aside.c_str());
    error = path + " cannot be written";
    return false;
  }
  return true;
}

}  // namespace sonde::uvm
