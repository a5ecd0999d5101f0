#include "cli/layout_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sonde::cli {
namespace {

std::vector<NamedDim> named_dims(const LayoutArena &arena, const sonde_layout_dim_t *dims, uint32_t count) {
  const auto &service = arena.host().service<sonde_layout_service_t>();
  std::vector<NamedDim> result;
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = nullptr;
    arena.host().check(service.dim_name(dims[i].name, &name));
    result.push_back({name, dims[i].bits, dims[i].shift});
  }
  return result;
}

// 2^bits, which may be 2^64.
std::string power_text(uint32_t bits) {
  return bits < 64 ? fmt::format("{}", uint64_t{1} << bits) : std::string("2^64");
}

std::string sizes_text(const std::vector<NamedDim> &dims) {
  std::vector<std::string> texts;
  for (const NamedDim &dim : dims) texts.push_back(fmt::format("{} {}", dim.name, power_text(dim.bits)));
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string copies_text(const LayoutFacts &facts) {
  std::vector<std::string> where;
  for (size_t i = 0; i < facts.ins.size(); ++i) {
    std::vector<uint64_t> bits;
    for (uint32_t bit = 0; bit < facts.ins[i].bits; ++bit) {
      if ((facts.free_masks[i] >> bit & 1) != 0) bits.push_back(uint64_t{1} << bit);
    }
    if (!bits.empty()) where.push_back(fmt::format("{} {}", facts.ins[i].name, fmt::join(bits, ", ")));
  }
  if (where.empty()) return "none: every element is held once";
  return fmt::format("{} of each element, by {}", power_text(facts.in_bits - facts.rank), fmt::join(where, "; "));
}

}  // namespace

LayoutFacts facts_of(const LayoutArena &arena, const Layout &layout) {
  const sonde_layout_view_t view = layout.view();
  LayoutFacts facts;
  facts.ins = named_dims(arena, view.ins, view.in_count);
  facts.outs = named_dims(arena, view.outs, view.out_count);
  facts.in_bits = view.in_bits;
  facts.out_bits = view.out_bits;
  facts.rank = layout.rank();
  facts.is_surjective = layout.is_surjective();
  facts.is_injective = layout.is_injective();
  facts.is_permutation = layout.is_permutation();
  facts.is_memory = layout.is_memory();
  facts.copies = facts.in_bits - facts.rank < 64 ? uint64_t{1} << (facts.in_bits - facts.rank) : UINT64_MAX;
  facts.free_masks = layout.free_masks();
  const bool has_registers =
      std::any_of(facts.ins.begin(), facts.ins.end(), [](const NamedDim &dim) { return dim.name == "register"; });
  if (has_registers) {
    facts.contiguous = layout.contiguous_per_thread();
    std::tie(facts.elements, facts.distinct) = layout.elements_per_thread();
  }
  return facts;
}

std::string facts_text(const LayoutFacts &facts) {
  std::vector<std::string> properties;
  if (facts.is_surjective) properties.emplace_back("surjective");
  if (facts.is_injective) properties.emplace_back("injective");
  if (facts.is_permutation) properties.emplace_back("permutation (distributed layout)");
  if (facts.is_memory) properties.emplace_back("memory layout");
  std::string text = fmt::format("from        {}\nto          {}\n", sizes_text(facts.ins), sizes_text(facts.outs));
  text += fmt::format("rank        {} of {} in bits, {} out bits\n", facts.rank, facts.in_bits, facts.out_bits);
  text += fmt::format("properties  {}\n", properties.empty() ? "neither surjective nor injective"
                                                             : fmt::format("{}", fmt::join(properties, ", ")));
  if (facts.has_registers()) {
    std::vector<std::string> runs;
    for (size_t i = 0; i < facts.outs.size(); ++i) {
      runs.push_back(fmt::format("{} along {}", facts.contiguous[i], facts.outs[i].name));
    }
    text += fmt::format("thread      {} registers, {} of them distinct; contiguous: {}\n", facts.elements,
                        facts.distinct, runs.empty() ? "nothing" : fmt::format("{}", fmt::join(runs, ", ")));
  }
  return text + fmt::format("copies      {}\n", copies_text(facts));
}

nlohmann::json facts_json(const LayoutFacts &facts) {
  const auto sizes = [](const std::vector<NamedDim> &dims) {
    nlohmann::json list = nlohmann::json::array();
    for (const NamedDim &dim : dims) list.push_back({{"name", dim.name}, {"bits", dim.bits}});
    return list;
  };
  nlohmann::json result = {{"in", sizes(facts.ins)},
                           {"out", sizes(facts.outs)},
                           {"rank", facts.rank},
                           {"surjective", facts.is_surjective},
                           {"injective", facts.is_injective},
                           {"permutation", facts.is_permutation},
                           {"memory", facts.is_memory},
                           {"copies", facts.copies}};
  for (size_t i = 0; i < facts.ins.size(); ++i) result["free_masks"][facts.ins[i].name] = facts.free_masks[i];
  if (facts.has_registers()) {
    result["registers"] = facts.elements;
    result["distinct_registers"] = facts.distinct;
    for (size_t i = 0; i < facts.outs.size(); ++i) {
      result["contiguous_per_thread"][facts.outs[i].name] = facts.contiguous[i];
    }
  }
  return result;
}

}  // namespace sonde::cli
