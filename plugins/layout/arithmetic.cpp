// Operations that combine elements of several threads: products, reductions, scans, gathers.
#include <algorithm>
#include <bit>

#include "module_lint.h"

namespace sonde::layout_lint {

void ModuleLint::product(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const ir::Type *left = nullptr, *right = nullptr;
  uint64_t bytes = 0;
  for (const uint32_t operand : operands) {
    const ir::Type *const type = module_.type_of(operand);
    if (type == nullptr || (type->kind != ir::TypeKind::kTensor && type->kind != ir::TypeKind::kMemory)) continue;
    if (left != nullptr && right != nullptr) break;
    (left == nullptr ? left : right) = type;
    if (type->kind != ir::TypeKind::kMemory) continue;
    bytes += bytes_of(*type);
    judge_swizzle(*type, site);
  }
  if (left == nullptr || right == nullptr) {
    site.reason = "the types of the operands are not known";
    return;
  }
  site.tensor = shape_text(*left) + " * " + shape_text(*right);
  site.source = std::string(left->encoding) + " * " + std::string(right->encoding);
  if (const auto results = module_.results(operation); !results.empty()) {
    if (const ir::Type *const type = module_.type_of(results[0])) site.destination = type->encoding;
  }
  const bool is_memory = left->kind == ir::TypeKind::kMemory || right->kind == ir::TypeKind::kMemory;
  site.plan = is_memory ? "the tensor cores read shared memory" : "operands in registers";
  if (is_memory) site.shared_bytes = bytes;
}

// How far the elements of a column lie apart: in a thread, in a warp, over warps, over blocks.
void ModuleLint::reduction(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const ir::Type *const type = operands.empty() ? nullptr : module_.type_of(operands[0]);
  auto text = ir::find_attribute(operation.properties, "axis");
  if (!text) text = ir::find_attribute(operation.attributes, "axis");
  const int64_t axis = text ? ir::integer_of(*text).value_or(-1) : -1;
  if (type == nullptr || type->kind != ir::TypeKind::kTensor || axis < 0 ||
      static_cast<size_t>(axis) >= type->shape.size()) {
    site.reason = "the tensor's type or the axis is not written";
    return;
  }
  site.tensor = shape_text(*type);
  site.source = type->encoding;
  const auto results = module_.results(operation);
  const ir::Type *const result = results.empty() ? nullptr : module_.type_of(results[0]);
  if (result != nullptr) site.destination = result->encoding;
  const LayoutOrReason layout = layouts_.layout_of(type);
  if (layout.layout == nullptr) {
    site.reason = layout.reason;
    site.unseen.push_back({"cross_warp_reduction", layout.reason});
    return;
  }
  const sonde_layout_view_t view = layouts_.view(layout.layout);
  const auto dim = static_cast<uint32_t>(axis);
  const auto bits_on_axis = [&](sonde_dim_t in, bool wants_axis) {
    const std::vector<uint64_t> columns = columns_of(view, in);
    return static_cast<uint32_t>(std::count_if(columns.begin(), columns.end(), [&](uint64_t column) {
      return column != 0 && (part_of(view, column, dim) != 0) == wants_axis;
    }));
  };
  const uint32_t lanes = bits_on_axis(SONDE_DIM_LANE, true);
  const uint32_t warps = bits_on_axis(SONDE_DIM_WARP, true);
  const uint32_t blocks = bits_on_axis(SONDE_DIM_BLOCK, true);
  const bool is_scan = operation.name == "tt.scan";
  uint64_t bytes = 0;
  for (const uint32_t operand : operands) {
    if (const ir::Type *const each = module_.type_of(operand)) bytes += stored_bits(each->element_bits) / 8;
  }
  // A butterfly over the lanes for each register that is left after those of the axis are combined in place.
  if (lanes > 0 && !is_scan) {
    const uint64_t words = std::max<uint64_t>(1, (bytes + 3) / 4);
    site.shuffles = (uint64_t{1} << bits_on_axis(SONDE_DIM_REGISTER, false)) * lanes * words;
  }
  if (blocks > 0) {
    site.plan = "through shared memory of several blocks";
  } else if (warps > 0) {
    site.plan = "through shared memory";
  } else {
    site.plan = lanes > 0 ? "warp shuffles" : "within each thread";
  }
  looked_at(site, "cross_warp_reduction");
  if (warps == 0 && blocks == 0) return;
  // Each warp leaves one partial result for each column (Triton: ReduceOpHelper, scratch shape).
  const uint64_t size = static_cast<uint64_t>(type->shape[dim]);
  if (!is_scan && size != 0) site.shared_bytes = type->elements() / size * (uint64_t{1} << warps) * bytes;
  Issue issue;
  issue.rule = "cross_warp_reduction";
  issue.severity = SONDE_SEVERITY_NOTE;
  issue.message = std::string(is_scan ? "The scan" : "The reduction") + " along dim " + std::to_string(dim) +
                  " spans " + std::to_string(uint64_t{1} << warps) + " warps" +
                  (blocks > 0 ? " and " + std::to_string(uint64_t{1} << blocks) + " blocks" : std::string()) +
                  ", so partial results pass through shared memory and a barrier.";
  issue.advice =
      "Where the tile allows it, let warps lie along the other dims (warpsPerCTA 1 along the axis), or use fewer "
      "warps.";
  issue.formula = "some warp or block bit of the operand's layout moves along the axis";
  issue.evidence = {{"warps_on_axis", "1", uint64_t{1} << warps},
                    {"lanes_on_axis", "1", uint64_t{1} << lanes},
                    {"loop_depth", "1", uint64_t{site.loop_depth}}};
  if (site.shared_bytes) issue.evidence.push_back({"shared", "bytes", *site.shared_bytes});
  site.issues.push_back(std::move(issue));
}

void ModuleLint::gather(const ir::Operation &operation, Site &site) {
  const auto operands = module_.operands(operation);
  const auto text = ir::find_attribute(operation.attributes, "axis");
  const int64_t axis = text ? ir::integer_of(*text).value_or(-1) : -1;
  const ir::Type *const source = operands.empty() ? nullptr : module_.type_of(operands[0]);
  const ir::Type *const index = operands.size() < 2 ? nullptr : module_.type_of(operands[1]);
  if (source == nullptr || index == nullptr || axis < 0 || static_cast<size_t>(axis) >= source->shape.size()) {
    site.reason = "the types of source and index or the axis are not written";
    return;
  }
  site.tensor = shape_text(*source);
  site.source = source->encoding;
  site.destination = index->encoding;
  const LayoutOrReason from = layouts_.layout_of(source), at = layouts_.layout_of(index);
  if (from.layout == nullptr || at.layout == nullptr) {
    site.reason = from.layout == nullptr ? from.reason : at.reason;
    return;
  }
  const sonde_dim_t dim = SONDE_DIM_FIRST + static_cast<sonde_dim_t>(axis);
  uint32_t is_warp_local = 0;
  uint64_t shuffles = 0, selects = 0;
  if (layouts_.plans().gather(layouts_.arena(), from.layout, at.layout, dim, stored_bits(source->element_bits),
                              &is_warp_local, &shuffles, &selects) != SONDE_OK) {
    site.reason = layouts_.last_error();
    return;
  }
  site.plan = is_warp_local != 0 ? "warp shuffles" : "through shared memory";
  if (is_warp_local != 0) {
    site.shuffles = shuffles;
  } else {
    site.shared_bytes = bytes_of(*source);
  }
}

}  // namespace sonde::layout_lint
