#include "module_lint.h"

#include <algorithm>
#include <bit>

namespace sonde::layout_lint {
namespace {

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

bool is_tensor_memory(std::string_view name) { return name.starts_with("ttng.tmem_"); }
bool is_buffer_access(std::string_view name) {
  return name.find(".buffer_load") != std::string_view::npos || name.find(".buffer_store") != std::string_view::npos ||
         name.find(".buffer_atomic") != std::string_view::npos;
}

}  // namespace

std::string shape_text(const ir::Type &type) {
  std::string text;
  for (const int64_t size : type.shape) text += (size < 0 ? "?" : std::to_string(size)) + "x";
  return text + std::string(type.pointee.empty() ? type.element : type.pointee);
}

uint32_t stored_bits(uint32_t element_bits) { return element_bits == 1 ? 8 : element_bits; }

uint64_t bytes_of(const ir::Type &type) { return type.elements() * stored_bits(type.element_bits) / 8; }

uint32_t severity_in(const Site &site) { return site.loop_depth > 0 ? SONDE_SEVERITY_WARNING : SONDE_SEVERITY_NOTE; }

void looked_at(Site &site, const char *rule) {
  if (std::find(site.looked.begin(), site.looked.end(), rule) == site.looked.end()) site.looked.emplace_back(rule);
}

Target target_of(const ir::Module &module, const Options &options) {
  Target target;
  for (const ir::Operation &operation : module.operations()) {
    if (operation.name != "module") continue;
    if (const auto name = ir::find_attribute(operation.attributes, "ttg.target")) {
      target.name = unquoted(*name);
      break;
    }
  }
  constexpr std::string_view kCuda = "cuda:";
  int64_t capability = 0;
  if (target.name.starts_with(kCuda)) {
    capability = ir::integer_of(std::string_view(target.name).substr(kCuda.size())).value_or(0);
  }
  target.has_load_matrix = capability >= 75;
  target.has_store_matrix = capability >= 90;
  if (options.matrix_instructions != "auto") {
    target.has_load_matrix = target.has_store_matrix = options.matrix_instructions == "on";
  }
  if (target.name.find("gfx950") != std::string::npos) target.banks = 64;
  if (options.banks > 0) target.banks = std::bit_floor(static_cast<uint32_t>(options.banks));
  return target;
}

ModuleLint::ModuleLint(const Host &host, const Options &options, std::string path, const ir::Module &module)
    : host_(host),
      options_(options),
      path_(std::move(path)),
      module_(module),
      target_(target_of(module, options)),
      layouts_(host, module),
      addresses_(module) {}

std::vector<Site> ModuleLint::run() {
  std::vector<Site> sites;
  for (const ir::Operation &operation : module_.operations()) {
    Site site = new_site(operation);
    if (!visit(operation, site)) continue;
    if (site.plan.empty() && site.reason.empty()) site.reason = "the operation has a form that is not known here";
    sites.push_back(std::move(site));
    layouts_.reset();
  }
  return sites;
}

Site ModuleLint::new_site(const ir::Operation &operation) const {
  Site site;
  site.path = path_;
  site.ir_line = operation.place.line;
  std::string_view file;
  if (operation.function != ir::kNone) {
    const ir::Operation &function = module_.operation(operation.function);
    site.kernel = function.symbol;
    file = module_.location_of(function).file;
  }
  // Of a chain of inlined calls, the line in the kernel's own file is the one that its author can change.
  const ir::Location location = module_.location_of(operation, file);
  site.file = location.file;
  site.line = location.line;
  site.column = location.column;
  site.variable = location.name;
  site.call_path = module_.call_path(operation);
  site.operation = operation.name;
  site.loop_depth = operation.loop_depth;
  return site;
}

bool ModuleLint::visit(const ir::Operation &operation, Site &site) {
  const std::string_view name = operation.name;
  const auto operands = module_.operands(operation);
  const auto results = module_.results(operation);
  const auto operand_type = [&](size_t i) { return i < operands.size() ? module_.type_of(operands[i]) : nullptr; };
  const ir::Type *const result_type = results.empty() ? nullptr : module_.type_of(results[0]);

  if (name == "ttg.convert_layout") {
    conversion(operation, site);
  } else if (name == "ttg.local_load") {
    local_access(operation, result_type, operand_type(0), false, site);
  } else if (name == "ttg.local_store") {
    local_access(operation, operand_type(0), operand_type(1), true, site);
  } else if (name == "ttg.local_alloc") {
    if (operands.empty()) return false;  // room without an initial value
    local_access(operation, operand_type(0), result_type, true, site);
  } else if (name == "tt.load" || name == "tt.store" || name.starts_with("tt.atomic_")) {
    global(operation, site);
  } else if (name == "ttg.async_copy_global_to_local") {
    asynchronous_copy(operation, site);
  } else if ((name.starts_with("tt.descriptor_") || name.starts_with("ttng.async_tma_")) && !name.ends_with("_wait")) {
    hardware_copy(operation, site);
  } else if (name == "tt.dot" || name == "tt.dot_scaled" || name == "ttng.warp_group_dot" ||
             name.starts_with("ttng.tc_gen5_mma")) {
    product(operation, site);
  } else if (name == "tt.reduce" || name == "tt.scan") {
    reduction(operation, site);
  } else if (name == "tt.gather") {
    gather(operation, site);
  } else if (is_tensor_memory(name)) {
    site.reason = "accesses to tensor memory are not analysed";
  } else if (is_buffer_access(name)) {
    site.reason = "buffer accesses are not analysed: their addresses are a resource and offsets";
  } else if (name == "ttg.local_gather" || name == "ttg.local_scatter" || name == "tt.histogram") {
    site.reason = "the addresses in shared memory depend on the data";
  } else {
    return false;
  }
  return true;
}

}  // namespace sonde::layout_lint
