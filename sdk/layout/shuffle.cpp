#include "layout/shuffle.h"

#include <algorithm>
#include <vector>

namespace sonde::layout {
namespace {

bool refuse(Arena &arena) {
  arena.fail(Fault::kNoSolution, "shuffles: the layouts are not permutations of each other within a warp");
  return false;
}

// A side's columns, registers below lanes, padded with zeros.
struct PaddedColumns {
  uint64_t columns[2 * kMaxBits] = {};
  uint64_t units = 0;
  bool set(const WarpColumns &warp, uint32_t register_bits) {
    const auto put = [this](std::span<const uint64_t> from, uint64_t *to) {
      for (const uint64_t column : from) {
        if ((column & (column - 1)) != 0 || (units & column) != 0) return false;
        units |= column;
        *to++ = column;
      }
      return true;
    };
    return put(warp.registers, columns) && put(warp.lanes, columns + register_bits);
  }
};

// Where each bit of the source's index goes. Zero columns, which say the same on both sides, stay where they are if they
// can, and are paired in order if not.
bool find_permutation(const WarpColumns &source, const WarpColumns &destination, uint32_t register_bits, uint32_t bits,
                      uint8_t *to) {
  PaddedColumns a;
  PaddedColumns b;
  if (!a.set(source, register_bits) || !b.set(destination, register_bits) || a.units != b.units) return false;
  uint8_t place[kMaxBits];
  for (uint32_t i = 0; i < bits; ++i) {
    if (b.columns[i] != 0) place[lowest_bit(b.columns[i])] = static_cast<uint8_t>(i);
  }
  uint32_t next = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    if (a.columns[i] != 0) {
      to[i] = place[lowest_bit(a.columns[i])];
    } else if (b.columns[i] == 0) {
      to[i] = static_cast<uint8_t>(i);
    } else {
      while (b.columns[next] != 0 || a.columns[next] == 0) ++next;
      to[i] = static_cast<uint8_t>(next++);
    }
  }
  return true;
}

// Each run of lanes between two registers of a cycle is closed to a cycle of lanes, and the registers around it are
// joined; a transposition of the second register with the run's first lane puts both right.
void factor(const uint8_t *to, uint32_t register_bits, uint32_t bits, ShufflePlan &plan) {
  uint8_t lane_to[2 * kMaxBits];
  for (uint32_t i = register_bits; i < bits; ++i) lane_to[i] = to[i];
  for (uint32_t i = 0; i < register_bits; ++i) {
    const uint8_t first = to[i];
    if (first < register_bits) {
      plan.register_to[i] = first;
      continue;
    }
    uint8_t last = first;
    while (to[last] >= register_bits) last = to[last];
    const uint8_t target = to[last];
    plan.register_to[i] = target;
    lane_to[last] = first;
    plan.mixed[plan.mixed_count++] = {target, static_cast<uint8_t>(first - register_bits)};
  }
  for (uint32_t i = register_bits; i < bits; ++i) {
    plan.lane_to[i - register_bits] = static_cast<uint8_t>(lane_to[i] - register_bits);
    plan.moves_lanes = plan.moves_lanes || lane_to[i] != i;
  }
}

void count_instructions(uint32_t bits_per_element, ShufflePlan &plan) {
  const uint32_t m = plan.mixed_count;
  const uint32_t fit = bits_per_element >= 32 ? 0 : std::min(2u, log2_floor(32 / bits_per_element));
  plan.packed_log2 = static_cast<uint8_t>(std::min<uint32_t>(fit, plan.register_bits - m));
  const uint64_t words = bits_per_element > 32 ? bits_per_element / 32 : 1;
  const uint64_t registers = (words << plan.register_bits) >> plan.packed_log2;
  if (m == 1 && !plan.moves_lanes) {
    plan.selects = registers + registers / 2;
    plan.shuffles = registers / 2;
    return;
  }
  plan.selects = 2 * m * registers;
  plan.shuffles = plan.moves_lanes ? registers : registers - (registers >> m);
}

const Layout *round_layout(Arena &arena, uint32_t round_bits, uint32_t lane_bits, DimName out, uint32_t out_bits,
                           const uint64_t *columns) {
  static const DimName round = intern_dim("round");
  const DimSize ins[] = {{round, round_bits}, {dim::kLane, lane_bits}};
  const DimSize outs[] = {{out, out_bits}};
  return make_layout(arena, ins, outs, {columns, round_bits + lane_bits});
}

bool has_zero(std::span<const uint64_t> columns) {
  return std::find(columns.begin(), columns.end(), uint64_t{0}) != columns.end();
}

uint32_t index_of(std::span<const uint64_t> columns, uint64_t unit) {
  return static_cast<uint32_t>(std::find(columns.begin(), columns.end(), unit) - columns.begin());
}

uint64_t units_of(std::span<const uint64_t> columns) {
  uint64_t units = 0;
  for (const uint64_t column : columns) units |= column;
  return units;
}

bool plan_rounds(Arena &arena, const WarpColumns &a, const WarpColumns &b, uint32_t bits_per_element,
                 ShuffleRounds &out) {
  if (a.registers.size() != b.registers.size() || a.lanes.size() != b.lanes.size() || has_zero(a.registers) ||
      has_zero(a.lanes) || has_zero(b.registers) || has_zero(b.lanes)) {
    return true;
  }
  const uint64_t registers_of_b = units_of(b.registers);
  const uint64_t lanes_of_a = units_of(a.lanes);
  const uint64_t lanes_of_b = units_of(b.lanes);
  const uint32_t most = bits_per_element >= 32 ? 0 : log2_floor(32 / bits_per_element);
  const auto register_bits = static_cast<uint32_t>(a.registers.size());
  const auto lane_bits = static_cast<uint32_t>(a.lanes.size());

  // Columns by round bit, then by lane bit.
  uint64_t send[kMaxBits] = {};
  uint64_t from[kMaxBits] = {};
  uint64_t receive[kMaxBits] = {};
  uint64_t by_lane_send[kMaxBits] = {};
  uint64_t by_lane_from[kMaxBits] = {};
  uint64_t by_lane_receive[kMaxBits] = {};
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < register_bits; ++i) {
    const uint64_t unit = a.registers[i];
    if ((registers_of_b & unit) == 0) continue;
    const uint32_t target = index_of(b.registers, unit);
    if (out.vector_count < most) {
      out.vector_source[out.vector_count] = static_cast<uint8_t>(i);
      out.vector_destination[out.vector_count++] = static_cast<uint8_t>(target);
      continue;
    }
    send[rounds] = uint64_t{1} << i;
    receive[rounds++] = uint64_t{1} << target;
  }
  for (uint64_t rest = lanes_of_a & lanes_of_b; rest != 0; rest &= rest - 1) {
    by_lane_from[index_of(b.lanes, rest & -rest)] = uint64_t{1} << index_of(a.lanes, rest & -rest);
  }
  // The pair (e, f): e is a lane of the source and a register of the destination, f the other way round. In a round
  // with the bit k of f, the element with (e, f) = (t, t ^ k) goes from lane bit t to lane bit t ^ k.
  uint64_t rest_e = lanes_of_a & ~lanes_of_b;
  for (uint64_t rest_f = lanes_of_b & ~lanes_of_a; rest_f != 0; rest_f &= rest_f - 1, rest_e &= rest_e - 1) {
    const uint64_t e = rest_e & -rest_e;
    const uint64_t f = rest_f & -rest_f;
    const uint32_t source_lane = index_of(a.lanes, e);
    const uint32_t target_lane = index_of(b.lanes, f);
    const uint64_t source_register = uint64_t{1} << index_of(a.registers, f);
    const uint64_t target_register = uint64_t{1} << index_of(b.registers, e);
    send[rounds] = source_register;
    from[rounds] = uint64_t{1} << source_lane;
    receive[rounds++] = target_register;
    by_lane_send[source_lane] = source_register;
    by_lane_from[target_lane] = uint64_t{1} << source_lane;
    by_lane_receive[target_lane] = target_register;
  }
  std::copy_n(by_lane_send, lane_bits, send + rounds);
  std::copy_n(by_lane_from, lane_bits, from + rounds);
  std::copy_n(by_lane_receive, lane_bits, receive + rounds);
  out.round_bits = static_cast<uint8_t>(rounds);
  out.send = round_layout(arena, rounds, lane_bits, dim::kRegister, register_bits, send);
  out.from = round_layout(arena, rounds, lane_bits, dim::kLane, lane_bits, from);
  out.receive = round_layout(arena, rounds, lane_bits, dim::kRegister, register_bits, receive);
  if (out.send == nullptr || out.from == nullptr || out.receive == nullptr) return false;
  out.shuffles = (uint64_t{1} << rounds) * std::max<uint64_t>(1, bits_per_element / 32);
  out.exists = true;
  return true;
}

