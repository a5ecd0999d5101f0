#include "layout/gather.h"

#include <algorithm>

#include "layout/algebra.h"
#include "layout/analysis.h"
#include "layout/matrix.h"

namespace sonde::layout {
namespace {

constexpr DimName kAbove[] = {dim::kWarp, dim::kBlock};
constexpr uint32_t kMostBits = 24;

bool leaves_warp(Arena &arena, const std::string &why) {
  arena.fail(Fault::kNoSolution, "gather: it does not stay within a warp: " + why);
  return false;
}

std::span<const uint64_t> columns(const Layout &layout, DimName name) {
  const Dim *const in = layout.find_in(name);
  return in == nullptr ? std::span<const uint64_t>{} : layout.columns_of(*in);
}

bool check_side(Arena &arena, const Layout &layout, DimName axis, const char *what) {
  for (const Dim &in : layout.ins()) {
    const bool known =
        in.name == dim::kRegister || in.name == dim::kLane || in.name == dim::kWarp || in.name == dim::kBlock;
    if (!known && in.bits != 0) {
      arena.fail(Fault::kInvalid, std::string("gather: the ") + what + " has the in dim " +
                                      std::string(dim_text(in.name)) + "; register, lane, warp and block are expected");
      return false;
    }
  }
  if (layout.find_out(axis) == nullptr) {
    arena.fail(Fault::kInvalid, std::string("gather: the ") + what + " has no out dim " + std::string(dim_text(axis)));
    return false;
  }
  return true;
}

}  // namespace

bool plan_gather(Arena &arena, const Layout &source, const Layout &index, DimName axis, uint32_t bits_per_element,
                 GatherPlan &out) {
  if (!check_side(arena, source, axis, "source") || !check_side(arena, index, axis, "index")) return false;
  if (source.offset() != 0 || index.offset() != 0) {
    arena.fail(Fault::kUnsupported, "gather: layouts with an offset");
    return false;
  }
  bool same_outs = source.outs().size() == index.outs().size();
  for (size_t i = 0; same_outs && i < source.outs().size(); ++i) {
    const Dim &a = source.outs()[i];
    const Dim &b = index.outs()[i];
    same_outs = a.name == b.name && (a.bits == b.bits || a.name == axis);
  }
  if (!same_outs) {
    arena.fail(Fault::kInvalid, "gather: the out dims " + describe(source.outs()) + " and " + describe(index.outs()) +
                                    " differ in more than the axis");
    return false;
  }
  // A value of the index's outs on the source's, without the axis.
  const auto column_of = [&](const Layout &side, uint64_t value) {
    uint64_t moved = 0;
    for (size_t i = 0; i < side.outs().size(); ++i) {
      if (side.outs()[i].name != axis) moved |= source.outs()[i].at(side.outs()[i].of(value));
    }
    return moved;
  };
  for (const DimName name : kAbove) {
    for (const Layout *side : {&source, &index}) {
      for (const uint64_t value : columns(*side, name)) {
        if (side->find_out(axis)->of(value) != 0) {
          return leaves_warp(arena, std::string(side == &source ? "the source's " : "the index's ") +
                                        std::string(dim_text(name)) + " reaches along the axis");
        }
      }
    }
  }
  for (const DimName name : {dim::kLane, dim::kWarp, dim::kBlock}) {
    const auto of_source = columns(source, name);
    const auto of_index = columns(index, name);
    bool same = of_source.size() == of_index.size();
    for (size_t i = 0; same && i < of_source.size(); ++i) {
      same = column_of(source, of_source[i]) == column_of(index, of_index[i]);
    }
    if (!same) {
      return leaves_warp(
          arena, "source and index have different " + std::string(dim_text(name)) + "s on the dims beside the axis");
    }
  }

  // Who holds an element: the source's warps and blocks are the asker's, so its registers and lanes need to make up only
  // what the asker's register and lane, and the index, name.
  const Dim *const registers = source.find_in(dim::kRegister);
  const Dim *const lanes = source.find_in(dim::kLane);
  const uint32_t register_bits = registers == nullptr ? 0 : registers->bits;
  const uint32_t lane_bits = lanes == nullptr ? 0 : lanes->bits;
  Elimination held;
  uint32_t number = 0;
  for (const uint64_t value : columns(source, dim::kRegister)) held.add(value, number++);
  for (const uint64_t value : columns(source, dim::kLane)) held.add(value, number++);

  std::vector<DimSize> ins;
  std::vector<uint64_t> holder;
  const auto solve = [&](uint64_t value, uint64_t &solution) {
    if (held.solve(value, solution)) return true;
    return leaves_warp(arena, "the source's registers and lanes do not hold " + describe_point(source.outs(), value));
  };
  for (const Dim &in : index.ins()) {
    ins.push_back({in.name, in.bits});
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      uint64_t solution = 0;
      if (in.name == dim::kRegister) {
        if (!solve(column_of(index, index.columns_of(in)[bit]), solution)) return false;
      } else if (in.name == dim::kLane) {
        // The column that this lane bit names; what the source's lane reaches along the axis is left to the index.
        if (!solve(column_of(source, columns(source, dim::kLane)[bit]), solution)) return false;
      }
      if (in.name == dim::kLane && (solution & low_mask(register_bits)) != 0) {
        arena.fail(Fault::kUnsupported, "gather: the register that holds an element depends on the asking lane");
        return false;
      }
      holder.push_back(solution);
    }
  }
  const Dim &axis_dim = *source.find_out(axis);
  ins.push_back({axis, axis_dim.bits});
  Elimination candidates;
  for (uint32_t bit = 0; bit < axis_dim.bits; ++bit) {
    uint64_t solution = 0;
    if (!solve(axis_dim.at(uint64_t{1} << bit), solution)) return false;
    holder.push_back(solution);
    candidates.add(solution & low_mask(register_bits));
  }
  const std::vector<DimSize> outs = {{dim::kRegister, register_bits}, {dim::kLane, lane_bits}};
  out = {};
  out.holder = make_layout(arena, ins, outs, holder);
  if (out.holder == nullptr) return false;
  out.source = &source;
  out.index = &index;
  out.axis = axis;
  out.candidates = uint64_t{1} << candidates.rank();
  const Dim *const asking = index.find_in(dim::kRegister);
  const uint64_t words = std::max<uint64_t>(1, bits_per_element / 32);
  const uint64_t asked = uint64_t{1} << (asking == nullptr ? 0 : asking->bits);
  out.shuffles = asked * out.candidates * words;
  out.selects = asked * (out.candidates - 1) * words;
  for (const uint64_t value : columns(source, dim::kLane)) {
    if (axis_dim.of(value) != 0) out.rounds *= 2;
  }
  return true;
}

