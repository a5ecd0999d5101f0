// Plans carried out on data, so that they can be held against the definition.
#include <algorithm>

#include "layout/algebra.h"
#include "layout/plan.h"

namespace sonde::layout {
namespace {

constexpr uint32_t kMostBits = 24;

// From the index in a layout with broadcast registers to the one without, and back to one of those with.
struct RegisterMap {
  uint64_t kept = 0;
  uint32_t bits = 0;  // of the register dim as given

  // The given index of a canonical one; broadcast bits 0.
  uint64_t expand(uint64_t canonical) const {
    const auto kept_bits = static_cast<uint32_t>(std::popcount(kept));
    uint64_t given = canonical >> kept_bits << bits;
    for (uint64_t rest = kept; rest != 0; rest &= rest - 1, canonical >>= 1) given |= (canonical & 1) * (rest & -rest);
    return given;
  }
  uint64_t compact(uint64_t given) const {
    const auto kept_bits = static_cast<uint32_t>(std::popcount(kept));
    uint64_t canonical = bits >= 64 ? 0 : given >> bits << kept_bits;
    uint32_t i = 0;
    for (uint64_t rest = kept; rest != 0; rest &= rest - 1, ++i) canonical |= (given >> lowest_bit(rest) & 1) << i;
    return canonical;
  }
};

bool wrong(Arena &arena, const char *what) {
  arena.fail(Fault::kNoSolution, std::string("execute: the plan is wrong: ") + what);
  return false;
}

void run_registers(const Plan &plan, const std::vector<uint64_t> &in, std::vector<uint64_t> &out) {
  // Within a thread: the dims above are the same on both sides.
  const Dim &from = plan.source->ins()[0];
  const Dim &to = plan.destination->ins()[0];
  for (uint64_t flat = 0; flat < out.size(); ++flat) {
    const uint64_t thread = flat >> to.bits;
    const uint64_t source = plan.kind == PlanKind::kNothing ? to.of(flat) : plan.reduced->apply(to.of(flat));
    out[flat] = in[source | thread << from.bits];
  }
}

void run_shuffles(const Plan &plan, bool by_rounds, const std::vector<uint64_t> &in, std::vector<uint64_t> &out,
                  ExecutionCounts &counts) {
  const ShufflePlan &shuffles = *plan.shuffles;
  const auto sizes = [](const Layout &layout) { return std::pair{layout.ins()[0].bits, layout.ins()[1].bits}; };
  const auto [from_registers, from_lanes] = sizes(*plan.source);
  const auto [to_registers, to_lanes] = sizes(*plan.destination);
  std::vector<uint64_t> data(uint64_t{1} << (shuffles.register_bits + shuffles.lane_bits));
  const uint64_t warps = out.size() >> (to_registers + to_lanes);
  for (uint64_t warp = 0; warp < warps; ++warp) {
    for (uint64_t i = 0; i < data.size(); ++i) {  // padded registers and lanes repeat the others
      const uint64_t reg = i & low_mask(from_registers);
      const uint64_t lane = i >> shuffles.register_bits & low_mask(from_lanes);
      data[i] = in[reg | lane << from_registers | warp << (from_registers + from_lanes)];
    }
    counts.shuffles =
        by_rounds && shuffles.rounds.exists ? execute_rounds(shuffles, data) : execute_transpositions(shuffles, data);
    for (uint64_t lane = 0; lane < uint64_t{1} << to_lanes; ++lane) {
      for (uint64_t reg = 0; reg < uint64_t{1} << to_registers; ++reg) {
        out[reg | lane << to_registers | warp << (to_registers + to_lanes)] =
            data[reg | lane << shuffles.register_bits];
      }
    }
  }
}

// One side's instructions, one after the other: `move` is called with the register's place in the data and the memory
// cell that the instruction pairs with it, for every repetition in turn.
template <typename Move>
bool run_side(const Plan &plan, const SharedSide &side, bool is_store, uint64_t repetition, Move &&move) {
  const SharedAccess &access = side.access;
  const Layout &address = *access.address;
  const Dim &instructions = address.ins()[0];
  const Dim &lane_dim = address.ins()[1];
  const Dim &block_dim = address.ins()[3];
  const Dim &offset = address.outs()[0];
  const Dim &block_out = address.outs()[1];
  const Dim &reps = address.outs()[2];
  const uint64_t blocks_that_differ = plan.shared->blocks_that_differ;
  for (uint64_t thread = 0; thread < uint64_t{1} << (address.in_bits() - instructions.bits); ++thread) {
    const uint64_t above = thread << instructions.bits;
    const auto lane = static_cast<uint32_t>(lane_dim.of(above));
    const uint64_t warp_and_block = above & ~lane_dim.mask();
    for (uint64_t instruction = 0; instruction < uint64_t{1} << instructions.bits; ++instruction) {
      for (uint32_t element = 0; element < 1u << access.moved; ++element) {
        uint64_t pointer = lane;
        uint64_t column = element;
        if (access.matrices != 0) {
          const MatrixPlace matrix = matrix_place(access, plan.bits_per_element, is_store, lane, element);
          pointer = matrix.pointing_lane;
          column = matrix.column;
        }
        const uint64_t target = address.apply(instruction | lane_dim.at(pointer) | warp_and_block);
        if (reps.of(target) != repetition) continue;
        // The memory of the block that the address names; where memories do not differ, one's own.
        uint64_t block = block_dim.of(above) & ~blocks_that_differ;
        uint64_t named = block_out.of(target);
        for (uint64_t rest = blocks_that_differ; rest != 0; rest &= rest - 1, named >>= 1) {
          block |= (named & 1) * (rest & -rest);
        }
        uint64_t reg = 0;
        const uint64_t number = element | instruction << access.moved;
        for (uint32_t bit = 0; bit < access.register_bits; ++bit)
          reg |= (number >> bit & 1) << access.register_order[bit];
        const uint64_t held = reg | (thread << access.register_bits);
        if (!move(held, offset.of(target) + column, block)) return false;
      }
    }
  }
  return true;
}

bool run_shared(Arena &arena, const Plan &plan, const std::vector<uint64_t> &in, std::vector<uint64_t> &out,
                ExecutionCounts &counts) {
  const SharedPlan &shared = *plan.shared;
  const uint64_t cells = uint64_t{1} << shared.store.map->outs()[0].bits;
  const uint64_t blocks = uint64_t{1} << std::max(plan.source->ins()[3].bits, plan.destination->ins()[3].bits);
  std::vector<uint64_t> memory(cells * blocks);
  std::vector<bool> written(cells * blocks);
  std::vector<bool> received(out.size());
  counts.stores = shared.store.access.instructions;
  counts.loads = shared.load.access.instructions;
  counts.repetitions = shared.repetitions;
  for (uint64_t repetition = 0; repetition < shared.repetitions; ++repetition) {
    std::fill(written.begin(), written.end(), false);
    const bool stored =
        run_side(plan, shared.store, true, repetition, [&](uint64_t held, uint64_t cell, uint64_t block) {
          if (cell >= cells || block >= blocks) return wrong(arena, "a store outside the memory");
          const uint64_t place = cell + block * cells;
          if (written[place] && memory[place] != in[held]) return wrong(arena, "two values in one place");
          written[place] = true;
          memory[place] = in[held];
          return true;
        });
    const bool loaded =
        stored && run_side(plan, shared.load, false, repetition, [&](uint64_t held, uint64_t cell, uint64_t block) {
          if (cell >= cells || block >= blocks) return wrong(arena, "a load outside the memory");
          const uint64_t place = cell + block * cells;
          if (!written[place]) return wrong(arena, "a load of what was not stored");
          received[held] = true;
          out[held] = memory[place];
          return true;
        });
    if (!loaded) return false;
  }
  if (std::find(received.begin(), received.end(), false) != received.end()) {
    return wrong(arena, "a register that no load reaches");
  }
  return true;
}

uint32_t register_bits(const Layout &canonical, uint64_t kept, uint32_t total_bits) {
  // Bits of the given layout's registers: what the canonical one lacks of the given one's total.
  return total_bits - canonical.in_bits() + static_cast<uint32_t>(std::popcount(kept));
}

}  // namespace

bool execute(Arena &arena, const Plan &plan, std::span<const uint64_t> source, std::vector<uint64_t> &destination,
             ExecutionCounts *counts, bool by_rounds) {
  const uint32_t bits_in =
      plan.source->in_bits() + static_cast<uint32_t>(std::popcount(plan.source_broadcasts.free_registers));
  const uint32_t bits_out =
      plan.destination->in_bits() + static_cast<uint32_t>(std::popcount(plan.destination_broadcasts.free_registers));
  if (bits_in > kMostBits || bits_out > kMostBits) {
    arena.fail(Fault::kUnsupported, "execute: more than 2^24 values");
    return false;
  }
  if (source.size() != uint64_t{1} << bits_in) {
    arena.fail(Fault::kInvalid, "execute: the source layout has 2^" + std::to_string(bits_in) + " inputs, not " +
                                    std::to_string(source.size()));
    return false;
  }
  const RegisterMap of_source{plan.source_registers, register_bits(*plan.source, plan.source_registers, bits_in)};
  const RegisterMap of_destination{plan.destination_registers,
                                   register_bits(*plan.destination, plan.destination_registers, bits_out)};
  std::vector<uint64_t> in(uint64_t{1} << plan.source->in_bits());
  std::vector<uint64_t> out(uint64_t{1} << plan.destination->in_bits());
  for (uint64_t i = 0; i < in.size(); ++i) in[i] = source[of_source.expand(i)];
  ExecutionCounts own;
  switch (plan.kind) {
    case PlanKind::kNothing:
    case PlanKind::kRegisters:
      run_registers(plan, in, out);
      break;
    case PlanKind::kShuffles:
      run_shuffles(plan, by_rounds, in, out, own);
      break;
    case PlanKind::kSharedMemory:
    case PlanKind::kDistributedSharedMemory:
      if (!run_shared(arena, plan, in, out, own)) return false;
      break;
  }
  destination.resize(uint64_t{1} << bits_out);
  for (uint64_t i = 0; i < destination.size(); ++i) destination[i] = out[of_destination.compact(i)];
  if (counts != nullptr) *counts = own;
  return true;
}

bool convert_directly(Arena &arena, const Layout &source, const Layout &destination, std::span<const uint64_t> data,
                      std::vector<uint64_t> &out) {
  if (source.in_bits() > kMostBits || destination.in_bits() > kMostBits || source.out_bits() > kMostBits) {
    arena.fail(Fault::kUnsupported, "convert: more than 2^24 values");
    return false;
  }
  if (data.size() != uint64_t{1} << source.in_bits() || source.outs().size() != destination.outs().size()) {
    arena.fail(Fault::kInvalid, "convert: the source layout has 2^" + std::to_string(source.in_bits()) +
                                    " inputs, and both layouts the same out dims");
    return false;
  }
  std::vector<uint64_t> tensor(uint64_t{1} << source.out_bits());
  std::vector<bool> held(tensor.size());
  for (uint64_t flat = 0; flat < data.size(); ++flat) {
    tensor[source.apply(flat)] = data[flat];
    held[source.apply(flat)] = true;
  }
  out.resize(uint64_t{1} << destination.in_bits());
  for (uint64_t flat = 0; flat < out.size(); ++flat) {
    const uint64_t value = destination.apply(flat);
    uint64_t index = 0;
    for (const Dim &dim : source.outs()) {
      const Dim *const own = destination.find_out(dim.name);
      if (own == nullptr || own->bits != dim.bits) {
        arena.fail(Fault::kInvalid, "convert: the layouts have different out dims");
        return false;
      }
      index |= dim.at(own->of(value));
    }
    if (!held[index]) {
      arena.fail(Fault::kNoSolution, "convert: the source does not hold " + describe_point(source.outs(), index));
      return false;
    }
    out[flat] = tensor[index];
  }
  return true;
}

}  // namespace sonde::layout
