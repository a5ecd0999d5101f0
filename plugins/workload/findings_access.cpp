// Rules about what kernels did to memory.
#include <sonde/toolkit/names.h>
#include <sonde/toolkit/text.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "access_patterns.h"
#include "findings.h"
#include "roofline_rows.h"

namespace sonde::workload {
namespace {

using toolkit::format_bytes;
using toolkit::format_ns;
using toolkit::format_share;

class AccessJudge : public Judge {
 public:
  using Judge::Judge;

  void all() {
    working_set();
    units("uncoalesced", "objects of global memory", &KernelUnits::global, "sectors", options_.uncoalesced_ratio,
          options_.uncoalesced_share, "uncoalesced_ratio", "uncoalesced_share");
    units("bank_conflicts", "shared memory", &KernelUnits::shared, "wavefronts", options_.bank_conflict_ratio,
          options_.bank_conflict_share, "bank_conflict_ratio", "bank_conflict_share");
    block_divergence();
    hot_block();
    access_patterns();
    roofline();
    accesses_complete();
  }

 private:
  const Accesses &accesses() const { return workload_.accesses(); }

  std::string kernel_name(const KernelKey &key) const { return toolkit::shorten_kernel_name(workload_.text(key.name)); }

  // Evidence of where, kernel included.
  void locate(Finding &finding, const KernelKey &key) const {
    const auto owner = workload_.sources().find(key.source);
    if (owner != workload_.sources().end() && owner->second.process) {
      finding.evidence("process", "1", *owner->second.process);
    }
    finding.evidence("device", "1", key.device);
    finding.kernel(workload_.text(key.name));
  }

  // How much more than was watched a finding stands for.
  double scale() const {
    const Accesses::Seen &seen = accesses().seen();
    return seen.watched == 0 ? 1 : static_cast<double>(seen.launches) / static_cast<double>(seen.watched);
  }

  // Why there is nothing to judge. `option`: the word of `accesses` that collects it.
  std::string missing(const char *option) const {
    const Accesses::Seen &seen = accesses().seen();
    const std::string how = std::string("; collect them with the port cuda_access and `accesses: ") + option + "`";
    if (seen.launches == 0) return "the capture holds no records of accesses" + how;
    if (seen.watched == 0) {
      return "none of the " + std::to_string(seen.launches) + " launches in records of accesses was watched" + how;
    }
    return std::string("the records of accesses hold no ") +
           (std::string(option) == "records" ? "warp records" : option) + how;
  }