bool execute_gather(Arena &arena, const GatherPlan &plan, std::span<const uint64_t> data,
                    std::span<const uint64_t> indices, std::vector<uint64_t> &out, uint64_t *shuffles) {
  const Layout &source = *plan.source;
  const Layout &index = *plan.index;
  if (source.in_bits() > kMostBits || index.in_bits() > kMostBits) {
    arena.fail(Fault::kUnsupported, "gather: more than 2^24 values");
    return false;
  }
  if (data.size() != uint64_t{1} << source.in_bits() || indices.size() != uint64_t{1} << index.in_bits()) {
    arena.fail(Fault::kInvalid, "gather: one value for each input of the source and of the index is expected");
    return false;
  }
  const Dim &axis = *plan.holder->find_in(plan.axis);
  for (const uint64_t value : indices) {
    if ((value & ~low_mask(axis.bits)) != 0) {
      arena.fail(Fault::kInvalid, "gather: the index " + std::to_string(value) + " lies past the axis");
      return false;
    }
  }
  const Dim *const asking_register = index.find_in(dim::kRegister);
  const Dim *const asking_lane = index.find_in(dim::kLane);
  const uint64_t register_mask = asking_register == nullptr ? 0 : asking_register->mask();
  const uint64_t lane_mask = asking_lane == nullptr ? 0 : asking_lane->mask();
  const uint64_t warp_mask = low_mask(index.in_bits()) & ~register_mask & ~lane_mask;
  const Dim &held_register = plan.holder->outs()[0];
  const Dim &held_lane = plan.holder->outs()[1];
  const auto place_in_source = [&](uint64_t reg, uint64_t lane, uint64_t asking) {
    uint64_t flat = 0;
    for (const Dim &in : source.ins()) {
      if (in.name == dim::kRegister) {
        flat |= in.at(reg);
      } else if (in.name == dim::kLane) {
        flat |= in.at(lane);
      } else if (const Dim *const own = index.find_in(in.name)) {
        flat |= in.at(own->of(asking));
      }
    }
    return flat;
  };

  // Registers that the axis can reach, as differences.
  std::vector<uint64_t> candidates = {0};
  for (const uint64_t column : plan.holder->columns_of(axis)) {
    const uint64_t difference = held_register.of(column);
    if (std::find(candidates.begin(), candidates.end(), difference) != candidates.end()) continue;
    const size_t before = candidates.size();
    for (size_t i = 0; i < before; ++i) candidates.push_back(candidates[i] ^ difference);
  }
  out.assign(indices.size(), 0);
  std::vector<uint64_t> offered(uint64_t{1} << held_lane.bits);
  uint64_t count = 0;
  uint64_t warp = 0;
  do {
    count = 0;
    uint64_t reg = 0;
    do {
      const uint64_t first = held_register.of(plan.holder->apply(reg));  // of lane 0 and index 0, so of every lane
      for (const uint64_t difference : candidates) {
        const uint64_t named = first ^ difference;
        for (uint64_t lane = 0; lane < offered.size(); ++lane) {
          offered[lane] = data[place_in_source(named, lane, warp)];
        }
        ++count;
        uint64_t lane = 0;
        do {
          const uint64_t asking = reg | lane | warp;
          const uint64_t holder = plan.holder->apply(asking | axis.at(indices[asking]));
          const uint64_t received = offered[held_lane.of(holder)];
          if (held_register.of(holder) == named) out[asking] = received;  // the select
          lane = (lane - lane_mask) & lane_mask;
        } while (lane != 0);
      }
      reg = (reg - register_mask) & register_mask;
    } while (reg != 0);
    warp = (warp - warp_mask) & warp_mask;
  } while (warp != 0);
  if (shuffles != nullptr) *shuffles = count;
  return true;
}

