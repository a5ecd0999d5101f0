#include "addresses.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace sonde::layout_lint {
namespace {

constexpr uint64_t kMost = Addresses::kMost;

uint64_t power_in(int64_t value) {
  if (value == 0) return kMost;
  return std::min(kMost, uint64_t{1} << std::countr_zero(static_cast<uint64_t>(value)));
}

// Powers of two, so the greatest common divisor is the least.
uint64_t common(uint64_t a, uint64_t b) { return std::min(a, b); }
uint64_t times(uint64_t a, uint64_t b) { return a > kMost / b ? kMost : a * b; }
uint64_t power_below(uint64_t size) { return size == 0 ? 1 : std::bit_floor(size); }

std::optional<int64_t> both(std::optional<int64_t> a, std::optional<int64_t> b, auto &&operation) {
  int64_t result = 0;
  if (!a || !b || operation(*a, *b, &result)) return std::nullopt;
  return result;
}
bool add_overflows(int64_t a, int64_t b, int64_t *out) { return __builtin_add_overflow(a, b, out); }
bool subtract_overflows(int64_t a, int64_t b, int64_t *out) { return __builtin_sub_overflow(a, b, out); }
bool multiply_overflows(int64_t a, int64_t b, int64_t *out) { return __builtin_mul_overflow(a, b, out); }

// What divides the elements at multiples of `group`, where groups of the dim's own contiguity may be longer.
uint64_t divisor_at(const DimFact &dim, uint64_t group, uint64_t unit) {
  return dim.contiguity > group ? common(dim.divisibility, times(group, unit)) : dim.divisibility;
}

// What divides every element along the dim.
uint64_t divisor_of_all(const DimFact &dim, uint64_t unit) { return divisor_at(dim, 1, unit); }

// The same shape.
bool is_alike(const Fact &a, const Fact &b) {
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](const DimFact &mine, const DimFact &theirs) { return mine.size == theirs.size; });
}

bool is_pure_elementwise(std::string_view name) { return name.starts_with("arith.") || name.starts_with("math."); }

DimFact fixed(uint64_t size, uint64_t divisibility) {
  DimFact dim;
  dim.size = size;
  dim.divisibility = divisibility;
  dim.constancy = power_below(size);
  dim.stride = 0;
  return dim;
}

// Sums and differences: a + sign * b. `unit` is that of the result.
DimFact sum_dim(const DimFact &a, const DimFact &b, uint64_t unit_a, uint64_t unit_b, uint64_t unit,
                bool is_difference) {
  DimFact dim;
  dim.size = a.size;
  dim.stride = both(a.stride, b.stride, is_difference ? subtract_overflows : add_overflows);
  dim.constancy = common(a.constancy, b.constancy);
  dim.contiguity = common(a.contiguity, b.constancy);
  if (!is_difference) dim.contiguity = std::max(dim.contiguity, common(a.constancy, b.contiguity));
  if (dim.stride && *dim.stride == static_cast<int64_t>(unit)) dim.contiguity = power_below(a.size);
  if (dim.stride && *dim.stride == 0) dim.constancy = power_below(a.size);
  dim.divisibility = common(divisor_at(a, dim.contiguity, unit_a), divisor_at(b, dim.contiguity, unit_b));
  return dim;
}

}  // namespace

bool Fact::is_uniform() const {
  return std::all_of(dims.begin(), dims.end(), [](const DimFact &dim) { return dim.stride && *dim.stride == 0; });
}

Addresses::Addresses(const ir::Module &module) : module_(module) {
  facts_.resize(module.values().size());
  is_known_.resize(module.values().size());
  // Blocks, grouped by operation.
  block_begins_.assign(module.operations().size() + 1, 0);
  for (const ir::Block &block : module.blocks()) ++block_begins_[block.operation + 1];
  for (size_t i = 1; i < block_begins_.size(); ++i) block_begins_[i] += block_begins_[i - 1];
  blocks_.resize(module.blocks().size());
  std::vector<uint32_t> next(block_begins_.begin(), block_begins_.end() - 1);
  for (uint32_t block = 0; block < blocks_.size(); ++block) blocks_[next[module.blocks()[block].operation]++] = block;
  for (int passes = 0;; ++passes) {
    has_changed_ = false;
    pass(passes >= kMostPasses);
    if (!has_changed_) break;
  }
  for (uint32_t value = 0; value < facts_.size(); ++value) {
    if (!is_known_[value]) facts_[value] = unknown_of(value);
  }
}

