#include "layout/plan_shared.h"

#include <algorithm>
#include <new>

#include "layout/algebra.h"
#include "layout/matrix.h"
#include "layout/shapes.h"

namespace sonde::layout {
namespace {

// Memory as the tensor lies, for bases that no swizzle is known for: what tells the source's blocks apart, and unit
// vectors for the rest.
bool plain_memory(Arena &arena, const Layout &source, const PlanOptions &options, Swizzle &out) {
  const Dim &block = source.ins()[3];
  uint64_t blocks[kMaxBits];
  const uint32_t block_count = image_basis(source.columns_of(block), blocks);
  uint64_t rest[kMaxBits];
  const uint32_t rest_count = complement_basis({blocks, block_count}, source.out_bits(), rest);
  const uint32_t row_log2 = lowest_bit(options.memory.banks) + 5;
  const uint32_t bits_log2 = lowest_bit(options.bits_per_element);
  const uint32_t bank_count = std::min(rest_count, row_log2 > bits_log2 ? row_log2 - bits_log2 : 0);
  const auto outs = source.outs();
  Layout *const memory = Layout::make(arena, 5, static_cast<uint32_t>(outs.size()), source.out_bits());
  if (memory == nullptr) return false;
  Dim *in = memory->mutable_ins();
  *in++ = {dim::kVector, 0, 0, 0};
  *in++ = {dim::kBank, static_cast<uint8_t>(bank_count), 0, 0};
  *in++ = {dim::kSegment, static_cast<uint8_t>(rest_count - bank_count), 0, 0};
  *in++ = {dim::kBlock, static_cast<uint8_t>(block_count), 0, 0};
  *in++ = {dim::kReps, 0, 0, 0};
  std::copy_n(blocks, block_count, std::copy_n(rest, rest_count, memory->mutable_columns()));
  std::copy(outs.begin(), outs.end(), memory->mutable_outs());
  if (!memory->place_dims(arena)) return false;
  out = {};
  out.memory = memory;
  return true;
}

bool find_memory(Arena &arena, const PlanOptions &options, const Plan &plan, SharedPlan &shared) {
  SwizzleOptions swizzle;
  swizzle.bits_per_element = options.bits_per_element;
  swizzle.banks = options.memory.banks;
  AccessTile phase;
  if (options.memory.phase_lanes != 0) {
    for (uint64_t rest = options.memory.phase_lanes & low_mask(6); rest != 0; rest &= rest - 1) {
      phase.address[phase.address_count++] = static_cast<uint8_t>(lowest_bit(rest));
    }
    swizzle.source_tile = &phase;
    swizzle.destination_tile = &phase;
  }
  bool found = false;
  if (options.has_store_matrix || options.has_load_matrix) {
    AccessTile stores[3] = {kVectorTile};
    AccessTile loads[3] = {kVectorTile};
    size_t store_count = 1;
    size_t load_count = 1;
    const auto add = [&](bool has, AccessTile *tiles, size_t &count) {
      if (has && options.bits_per_element <= 32) tiles[count++] = kMatrixTile;
      if (has && options.bits_per_element == 16) tiles[count++] = kTransposedMatrixTile;
    };
    add(options.has_store_matrix, stores, store_count);
    add(options.has_load_matrix, loads, load_count);
    found = optimal_swizzle_for(arena, *plan.source, *plan.destination, swizzle, {stores, store_count},
                                {loads, load_count}, shared.swizzle);
  } else {
    found = optimal_swizzle(arena, *plan.source, *plan.destination, swizzle, shared.swizzle);
  }
  if (found || arena.fault() != Fault::kUnsupported) return found;
  shared.is_fallback = true;
  return plain_memory(arena, *plan.source, options, shared.swizzle);
}

// Which unit of memory makes each unit of the tensor: the columns of the memory layout's inverse.
void invert_columns(const Layout &memory, uint64_t *inverse) {
  Elimination elimination;
  const auto columns = memory.columns();
  for (uint32_t bit = 0; bit < columns.size(); ++bit) elimination.add(columns[bit], bit);
  for (uint32_t bit = 0; bit < columns.size(); ++bit) elimination.solve(uint64_t{1} << bit, inverse[bit]);
}

const Layout *map_side(Arena &arena, const Layout &side, const Layout &memory, const uint64_t *inverse) {
  Layout *const map = Layout::make(arena, 4, 3, side.in_bits());
  if (map == nullptr) return nullptr;
  std::copy(side.ins().begin(), side.ins().end(), map->mutable_ins());
  const auto dims = memory.ins();  // vector, bank and segment are one offset
  Dim *const outs = map->mutable_outs();
  outs[0] = {dim::kOffset, static_cast<uint8_t>(dims[0].bits + dims[1].bits + dims[2].bits), 0, 0};
  outs[1] = {dim::kBlock, dims[3].bits, 0, 0};
  outs[2] = {dim::kReps, dims[4].bits, 0, 0};
  if (!map->place_dims(arena)) return nullptr;
  const auto place_of = [inverse](uint64_t value) {
    uint64_t sum = 0;
    for (; value != 0; value &= value - 1) sum ^= inverse[lowest_bit(value)];
    return sum;
  };
  uint64_t *column = map->mutable_columns();
  for (const uint64_t value : side.columns()) *column++ = place_of(value);
  map->set_offset(place_of(side.offset()));
  return map;
}

bool plan_side(Arena &arena, const PlanOptions &options, bool is_store, int32_t tile, SharedSide &side) {
  InstructionLimits limits;
  limits.most_vector_bits = options.most_vector_bits;
  const Dim &reps = side.map->outs()[2];
  const auto registers = side.map->columns_of(side.map->ins()[0]);
  for (uint32_t bit = 0; bit < registers.size(); ++bit) {
    if ((registers[bit] & reps.mask()) != 0) limits.separate_registers |= uint64_t{1} << bit;
  }
  // The tiles' order in find_memory.
  const auto instruction = tile == 1   ? SharedInstruction::kMatrix
                           : tile == 2 ? SharedInstruction::kTransposedMatrix
                                       : SharedInstruction::kVector;
  bool divides = divide_by_instruction(arena, *side.map, dim::kOffset, options.bits_per_element, instruction, is_store,
                                       limits, side.access);
  if (!divides && instruction != SharedInstruction::kVector && arena.fault() == Fault::kNoSolution) {
    divides = divide_by_instruction(arena, *side.map, dim::kOffset, options.bits_per_element,
                                    SharedInstruction::kVector, is_store, limits, side.access);
  }
  return divides &&
         bank_access_of(arena, side.access, dim::kOffset, options.bits_per_element, options.memory, side.banks);
}

}  // namespace

bool plan_shared_memory(Arena &arena, const PlanOptions &options, Plan &plan) {
  void *const room = arena.allocate(sizeof(SharedPlan));
  if (room == nullptr) return false;
  SharedPlan &shared = *::new (room) SharedPlan;
  if (!find_memory(arena, options, plan, shared)) return false;
  const Layout &memory = *shared.swizzle.memory;
  uint64_t inverse[kMaxBits];
  invert_columns(memory, inverse);
  shared.store.map = map_side(arena, *plan.source, memory, inverse);
  shared.load.map = map_side(arena, *plan.destination, memory, inverse);
  if (shared.store.map == nullptr || shared.load.map == nullptr) return false;
  if (!plan_side(arena, options, true, shared.swizzle.source_tile, shared.store) ||
      !plan_side(arena, options, false, shared.swizzle.destination_tile, shared.load)) {
    return false;
  }
  const auto outs = shared.store.map->outs();
  const uint64_t bits = place(options.bits_per_element, outs[0].bits);
  shared.bytes = (bits + 7) / 8;
  shared.repetitions = uint64_t{1} << outs[2].bits;
  shared.bytes_in_all = shared.bytes * shared.repetitions;
  const Dim &block = plan.source->ins()[3];
  uint32_t number = 0;
  for (uint32_t bit = 0; bit < block.bits; ++bit) {
    const uint64_t column = shared.store.map->columns_of(block)[bit];
    if (plan.source->columns_of(block)[bit] == 0) continue;
    shared.blocks_that_differ |= uint64_t{1} << bit;
    if (column != outs[1].at(uint64_t{1} << number++)) plan.kind = PlanKind::kDistributedSharedMemory;
  }
  uint64_t elsewhere = shared.store.map->offset();
  for (uint32_t bit = 0; bit < block.shift; ++bit) elsewhere |= shared.store.map->columns()[bit];
  if ((elsewhere & outs[1].mask()) != 0) plan.kind = PlanKind::kDistributedSharedMemory;
  plan.shared = &shared;
  return true;
}

bool plan_shared_access(Arena &arena, const Layout &registers, const Layout &memory, bool is_store,
                        const AccessOptions &options, SharedSide &out) {
  if (memory.find_in(dim::kOffset) == nullptr) {
    arena.fail(Fault::kInvalid, "shared access: the memory has no in dim offset, but " + describe(memory.ins()));
    return false;
  }
  const Layout *held = &registers;
  if (registers.find_in(dim::kRegister) != nullptr) held = remove_zero_bases(arena, registers, dim::kRegister);
  if (held == nullptr) return false;
  const Layout *const map = invert_and_compose_block_local(arena, *held, memory);
  if (map == nullptr) return false;

  out = {};
  out.map = map;
  InstructionLimits limits;
  limits.most_vector_bits = options.most_vector_bits;
  limits.has_byte_transpose = options.has_byte_transpose;
  if (!options.paddings.empty()) {
    if (!simulate_bank_access(arena, *map, dim::kOffset, options.bits_per_element, options.memory, options.paddings,
                              out.banks, options.most_vector_bits)) {
      return false;
    }
    limits.most_vector_bits = static_cast<uint32_t>(out.banks.access_bits);
    return divide_by_instruction(arena, *map, dim::kOffset, options.bits_per_element, SharedInstruction::kVector,
                                 is_store, limits, out.access);
  }
  bool found = false;
  for (const SharedInstruction instruction :
       {SharedInstruction::kVector, SharedInstruction::kMatrix, SharedInstruction::kTransposedMatrix}) {
    if (instruction != SharedInstruction::kVector && !options.has_matrix) continue;
    SharedAccess access;
    BankAccess banks;
    if (!divide_by_instruction(arena, *map, dim::kOffset, options.bits_per_element, instruction, is_store, limits,
                               access)) {
      if (arena.fault() == Fault::kNoSolution) continue;
      return false;
    }
    if (!bank_access_of(arena, access, dim::kOffset, options.bits_per_element, options.memory, banks)) return false;
    const bool better = !found || banks.total < out.banks.total ||
                        (banks.total == out.banks.total && access.instructions < out.access.instructions);
    if (!better) continue;
    found = true;
    out.access = access;
    out.banks = banks;
  }
  return found;
}

}  // namespace sonde::layout
