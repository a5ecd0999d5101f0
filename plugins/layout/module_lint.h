// Finds the sites of one module and judges them.
#pragma once

#include <sonde/toolkit/ttgir.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "addresses.h"
#include "global_access.h"
#include "layouts.h"
#include "options.h"
#include "shared_access.h"
#include "site.h"

namespace sonde::layout_lint {

// What the module was compiled for, by its attribute ttg.target: "cuda:90", "hip:gfx942".
struct Target {
  std::string name;  // "" where the module does not say
  uint32_t banks = 32;
  bool has_load_matrix = false;
  bool has_store_matrix = false;
};
Target target_of(const ir::Module &module, const Options &options);

class ModuleLint {
 public:
  // `path` is what reports call the module. The arguments must outlive this.
  ModuleLint(const Host &host, const Options &options, std::string path, const ir::Module &module);

  // One for each operation that moves data, in the order of the text. Each has a plan or a reason.
  std::vector<Site> run();
  // Encodings that could not be read.
  uint64_t unparsed() const { return layouts_.unparsed(); }
  const Target &target() const { return target_; }

 private:
  Site new_site(const ir::Operation &operation) const;
  bool visit(const ir::Operation &operation, Site &site);

  // conversion.cpp
  void conversion(const ir::Operation &operation, Site &site);
  void judge_conversion(const ir::Operation &operation, const sonde_plan_t &plan, const sonde_layout_t *source,
                        const sonde_layout_t *destination, Site &site);
  void judge_chain(const ir::Operation &operation, const sonde_layout_t *destination, Site &site);
  void judge_origin(const ir::Operation &operation, const sonde_plan_t &plan, Site &site);
  void judge_neighbours(const ir::Operation &operation, const sonde_plan_t &plan, const sonde_layout_t *source,
                        const sonde_layout_t *destination, Site &site);
  bool is_loop_invariant(const ir::Operation &operation, uint32_t value) const;

  // memory.cpp
  void local_access(const ir::Operation &operation, const ir::Type *tensor, const ir::Type *memory, bool is_store,
                    Site &site);
  void global(const ir::Operation &operation, Site &site);
  void asynchronous_copy(const ir::Operation &operation, Site &site);
  void hardware_copy(const ir::Operation &operation, Site &site);
  void judge_global(const ir::Operation &operation, const GlobalAccess &access, const ir::Type &type, Site &site);
  void judge_swizzle(const ir::Type &memory, Site &site);
  void judge_conflicts(const SharedAccess &access, const char *what, Site &site);
  // The mask among an access's operands, or null.
  const Fact *mask_of(const ir::Operation &operation, const ir::Type &pointers) const;

  // arithmetic.cpp
  void product(const ir::Operation &operation, Site &site);
  void reduction(const ir::Operation &operation, Site &site);
  void gather(const ir::Operation &operation, Site &site);

  Host host_;
  const Options &options_;
  std::string path_;
  const ir::Module &module_;
  Target target_;
  Layouts layouts_;
  Addresses addresses_;
};

// --- Helpers of the files above ---

std::string shape_text(const ir::Type &type);
// Bits that an element takes in a register or in memory: 8 for i1.
uint32_t stored_bits(uint32_t element_bits);
uint64_t bytes_of(const ir::Type &type);
// Warnings in loops, notes outside of them.
uint32_t severity_in(const Site &site);
void looked_at(Site &site, const char *rule);

}  // namespace sonde::layout_lint