Fact Addresses::unknown_of(uint32_t value, uint32_t lost_at) const {
  Fact fact;
  const ir::Type *const type = module_.type_of(value);
  fact.lost_at = lost_at;
  if (type == nullptr) {
    fact.dims.emplace_back().size = 0;  // as no other value has
    return fact;
  }
  if (type->pointee_bits != 0) fact.unit = std::max(1u, type->pointee_bits / 8);
  for (const int64_t size : type->shape) {
    DimFact dim;
    dim.size = size < 0 ? 0 : static_cast<uint64_t>(size);
    if (size == 1) dim.stride = 0;
    fact.dims.push_back(dim);
  }
  if (type->shape.empty()) fact.dims.push_back(fixed(1, 1));
  return fact;
}

void Addresses::set(uint32_t value, Fact fact) {
  // A module may be inconsistent; a fact always has the dims of its value's type.
  const ir::Type *const type = module_.type_of(value);
  const size_t rank = type == nullptr || type->shape.empty() ? 1 : type->shape.size();
  facts_[value] = fact.dims.size() == rank ? std::move(fact) : unknown_of(value, fact.lost_at);
  is_known_[value] = true;
}

// A value with several origins is what all of them are.
void Addresses::meet(uint32_t value, const Fact &other, bool gives_up) {
  if (!is_known_[value]) {
    set(value, other);
    has_changed_ = true;
    return;
  }
  Fact &fact = facts_[value];
  bool changed = false;
  const auto lower = [&](uint64_t &mine, uint64_t theirs) {
    if (theirs < mine) {
      mine = theirs;
      changed = true;
    }
  };
  if (fact.dims.size() != other.dims.size()) return;
  for (size_t i = 0; i < fact.dims.size(); ++i) {
    DimFact &mine = fact.dims[i];
    const DimFact &theirs = other.dims[i];
    const uint64_t contiguity = common(mine.contiguity, theirs.contiguity);
    lower(mine.divisibility,
          common(divisor_at(mine, contiguity, fact.unit), divisor_at(theirs, contiguity, fact.unit)));
    lower(mine.contiguity, contiguity);
    lower(mine.constancy, theirs.constancy);
    if (mine.stride && mine.stride != theirs.stride) {
      mine.stride.reset();
      changed = true;
    }
  }
  if (fact.constant && fact.constant != other.constant) {
    fact.constant.reset();
    changed = true;
  }
  if (changed) {
    has_changed_ = true;
    if (fact.lost_at == ir::kNone) fact.lost_at = other.lost_at;
    if (gives_up) fact = unknown_of(value, fact.lost_at);
  }
}

void Addresses::pass(bool gives_up) {
  gives_up_ = gives_up;
  for (uint32_t index = 0; index < module_.operations().size(); ++index) visit(index);
}