  void working_set() const {
    const std::string formula =
        "most bytes alive at one time / most bytes of allocations that one launch touched >= "
        "footprint_ratio (" +
        number(options_.footprint_ratio) + ")";
    const WorkingSets &sets = accesses().working_sets();
    bool broken = false, looked = false;
    for (const auto &[place, row] : sets.devices()) {
      const auto &[source, device] = place;
      const auto footprint = sets.footprints().find({source, device, toolkit::ObjectLevel::kAllocation});
      const auto most = static_cast<uint64_t>(row.objects[0].statistics.max());
      if (!sets.any_touch() || footprint == sets.footprints().end() || most == 0) continue;
      looked = true;
      const uint64_t peak = footprint->second.peak_bytes;
      const double ratio = static_cast<double>(peak) / static_cast<double>(most);
      if (ratio < options_.footprint_ratio) continue;
      broken = true;
      Finding result = finding("working_set");
      const auto owner = workload_.sources().find(source);
      result.violation(
          SONDE_SEVERITY_NOTE,
          (owner == workload_.sources().end() ? "Device " + std::to_string(device) : where(owner->second, device)) +
              " held " + format_bytes(peak) + " at most, of which no launch touched more than " + format_bytes(most) +
              ".");
      result.advice(
          "The rest waits in memory: the analyses `memory` and `uvm` say what may be freed, shared or moved in the "
          "meantime.");
      result.evidence("device", "1", device)
          .evidence("footprint", "bytes", peak)
          .evidence("working_set", "bytes", most)
          .evidence("ratio", "1", ratio)
          .evidence("launches", "1", row.watched)
          .evidence("incomplete", "1", row.incomplete)
          .formula(formula)
          .sampling_scale(scale())
          .confidence(row.incomplete == 0 ? 0.9 : 0.6);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("working_set");
    result.formula(formula);
    if (looked) {
      result.ok("Launches touch most of what is alive at the peak.");
    } else {
      result.unsupported("Working sets were not looked at.", missing("objects"));
    }
    publish(std::move(result));
  }

  void units(const char *rule, const char *where_word, UnitSums KernelUnits::*member, const char *unit, double ratio,
             double least_share, const char *ratio_option, const char *share_option) const {
    const std::string formula = std::string(unit) + " / fewest possible of a kernel >= " + ratio_option + " (" +
                                number(ratio) + "), and its excess / all " + unit +
                                " of the process >= " + share_option + " (" + number(least_share) + ")";
    std::map<uint32_t, uint64_t> whole;
    bool looked = false, broken = false;
    const auto &kernels = accesses().instructions().kernels().rows();
    for (const auto &[key, row] : kernels) {
      whole[key.source] += (row.*member).units;
      looked = looked || (row.*member).warps != 0;
    }
    std::map<std::tuple<uint64_t, std::string, KernelKey>, const UnitSums *> found;
    for (const auto &[key, row] : kernels) {
      const UnitSums &sums = row.*member;
      const std::optional<double> own = sums.ratio();
      if (!own || *own < ratio || sums.excess() == 0) continue;
      if (static_cast<double>(sums.excess()) < least_share * static_cast<double>(whole[key.source])) continue;
      found[{UINT64_MAX - sums.excess(), workload_.text(key.name), key}] = &sums;
    }
    const bool is_global = member == &KernelUnits::global;
    for (const auto &[order, sums] : found) {
      const KernelKey &key = std::get<2>(order);
      broken = true;
      Finding result = finding(rule);
      result.violation(SONDE_SEVERITY_WARNING, kernel_name(key) + " took " + std::to_string(sums->units) + " " + unit +
                                                   " where " + std::to_string(sums->least_units) + " would do.");
      result.advice(is_global ? "Let neighbouring threads access neighbouring addresses (structure of arrays, "
                                "transposed loops, a copy through shared memory); see memory_instructions for which "
                                "instructions."
                              : "Pad or swizzle the shared array so that the lanes of a warp fall into different "
                                "banks; see memory_instructions.");
      locate(result, key);
      result.evidence(unit, "1", sums->units)
          .evidence((std::string("least_") + unit).c_str(), "1", sums->least_units)
          .evidence("ratio", "1", *sums->ratio())
          .evidence("excess_share", "1", static_cast<double>(sums->excess()) / static_cast<double>(whole[key.source]))
          .formula(formula)
          .sampling_scale(scale())
          .confidence(0.8);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding(rule);
    result.formula(formula);
    if (looked) {
      result.ok(is_global ? "Accesses to global memory are coalesced where it matters."
                          : "Accesses to shared memory do not collide where it matters.");
    } else {
      const bool has_others = accesses().seen().instructions != 0;
      result.unsupported(
          std::string("Accesses to ") + (is_global ? "global memory" : where_word) + " were not looked at.",
          has_others ? std::string("the instructions in the capture access no ") +
                           (is_global ? "global memory" : "shared memory")
                     : missing("instructions"));
    }
    publish(std::move(result));
  }

  void block_divergence() const {
    const std::string formula =
        "standard deviation / mean of the thread accesses of a launch's blocks >= divergence_variation (" +
        number(options_.divergence_variation) + ")";
    bool broken = false, looked = false;
    std::map<std::pair<std::string, KernelKey>, const WarpRow *> rows;
    for (const auto &[key, row] : accesses().warps().kernels().rows()) rows[{workload_.text(key.name), key}] = &row;
    for (const auto &[order, row] : rows) {
      const DivergenceResult &worst = row->worst;
      if (worst.blocks < 2) continue;
      looked = true;
      if (worst.variation < options_.divergence_variation) continue;
      broken = true;
      const KernelKey &key = order.second;
      Finding result = finding("block_divergence");
      result.violation(SONDE_SEVERITY_WARNING, "The blocks of " + kernel_name(key) + " make " +
                                                   std::to_string(worst.least) + " to " +
                                                   std::to_string(worst.greatest) + " accesses each.");
      result.advice(
          "Blocks with more work end last while the others' processors idle: split the work evenly, or let blocks "
          "take it from a queue.");
      locate(result, key);
      result.evidence("variation", "1", worst.variation)
          .evidence("blocks", "1", worst.blocks)
          .evidence("least", "1", worst.least)
          .evidence("mean", "1", worst.mean)
          .evidence("greatest", "1", worst.greatest)
          .evidence("exact_clusters", "1", worst.exact_clusters)
          .formula(formula)
          .sampling_scale(static_cast<double>(worst.period))
          .confidence(0.6);  // accesses stand for work
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("block_divergence");
    result.formula(formula);
    if (looked) {
      result.ok("The blocks of each launch access about the same amount.");
    } else {
      result.unsupported(
          "Divergence of blocks was not looked for.",
          accesses().seen().warps != 0 ? "no launch in the warp records has several blocks" : missing("records"));
    }
    publish(std::move(result));
  }

  void hot_block() const {
    const std::string formula =
        "accesses to one block / all accesses to allocations of the device >= hot_block_share (" +
        number(options_.hot_block_share) + "), the block being at most hot_block_bytes_share (" +
        number(options_.hot_block_bytes_share) + ") of the bytes of the allocations that were touched";
    bool broken = false, looked = false;
    const Heat &heat = accesses().heat();
    for (const auto *const entry : heat.blocks().sorted()) {
      const BlockHeat &block = entry->item;
      const auto total = heat.totals().find(Heat::total_key(block.source, block.device));
      if (total == heat.totals().end() || total->second.accesses == 0) continue;
      looked = true;
      const double part = static_cast<double>(entry->weight) / static_cast<double>(total->second.accesses);
      const double size =
          static_cast<double>(block.bytes) / static_cast<double>(std::max<uint64_t>(total->second.object_bytes, 1));
      if (part < options_.hot_block_share || size > options_.hot_block_bytes_share) continue;
      broken = true;
      const std::string &name = accesses().object_text(block.name);
      Finding result = finding("hot_block");
      result.violation(SONDE_SEVERITY_NOTE, format_share(part) + " of the accesses go to " + format_bytes(block.bytes) +
                                                " of " + (name.empty() ? std::string("an unnamed allocation") : name) +
                                                ".");
      result.advice(
          "Keep it near: shared memory or constant memory where it is small, a persisting L2 window "
          "(cudaAccessPolicyWindow), device memory where it is managed.");
      result.tensor(name);
      result.evidence("device", "1", block.device)
          .evidence("address", "1", block.address)
          .evidence("block", "bytes", block.bytes)
          .evidence("accesses", "1", entry->weight)
          .evidence("share", "1", part)
          .evidence("touched", "bytes", total->second.object_bytes)
          .formula(formula)
          .sampling_scale(scale())
          .confidence(0.7);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("hot_block");
    result.formula(formula);
    if (looked) {
      result.ok("No small part of memory draws most of the accesses.");
    } else {
      result.unsupported("Hot blocks were not looked for.", missing("objects"));
    }
    publish(std::move(result));
  }

  void access_patterns() const {
    const std::string formula =
        "high atomic contention, strongly uncoalesced accesses, or words that the same thread had just read or "
        "written, by the thresholds atomic_high, uncoalesced_density_high, uncoalesced_cold_high";
    bool broken = false, looked = false;
    std::map<std::pair<std::string, KernelKey>, const WarpRow *> rows;
    for (const auto &[key, row] : accesses().warps().kernels().rows()) rows[{workload_.text(key.name), key}] = &row;
    for (const auto &[order, row] : rows) {
      looked = looked || !row->graph.nodes.empty();
      std::map<std::string, uint64_t> counts;
      for (const PatternHit &hit : find_patterns(row->graph, options_)) {
        const bool is_redundant = hit.pattern == Pattern::kReadAfterRead || hit.pattern == Pattern::kReadAfterWrite ||
                                  hit.pattern == Pattern::kWriteAfterWrite;
        const bool is_high = hit.strength == Strength::kHigh &&
                             (hit.pattern == Pattern::kAtomicContention || hit.pattern == Pattern::kUncoalesced);
        if (is_redundant || is_high) ++counts[pattern_name(hit.pattern)];
      }
      if (counts.empty()) continue;
      broken = true;
      std::string list;
      for (const auto &[name, count] : counts) list += (list.empty() ? "" : ", ") + name + " " + std::to_string(count);
      Finding result = finding("access_patterns");
      result.violation(SONDE_SEVERITY_NOTE,
                       "Instructions of " + kernel_name(order.second) + " access memory wastefully: " + list + ".");
      result.advice(
          "See access_patterns for the instructions. Contention: combine within a warp or block first. Reads of what "
          "the same thread just had: keep it in a register.");
      locate(result, order.second);
      for (const auto &[name, count] : counts) result.evidence(name.c_str(), "1", count);
      result.formula(formula).sampling_scale(static_cast<double>(row->reuse_period)).confidence(0.6);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("access_patterns");
    result.formula(formula);
    if (looked) {
      result.ok("No instruction accesses memory wastefully by these measures.");
    } else {
      result.unsupported("Patterns of accesses were not looked for.", missing("records"));
    }
    publish(std::move(result));
  }

  void roofline() const {
    const std::string formula =
        "max(operations / ceiling summed over kinds, bytes / ceiling of dram and l2) / mean time < roofline_attained "
        "(" +
        number(options_.roofline_attained) + "), for kernels with at least roofline_time_share (" +
        number(options_.roofline_time_share) + ") of the kernel time";
    bool broken = false, looked = false, any = false;
    for (const RooflineRow &row : roofline_rows(workload_)) {
      any = true;
      if (!row.point.attained || row.time_share < options_.roofline_time_share) continue;
      looked = true;
      if (*row.point.attained >= options_.roofline_attained) continue;
      broken = true;
      Finding result = finding("roofline");
      result.violation(SONDE_SEVERITY_NOTE,
                       kernel_name(row.kernel) + " attains " + format_share(*row.point.attained) +
                           " of what its work and traffic allow (bound: " + bound_name(row.point.bound) + ").");
      result.advice(
          "Neither arithmetic nor bandwidth holds it up: look at latency, occupancy, launch size and stalls (PC "
          "samples).");
      locate(result, row.kernel);
      result.evidence("attained", "1", *row.point.attained)
          .evidence("time", "ns", row.cost.seconds * 1e9)
          .evidence("least_time", "ns", row.point.least_seconds * 1e9)
          .evidence("time_share", "1", row.time_share)
          .formula(formula)
          .gain_seconds((row.cost.seconds - row.point.least_seconds) *
                        static_cast<double>(row.launches))  // an upper bound: all launches at the roof
          .confidence(0.5);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("roofline");
    result.formula(formula);
    if (looked) {
      result.ok("Kernels that matter are near what their work and traffic allow.");
    } else if (!options_.ceilings.any()) {
      result.unsupported("The roofline was not looked at.",
                         "the options give no ceilings (ceilings, ceilings_file; tests/gpu/roofline measures them)");
    } else if (!any) {
      result.unsupported("The roofline was not looked at.",
                         "the capture holds no counters of work or traffic (option metrics of the port cuda_sampling), "
                         "and the option flops names no kernel of it");
    } else {
      result.unsupported("The roofline was not looked at.",
                         "no kernel with enough of the time has a time, and work or traffic with a ceiling; join a run "
                         "with times and one with counters by `sonde merge`");
    }
    publish(std::move(result));
  }

  void accesses_complete() const {
    const Accesses::Seen &seen = accesses().seen();
    const toolkit::MemoryHistoryCounts &counts = accesses().counts();
    const uint64_t misplaced = counts.late_touches + counts.lost_touches + accesses().instructions().lost() +
                               accesses().warps().unknown() + accesses().warps().cut() + accesses().warps().damaged();
    Finding result = finding("accesses_complete");
    result.formula("every launch watched as a whole, and no record too late, unknown or damaged");
    if (seen.launches == 0) {
      result.unsupported("Accesses were not looked at.", missing("objects"));
    } else if (seen.watched == seen.launches && seen.flawed + seen.sampled + misplaced == 0) {
      result.ok("All launches were watched as a whole.");
    } else {
      result.violation(SONDE_SEVERITY_NOTE, std::to_string(seen.watched) + " of " + std::to_string(seen.launches) +
                                                " launches were watched, " + std::to_string(seen.sampled) +
                                                " of them in part by choice and " + std::to_string(seen.flawed) +
                                                " launches with something missing; " + std::to_string(misplaced) +
                                                " records of accesses could not be placed.");
      result.advice(
          "Counts are exact for what was watched: minima, means and maxima are over watched launches. Numbers of "
          "incomplete ones are lower bounds. See launches in `sonde dump --space access` for the reasons.");
    }
    result.evidence("launches", "1", seen.launches)
        .evidence("watched", "1", seen.watched)
        .evidence("skipped", "1", seen.skipped)
        .evidence("sampled", "1", seen.sampled)
        .evidence("flawed", "1", seen.flawed)
        .evidence("late_touches", "1", counts.late_touches)
        .evidence("lost_touches", "1", counts.lost_touches)
        .evidence("lost_instructions", "1", accesses().instructions().lost())
        .evidence("instructions_left_out", "1", accesses().instructions().left_out())
        .evidence("unknown_warp_launches", "1", accesses().warps().unknown())
        .evidence("cut_warp_launches", "1", accesses().warps().cut())
        .evidence("damaged_warp_records", "1", accesses().warps().damaged())
        .evidence("ambiguous_scopes", "1", accesses().scopes().ambiguous())
        .evidence("early_scopes", "1", accesses().scopes().early());
    publish(std::move(result));
  }
};

}  // namespace

void judge_accesses(const Workload &workload, const Host &host, sonde_session_t *session) {
  AccessJudge(workload, host, session).all();
}

}  // namespace sonde::workload