// The bits of an index moved: bit i to bit to[i].
uint64_t permute(uint64_t index, const uint8_t *to, uint32_t bits) {
  uint64_t moved = 0;
  for (uint32_t i = 0; i < bits; ++i) moved |= (index >> i & 1) << to[i];
  return moved;
}

}  // namespace

bool plan_shuffles(Arena &arena, const WarpColumns &source, const WarpColumns &destination, uint32_t bits_per_element,
                   ShufflePlan &out) {
  out = {};
  const size_t register_bits = std::max(source.registers.size(), destination.registers.size());
  const size_t lane_bits = std::max(source.lanes.size(), destination.lanes.size());
  const auto bits = static_cast<uint32_t>(register_bits + lane_bits);
  if (bits > kMaxBits) {
    arena.fail(Fault::kUnsupported, "shuffles: more than 64 bits of registers and lanes");
    return false;
  }
  out.register_bits = static_cast<uint8_t>(register_bits);
  out.lane_bits = static_cast<uint8_t>(lane_bits);
  uint8_t to[kMaxBits];
  if (!find_permutation(source, destination, out.register_bits, bits, to)) return refuse(arena);
  factor(to, out.register_bits, bits, out);
  count_instructions(bits_per_element, out);
  return plan_rounds(arena, source, destination, bits_per_element, out.rounds);
}

