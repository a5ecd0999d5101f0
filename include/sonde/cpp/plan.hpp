// Plans of conversions over sonde.layout_plan/1. See sonde/sonde.hpp.
//
//   const sonde::Plan plan = sonde::Plan::make(arena, source, destination, {.bits_per_element = 16});
//   if (plan.kind == SONDE_PLAN_SHARED_MEMORY) std::printf("%" PRIu64 " bytes\n", plan.shared_bytes);
#ifndef SONDE_CPP_PLAN_HPP
#define SONDE_CPP_PLAN_HPP

#include <sonde/sonde.h>
#include <sonde/cpp/host.hpp>
#include <sonde/cpp/layout.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace sonde {

// What a plan is made for; zeros stand for what sonde_plan_options_t says.
struct PlanOptions {
  uint32_t bits_per_element = 32;
  uint32_t banks = 0;
  uint32_t most_vector_bits = 0;
  uint32_t most_transpositions = 1;
  bool has_store_matrix = false;
  bool has_load_matrix = false;
  bool only_memory = false;

  sonde_plan_options_t c_options() const {
    return {sizeof(sonde_plan_options_t),
            bits_per_element,
            banks,
            most_vector_bits,
            most_transpositions,
            (has_store_matrix ? SONDE_PLAN_STORE_MATRIX : 0u) | (has_load_matrix ? SONDE_PLAN_LOAD_MATRIX : 0u) |
                (only_memory ? SONDE_PLAN_ONLY_MEMORY : 0u)};
  }
};

// The fields of sonde_plan_t. Its layouts end with the arena.
class Plan : public sonde_plan_t {
 public:
  static Plan make(const LayoutArena &arena, const Layout &source, const Layout &destination,
                   const PlanOptions &options) {
    const auto &service = arena.host().service<sonde_layout_plan_service_t>();
    const sonde_plan_options_t given = options.c_options();
    Plan plan;
    arena.host().check(service.plan(arena.get(), source.get(), destination.get(), &given, &plan));
    if (plan.conversion != nullptr) plan.conversion_.emplace(arena, plan.conversion);
    if (plan.memory != nullptr) plan.memory_.emplace(arena, plan.memory);
    return plan;
  }
  // Carries the plan out on one value for each (register, lane, warp, block), the register lowest.
  static std::vector<uint64_t> execute(const LayoutArena &arena, const Layout &source, const Layout &destination,
                                       const PlanOptions &options, const std::vector<uint64_t> &values) {
    const auto &service = arena.host().service<sonde_layout_plan_service_t>();
    const sonde_plan_options_t given = options.c_options();
    const uint32_t bits = destination.view().in_bits;
    if (bits > 32) throw Failure(SONDE_E_UNSUPPORTED, "plans are carried out on at most 2^32 values");
    std::vector<uint64_t> result(uint64_t{1} << bits);
    arena.host().check(service.execute(arena.get(), source.get(), destination.get(), &given, values.data(),
                                       values.size(), result.data(), result.size()));
    return result;
  }

  // The destination's (register, lane, warp, block) -> the source's.
  const std::optional<Layout> &conversion_layout() const { return conversion_; }
  // (vector, bank, segment, block, reps) -> tensor; nothing without memory.
  const std::optional<Layout> &memory_layout() const { return memory_; }

 private:
  Plan() : sonde_plan_t{} { struct_size = sizeof(sonde_plan_t); }

  std::optional<Layout> conversion_;
  std::optional<Layout> memory_;
};

}  // namespace sonde

#endif