void Addresses::visit(uint32_t index) {
  const ir::Operation &operation = module_.operation(index);
  const auto operands = module_.operands(operation);
  const auto results = module_.results(operation);
  const std::string_view name = operation.name;

  for (const uint32_t operand : operands) {
    if (!is_known_[operand]) set(operand, unknown_of(operand));
  }
  if (name == "scf.yield" && operation.parent != ir::kNone) {
    const ir::Operation &parent = module_.operation(operation.parent);
    const auto outer = module_.results(parent);
    const bool is_for = parent.name == "scf.for";
    if (is_for || parent.name == "scf.if") {
      for (size_t i = 0; i < operands.size() && i < outer.size(); ++i) {
        meet(outer[i], facts_[operands[i]], gives_up_);
        if (!is_for) continue;
        const ir::Block &block = module_.blocks()[operation.block];
        if (i + 1 < block.argument_count) {
          meet(block.first_argument + static_cast<uint32_t>(i) + 1, facts_[operands[i]], gives_up_);
        }
      }
    }
  }
  // Arguments of the regions that begin here; those of a loop's body are met again at its yield.
  if (operation.region_count != 0) {
    for (uint32_t at = block_begins_[index]; at < block_begins_[index + 1]; ++at) {
      const ir::Block &block = module_.blocks()[blocks_[at]];
      for (uint32_t i = 0; i < block.argument_count; ++i) {
        const uint32_t argument = block.first_argument + i;
        const ir::Value &value = module_.value(argument);
        if (name == "scf.for" && i > 0 && value.initial != ir::kNone) {
          meet(argument, facts_[value.initial], gives_up_);
        } else if (!is_known_[argument]) {
          Fact fact = unknown_of(argument);
          apply_hints(value.attributes, fact);
          if (name == "scf.for" && i == 0 && operands.size() >= 3) {
            fact.dims[0].divisibility =
                common(divisor_of_all(facts_[operands[0]].dims[0], 1), divisor_of_all(facts_[operands[2]].dims[0], 1));
          }
          set(argument, std::move(fact));
        }
      }
    }
    if (name == "scf.for") {
      for (size_t i = 0; i < results.size(); ++i) {
        if (i + 3 < operands.size()) meet(results[i], facts_[operands[i + 3]], gives_up_);
      }
    }
    if (name == "scf.for" || name == "scf.if") return;
  }
  if (results.empty()) return;
  for (size_t i = 1; i < results.size(); ++i) set(results[i], unknown_of(results[i], index));
  Fact fact = result_of(operation);
  apply_hints(operation.attributes, fact);
  set(results[0], std::move(fact));
}

void Addresses::apply_hints(std::string_view attributes, Fact &fact) const {
  if (attributes.empty()) return;
  const auto apply = [&](std::string_view name, uint64_t DimFact::*member) {
    const auto text = ir::find_attribute(attributes, name);
    if (!text) return;
    std::optional<std::vector<int64_t>> numbers = ir::dense_integers_of(*text);
    if (!numbers) {
      const auto number = ir::integer_of(*text);
      if (!number) return;
      numbers = std::vector<int64_t>{*number};
    }
    for (size_t i = 0; i < fact.dims.size(); ++i) {
      const int64_t number = numbers->size() == 1 ? numbers->front() : i < numbers->size() ? (*numbers)[i] : 1;
      if (number > 0) fact.dims[i].*member = power_in(number);
    }
  };
  apply("tt.divisibility", &DimFact::divisibility);
  apply("tt.contiguity", &DimFact::contiguity);
  apply("tt.constancy", &DimFact::constancy);
  for (DimFact &dim : fact.dims) {
    if (dim.size > 1 && dim.contiguity >= dim.size) dim.stride = static_cast<int64_t>(fact.unit);
  }
}