ShuffleCounts execute_transpositions(const ShufflePlan &plan, std::span<uint64_t> data) {
  ShuffleCounts counts;
  const uint32_t register_bits = plan.register_bits;
  const uint64_t registers = uint64_t{1} << register_bits;
  const uint64_t lanes = uint64_t{1} << plan.lane_bits;
  std::vector<uint64_t> next(data.size());
  for (uint64_t lane = 0; lane < lanes; ++lane) {
    for (uint64_t r = 0; r < registers; ++r) {
      next[permute(r, plan.register_to, register_bits) | lane << register_bits] = data[r | lane << register_bits];
    }
  }
  std::copy(next.begin(), next.end(), data.begin());

  if (plan.mixed_count == 1 && !plan.moves_lanes) {
    const uint64_t register_mask = uint64_t{1} << plan.mixed[0].register_bit;
    const uint64_t lane_mask = uint64_t{1} << plan.mixed[0].lane_bit;
    std::vector<uint64_t> offered(lanes);
    for (uint64_t low = 0; low < registers; ++low) {
      if ((low & register_mask) != 0) continue;
      const uint64_t high = low | register_mask;
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        offered[lane] = data[((lane & lane_mask) != 0 ? low : high) | lane << register_bits];
      }
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        data[((lane & lane_mask) != 0 ? low : high) | lane << register_bits] = offered[lane ^ lane_mask];
      }
      counts.selects += 3;
      counts.shuffles += 1;
    }
    return counts;
  }

  // Registers whose bits at the transpositions differ from the lane's by k are brought to slot k.
  const auto exchange = [&](bool before) {
    for (uint32_t i = 0; i < plan.mixed_count; ++i) {
      const uint64_t register_mask = uint64_t{1} << plan.mixed[i].register_bit;
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        const uint64_t seen = before ? permute(lane, plan.lane_to, plan.lane_bits) : lane;
        if ((seen >> plan.mixed[i].lane_bit & 1) == 0) continue;
        for (uint64_t r = 0; r < registers; ++r) {
          if ((r & register_mask) == 0) {
            std::swap(data[r | lane << register_bits], data[(r | register_mask) | lane << register_bits]);
          }
        }
      }
      counts.selects += registers;
    }
  };
  exchange(true);
  std::vector<uint64_t> offered(lanes);
  for (uint64_t slot = 0; slot < registers; ++slot) {
    uint64_t lane_mask = 0;
    for (uint32_t i = 0; i < plan.mixed_count; ++i) {
      lane_mask |= (slot >> plan.mixed[i].register_bit & 1) << plan.mixed[i].lane_bit;
    }
    if (lane_mask == 0 && !plan.moves_lanes) continue;
    for (uint64_t lane = 0; lane < lanes; ++lane) offered[lane] = data[slot | lane << register_bits];
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t receiver = permute(lane, plan.lane_to, plan.lane_bits) ^ lane_mask;
      data[slot | receiver << register_bits] = offered[lane];
    }
    counts.shuffles += 1;
  }
  exchange(false);
  return counts;
}

ShuffleCounts execute_rounds(const ShufflePlan &plan, std::span<uint64_t> data) {
  ShuffleCounts counts;
  const ShuffleRounds &rounds = plan.rounds;
  const uint64_t lanes = uint64_t{1} << plan.lane_bits;
  const uint64_t vector = uint64_t{1} << rounds.vector_count;
  std::vector<uint64_t> next(data.size());
  std::vector<uint64_t> offered(lanes * vector);
  for (uint64_t round = 0; round < uint64_t{1} << rounds.round_bits; ++round) {
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t first = rounds.send->apply(round | lane << rounds.round_bits);
      for (uint64_t v = 0; v < vector; ++v) {
        const uint64_t r = first | permute(v, rounds.vector_source, rounds.vector_count);
        offered[lane * vector + v] = data[r | lane << plan.register_bits];
      }
    }
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t flat = round | lane << rounds.round_bits;
      const uint64_t sender = rounds.from->apply(flat);
      const uint64_t first = rounds.receive->apply(flat);
      for (uint64_t v = 0; v < vector; ++v) {
        const uint64_t r = first | permute(v, rounds.vector_destination, rounds.vector_count);
        next[r | lane << plan.register_bits] = offered[sender * vector + v];
      }
    }
    counts.shuffles += 1;
  }
  std::copy(next.begin(), next.end(), data.begin());
  return counts;
}

}  // namespace sonde::layout
