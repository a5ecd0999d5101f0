// Memory layouts without bank conflicts, and what an access to memory costs.
#include <algorithm>

#include "layout/matrix.h"
#include "layout/search.h"

namespace sonde::layout {
namespace {

constexpr uint32_t kWordBits = 32;  // of a bank

bool fail(Arena &arena, Fault fault, const std::string &text) {
  arena.fail(fault, text);
  return false;
}

bool check_numbers(Arena &arena, uint32_t element_bits, uint32_t vector_bits, uint32_t banks) {
  if (!is_power_of_two(element_bits) || element_bits > 128) {
    return fail(arena, Fault::kInvalid,
                "elements of " + std::to_string(element_bits) +
                    " bits; 1, 2, 4, ... 128 are "
                    "supported");
  }
  if (vector_bits != 0 && (!is_power_of_two(vector_bits) || vector_bits < element_bits || vector_bits > 128)) {
    return fail(arena, Fault::kInvalid,
                "a vector of " + std::to_string(vector_bits) +
                    " bits; powers of two from one "
                    "element to 128 are supported");
  }
  if (!is_power_of_two(banks) || banks < 4) {
    return fail(arena, Fault::kInvalid, std::to_string(banks) + " banks; powers of two from 4 on are supported");
  }
  return true;
}

std::vector<uint64_t> columns_of(const Layout &layout, DimName name) {
  const Dim *const in = layout.find_in(name);
  if (in == nullptr) return {};
  const auto columns = layout.columns_of(*in);
  return {columns.begin(), columns.end()};
}

// Lanes that one phase serves, as bits of the lane index.
uint32_t phase_bits(uint32_t access_bits, uint32_t banks) {
  return lowest_bit(banks) - lowest_bit(std::max(access_bits, kWordBits) / kWordBits);
}

std::vector<uint64_t> phase_lanes(const Layout &layout, uint32_t access_bits, uint32_t banks) {
  std::vector<uint64_t> lanes = columns_of(layout, dim::kLane);
  lanes.resize(std::min<size_t>(lanes.size(), phase_bits(access_bits, banks)));
  return lanes;
}

// Vectors of the second span that complete a basis of the first.
std::vector<uint64_t> completion(std::span<const uint64_t> given, std::span<const uint64_t> more) {
  Elimination span;
  for (const uint64_t vector : given) span.add(vector);
  std::vector<uint64_t> result;
  for (const uint64_t vector : more) {
    if (span.add(vector)) result.push_back(vector);
  }
  return result;
}

std::vector<uint64_t> joined(std::vector<uint64_t> a, std::span<const uint64_t> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<uint64_t> units(uint32_t bits) {
  std::vector<uint64_t> result;
  for (uint32_t bit = 0; bit < bits; ++bit) result.push_back(uint64_t{1} << bit);
  return result;
}

bool same_outs(const Layout &a, const Layout &b) {
  return std::equal(a.outs().begin(), a.outs().end(), b.outs().begin(), b.outs().end(),
                    [](const Dim &x, const Dim &y) { return x.name == y.name && x.bits == y.bits; });
}

// A column of the tensor of one layout, with its bits where another layout has those dims.
bool moved(Arena &arena, const Layout &from, uint64_t column, const Layout &to, uint64_t &out) {
  out = 0;
  for (const Dim &dim : from.outs()) {
    const Dim *const other = to.find_out(dim.name);
    if (dim.bits == 0) continue;
    if (other == nullptr || other->bits != dim.bits) {
      return fail(arena, Fault::kInvalid,
                  "the registers map to " + describe(from.outs()) + ", the memory to " + describe(to.outs()));
    }
    out |= other->at(dim.of(column));
  }
  return true;
}

}  // namespace

bool warp_access(Arena &arena, const Layout &registers, const Layout &memory, uint32_t element_bits,
                 uint32_t vector_bits, uint32_t banks, WarpAccess &out) {
  if (!check_numbers(arena, element_bits, vector_bits, banks)) return false;
  const uint32_t access_bits = std::max(vector_bits, element_bits);
  const uint32_t vector = lowest_bit(access_bits / element_bits);
  if (memory.in_bits() + 7 > 64 || registers.out_bits() != memory.out_bits() || !is_invertible(memory)) {
    return fail(arena, Fault::kInvalid, "the memory must map its offsets one to one to the tensor of the registers");
  }
  Elimination offsets;
  for (uint32_t i = 0; i < memory.in_bits(); ++i) offsets.add(memory.columns()[i], i);
  const auto offset_of = [&](uint64_t column, uint64_t &offset) {
    uint64_t place = 0;
    return moved(arena, registers, column, memory, place) && offsets.solve(place, offset);
  };

  out = {};
  uint64_t seen = 0;
  const auto own = columns_of(registers, dim::kRegister);
  for (size_t i = 0; i < own.size(); ++i) {
    uint64_t offset = 0;
    if (!offset_of(own[i], offset)) return false;
    if (!is_power_of_two(offset) || lowest_bit(offset) >= vector || (seen & offset) != 0) continue;
    seen |= offset;
    out.registers |= uint64_t{1} << i;
  }
  if (seen != low_mask(vector)) {
    return fail(arena, Fault::kNoSolution,
                "no registers hold the lowest " + std::to_string(vector) + " offset bits, which a vector of " +
                    std::to_string(access_bits) + " bits moves");
  }

  // Word addresses of a phase: of its lanes, and of the words in one access.
  std::vector<uint64_t> words;
  for (const uint64_t lane : phase_lanes(registers, access_bits, banks)) {
    uint64_t offset = 0;
    if (!offset_of(lane, offset)) return false;
    words.push_back(offset * element_bits / kWordBits);
  }
  for (uint32_t bits = kWordBits; bits < access_bits; bits *= 2) words.push_back(bits / kWordBits);
  const uint32_t rank = rank_of(words);
  for (uint64_t &word : words) word &= banks - 1;
  out.wavefronts = uint64_t{1} << (rank - rank_of(words));
  return true;
}

const Layout *find_memory_layout(Arena &arena, const Layout &a, const Layout *b, uint32_t element_bits,
                                 uint32_t vector_bits, uint32_t banks) {
  if (!check_numbers(arena, element_bits, vector_bits, banks)) return nullptr;
  const Layout &reader = b == nullptr ? a : *b;
  if (!same_outs(a, reader) || !is_surjective(a) || !is_surjective(reader)) {
    arena.fail(Fault::kInvalid, "both layouts must hold every element of the same tensor: " + describe(a.outs()) +
                                    " and " + describe(reader.outs()));
    return nullptr;
  }
  for (const Layout *const each : {&a, &reader}) {
    const Dim *const block = each->find_in(dim::kBlock);
    if (block == nullptr || block->bits == 0) continue;
    arena.fail(Fault::kUnsupported, "memory of several blocks is not searched");
    return nullptr;
  }
  const uint32_t bits = a.out_bits();

  // The vector: registers of both, in the order of `a`.
  const auto theirs = columns_of(reader, dim::kRegister);
  std::vector<uint64_t> common;
  for (const uint64_t column : columns_of(a, dim::kRegister)) {
    const bool shared = column != 0 && std::find(theirs.begin(), theirs.end(), column) != theirs.end();
    if (shared) common = joined(common, completion(common, {&column, 1}));
  }
  if (vector_bits == 0) {
    vector_bits = element_bits;
    for (size_t i = 0; i < common.size() && vector_bits < 128; ++i) vector_bits *= 2;
  }
  const uint32_t length = lowest_bit(vector_bits / element_bits);
  if (common.size() < length) {
    arena.fail(Fault::kNoSolution, "a vector of " + std::to_string(vector_bits) + " bits takes " +
                                       std::to_string(length) + " register bits; the layouts share " +
                                       std::to_string(common.size()));
    return nullptr;
  }
  common.resize(length);
  // A word of memory may hold more than the vector: registers if there are any, then whatever else.
  std::vector<uint64_t> word = common;
  std::vector<uint64_t> fill = joined(columns_of(a, dim::kRegister), theirs);
  for (const uint64_t each : completion(word, joined(fill, units(bits)))) {
    if (element_bits << word.size() >= kWordBits) break;
    word.push_back(each);
  }

  // What the lanes of a phase reach, from either side, and vectors outside of both.
  const auto reached = [&](const Layout &layout) {
    return joined(word, completion(word, phase_lanes(layout, vector_bits, banks)));
  };
  const auto writes = reached(a);
  const auto reads = reached(reader);
  uint64_t both[64];
  const uint32_t shared = intersection_basis(writes, reads, both);
  const auto only_writes = completion({both, shared}, writes);
  const auto only_reads = completion({both, shared}, reads);
  std::vector<uint64_t> segments = completion(joined(writes, reads), units(bits));
  for (size_t i = 0; i < std::min(only_writes.size(), only_reads.size()); ++i) {
    segments.push_back(only_writes[i] ^ only_reads[i]);
  }
  const auto word_size = static_cast<uint32_t>(word.size());
  // Offsets below the segments: all banks, filled once.
  const uint32_t row = lowest_bit(banks) + (element_bits < kWordBits ? lowest_bit(kWordBits / element_bits) : 0);
  const uint32_t narrow = element_bits > kWordBits ? lowest_bit(element_bits / kWordBits) : 0;
  const uint32_t below = std::min(bits, std::max(row - narrow, word_size));
  segments.resize(std::min<size_t>(segments.size(), bits - below));
  const auto bank_vectors = completion(joined(word, segments), units(bits));

  const auto columns = joined(joined(word, bank_vectors), segments);
  const DimSize offset{dim::kOffset, bits};
  std::vector<DimSize> outs;
  for (const Dim &out : a.outs()) outs.push_back({out.name, out.bits});
  const Layout *const memory = make_layout(arena, {&offset, 1}, outs, columns);
  if (memory == nullptr) return nullptr;
  for (const Layout *const each : {&a, &reader}) {
    WarpAccess access;
    if (!warp_access(arena, *each, *memory, element_bits, vector_bits, banks, access)) return nullptr;
    if (access.wavefronts == 1) continue;
    arena.fail(Fault::kUnsupported,
               "the memory layout found takes " + std::to_string(access.wavefronts) + " wavefronts");
    return nullptr;
  }
  return memory;
}

}  // namespace sonde::layout
