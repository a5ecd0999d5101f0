// Phases of training: what an operator or scope says about the part of a step it belongs to.
#pragma once

#include <cstdint>

namespace sonde::workload {

// Of a launch: the optimizer's where any open scope is; else backward where any open operator runs an autograd node; else
// forward where any may have made one.
enum class Phase : uint8_t { kOther, kForward, kBackward, kOptimizer };
inline constexpr uint32_t kPhases = 4;

inline Phase inner_phase(Phase outer, Phase own) { return own > outer ? own : outer; }

inline const char *phase_name(uint32_t phase) {
  constexpr const char *kNames[] = {"other", "forward", "backward", "optimizer"};
  return kNames[phase < kPhases ? phase : 0];
}

// What a scope or operator says when it begins.
struct ScopeHint {
  Phase phase = Phase::kOther;
  uint64_t sequence = 0;        // of the autograd node, see sonde_framework_operator_t
  uint64_t forward_thread = 0;  // of a backward operator: the thread that made the node
};

}  // namespace sonde::workload
