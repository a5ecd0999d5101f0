// Exchanges between the lanes of one warp, without memory.
//
// When two layouts put the same tensor bits into registers and lanes, one is a permutation P of the other's index bits:
// bit i of (register, lane) on the source's side becomes bit P(i) on the destination's. Two ways to carry it out:
//
// Transpositions: P = (transpositions of a register bit with a lane bit, disjoint) o (a permutation of the register bits,
// a permutation of the lane bits). Register bits are renamed for free, lane bits by one shuffle of each register, and m
// transpositions by selects before and after (1 - 2^-m) R shuffles.
//   Example: two registers, two lanes, register bit <-> lane bit: lane 0 keeps register 0 and sends register 1, lane 1
//   keeps register 1 and sends register 0: one shuffle and three selects for the two registers.
//
// Rounds (Linear Layouts, section 5.4): V = registers of both sides, moved as one word; I = lanes of both sides; E, F =
// the other lanes of source and destination, in pairs; G = {e ^ f}; R completes V, I, G to a basis. In the round of
// r in span(R) every lane sends one word of r + span(V, I, G), and receives one. No broadcasts.
#pragma once

#include <cstdint>
#include <span>

#include "layout/layout.h"

namespace sonde::layout {

struct MixedTransposition {
  uint8_t register_bit;
  uint8_t lane_bit;
};

struct ShuffleRounds {
  bool exists = false;       // false with broadcasts, or registers of different number
  uint8_t vector_count = 0;  // |V|: bits of a register index that one shuffle moves at once
  uint8_t vector_source[kMaxBits];
  uint8_t vector_destination[kMaxBits];
  uint8_t round_bits = 0;  // |R|: 2^round_bits rounds
  // (round, lane) -> register: what the lane sends, its first element, in the source's registers; (round, lane) -> lane:
  // from whom it receives; (round, lane) -> register: where that goes, in the destination's registers.
  const Layout *send = nullptr;
  const Layout *from = nullptr;
  const Layout *receive = nullptr;
  uint64_t shuffles = 0;  // of 32 bits, for each thread
};

struct ShufflePlan {
  // Of both sides: the smaller one is padded with registers (or lanes) that repeat the others.
  uint8_t register_bits = 0;
  uint8_t lane_bits = 0;
  // Bit i of the register (lane) index goes to bit register_to[i] (lane_to[i]); then the transpositions are applied.
  uint8_t register_to[kMaxBits];
  uint8_t lane_to[kMaxBits];
  bool moves_lanes = false;  // lane_to is not the identity
  uint8_t mixed_count = 0;
  MixedTransposition mixed[kMaxBits];
  uint8_t packed_log2 = 0;  // 2^packed_log2 elements are moved as one register of 32 bits
  // Instructions on 32 bits that each thread executes.
  uint64_t shuffles = 0;
  uint64_t selects = 0;

  ShuffleRounds rounds;
};

// The columns of a warp's registers and lanes on both sides: unit vectors, each at most once a side, or 0. kNoSolution
// when one side is not a permutation of the other; the rounds' layouts lie in `arena`.
struct WarpColumns {
  std::span<const uint64_t> registers;
  std::span<const uint64_t> lanes;
};
bool plan_shuffles(Arena &arena, const WarpColumns &source, const WarpColumns &destination, uint32_t bits_per_element,
                   ShufflePlan &out);

// Instructions that an execution took, for each thread, in elements: an element of more than 32 bits counts once, as do
// packed ones each.
struct ShuffleCounts {
  uint64_t shuffles = 0;
  uint64_t selects = 0;
};

// Carries the plan out on one warp's data: data[register + (lane << register_bits)], both padded. Each shuffle takes one
// register from every lane and gives each lane what one other lane offered. The registers of the result are the
// destination's.
ShuffleCounts execute_transpositions(const ShufflePlan &plan, std::span<uint64_t> data);
ShuffleCounts execute_rounds(const ShufflePlan &plan, std::span<uint64_t> data);

}  // namespace sonde::layout