Fact Addresses::result_of(const ir::Operation &operation) {
  const auto operands = module_.operands(operation);
  const uint32_t result = module_.results(operation)[0];
  const auto index = static_cast<uint32_t>(&operation - module_.operations().data());
  const std::string_view name = operation.name;
  Fact fact = unknown_of(result, index);
  const auto fill = [&](uint64_t divisibility) {
    for (DimFact &dim : fact.dims) dim = fixed(dim.size, divisibility);
    fact.lost_at = ir::kNone;
  };

  if (name == "arith.constant") {
    const size_t begin = operation.text.find(name) + name.size();
    std::string_view text = operation.text.substr(begin);
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (const auto numbers = ir::dense_integers_of(text); numbers && numbers->size() == 1) {
      fact.constant = numbers->front();
    } else if (!text.starts_with("dense")) {
      if (const size_t space = text.find(' '); space != std::string_view::npos) text = text.substr(0, space);
      fact.constant = ir::integer_of(text);
    }
    if (fact.constant) {
      fill(power_in(*fact.constant));
    } else if (text.starts_with("dense<") && !text.starts_with("dense<[") && !text.starts_with("dense<\"")) {
      fill(1);  // a number that is no integer, everywhere
    }
    return fact;
  }
  if (name == "tt.make_range") {
    const auto start = ir::find_attribute(operation.attributes, "start");
    const auto first = start ? ir::integer_of(*start) : std::nullopt;
    DimFact &dim = fact.dims[0];
    dim.contiguity = power_below(dim.size);
    dim.divisibility = first ? power_in(*first) : 1;
    dim.stride = dim.size == 1 ? 0 : 1;
    fact.lost_at = ir::kNone;
    return fact;
  }
  if (operands.empty()) return fact;
  const Fact &first = facts_[operands[0]];

  if (name == "tt.splat") {
    fill(divisor_of_all(first.dims[0], first.unit));
    fact.constant = first.constant;
    fact.unit = first.unit;
    return fact;
  }
  if (name == "tt.expand_dims") {
    const auto text = ir::find_attribute(operation.attributes, "axis");
    const auto axis = text ? ir::integer_of(*text) : std::nullopt;
    if (!axis || *axis < 0 || static_cast<size_t>(*axis) > first.dims.size()) return fact;
    uint64_t divisibility = kMost;
    for (const DimFact &dim : first.dims) divisibility = common(divisibility, divisor_of_all(dim, first.unit));
    fact.dims = first.dims;
    fact.dims.insert(fact.dims.begin() + *axis, fixed(1, divisibility));
    fact.constant = first.constant;
    fact.lost_at = first.lost_at;
    return fact;
  }
  if (name == "tt.broadcast") {
    if (first.dims.size() != fact.dims.size()) return fact;
    for (size_t i = 0; i < fact.dims.size(); ++i) {
      const uint64_t size = fact.dims[i].size;
      fact.dims[i] =
          first.dims[i].size == size ? first.dims[i] : fixed(size, divisor_of_all(first.dims[i], first.unit));
    }
    fact.constant = first.constant;
    fact.lost_at = first.lost_at;
    return fact;
  }
  if (name == "ttg.convert_layout" || name == "arith.extsi" || name == "arith.extui" || name == "arith.index_cast" ||
      name == "arith.trunci" || (name == "tt.bitcast" && first.unit == fact.unit)) {
    Fact copy = first;
    copy.unit = fact.unit;
    return copy;
  }
  if (name == "tt.trans") {
    const auto text = ir::find_attribute(operation.attributes, "order");
    const std::string_view list = text.value_or("");
    const size_t open = list.find(':'), close = list.rfind('>');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return fact;
    const auto order = ir::dense_integers_of("dense<[" + std::string(list.substr(open + 1, close - open - 1)) + "]>");
    if (!order || order->size() != fact.dims.size() || first.dims.size() != fact.dims.size()) return fact;
    for (size_t i = 0; i < fact.dims.size(); ++i) {
      const int64_t from = (*order)[i];
      if (from < 0 || static_cast<size_t>(from) >= first.dims.size()) return unknown_of(result, index);
      fact.dims[i] = first.dims[static_cast<size_t>(from)];
    }
    fact.lost_at = first.lost_at;
    return fact;
  }
  if (name == "tt.load") {
    // Equal addresses give equal values.
    if (is_alike(first, fact)) {
      for (size_t i = 0; i < fact.dims.size(); ++i) {
        fact.dims[i].constancy = first.dims[i].constancy;
        if (first.dims[i].stride && *first.dims[i].stride == 0) fact.dims[i].stride = 0;
        for (size_t other = 1; other < operands.size(); ++other) {
          const Fact &mask = facts_[operands[other]];
          if (!is_alike(mask, fact)) continue;
          fact.dims[i].constancy = common(fact.dims[i].constancy, mask.dims[i].constancy);
          if (!mask.dims[i].stride || *mask.dims[i].stride != 0) {
            fact.dims[i].stride = fact.dims[i].size == 1 ? std::optional<int64_t>(0) : std::nullopt;
          }
        }
      }
    }
    return fact;
  }
  if (name == "tt.addptr" || is_pure_elementwise(name)) return arithmetic(operation, std::move(fact));
  return fact;
}

