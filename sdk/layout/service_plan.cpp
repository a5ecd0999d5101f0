// Service sonde.layout_plan/1.
#include <sonde/layout_plan.h>

#include <algorithm>
#include <vector>

#include "layout/analysis.h"
#include "layout/analysis_coalescing.h"
#include "layout/boundary.h"
#include "layout/conflicts.h"
#include "layout/gather.h"
#include "layout/plan.h"
#include "layout/service_tables.h"
#include "layout/swizzle.h"

namespace sonde::layout {
namespace {

using ArenaHandle = sonde_layout_arena_t *;
using LayoutIn = const sonde_layout_t *;

// A struct of the caller's, which may be shorter or longer than this one: what it has room for is written.
template <typename T>
bool has_room(const T *out) {
  return out != nullptr && out->struct_size >= sizeof(uint32_t) * 2;
}

template <typename T>
void give_struct(T value, T *out) {
  const uint32_t size = out->struct_size;
  value.struct_size = size;
  std::memcpy(out, &value, std::min<size_t>(size, sizeof(T)));
}

// Counts of elements and instructions are 64-bit numbers: 2^62 is the most that any of them may reach.
constexpr uint32_t kMostPlanBits = 62;

template <typename... Layouts>
bool are_small(Layouts... layouts) {
  return ((inside(layouts)->in_bits() <= kMostPlanBits && inside(layouts)->out_bits() <= kMostPlanBits) && ...);
}

sonde_status refuse_large(const char *function) noexcept {
  return guarded([&] {
    return refuse(SONDE_E_UNSUPPORTED, std::string(function) + ": a side of a layout has more than 62 bits");
  });
}

// Runs a body with the arena; what a failure had made so far is given back.
template <typename Body>
sonde_status in_arena(ArenaHandle arena, Body &&body) noexcept {
  return guarded([&] {
    Arena &own = inside(arena);
    const Arena::Mark mark = own.mark();
    if (body(own)) return SONDE_OK;
    own.release(mark);
    return refuse(own);
  });
}

// Options as the caller's struct has them; false where it is too short.
bool read_options(const sonde_plan_options_t *given, PlanOptions &options) {
  if (given == nullptr || given->struct_size < SONDE_NEED(sonde_plan_options_t, bits_per_element)) return false;
  sonde_plan_options_t all{};
  all.most_transpositions = PlanOptions{}.most_transpositions;
  std::memcpy(&all, given, std::min<size_t>(given->struct_size, sizeof(all)));
  options.bits_per_element = all.bits_per_element;
  if (all.banks != 0) options.memory.banks = all.banks;
  if (all.most_vector_bits != 0) options.most_vector_bits = all.most_vector_bits;
  options.most_transpositions = all.most_transpositions;
  options.has_store_matrix = (all.flags & SONDE_PLAN_STORE_MATRIX) != 0;
  options.has_load_matrix = (all.flags & SONDE_PLAN_LOAD_MATRIX) != 0;
  options.only_memory = (all.flags & SONDE_PLAN_ONLY_MEMORY) != 0;
  return true;
}

static_assert(static_cast<uint32_t>(PlanKind::kNothing) == SONDE_PLAN_NOTHING &&
              static_cast<uint32_t>(PlanKind::kRegisters) == SONDE_PLAN_REGISTERS &&
              static_cast<uint32_t>(PlanKind::kShuffles) == SONDE_PLAN_SHUFFLES &&
              static_cast<uint32_t>(PlanKind::kSharedMemory) == SONDE_PLAN_SHARED_MEMORY &&
              static_cast<uint32_t>(PlanKind::kDistributedSharedMemory) == SONDE_PLAN_DISTRIBUTED_SHARED_MEMORY);
static_assert(static_cast<uint32_t>(SharedInstruction::kVector) == SONDE_INSTRUCTION_VECTOR &&
              static_cast<uint32_t>(SharedInstruction::kMatrix) == SONDE_INSTRUCTION_MATRIX &&
              static_cast<uint32_t>(SharedInstruction::kTransposedMatrix) == SONDE_INSTRUCTION_MATRIX_TRANSPOSED);

sonde_plan_access_t access_of(const SharedSide &side) {
  return {static_cast<uint32_t>(side.access.instruction), side.access.vector_bits, side.access.instructions,
          side.banks.total, side.banks.conflicts()};
}

sonde_plan_t public_plan(const Plan &plan) {
  sonde_plan_t result{};
  result.kind = static_cast<uint32_t>(plan.kind);
  result.kind_text = plan_text(plan.kind);
  result.source_copies = uint64_t{1} << plan.source_broadcasts.copies_log2;
  result.destination_copies = uint64_t{1} << plan.destination_broadcasts.copies_log2;
  result.conversion = outside(plan.conversion);
  if (plan.shuffles != nullptr) {
    result.shuffles = plan.shuffles->shuffles;
    result.selects = plan.shuffles->selects;
  }
  if (plan.shared != nullptr) {
    result.shared_bytes = plan.shared->bytes;
    result.repetitions = plan.shared->repetitions;
    result.memory = outside(plan.shared->swizzle.memory);
    result.store = access_of(plan.shared->store);
    result.load = access_of(plan.shared->load);
  }
  return result;
}

sonde_status make_plan(ArenaHandle arena, LayoutIn source, LayoutIn destination, const sonde_plan_options_t *given,
                       sonde_plan_t *out) noexcept {
  PlanOptions options;
  if (arena == nullptr || !is_layout(source) || !is_layout(destination) || !has_room(out) ||
      !read_options(given, options)) {
    return refuse_handles("layout_plan.plan");
  }
  if (!are_small(source, destination)) return refuse_large("layout_plan.plan");
  return in_arena(arena, [&](Arena &own) {
    const Plan *const plan = plan_conversion(own, *inside(source), *inside(destination), options);
    if (plan == nullptr) return false;
    give_struct(public_plan(*plan), out);
    return true;
  });
}

sonde_status execute_plan(ArenaHandle arena, LayoutIn source, LayoutIn destination, const sonde_plan_options_t *given,
                          const uint64_t *values, uint64_t count, uint64_t *out, uint64_t out_count) noexcept {
  PlanOptions options;
  if (arena == nullptr || !is_layout(source) || !is_layout(destination) || !read_options(given, options) ||
      values == nullptr || out == nullptr) {
    return refuse_handles("layout_plan.execute");
  }
  if (!are_small(source, destination)) return refuse_large("layout_plan.execute");
  return guarded([&] {
    Arena &own = inside(arena);
    const Arena::Mark mark = own.mark();
    const Plan *const plan = plan_conversion(own, *inside(source), *inside(destination), options);
    std::vector<uint64_t> result;
    if (plan == nullptr) {
      own.release(mark);
      return refuse(own);
    }
    const bool done = execute(own, *plan, {values, count}, result);
    own.release(mark);
    if (!done) {
      // The plan exists, so a contradiction in carrying it out is a defect of it.
      return own.fault() == Fault::kNoSolution ? refuse(SONDE_E_INTERNAL, own.message()) : refuse(own);
    }
    if (result.size() != out_count) {
      return refuse(SONDE_E_INVALID, "layout_plan.execute: the destination has " + std::to_string(result.size()) +
                                         " values, not " + std::to_string(out_count));
    }
    std::copy(result.begin(), result.end(), out);
    return SONDE_OK;
  });
}

sonde_status find_swizzle(ArenaHandle arena, LayoutIn source, LayoutIn destination, uint32_t bits_per_element,
                          uint32_t banks, sonde_swizzle_t *out) noexcept {
  if (arena == nullptr || !is_layout(source) || !is_layout(destination) || !has_room(out)) {
    return refuse_handles("layout_plan.swizzle");
  }
  if (!are_small(source, destination)) return refuse_large("layout_plan.swizzle");
  return in_arena(arena, [&](Arena &own) {
    SwizzleOptions options;
    options.bits_per_element = bits_per_element;
    if (banks != 0) options.banks = banks;
    Swizzle swizzle;
    if (!optimal_swizzle(own, *inside(source), *inside(destination), options, swizzle)) return false;
    give_struct({0, 0, outside(swizzle.memory), swizzle.read_conflicts, swizzle.write_conflicts}, out);
    return true;
  });
}

sonde_status find_bank_access(ArenaHandle arena, LayoutIn map, sonde_dim_t offset, uint32_t bits_per_element,
                              uint32_t banks, uint32_t simulate, sonde_bank_access_t *out) noexcept {
  if (arena == nullptr || !is_layout(map) || !has_room(out)) return refuse_handles("layout_plan.bank_access");
  if (!are_small(map)) return refuse_large("layout_plan.bank_access");
  return in_arena(arena, [&](Arena &own) {
    SharedMemory memory;
    if (banks != 0) memory.banks = banks;
    BankAccess access;
    const bool done = simulate != 0
                          ? simulate_bank_access(own, *inside(map), offset, bits_per_element, memory, {}, access)
                          : bank_access(own, *inside(map), offset, bits_per_element, memory, access);
    if (!done) return false;
    give_struct({0, static_cast<uint32_t>(access.access_bits), access.instructions, access.phases, access.wavefronts,
                 access.total, access.conflicts()},
                out);
    return true;
  });
}

sonde_status find_coalescing(ArenaHandle arena, LayoutIn layout, const uint32_t *order, uint32_t rank,
                             uint32_t bits_per_element, uint64_t alignment, sonde_coalescing_t *out) noexcept {
  if (arena == nullptr || !is_layout(layout) || order == nullptr || rank > kMaxDims || !has_room(out)) {
    return refuse_handles("layout_plan.coalescing");
  }
  if (!are_small(layout)) return refuse_large("layout_plan.coalescing");
  return in_arena(arena, [&](Arena &own) {
    const Layout *const offsets = memory_offsets(own, *inside(layout), {order, rank});
    GlobalMemory memory;
    memory.base_alignment = alignment;
    GlobalAccess access;
    if (offsets == nullptr || !global_access(own, *offsets, bits_per_element, memory, access)) return false;
    give_struct({0, static_cast<uint32_t>(access.access_bits), access.instructions, access.sectors, access.lines,
                 access.fewest_sectors, access.wanted_bytes},
                out);
    return true;
  });
}

sonde_status find_vector_width(ArenaHandle arena, LayoutIn layout, const uint32_t *order, uint32_t rank,
                               uint32_t bits_per_element, uint32_t most_bits, uint64_t *elements) noexcept {
  if (arena == nullptr || !is_layout(layout) || order == nullptr || rank > kMaxDims || elements == nullptr) {
    return refuse_handles("layout_plan.vector_width");
  }
  if (!are_small(layout)) return refuse_large("layout_plan.vector_width");
  if (!is_power_of_two(bits_per_element) || bits_per_element > 128) {
    return refuse(SONDE_E_INVALID, "layout_plan.vector_width: an element has a power of two of 1 to 128 bits");
  }
  return in_arena(arena, [&](Arena &own) {
    const Arena::Mark mark = own.mark();
    const Layout *const offsets = memory_offsets(own, *inside(layout), {order, rank});
    if (offsets == nullptr) return false;
    *elements = vector_elements(*offsets, bits_per_element, most_bits == 0 ? 128 : most_bits);
    own.release(mark);
    return true;
  });
}

sonde_status find_owners(ArenaHandle arena, LayoutIn layout, const uint64_t *index, sonde_owner_t *owners,
                         uint64_t capacity, uint64_t *count) noexcept {
  if (arena == nullptr || !is_layout(layout) || index == nullptr || count == nullptr ||
      (owners == nullptr && capacity != 0)) {
    return refuse_handles("layout_plan.owners");
  }
  if (!are_small(layout)) return refuse_large("layout_plan.owners");
  return in_arena(arena, [&](Arena &own) {
    std::vector<Owner> all;
    if (!owners_of(own, *inside(layout), {index, inside(layout)->outs().size()}, all)) return false;
    *count = all.size();
    for (size_t i = 0; i < all.size() && i < capacity; ++i) {
      owners[i] = {all[i].block, all[i].warp, all[i].lane, all[i].reg};
    }
    return true;
  });
}

sonde_status find_gather(ArenaHandle arena, LayoutIn source, LayoutIn index, sonde_dim_t axis,
                         uint32_t bits_per_element, uint32_t *is_warp_local, uint64_t *shuffles,
                         uint64_t *selects) noexcept {
  if (arena == nullptr || !is_layout(source) || !is_layout(index) || is_warp_local == nullptr) {
    return refuse_handles("layout_plan.gather");
  }
  if (!are_small(source, index)) return refuse_large("layout_plan.gather");
  return guarded([&] {
    Arena &own = inside(arena);
    const Arena::Mark mark = own.mark();
    GatherPlan plan;
    const bool done = plan_gather(own, *inside(source), *inside(index), axis, bits_per_element, plan);
    own.release(mark);
    // That it does not stay in a warp is an answer here.
    if (!done && own.fault() != Fault::kNoSolution) return refuse(own);
    *is_warp_local = done ? 1 : 0;
    if (shuffles != nullptr) *shuffles = done ? plan.shuffles : 0;
    if (selects != nullptr) *selects = done ? plan.selects : 0;
    return SONDE_OK;
  });
}

sonde_status find_dot_shuffle(ArenaHandle arena, const sonde_dot_operand_t *narrow, const sonde_dot_operand_t *wide,
                              uint32_t most_vector_bits, sonde_dot_shuffle_t *out) noexcept {
  if (arena == nullptr || narrow == nullptr || wide == nullptr || !is_layout(narrow->layout) ||
      !is_layout(wide->layout) || !has_room(out)) {
    return refuse_handles("layout_plan.dot_shuffle");
  }
  if (!are_small(narrow->layout, wide->layout)) return refuse_large("layout_plan.dot_shuffle");
  return in_arena(arena, [&](Arena &own) {
    const auto operand = [](const sonde_dot_operand_t &given) {
      return DotOperand{inside(given.layout), given.k, given.bits_per_element};
    };
    DotShuffle found;
    if (!plan_dot_shuffle(own, operand(*narrow), operand(*wide), most_vector_bits == 0 ? 128 : most_vector_bits,
                          found)) {
      return false;
    }
    give_struct({0, found.is_worthwhile() ? 1u : 0u, outside(found.permutation), outside(found.narrow),
                 outside(found.wide), found.narrow_before, found.narrow_after, found.wide_before, found.wide_after},
                out);
    return true;
  });
}

}  // namespace

const sonde_layout_plan_service_t kPlanService = {
    sizeof(sonde_layout_plan_service_t),
    0,
    make_plan,
    execute_plan,
    find_swizzle,
    find_bank_access,
    find_coalescing,
    find_vector_width,
    find_owners,
    find_gather,
    find_dot_shuffle,
};

}  // namespace sonde::layout