namespace {

// Elements of one access with K fastest, the others behind it.
uint64_t vector_along(Arena &arena, const Layout &layout, DimName k, uint32_t bits, uint32_t most_bits) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < layout.outs().size(); ++i) {
    if (layout.outs()[i].name == k)
      order.insert(order.begin(), i);
    else
      order.push_back(i);
  }
  const Layout *const offsets = memory_offsets(arena, layout, order);
  if (offsets == nullptr) return 0;
  return std::min(vector_elements(*offsets, bits, most_bits), uint64_t{1} << layout.find_out(k)->bits);
}

const Layout *permuted(Arena &arena, const Layout &layout, const Dim &k, const uint8_t *to) {
  auto *const result = const_cast<Layout *>(copy_layout(arena, layout));
  if (result == nullptr) return nullptr;
  const auto move = [&](uint64_t value) {
    uint64_t moved = value & ~k.mask();
    for (uint32_t bit = 0; bit < k.bits; ++bit) moved |= k.at((k.of(value) >> bit & 1) << to[bit]);
    return moved;
  };
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) result->mutable_columns()[bit] = move(layout.columns()[bit]);
  result->set_offset(move(layout.offset()));
  return result;
}

}  // namespace

bool plan_dot_shuffle(Arena &arena, const DotOperand &narrow, const DotOperand &wide, uint32_t most_vector_bits,
                      DotShuffle &out) {
  const Dim *const k = narrow.layout->find_out(narrow.k);
  const Dim *const other_k = wide.layout->find_out(wide.k);
  if (k == nullptr || other_k == nullptr || k->bits != other_k->bits) {
    arena.fail(Fault::kInvalid, "dot shuffle: both operands need a K dim of the same size");
    return false;
  }
  if (!is_power_of_two(narrow.bits_per_element) || !is_power_of_two(wide.bits_per_element) ||
      std::max(narrow.bits_per_element, wide.bits_per_element) > 128) {
    arena.fail(Fault::kInvalid, "dot shuffle: elements must have a power of two of bits, at most 128");
    return false;
  }
  // The K bits that the narrow operand's registers hold come first, in the registers' order; the others keep theirs.
  uint64_t first = 0;
  uint8_t to[kMaxBits];
  uint32_t next = 0;
  for (const uint64_t column : columns(*narrow.layout, dim::kRegister)) {
    const uint64_t along = k->of(column);
    if (along == 0) continue;
    if ((column & ~k->mask()) != 0 || !is_power_of_two(along)) {
      arena.fail(Fault::kUnsupported, "dot shuffle: a register's K bit is mixed with others");
      return false;
    }
    if ((first & along) != 0) continue;
    first |= along;
    to[lowest_bit(along)] = static_cast<uint8_t>(next++);
  }
  for (uint32_t bit = 0; bit < k->bits; ++bit) {
    if ((first >> bit & 1) == 0) to[bit] = static_cast<uint8_t>(next++);
  }

  out = {};
  const auto width = [&](const Layout &layout, const DotOperand &operand) {
    return vector_along(arena, layout, operand.k, operand.bits_per_element, most_vector_bits);
  };
  out.narrow_before = width(*narrow.layout, narrow);
  out.wide_before = width(*wide.layout, wide);
  const Layout *const candidate = permuted(arena, *narrow.layout, *k, to);
  if (candidate == nullptr) return false;
  out.narrow_after = width(*candidate, narrow);
  if (out.narrow_after <= out.narrow_before) {
    for (uint32_t bit = 0; bit < k->bits; ++bit) to[bit] = static_cast<uint8_t>(bit);
  }
  out.narrow = permuted(arena, *narrow.layout, *k, to);
  out.wide = permuted(arena, *wide.layout, *other_k, to);
  if (out.narrow == nullptr || out.wide == nullptr) return false;
  out.narrow_after = width(*out.narrow, narrow);
  out.wide_after = width(*out.wide, wide);
  const DimSize size{narrow.k, k->bits};
  uint64_t units[kMaxBits];
  for (uint32_t bit = 0; bit < k->bits; ++bit) units[bit] = uint64_t{1} << to[bit];
  out.permutation = make_layout(arena, {&size, 1}, {&size, 1}, {units, k->bits});
  return out.permutation != nullptr && out.narrow_before != 0 && out.narrow_after != 0;
}

}  // namespace sonde::layout