Fact Addresses::arithmetic(const ir::Operation &operation, Fact fact) const {
  const auto operands = module_.operands(operation);
  const std::string_view name = operation.name;
  const size_t rank = fact.dims.size();
  for (const uint32_t operand : operands) {
    // Such as a scalar condition of a tensor's select.
    if (!is_alike(facts_[operand], fact)) return fact;
  }
  const Fact &a = facts_[operands[0]];
  // What any function of the elements keeps: equal inputs give equal outputs.
  uint32_t lost_at = ir::kNone;
  for (const uint32_t operand : operands) {
    if (facts_[operand].lost_at != ir::kNone && lost_at == ir::kNone) lost_at = facts_[operand].lost_at;
  }
  for (size_t i = 0; i < rank; ++i) {
    uint64_t constancy = kMost;
    bool is_fixed = true;
    for (const uint32_t operand : operands) {
      const DimFact &dim = facts_[operand].dims[i];
      constancy = common(constancy, dim.constancy);
      is_fixed = is_fixed && dim.stride && *dim.stride == 0;
    }
    fact.dims[i].constancy = constancy;
    if (is_fixed) fact.dims[i].stride = 0;
  }
  const uint32_t own_loss = lost_at != ir::kNone ? lost_at : fact.lost_at;
  fact.lost_at = fact.is_uniform() ? lost_at : own_loss;
  if (operands.size() == 3 && name == "arith.select") {
    const Fact &b = facts_[operands[1]], &c = facts_[operands[2]];
    for (size_t i = 0; i < rank; ++i) {
      DimFact &dim = fact.dims[i];
      dim.contiguity = common(common(b.dims[i].contiguity, c.dims[i].contiguity), a.dims[i].constancy);
      dim.divisibility =
          common(divisor_at(b.dims[i], dim.contiguity, b.unit), divisor_at(c.dims[i], dim.contiguity, c.unit));
      const bool is_fixed = a.dims[i].stride && *a.dims[i].stride == 0;
      if (is_fixed && b.dims[i].stride && b.dims[i].stride == c.dims[i].stride) dim.stride = b.dims[i].stride;
    }
    return fact;
  }
  if (operands.size() != 2) return fact;
  const Fact &b = facts_[operands[1]];

  if (name == "tt.addptr" || name == "arith.addi" || name == "arith.subi") {
    // Offsets of pointers count elements.
    Fact offset = b;
    if (name == "tt.addptr") {
      for (DimFact &dim : offset.dims) {
        dim.divisibility = times(dim.divisibility, a.unit);
        dim.stride = both(dim.stride, static_cast<int64_t>(a.unit), multiply_overflows);
      }
      offset.unit = a.unit;
    }
    fact.unit = a.unit;
    for (size_t i = 0; i < rank; ++i) {
      fact.dims[i] = sum_dim(a.dims[i], offset.dims[i], a.unit, offset.unit, fact.unit, name == "arith.subi");
    }
    if (name != "tt.addptr") {
      fact.constant = both(a.constant, b.constant, name == "arith.subi" ? subtract_overflows : add_overflows);
    }
    fact.lost_at = lost_at;
    return fact;
  }
  if (name == "arith.shli" && b.constant && *b.constant >= 0 && *b.constant < 40) {
    const uint64_t factor = uint64_t{1} << *b.constant;
    for (size_t i = 0; i < rank; ++i) {
      fact.dims[i].divisibility = times(divisor_of_all(a.dims[i], 1), factor);
      if (!fact.dims[i].stride) {
        fact.dims[i].stride = both(a.dims[i].stride, static_cast<int64_t>(factor), multiply_overflows);
      }
    }
    fact.lost_at = lost_at;
    return fact;
  }
  if (name == "arith.muli") {
    fact.constant = both(a.constant, b.constant, multiply_overflows);
    for (size_t i = 0; i < rank; ++i) {
      DimFact &dim = fact.dims[i];
      if (a.constant && *a.constant == 1) {
        dim = b.dims[i];
      } else if (b.constant && *b.constant == 1) {
        dim = a.dims[i];
      } else {
        dim.divisibility = times(divisor_of_all(a.dims[i], 1), divisor_of_all(b.dims[i], 1));
        if (b.constant && a.dims[i].stride) dim.stride = both(a.dims[i].stride, b.constant, multiply_overflows);
        if (a.constant && b.dims[i].stride) dim.stride = both(b.dims[i].stride, a.constant, multiply_overflows);
      }
    }
    if (a.constant || b.constant) fact.lost_at = lost_at;
    return fact;
  }
  if (name == "arith.divsi" || name == "arith.divui") {
    for (size_t i = 0; i < rank; ++i) {
      DimFact &dim = fact.dims[i];
      const DimFact &over = a.dims[i];
      if (b.constant && *b.constant == 1) {
        dim = over;
        continue;
      }
      // Groups that begin at multiples of the divisor's powers of two have one quotient.
      if (b.constant && *b.constant > 0) {
        const uint64_t power = power_in(*b.constant);
        dim.constancy = std::max(dim.constancy, common(common(over.contiguity, over.divisibility), power));
        const uint64_t divisor = divisor_of_all(over, 1);
        if (std::has_single_bit(static_cast<uint64_t>(*b.constant)) && divisor > power && divisor < kMost) {
          dim.divisibility = divisor / power;
        }
        if (dim.constancy >= dim.size) dim.stride = 0;
      }
    }
    return fact;
  }
  if (name == "arith.remsi" || name == "arith.remui") {
    for (size_t i = 0; i < rank; ++i) {
      DimFact &dim = fact.dims[i];
      if (b.dims[i].constancy < b.dims[i].size) continue;
      dim.contiguity = common(a.dims[i].contiguity, common(a.dims[i].divisibility, b.dims[i].divisibility));
      dim.divisibility = common(divisor_at(a.dims[i], dim.contiguity, 1), b.dims[i].divisibility);
      if (dim.contiguity >= dim.size && dim.size > 1) dim.stride = 1;
    }
    return fact;
  }
  if (name == "arith.cmpi") {
    // Groups beginning at a multiple of their length lie on one side of a bound that is such a multiple too.
    const std::string_view text = operation.text;
    const auto is = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
    const bool below = is("cmpi slt,") || is("cmpi sge,") || is("cmpi ult,") || is("cmpi uge,");
    const bool above = is("cmpi sgt,") || is("cmpi sle,") || is("cmpi ugt,") || is("cmpi ule,");
    for (size_t i = 0; i < rank; ++i) {
      const DimFact &range = below ? a.dims[i] : b.dims[i];
      const DimFact &bound = below ? b.dims[i] : a.dims[i];
      if ((!below && !above) || bound.constancy < bound.size) continue;
      const uint64_t group = common(range.contiguity, common(range.divisibility, bound.divisibility));
      fact.dims[i].constancy = std::max(fact.dims[i].constancy, group);
    }
    return fact;
  }
  if (name == "arith.minsi" || name == "arith.maxsi" || name == "arith.minui" || name == "arith.maxui") {
    for (size_t i = 0; i < rank; ++i) {
      fact.dims[i].divisibility = common(divisor_of_all(a.dims[i], 1), divisor_of_all(b.dims[i], 1));
    }
    return fact;
  }
  if (name == "arith.andi" && (a.constant || b.constant)) {
    const int64_t mask = a.constant ? *a.constant : *b.constant;
    for (DimFact &dim : fact.dims) dim.divisibility = power_in(mask);
  }
  return fact;
}

}  // namespace sonde::layout_lint
