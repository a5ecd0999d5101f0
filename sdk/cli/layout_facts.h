// What is said of a layout in words: dims, properties, contiguity, copies.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/layout_reader.h"

namespace sonde::cli {

struct NamedDim {
  std::string name;
  uint32_t bits = 0;
  uint32_t shift = 0;  // of its lowest bit in the flattened side

  uint64_t size() const { return uint64_t{1} << bits; }
  uint64_t value_in(uint64_t flat) const { return flat >> shift & (size() - 1); }
};

struct LayoutFacts {
  std::vector<NamedDim> ins;
  std::vector<NamedDim> outs;
  uint32_t in_bits = 0;
  uint32_t out_bits = 0;
  uint32_t rank = 0;
  bool is_surjective = false;
  bool is_injective = false;
  bool is_permutation = false;
  bool is_memory = false;
  uint64_t copies = 1;               // inputs that share each reached output
  std::vector<uint64_t> free_masks;  // for each in dim, bits that only make copies
  // Where there are registers.
  std::vector<uint64_t> contiguous;  // for each out dim
  uint64_t elements = 0;             // registers of a thread
  uint64_t distinct = 0;             // without duplicates

  bool has_registers() const { return elements != 0; }
};

LayoutFacts facts_of(const LayoutArena &arena, const Layout &layout);

// Some lines, each ended.
std::string facts_text(const LayoutFacts &facts);
nlohmann::json facts_json(const LayoutFacts &facts);

}  // namespace sonde::cli
