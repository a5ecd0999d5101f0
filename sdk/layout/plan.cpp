#include "layout/plan.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "layout/algebra.h"
#include "layout/matrix.h"
#include "layout/plan_shared.h"

namespace sonde::layout {
namespace {

constexpr DimName kHardware[] = {dim::kRegister, dim::kLane, dim::kWarp, dim::kBlock};
constexpr uint32_t kRegisterDim = 0;
constexpr uint32_t kLaneDim = 1;
constexpr uint32_t kBlockDim = 3;

// The layout with exactly the four in dims, without zero register bases, and its outs in the order of `like`.
const Layout *canonical(Arena &arena, const Layout &layout, const Layout &like, const char *what, uint64_t &registers) {
  const Dim *ins[4] = {};
  for (const Dim &in : layout.ins()) {
    const auto *const found = std::find(std::begin(kHardware), std::end(kHardware), in.name);
    if (found != std::end(kHardware)) {
      ins[found - std::begin(kHardware)] = &in;
    } else if (in.bits != 0) {
      arena.fail(Fault::kInvalid, std::string("plan: the ") + what + " has the in dim " +
                                      std::string(dim_text(in.name)) + "; register, lane, warp and block are expected");
      return nullptr;
    }
  }
  const auto outs = like.outs();
  const Dim *sources[kMaxDims];
  bool in_order = true;
  bool fits = layout.outs().size() == outs.size();
  for (size_t i = 0; fits && i < outs.size(); ++i) {
    const Dim &same_place = layout.outs()[i];
    sources[i] = same_place.name == outs[i].name ? &same_place : layout.find_out(outs[i].name);
    fits = sources[i] != nullptr && sources[i]->bits == outs[i].bits;
    in_order = in_order && sources[i] == &same_place;
  }
  if (!fits) {
    arena.fail(Fault::kInvalid, "plan: the source's out dims " + describe(outs) + " and the destination's " +
                                    describe(layout.outs()) + " are not the same");
    return nullptr;
  }
  const auto move = [&](uint64_t value) {
    if (in_order) return value;
    uint64_t moved = 0;
    for (size_t i = 0; i < outs.size(); ++i) moved |= outs[i].at(sources[i]->of(value));
    return moved;
  };

  uint32_t in_bits = 0;
  registers = 0;
  uint64_t columns[kMaxBits];
  uint8_t bits[4] = {};
  for (uint32_t i = 0; i < 4; ++i) {
    if (ins[i] == nullptr) continue;
    const auto own = layout.columns_of(*ins[i]);
    for (uint32_t bit = 0; bit < own.size(); ++bit) {
      if (i == kRegisterDim) {
        if (own[bit] == 0) continue;
        registers |= uint64_t{1} << bit;
      }
      columns[in_bits++] = move(own[bit]);
      ++bits[i];
    }
  }
  Layout *const result = Layout::make(arena, 4, static_cast<uint32_t>(outs.size()), in_bits);
  if (result == nullptr) return nullptr;
  for (uint32_t i = 0; i < 4; ++i) result->mutable_ins()[i] = {kHardware[i], bits[i], 0, 0};
  std::copy(outs.begin(), outs.end(), result->mutable_outs());
  std::copy_n(columns, in_bits, result->mutable_columns());
  result->set_offset(move(layout.offset()));
  return result->place_dims(arena) ? result : nullptr;
}

// Whether the conversion is the identity on one of the four dims, and nothing else touches it.
bool stays(const Layout &conversion, uint32_t which) {
  const Dim &in = conversion.ins()[which];
  const Dim &out = conversion.outs()[which];
  if (in.bits != out.bits) return false;
  const uint64_t mask = out.mask();
  if ((conversion.offset() & mask) != 0) return false;
  const auto columns = conversion.columns();
  for (uint32_t bit = 0; bit < columns.size(); ++bit) {
    if (bit >= in.shift && bit < static_cast<uint32_t>(in.shift) + in.bits) {
      if (columns[bit] != out.at(uint64_t{1} << (bit - in.shift))) return false;
    } else if ((columns[bit] & mask) != 0) {
      return false;
    }
  }
  return true;
}

// The conversion on its first `count` dims; it is the identity on the others.
const Layout *restricted(Arena &arena, const Layout &conversion, uint32_t count) {
  uint32_t in_bits = 0;
  for (uint32_t i = 0; i < count; ++i) in_bits += conversion.ins()[i].bits;
  Layout *const result = Layout::make(arena, count, count, in_bits);
  if (result == nullptr) return nullptr;
  std::copy_n(conversion.ins().begin(), count, result->mutable_ins());
  std::copy_n(conversion.outs().begin(), count, result->mutable_outs());
  std::copy_n(conversion.columns().begin(), in_bits, result->mutable_columns());
  result->set_offset(conversion.offset());
  return result->place_dims(arena) ? result : nullptr;
}

}  // namespace

const char *plan_text(PlanKind kind) {
  switch (kind) {
    case PlanKind::kNothing:
      return "no-op";
    case PlanKind::kRegisters:
      return "register permutation";
    case PlanKind::kShuffles:
      return "warp shuffles";
    case PlanKind::kSharedMemory:
      return "shared memory";
    case PlanKind::kDistributedSharedMemory:
      return "distributed shared memory";
  }
  return "?";
}

const Plan *plan_conversion(Arena &arena, const Layout &source, const Layout &destination, const PlanOptions &options) {
  static_assert(std::is_trivially_destructible_v<Plan> && std::is_trivially_destructible_v<ShufflePlan> &&
                std::is_trivially_destructible_v<SharedPlan>);
  if (!is_power_of_two(options.bits_per_element) || options.bits_per_element > 128) {
    arena.fail(Fault::kInvalid, "plan: elements of " + std::to_string(options.bits_per_element) +
                                    " bits; a power of two up to 128 is expected");
    return nullptr;
  }
  void *const room = arena.allocate(sizeof(Plan));
  if (room == nullptr) return nullptr;
  Plan &plan = *::new (room) Plan;
  plan.bits_per_element = options.bits_per_element;
  plan.source = canonical(arena, source, source, "source", plan.source_registers);
  if (plan.source == nullptr) return nullptr;
  plan.destination = canonical(arena, destination, source, "destination", plan.destination_registers);
  if (plan.destination == nullptr) return nullptr;
  plan.source_broadcasts = broadcasts_of(source);
  plan.destination_broadcasts = broadcasts_of(destination);
  plan.conversion = invert_and_compose(arena, *plan.destination, *plan.source);
  if (plan.conversion == nullptr) return nullptr;

  uint32_t left = 4;
  while (left != 0 && stays(*plan.conversion, left - 1)) --left;
  plan.reduced = left == 4 ? plan.conversion : restricted(arena, *plan.conversion, left);
  if (plan.reduced == nullptr) return nullptr;

  if (left == kLaneDim + 1 && plan.reduced->offset() == 0) {
    void *const shuffle_room = arena.allocate(sizeof(ShufflePlan));
    if (shuffle_room == nullptr) return nullptr;
    auto *const shuffles = ::new (shuffle_room) ShufflePlan;
    const auto columns = [](const Layout &layout) {
      return WarpColumns{layout.columns_of(layout.ins()[kRegisterDim]), layout.columns_of(layout.ins()[kLaneDim])};
    };
    if (plan_shuffles(arena, columns(*plan.source), columns(*plan.destination), options.bits_per_element, *shuffles)) {
      plan.shuffles = shuffles;
    } else if (arena.fault() != Fault::kNoSolution) {
      return nullptr;
    }
  }
  if (!options.only_memory) {
    if (left == 0) {
      plan.kind = PlanKind::kNothing;
      return &plan;
    }
    if (left == kRegisterDim + 1) {
      plan.kind = PlanKind::kRegisters;
      return &plan;
    }
    if (plan.shuffles != nullptr && plan.shuffles->mixed_count <= options.most_transpositions) {
      plan.kind = PlanKind::kShuffles;
      return &plan;
    }
  }
  plan.kind = left == kBlockDim + 1 ? PlanKind::kDistributedSharedMemory : PlanKind::kSharedMemory;
  return plan_shared_memory(arena, options, plan) ? &plan : nullptr;
}

}  // namespace sonde::layout
