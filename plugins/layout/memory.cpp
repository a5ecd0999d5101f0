// Accesses to shared and global memory.
#include <algorithm>

#include "module_lint.h"

namespace sonde::layout_lint {
namespace {

constexpr const char *kConflictFormula =
    "wavefronts of one warp's accesses - the fewest that their bytes need >= least_conflicts; a phase of lanes takes "
    "as "
    "many wavefronts as the busiest bank has different words";

std::string number(double value) {
  std::string text = std::to_string(value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

void ModuleLint::judge_conflicts(const SharedAccess &access, const char *what, Site &site) {
  looked_at(site, "bank_conflicts");
  if (access.conflicts < static_cast<uint64_t>(options_.least_conflicts)) return;
  Issue issue;
  issue.rule = "bank_conflicts";
  issue.severity = SONDE_SEVERITY_WARNING;
  issue.message = std::string("The ") + what + " of shared memory by " + access.instruction + " loses " +
                  std::to_string(access.conflicts) + " of " + std::to_string(access.wavefronts) +
                  " wavefronts of each warp to bank conflicts.";
  issue.advice =
      "Give the memory a swizzle made for both sides (sonde layout plan finds one), or a register layout whose lanes "
      "walk along the memory's fastest dim.";
  issue.formula = kConflictFormula;
  issue.evidence = {{"conflicts", "wavefronts", access.conflicts}, {"wavefronts", "wavefronts", access.wavefronts},
                    {"instructions", "1", access.instructions},    {"vector", "bits", access.vector_bits},
                    {"banks", "1", uint64_t{target_.banks}},       {"loop_depth", "1", uint64_t{site.loop_depth}}};
  site.issues.push_back(std::move(issue));
}

void ModuleLint::local_access(const ir::Operation &, const ir::Type *tensor, const ir::Type *memory, bool is_store,
                              Site &site) {
  if (tensor == nullptr || memory == nullptr || memory->kind != ir::TypeKind::kMemory) {
    site.reason = "the types of the tensor and of the memory are not written";
    return;
  }
  site.tensor = shape_text(*tensor);
  site.source = is_store ? tensor->encoding : memory->encoding;
  site.destination = is_store ? memory->encoding : tensor->encoding;
  site.shared_bytes = bytes_of(*memory);
  if (memory->memory_space != "#smem" && module_.alias(memory->memory_space) != "#ttg.shared_memory" &&
      memory->memory_space.find("shared") == std::string_view::npos) {
    site.reason = "the memory is not shared memory";
    return;
  }
  const LayoutOrReason registers = layouts_.layout_of(tensor), offsets = layouts_.layout_of(memory);
  if (registers.layout == nullptr || offsets.layout == nullptr) {
    site.reason = registers.layout == nullptr ? registers.reason : offsets.reason;
    site.unseen.push_back({"bank_conflicts", site.reason});
    return;
  }
  SharedOptions how;
  how.element_bits = stored_bits(memory->element_bits);
  how.banks = target_.banks;
  how.is_store = is_store;
  how.has_matrix_instruction = is_store ? target_.has_store_matrix : target_.has_load_matrix;
  const SharedAccess access = shared_access(layouts_, registers.layout, *memory, offsets.layout, how);
  if (!access.reason.empty()) {
    site.reason = access.reason;
    site.unseen.push_back({"bank_conflicts", access.reason});
    return;
  }
  site.plan = is_store ? "registers to shared memory" : "shared memory to registers";
  site.instruction = access.instruction;
  site.vector_bits = access.vector_bits;
  site.instructions = access.instructions;
  (is_store ? site.store_conflicts : site.load_conflicts) = access.conflicts;
  judge_conflicts(access, is_store ? "store" : "load", site);
}

const Fact *ModuleLint::mask_of(const ir::Operation &operation, const ir::Type &pointers) const {
  const auto operands = module_.operands(operation);
  for (size_t i = 1; i < operands.size(); ++i) {
    const ir::Type *const type = module_.type_of(operands[i]);
    const bool is_value = (operation.name == "tt.store" && i == 1) || (operation.name == "tt.atomic_rmw" && i == 1);
    if (type == nullptr || is_value || operation.name == "tt.atomic_cas") continue;
    if (type->kind == ir::TypeKind::kTensor && type->element == "i1" && type->shape == pointers.shape) {
      return &addresses_.of(operands[i]);
    }
  }
  return nullptr;
}

void ModuleLint::judge_global(const ir::Operation &operation, const GlobalAccess &access, const ir::Type &type,
                              Site &site) {
  const bool is_atomic = operation.name.starts_with("tt.atomic_");
  const std::string verb = operation.name == "tt.store" ? "store" : is_atomic ? "atomic" : "load";
  if (!is_atomic) {
    looked_at(site, "narrow_access");
    const uint64_t bits = type.pointee_bits == 0 ? 8 : stored_bits(type.pointee_bits);
    if (access.vector_bits < static_cast<uint64_t>(options_.least_vector_bits) && access.instructions > 1) {
      // What held the width down: the least of the bounds.
      const uint64_t elements = access.vector_bits / bits;
      const char *cause = "the registers of a thread hold no more elements in a row";
      const char *advice = "Let each thread hold more elements in a row: a larger sizePerThread along the fastest dim.";
      if (access.mask_contiguous != 0 && access.mask_contiguous <= elements) {
        cause = "the mask may change between the elements";
        advice = "Make the bound of the mask a multiple of the width (tl.multiple_of, or a padded size), or use none.";
      } else if (access.proved_contiguous <= elements) {
        cause = "the text proves no longer run of addresses";
        advice =
            "Say what holds: tl.multiple_of on strides and offsets, tl.max_contiguous on indices, and pass pointers "
            "and "
            "strides that are multiples of 16.";
      }
      Issue issue;
      issue.rule = "narrow_access";
      issue.severity = severity_in(site);
      issue.message = "Each lane's " + verb + " moves " + std::to_string(access.vector_bits) + " bits by one of " +
                      std::to_string(access.instructions) + " instructions: " + cause + ".";
      issue.advice = advice;
      issue.formula = "bits of one lane's access < least_vector_bits (" + std::to_string(options_.least_vector_bits) +
                      "), and a thread needs more than one";
      issue.evidence = {{"vector", "bits", access.vector_bits},
                        {"instructions", "1", access.instructions},
                        {"contiguous_in_thread", "elements", access.thread_contiguous},
                        {"contiguous_by_proof", "elements", access.proved_contiguous},
                        {"loop_depth", "1", uint64_t{site.loop_depth}}};
      if (access.mask_contiguous != 0)
        issue.evidence.push_back({"contiguous_in_mask", "elements", access.mask_contiguous});
      site.issues.push_back(std::move(issue));
    }
  }
  if (!access.is_known) {
    std::string reason = access.reason;
    if (const uint32_t lost = addresses_.of(module_.operands(operation)[0]).lost_at; lost != ir::kNone) {
      const ir::Operation &cause = module_.operation(lost);
      reason += ": they come from " + std::string(cause.name) + " in line " + std::to_string(cause.place.line) +
                " of the TTGIR";
    }
    site.unseen.push_back({"uncoalesced_access", reason});
  } else {
    looked_at(site, "uncoalesced_access");
    // A request within as few sectors as its bytes need cannot be better.
    if (access.efficiency() < options_.least_efficiency && access.sectors > access.fewest_sectors()) {
      Issue issue;
      issue.rule = "uncoalesced_access";
      issue.severity = SONDE_SEVERITY_WARNING;
      issue.message = "A warp's " + verb + " touches at least " + std::to_string(access.sectors) + " sectors for " +
                      std::to_string(access.wanted_bytes) + " bytes that would fit " +
                      std::to_string(access.fewest_sectors()) + ".";
      issue.advice =
          "Let neighbouring lanes hold neighbouring addresses: another order or threadsPerWarp of the layout, a tensor "
          "stored the other way round, or a copy through shared memory.";
      issue.formula = "bytes wanted / (32 bytes * sectors) < least_efficiency (" + number(options_.least_efficiency) +
                      "), of the worst instruction of a warp; rows whose distance is not known count as different";
      issue.evidence = {{"efficiency", "1", access.efficiency()},   {"sectors", "1", access.sectors},
                        {"sectors_most", "1", access.sectors_most}, {"wanted", "bytes", access.wanted_bytes},
                        {"vector", "bits", access.vector_bits},     {"loop_depth", "1", uint64_t{site.loop_depth}}};
      site.issues.push_back(std::move(issue));
    }
  }
  looked_at(site, "duplicated_access");
  const uint64_t copies = access.lane_copies * access.warp_copies;
  if (copies >= static_cast<uint64_t>(options_.least_copies)) {
    Issue issue;
    issue.rule = "duplicated_access";
    issue.severity = SONDE_SEVERITY_NOTE;
    issue.message = std::to_string(access.lane_copies) + " lanes and " + std::to_string(access.warp_copies) +
                    " warps of the block hold each element of this " + verb + ".";
    issue.advice =
        "The tile is small for the number of warps: use a larger block, fewer warps (num_warps), or a layout that "
        "spreads the tile over them.";
    issue.formula =
        "lanes * warps that hold an element >= least_copies (" + std::to_string(options_.least_copies) + ")";
    issue.evidence = {{"lane_copies", "1", access.lane_copies}, {"warp_copies", "1", access.warp_copies}};
    site.issues.push_back(std::move(issue));
  }
}

void ModuleLint::global(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const ir::Type *const type = operands.empty() ? nullptr : module_.type_of(operands[0]);
  const bool is_store = operation.name == "tt.store";
  const bool is_atomic = operation.name.starts_with("tt.atomic_");
  if (type == nullptr || (type->kind != ir::TypeKind::kTensor && type->kind != ir::TypeKind::kPointer)) {
    site.reason = "the type of the address is not known";
    return;
  }
  site.tensor = shape_text(*type);
  if (type->pointee_bits == 0) {
    site.reason =
        "a pointer to " + std::string(type->pointee) + " has no width: block pointers are gone in later stages";
    return;
  }
  const uint32_t bits = stored_bits(type->pointee_bits);
  if (type->kind == ir::TypeKind::kPointer) {
    site.plan = is_atomic  ? "one address, by one thread"
                : is_store ? "one address, by one thread"
                           : "one address, by all threads";
    site.instruction = is_atomic ? "atom.global" : is_store ? "st.global" : "ld.global";
    site.vector_bits = bits;
    site.instructions = 1;
    site.sectors = site.sectors_most = 1;
    return;
  }
  (is_store ? site.destination : site.source) = type->encoding;
  const LayoutOrReason layout = layouts_.layout_of(type);
  if (layout.layout == nullptr) {
    site.reason = layout.reason;
    for (const char *const rule : {"narrow_access", "uncoalesced_access", "duplicated_access"}) {
      site.unseen.push_back({rule, site.reason});
    }
    return;
  }
  // An atomic moves one element, or a pair of 16 bits (PTX: atom, red).
  const uint64_t most = is_atomic ? (bits == 16 ? 2 : 1) : 0;
  const Fact &address = addresses_.of(operands[0]);
  const GlobalAccess access = global_access(layouts_, layout.layout, bits, address, mask_of(operation, *type), most);
  site.plan = is_atomic  ? "registers to global memory, atomic"
              : is_store ? "registers to global memory"
                         : "global memory to registers";
  site.instruction = is_atomic ? "atom.global" : is_store ? "st.global" : "ld.global";
  site.vector_bits = access.vector_bits;
  site.instructions = access.instructions;
  (is_store ? site.source_copies : site.destination_copies) = access.lane_copies * access.warp_copies;
  if (access.is_known) {
    site.sectors = access.sectors;
    site.sectors_most = access.sectors_most;
    site.efficiency = access.efficiency();
  }
  judge_global(operation, access, *type, site);
}

void ModuleLint::asynchronous_copy(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const ir::Type *const type = operands.empty() ? nullptr : module_.type_of(operands[0]);
  const ir::Type *const memory = operands.size() < 2 ? nullptr : module_.type_of(operands[1]);
  if (type == nullptr || memory == nullptr || type->kind != ir::TypeKind::kTensor || type->pointee_bits == 0 ||
      memory->kind != ir::TypeKind::kMemory) {
    site.reason = "the types of the address and of the memory are not known";
    return;
  }
  site.tensor = shape_text(*type);
  site.source = type->encoding;
  site.destination = memory->encoding;
  site.shared_bytes = bytes_of(*memory);
  const LayoutOrReason registers = layouts_.layout_of(type), offsets = layouts_.layout_of(memory);
  if (registers.layout == nullptr || offsets.layout == nullptr) {
    site.reason = registers.layout == nullptr ? registers.reason : offsets.reason;
    return;
  }
  const uint32_t bits = stored_bits(type->pointee_bits);
  SharedOptions how;
  how.element_bits = bits;
  how.banks = target_.banks;
  how.is_store = true;
  const SharedAccess shared = shared_access(layouts_, registers.layout, *memory, offsets.layout, how);
  if (!shared.reason.empty()) {
    site.reason = shared.reason;
    return;
  }
  const GlobalAccess access = global_access(layouts_, registers.layout, bits, addresses_.of(operands[0]),
                                            mask_of(operation, *type), shared.vector_bits / bits);
  site.plan = "global memory to shared memory";
  site.instruction = "cp.async";
  site.vector_bits = access.vector_bits;
  site.instructions = access.instructions;
  site.source_copies = access.lane_copies * access.warp_copies;
  if (access.is_known) {
    site.sectors = access.sectors;
    site.sectors_most = access.sectors_most;
    site.efficiency = access.efficiency();
  }
  // The conflicts are those of stores of the memory's own width; narrower ones would be others.
  if (access.vector_bits == shared.vector_bits) {
    site.store_conflicts = shared.conflicts;
    SharedAccess copy = shared;
    copy.instruction = "cp.async";
    judge_conflicts(copy, "store", site);
  } else {
    site.unseen.push_back(
        {"bank_conflicts", "the copy is narrower (" + std::to_string(access.vector_bits) +
                               " bits) than what the memory's layout allows, for which conflicts are counted"});
  }
  judge_global(operation, access, *type, site);
}

// Copies by the tensor memory accelerator, and what of a product the tensor cores read themselves: the swizzle decides.
void ModuleLint::judge_swizzle(const ir::Type &memory, Site &site) {
  const std::string_view text = memory.encoding.starts_with("#ttg.") ? memory.encoding : module_.alias(memory.encoding);
  const size_t open = text.find("<{"), close = text.rfind("}>");
  if (text.find("nvmma_shared") == std::string_view::npos || open == std::string_view::npos ||
      close == std::string_view::npos || close < open) {
    return;
  }
  const std::string_view inside = text.substr(open + 2, close - open - 2);
  const auto number_of = [&](std::string_view name) {
    const auto value = ir::find_attribute(inside, name);
    return value ? ir::integer_of(*value) : std::nullopt;
  };
  const auto width = number_of("swizzlingByteWidth");
  const auto transposed = number_of("transposed");
  if (!width || !memory.is_static() || memory.shape.size() < 2) return;
  const auto rank = static_cast<uint32_t>(memory.shape.size());
  std::vector<uint64_t> shape(memory.shape.begin(), memory.shape.end());
  std::vector<uint32_t> order;
  for (uint32_t i = rank; i-- > 0;) order.push_back(i);
  if (transposed.value_or(0) != 0) std::swap(order[0], order[1]);
  uint32_t widest = 0;
  if (layouts_.encodings().default_swizzle(shape.data(), order.data(), rank, memory.element_bits, &widest) !=
      SONDE_OK) {
    site.unseen.push_back({"narrow_swizzle", layouts_.last_error()});
    return;
  }
  looked_at(site, "narrow_swizzle");
  if (static_cast<uint64_t>(*width) >= widest) return;
  Issue issue;
  issue.rule = "narrow_swizzle";
  issue.severity = severity_in(site);
  issue.message = "The memory is swizzled in rows of " + std::to_string(*width) +
                  " bytes where its shape has room for " + std::to_string(widest) + ".";
  issue.advice = "Use the wider swizzle: rows that the hardware reads at once then lie in different banks.";
  issue.formula = "swizzlingByteWidth < the largest of 128, 64, 32 that divides a row's bytes, with at least 8 rows";
  issue.evidence = {{"swizzle", "bytes", static_cast<uint64_t>(*width)}, {"widest", "bytes", uint64_t{widest}}};
  site.issues.push_back(std::move(issue));
}

void ModuleLint::hardware_copy(const ir::Operation &operation, Site &site) {
  // The block is described by the descriptor, or by the tensor or memory that takes part.
  const ir::Type *block = nullptr, *memory = nullptr;
  const auto look = [&](uint32_t value) {
    const ir::Type *const type = module_.type_of(value);
    if (type == nullptr) return;
    if (type->kind == ir::TypeKind::kDescriptor && block == nullptr) block = type;
    // The last memory is the data's; a barrier's comes before it.
    if (type->kind == ir::TypeKind::kMemory && type->shape.size() > 1) memory = type;
  };
  for (const uint32_t value : module_.operands(operation)) look(value);
  for (const uint32_t value : module_.results(operation)) look(value);
  if (block == nullptr && memory == nullptr) {
    site.reason = "neither descriptor nor memory is written";
    return;
  }
  const ir::Type &shape = memory != nullptr ? *memory : *block;
  site.tensor = shape_text(shape);
  const bool is_load = operation.name.find("load") != std::string_view::npos ||
                       operation.name.find("global_to_local") != std::string_view::npos ||
                       operation.name.find("gather") != std::string_view::npos;
  (is_load ? site.destination : site.source) = shape.encoding;
  site.plan =
      is_load ? "hardware copy: global memory to shared memory" : "hardware copy: shared memory to global memory";
  site.instruction = "cp.async.bulk.tensor";
  site.shared_bytes = bytes_of(shape);
  judge_swizzle(shape, site);
}

}  // namespace sonde::layout_lint
