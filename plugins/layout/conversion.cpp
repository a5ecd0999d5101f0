// Conversions between register layouts: what they cost, and whether they are needed.
#include <algorithm>
#include <array>

#include "module_lint.h"

namespace sonde::layout_lint {
namespace {

bool is_elementwise(std::string_view name) { return name.starts_with("arith.") || name.starts_with("math."); }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool widens(std::string_view name) {
  return is_one_of(name, {"arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp", "tt.fp_to_fp"});
}
bool narrows(std::string_view name) {
  return is_one_of(name, {"arith.truncf", "arith.trunci", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp"});
}

}  // namespace

void ModuleLint::conversion(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const auto results = module_.results(operation);
  const ir::Type *const from = operands.empty() ? nullptr : module_.type_of(operands[0]);
  const ir::Type *const to = results.empty() ? nullptr : module_.type_of(results[0]);
  constexpr std::array kRules = {"bank_conflicts", "redundant_conversion", "avoidable_conversion"};
  const auto give_up = [&](std::string reason) {
    site.reason = std::move(reason);
    for (const char *const rule : kRules) site.unseen.push_back({rule, site.reason});
  };
  if (from == nullptr || to == nullptr || from->kind != ir::TypeKind::kTensor || to->kind != ir::TypeKind::kTensor) {
    return give_up("the types of both sides are not known");
  }
  site.tensor = shape_text(*to);
  site.source = from->encoding;
  site.destination = to->encoding;
  const LayoutOrReason source = layouts_.layout_of(from), destination = layouts_.layout_of(to);
  if (source.layout == nullptr || destination.layout == nullptr) {
    return give_up(source.layout == nullptr ? source.reason : destination.reason);
  }
  sonde_plan_options_t options{};
  options.struct_size = sizeof(options);
  options.bits_per_element = stored_bits(to->element_bits);
  options.banks = target_.banks;
  options.most_transpositions = 1;
  options.flags =
      (target_.has_store_matrix ? SONDE_PLAN_STORE_MATRIX : 0) | (target_.has_load_matrix ? SONDE_PLAN_LOAD_MATRIX : 0);
  sonde_plan_t plan{};
  plan.struct_size = sizeof(plan);
  if (layouts_.plans().plan(layouts_.arena(), source.layout, destination.layout, &options, &plan) != SONDE_OK) {
    return give_up("there is no plan: " + layouts_.last_error());
  }
  site.plan = plan.kind_text;
  site.source_copies = plan.source_copies;
  site.destination_copies = plan.destination_copies;
  if (plan.kind == SONDE_PLAN_SHUFFLES) site.shuffles = plan.shuffles;
  if (plan.memory != nullptr) {
    constexpr std::array kStores = {"st.shared", "stmatrix", "stmatrix.trans"};
    constexpr std::array kLoads = {"ld.shared", "ldmatrix", "ldmatrix.trans"};
    site.instruction = std::string(kStores[plan.store.instruction]) + ", " + kLoads[plan.load.instruction];
    site.shared_bytes = plan.shared_bytes;
    site.repetitions = plan.repetitions;
    site.vector_bits = plan.store.vector_bits;
    site.load_vector_bits = plan.load.vector_bits;
    site.instructions = plan.repetitions * (plan.store.instructions + plan.load.instructions);
    site.store_conflicts = plan.store.conflicts;
    site.load_conflicts = plan.load.conflicts;
    SharedAccess access;
    access.instruction = site.instruction.c_str();
    access.vector_bits = std::min(plan.store.vector_bits, plan.load.vector_bits);
    access.instructions = plan.store.instructions + plan.load.instructions;
    access.wavefronts = plan.store.wavefronts + plan.load.wavefronts;
    access.conflicts = plan.store.conflicts + plan.load.conflicts;
    judge_conflicts(access, "passage through", site);
  }
  judge_conversion(operation, plan, source.layout, destination.layout, site);
}

void ModuleLint::judge_conversion(const ir::Operation &operation, const sonde_plan_t &plan,
                                  const sonde_layout_t *source, const sonde_layout_t *destination, Site &site) {
  looked_at(site, "redundant_conversion");
  if (plan.kind == SONDE_PLAN_NOTHING) {
    Issue issue;
    issue.rule = "redundant_conversion";
    issue.severity = SONDE_SEVERITY_NOTE;
    issue.message = "Both encodings are the same layout: the conversion moves nothing.";
    issue.advice = "Nothing needs to change; it costs no instruction, but may keep operations from being merged.";
    issue.formula = "the plan is a no-op";
    issue.evidence = {{"source_copies", "1", plan.source_copies}, {"destination_copies", "1", plan.destination_copies}};
    site.issues.push_back(std::move(issue));
    return;
  }
  judge_chain(operation, destination, site);
  judge_origin(operation, plan, site);
  judge_neighbours(operation, plan, source, destination, site);
}

// A conversion of a conversion.
void ModuleLint::judge_chain(const ir::Operation &operation, const sonde_layout_t *destination, Site &site) {
  looked_at(site, "chained_conversion");
  const uint32_t value = module_.operands(operation)[0];
  const ir::Operation *const first = module_.definition(value);
  if (first == nullptr || first->name != "ttg.convert_layout" || module_.operands(*first).empty()) return;
  const LayoutOrReason origin = layouts_.layout_of(module_.type_of(module_.operands(*first)[0]));
  uint32_t is_equal = 0;
  if (origin.layout != nullptr) {
    layouts_.layouts().equal(origin.layout, destination, SONDE_LAYOUT_EQUAL_AS_MAPS, &is_equal);
  }
  const bool is_only_user = module_.users(value).size() == 1;
  if (is_equal == 0 && !is_only_user) return;
  Issue issue;
  issue.rule = is_equal != 0 ? "redundant_conversion" : "chained_conversion";
  issue.severity = SONDE_SEVERITY_WARNING;
  issue.message = is_equal != 0 ? "The conversion undoes the one in line " + std::to_string(first->place.line) +
                                      " of the TTGIR: the value in that layout is there already."
                                : "Two conversions in a row: nothing else uses the layout between them (line " +
                                      std::to_string(first->place.line) + " of the TTGIR).";
  issue.advice =
      is_equal != 0 ? "Use the value from before the first conversion." : "Convert once, to the last layout.";
  issue.formula = is_equal != 0 ? "layout before the first conversion = layout after the second, as maps"
                                : "the operand is a conversion that has no other user";
  issue.evidence = {{"first_line", "1", uint64_t{first->place.line}}, {"loop_depth", "1", uint64_t{site.loop_depth}}};
  site.issues.push_back(std::move(issue));
}

bool ModuleLint::is_loop_invariant(const ir::Operation &operation, uint32_t value) const {
  uint32_t loop = operation.parent;
  while (loop != ir::kNone && module_.operation(loop).loop_depth == operation.loop_depth) {
    loop = module_.operation(loop).parent;
  }
  const ir::Value &what = module_.value(value);
  if (loop == ir::kNone || !what.is_defined()) return false;
  return what.operation < loop || what.operation >= module_.operation(loop).end;
}

// Conversions of what could be made in the other layout, or made once.
void ModuleLint::judge_origin(const ir::Operation &operation, const sonde_plan_t &plan, Site &site) {
  const uint32_t value = module_.operands(operation)[0];
  const ir::Operation *const origin = module_.definition(value);
  looked_at(site, "converted_constant");
  if (origin != nullptr && is_one_of(origin->name, {"tt.splat", "arith.constant", "tt.make_range"})) {
    Issue issue;
    issue.rule = "converted_constant";
    issue.severity = SONDE_SEVERITY_WARNING;
    issue.message = "The conversion moves the result of " + std::string(origin->name) +
                    ", which every thread can make for itself in the layout that is wanted.";
    issue.advice = "Make it a second time in the destination's layout instead of converting it.";
    issue.formula = "the operand is a splat, a constant or a range, and the plan is no no-op";
    issue.evidence = {{"shared", "bytes", plan.shared_bytes}, {"shuffles", "1", plan.shuffles}};
    site.issues.push_back(std::move(issue));
  }
  looked_at(site, "invariant_conversion");
  if (site.loop_depth > 0 && is_loop_invariant(operation, value)) {
    Issue issue;
    issue.rule = "invariant_conversion";
    issue.severity = SONDE_SEVERITY_WARNING;
    issue.message = "The conversion is repeated in a loop that does not change its operand.";
    issue.advice = "Convert before the loop, where registers allow to keep the result.";
    issue.formula = "the operand is defined outside of the innermost loop around the conversion";
    issue.evidence = {{"loop_depth", "1", uint64_t{site.loop_depth}}, {"shared", "bytes", plan.shared_bytes}};
    site.issues.push_back(std::move(issue));
  }
}

// Conversions that the operations before or after could do without.
void ModuleLint::judge_neighbours(const ir::Operation &operation, const sonde_plan_t &plan,
                                  const sonde_layout_t *source, const sonde_layout_t *destination, Site &site) {
  const uint32_t value = module_.operands(operation)[0];
  const uint32_t result = module_.results(operation)[0];
  const ir::Operation *const origin = module_.definition(value);
  const auto users = module_.users(result);
  const ir::Operation *const user = users.size() == 1 ? &module_.operation(users[0]) : nullptr;
  const bool is_only_user = module_.users(value).size() == 1;
  const ir::Type *const from = module_.type_of(value), *const to = module_.type_of(result);

  // The access on the other side, in either layout. Facts about addresses hold whatever the layout.
  const auto compare = [&](const ir::Operation &access, const sonde_layout_t *now, const sonde_layout_t *then,
                           const char *what, const char *advice) {
    const ir::Type *const type = module_.type_of(module_.operands(access)[0]);
    if (type == nullptr || type->kind != ir::TypeKind::kTensor || type->pointee_bits == 0 || from == nullptr ||
        type->shape != from->shape) {
      return;
    }
    const Fact &address = addresses_.of(module_.operands(access)[0]);
    const uint32_t bits = stored_bits(type->pointee_bits);
    const Fact *const mask = mask_of(access, *type);
    const GlobalAccess before = global_access(layouts_, now, bits, address, mask, 0);
    const GlobalAccess after = global_access(layouts_, then, bits, address, mask, 0);
    if (!before.is_known || !after.is_known) {
      site.unseen.push_back({"avoidable_conversion", before.reason});
      return;
    }
    looked_at(site, "avoidable_conversion");
    if (after.all_sectors > before.all_sectors || after.instructions > before.instructions) return;
    Issue issue;
    issue.rule = "avoidable_conversion";
    issue.severity = SONDE_SEVERITY_WARNING;
    issue.message = std::string("The conversion serves only the ") + what +
                    ", which would be as good in the layout on its other side: " + std::to_string(after.all_sectors) +
                    " sectors instead of " + std::to_string(before.all_sectors) + ", " +
                    std::to_string(after.instructions) + " instructions of a thread instead of " +
                    std::to_string(before.instructions) + ".";
    issue.advice = advice;
    issue.formula = "sectors of all requests and instructions of a thread, in the other layout <= in this one";
    issue.evidence = {{"sectors", "1", before.all_sectors},
                      {"sectors_without", "1", after.all_sectors},
                      {"instructions", "1", before.instructions},
                      {"instructions_without", "1", after.instructions},
                      {"shared", "bytes", plan.shared_bytes}};
    issue.confidence = 0.8;  // the addresses must be made in the other layout too, which may cost registers
    site.issues.push_back(std::move(issue));
  };
  if (user != nullptr && user->name == "tt.store" && module_.operands(*user).size() > 1 &&
      module_.operands(*user)[1] == result) {
    compare(*user, destination, source, "store",
            "Store in the layout that the value has; its addresses and mask are then computed in that layout.");
  }
  if (origin != nullptr && origin->name == "tt.load" && is_only_user) {
    compare(*origin, source, destination, "load",
            "Load in the layout that is wanted; its addresses and mask are then computed in that layout.");
  }

  looked_at(site, "wide_conversion");
  const auto report_width = [&](const ir::Operation &other, uint32_t narrow, uint32_t wide, bool is_before) {
    Issue issue;
    issue.rule = "wide_conversion";
    issue.severity = severity_in(site);
    issue.message = std::string("The conversion moves ") + std::to_string(wide) + "-bit elements that are " +
                    std::to_string(narrow) + " bits wide " + (is_before ? "before " : "after ") +
                    std::string(other.name) + ".";
    issue.advice =
        is_before ? "Convert the layout before the elements are widened." : "Narrow the elements before converting.";
    issue.formula = "only the conversion uses the widened value, or only a narrowing uses the conversion";
    issue.evidence = {{"width", "bits", uint64_t{wide}},
                      {"width_possible", "bits", uint64_t{narrow}},
                      {"shared", "bytes", plan.shared_bytes}};
    site.issues.push_back(std::move(issue));
  };
  if (plan.kind >= SONDE_PLAN_SHUFFLES) {
    if (origin != nullptr && widens(origin->name) && is_only_user && !module_.operands(*origin).empty()) {
      const ir::Type *const narrow = module_.type_of(module_.operands(*origin)[0]);
      if (narrow != nullptr && from != nullptr && stored_bits(narrow->element_bits) < stored_bits(from->element_bits)) {
        report_width(*origin, stored_bits(narrow->element_bits), stored_bits(from->element_bits), true);
      }
    }
    if (user != nullptr && narrows(user->name) && !module_.results(*user).empty()) {
      const ir::Type *const narrow = module_.type_of(module_.results(*user)[0]);
      if (narrow != nullptr && to != nullptr && stored_bits(narrow->element_bits) < stored_bits(to->element_bits)) {
        report_width(*user, stored_bits(narrow->element_bits), stored_bits(to->element_bits), false);
      }
    }
  }

  // All operands of an elementwise operation come out of the same layout: one conversion of its result would do.
  looked_at(site, "joint_conversion");
  if (user == nullptr || !is_elementwise(user->name)) return;
  uint64_t converted = 0;
  for (const uint32_t operand : module_.operands(*user)) {
    const ir::Type *const type = module_.type_of(operand);
    if (type == nullptr || type->kind != ir::TypeKind::kTensor) continue;
    const ir::Operation *const each = module_.definition(operand);
    if (each == nullptr || each->name != "ttg.convert_layout" || module_.users(operand).size() != 1) return;
    const ir::Type *const origin_type = module_.type_of(module_.operands(*each)[0]);
    if (origin_type == nullptr || from == nullptr || origin_type->encoding != from->encoding) return;
    ++converted;
  }
  if (converted < 2 || module_.definition(module_.operands(*user)[0]) != &operation) return;  // said once, at the first
  Issue issue;
  issue.rule = "joint_conversion";
  issue.severity = severity_in(site);
  issue.message = std::to_string(converted) + " operands of " + std::string(user->name) +
                  " are converted from one layout to another: its result could be converted instead.";
  issue.advice = "Compute in the first layout and convert the result once.";
  issue.formula = "every tensor operand is a conversion from the same encoding without another user";
  issue.evidence = {{"conversions", "1", converted}, {"shared", "bytes", plan.shared_bytes}};
  site.issues.push_back(std::move(issue));
}

}  // namespace sonde::layout_lint
