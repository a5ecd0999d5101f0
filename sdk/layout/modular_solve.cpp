// Inputs with given values, for layouts of any sizes.
//
// Over sums modulo m, asking for bits (0 or 1) with a given sum is the subset sum problem, so no method is quick for
// all. What layouts of tensors are made of is quick:
//   1. A common divisor of all bases and m must divide the value; else there is no solution.
//   2. Where an out dim's contributors form a number system without wrapping (each step larger than all that smaller
//      ones reach together), their digits follow one after the other, at any size.
//   3. Bits that feed xor dims only are left to elimination: the rest must hit a coset of their span, which a few
//      parities (the annihilator of the span) decide.
//   4. What remains is split into two halves that are listed and matched (up to 2^16 each). One strided in dim that is
//      too long to list is solved for instead, by congruences.
#include <algorithm>
#include <numeric>

#include "layout/matrix.h"
#include "layout/modular.h"

namespace sonde::layout {
namespace {

using Wide = UInt128;

uint64_t times(uint64_t a, uint64_t b, uint64_t size) { return static_cast<uint64_t>(static_cast<Wide>(a) * b % size); }

// Bits of the input that are chosen together: one of `size` indices.
struct Unit {
  uint32_t shift;  // of its index in the input
  uint32_t bits;
  uint64_t size;
  bool strided;  // contributes index * step to sums, where step is the basis of its first bit, and nothing to xors
};

class Solver {
 public:
  Solver(Arena &arena, const ModularLayout &layout, std::span<const uint64_t> values)
      : arena_(arena), layout_(layout), left_(values.begin(), values.end()) {}

  bool run(uint64_t &input) {
    uint32_t xor_bits = 0;
    for (const ModularDim &out : layout_.outs()) xor_bits += out.xors() ? out.bits : 0;
    if (xor_bits > 64) return unsupported("the out dims that are powers of two have more than 64 bits");
    if (!divisors_agree()) return false;
    collect_units();
    if (!take_number_systems()) return false;
    return match(input);
  }

 private:
  bool unsupported(const std::string &why) {
    arena_.fail(Fault::kUnsupported, "no preimage is looked for: " + why);
    return false;
  }
  bool none(const std::string &why) {
    arena_.fail(Fault::kNoSolution, "no input has these values: " + why);
    return false;
  }
  std::string out_name(size_t out) const { return "out dim " + std::string(dim_text(layout_.outs()[out].name)); }

  bool divisors_agree() {
    for (size_t o = 0; o < left_.size(); ++o) {
      const ModularDim &out = layout_.outs()[o];
      if (out.xors()) continue;
      uint64_t divisor = out.size;
      for (uint32_t bit = 0; bit < layout_.in_bits(); ++bit) divisor = std::gcd(divisor, layout_.basis(bit)[o]);
      if (left_[o] % divisor == 0) continue;
      return none("in " + out_name(o) + " all are multiples of " + std::to_string(divisor) + ", and " +
                  std::to_string(left_[o]) + " is not");
    }
    return true;
  }

  // A whole in dim where it is strided or its size is no power of two, else its bits; bits of xor dims only apart.
  void collect_units() {
    for (const ModularDim &in : layout_.ins()) {
      bool strided = in.bits != 0;
      for (uint32_t bit = 0; bit < in.bits; ++bit) {
        for (size_t o = 0; o < left_.size(); ++o) {
          const ModularDim &out = layout_.outs()[o];
          const uint64_t value = layout_.basis(in.shift + bit)[o];
          strided =
              strided &&
              value == (out.xors() ? 0 : times(layout_.basis(in.shift)[o], (uint64_t{1} << bit) % out.size, out.size));
        }
      }
      if (strided || !in.xors()) {
        // What feeds nothing stays 0.
        const Unit unit{in.shift, in.bits, in.size, strided};
        for (size_t o = 0; o < left_.size(); ++o) {
          if (!feeds(unit, o)) continue;
          units_.push_back(unit);
          break;
        }
        continue;
      }
      for (uint32_t bit = 0; bit < in.bits; ++bit) {
        bool sums = false;
        bool xors = false;
        for (size_t o = 0; o < left_.size(); ++o) {
          if (layout_.basis(in.shift + bit)[o] != 0) (layout_.outs()[o].xors() ? xors : sums) = true;
        }
        if (sums) {
          units_.push_back({in.shift + bit, 1, 2, !xors});
        } else {
          free_bits_.push_back(in.shift + bit);
        }
      }
    }
  }

  bool feeds(const Unit &unit, size_t out) const {
    for (uint32_t bit = 0; bit < unit.bits; ++bit) {
      if (layout_.basis(unit.shift + bit)[out] != 0) return true;
    }
    return false;
  }

  // Takes the units that feed out dim `o` off, with their digits, when they form a number system of their own.
  bool take_number_systems() {
    for (size_t o = 0; o < left_.size(); ++o) {
      const ModularDim &out = layout_.outs()[o];
      if (out.xors()) continue;
      std::vector<Unit> digits;
      std::vector<Unit> others;
      bool alone = true;
      for (const Unit &unit : units_) {
        if (!feeds(unit, o)) {
          others.push_back(unit);
          continue;
        }
        digits.push_back(unit);
        alone = alone && unit.strided;
        for (size_t p = 0; p < left_.size(); ++p) alone = alone && (p == o || !feeds(unit, p));
      }
      if (!alone) continue;
      const auto step = [&](const Unit &unit) { return layout_.basis(unit.shift)[o]; };
      std::sort(digits.begin(), digits.end(), [&](const Unit &a, const Unit &b) { return step(a) < step(b); });
      Wide reach = 0;
      bool system = true;
      for (const Unit &digit : digits) {
        system = system && step(digit) > reach;
        reach += static_cast<Wide>(step(digit)) * (digit.size - 1);
      }
      if (!system || reach >= out.size) continue;
      for (size_t i = digits.size(); i-- > 0;) {
        const uint64_t count = std::min(left_[o] / step(digits[i]), digits[i].size - 1);
        found_ |= count << digits[i].shift;
        left_[o] -= count * step(digits[i]);
      }
      if (left_[o] != 0) return none("the steps of " + out_name(o) + " do not reach its value");
      units_ = others;
    }
    return true;
  }

  uint64_t xor_word(std::span<const uint64_t> values) const {
    uint64_t word = 0;
    uint32_t shift = 0;
    for (size_t o = 0; o < values.size(); ++o) {
      if (!layout_.outs()[o].xors()) continue;
      word |= place(values[o], shift);
      shift += layout_.outs()[o].bits;
    }
    return word;
  }

  // What an input of units contributes: sums as they are, the xor dims as parities that the free bits cannot change.
  void key_of(std::span<const uint64_t> values, std::vector<uint64_t> &key) const {
    key.clear();
    for (size_t o = 0; o < values.size(); ++o) {
      if (!layout_.outs()[o].xors()) key.push_back(values[o]);
    }
    const uint64_t word = xor_word(values);
    uint64_t parities = 0;
    for (size_t i = 0; i < parity_count_; ++i) {
      parities |= static_cast<uint64_t>(std::popcount(word & parity_[i]) & 1) << i;
    }
    key.push_back(parities);
  }

  static uint64_t hash_of(const std::vector<uint64_t> &key) {
    uint64_t hash = 0;
    for (const uint64_t value : key) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 31;
    }
    return hash;
  }

  // The input of the count-th combination of the units.
  static uint64_t combination(const std::vector<Unit> &units, uint64_t count) {
    uint64_t input = 0;
    for (const Unit &unit : units) {
      input |= (count % unit.size) << unit.shift;
      count /= unit.size;
    }
    return input;
  }

  void difference(std::span<const uint64_t> from, std::span<const uint64_t> what, std::vector<uint64_t> &out) const {
    out.resize(from.size());
    for (size_t o = 0; o < from.size(); ++o) {
      const ModularDim &dim = layout_.outs()[o];
      out[o] = dim.xors() ? from[o] ^ what[o] : (from[o] >= what[o] ? from[o] - what[o] : from[o] + dim.size - what[o]);
    }
  }

  bool match(uint64_t &input) {
    std::vector<uint64_t> columns;
    for (const uint32_t bit : free_bits_) columns.push_back(xor_word(layout_.basis(bit)));
    uint32_t xor_bits = 0;
    for (const ModularDim &out : layout_.outs()) xor_bits += out.xors() ? out.bits : 0;
    parity_count_ = annihilator_basis(columns, xor_bits, parity_);
    for (uint32_t i = 0; i < columns.size(); ++i) free_.add(columns[i], i);

    std::sort(units_.begin(), units_.end(),
              [](const Unit &a, const Unit &b) { return a.size != b.size ? a.size > b.size : a.shift < b.shift; });
    std::vector<Unit> halves[2];
    Wide lengths[2] = {1, 1};
    const Unit *solved = nullptr;
    for (const Unit &unit : units_) {
      const int half = lengths[0] <= lengths[1] ? 0 : 1;
      if (lengths[half] * unit.size <= kModularEnumerated) {
        halves[half].push_back(unit);
        lengths[half] *= unit.size;
      } else if (solved == nullptr && unit.strided) {
        solved = &unit;
      } else {
        return unsupported("there are too many combinations of the inputs that feed sums");
      }
    }
    if (solved != nullptr) {
      // Both halves are listed together then.
      halves[0].insert(halves[0].end(), halves[1].begin(), halves[1].end());
      if (lengths[0] * lengths[1] > 16 * kModularEnumerated) {
        return unsupported("there are too many combinations beside a long strided dim");
      }
      return solve_for(*solved, halves[0], static_cast<uint64_t>(lengths[0] * lengths[1]), input);
    }
    return match_halves(halves, static_cast<uint64_t>(lengths[0]), static_cast<uint64_t>(lengths[1]), input);
  }

  bool match_halves(const std::vector<Unit> (&halves)[2], uint64_t first, uint64_t second, uint64_t &input) {
    std::vector<uint64_t> values(left_.size());
    std::vector<uint64_t> rest;
    std::vector<uint64_t> key;
    std::vector<std::pair<uint64_t, uint64_t>> listed;
    for (uint64_t i = 0; i < first; ++i) {
      const uint64_t part = combination(halves[0], i);
      layout_.apply(part, values);
      key_of(values, key);
      listed.emplace_back(hash_of(key), part);
    }
    std::sort(listed.begin(), listed.end());
    for (uint64_t i = 0; i < second; ++i) {
      const uint64_t part = combination(halves[1], i);
      layout_.apply(part, values);
      difference(left_, values, rest);
      key_of(rest, key);
      const uint64_t hash = hash_of(key);
      for (auto at = std::lower_bound(listed.begin(), listed.end(), std::pair(hash, uint64_t{0}));
           at != listed.end() && at->first == hash; ++at) {
        if (complete(part | at->second, input)) return true;
      }
    }
    return none("every combination of the inputs that feed sums was tried");
  }

  // For each combination of the others, the least index of the long unit that gives the rest of every sum.
  bool solve_for(const Unit &unit, const std::vector<Unit> &others, uint64_t count, uint64_t &input) {
    std::vector<uint64_t> values(left_.size());
    std::vector<uint64_t> rest;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t part = combination(others, i);
      layout_.apply(part, values);
      difference(left_, values, rest);
      uint64_t index = 0;
      if (congruent(unit, rest, index) && complete(part | index << unit.shift, input)) return true;
    }
    return none("no index of the long strided dim fits any combination of the others");
  }

  // The least index with index * step = rest in every sum dim, below the unit's size.
  bool congruent(const Unit &unit, std::span<const uint64_t> rest, uint64_t &index) const {
    Wide value = 0;  // all that is known: index = value modulo `modulus`
    Wide modulus = 1;
    for (size_t o = 0; o < rest.size(); ++o) {
      const ModularDim &out = layout_.outs()[o];
      if (out.xors()) continue;
      const uint64_t size = out.size;
      const uint64_t step = layout_.basis(unit.shift)[o];
      // value + modulus t: (modulus step) t = rest - value step modulo size.
      const uint64_t factor = times(static_cast<uint64_t>(modulus % size), step, size);
      const uint64_t known = times(static_cast<uint64_t>(value % size), step, size);
      const uint64_t wanted = rest[o] >= known ? rest[o] - known : rest[o] + size - known;
      const uint64_t common = std::gcd(factor, size);  // gcd(0, size) = size
      if (wanted % common != 0) return false;
      const uint64_t reduced = size / common;
      const uint64_t t = reduced == 1 ? 0 : times(wanted / common, inverse(factor / common, reduced), reduced);
      value += modulus * t;
      if (value >= unit.size) return false;
      modulus = std::min(modulus * reduced, static_cast<Wide>(1) << 63);
      // Past the size, one index is left, and further dims can only agree with it or not.
      if (modulus >= unit.size) {
        for (size_t p = o + 1; p < rest.size(); ++p) {
          const ModularDim &other = layout_.outs()[p];
          if (other.xors()) continue;
          const uint64_t own =
              times(static_cast<uint64_t>(value % other.size), layout_.basis(unit.shift)[p], other.size);
          if (own != rest[p]) return false;
        }
        break;
      }
    }
    index = static_cast<uint64_t>(value);
    return true;
  }

  // Of a value without a common divisor with the modulus.
  static uint64_t inverse(uint64_t value, uint64_t modulus) {
    Int128 a = value % modulus;
    Int128 b = modulus;
    Int128 x = 1;
    Int128 y = 0;
    while (a > 1) {
      const Int128 quotient = b / a;
      b -= quotient * a;
      y -= quotient * x;
      std::swap(a, b);
      std::swap(x, y);
    }
    return static_cast<uint64_t>((x % modulus + modulus) % modulus);
  }

  // Adds the free bits and what was found before; false when the result does not have the values after all.
  bool complete(uint64_t part, uint64_t &input) {
    std::vector<uint64_t> values(left_.size());
    layout_.apply(part, values);
    std::vector<uint64_t> rest;
    difference(left_, values, rest);
    for (size_t o = 0; o < rest.size(); ++o) {
      if (!layout_.outs()[o].xors() && rest[o] != 0) return false;
    }
    uint64_t picked = 0;
    if (!free_.solve(xor_word(rest), picked)) return false;
    for (; picked != 0; picked &= picked - 1) part |= uint64_t{1} << free_bits_[lowest_bit(picked)];
    input = part | found_;
    return true;
  }

  Arena &arena_;
  const ModularLayout &layout_;
  std::vector<uint64_t> left_;  // of the values, what is still to be reached
  uint64_t found_ = 0;
  std::vector<Unit> units_;
  std::vector<uint32_t> free_bits_;
  uint64_t parity_[64];
  uint32_t parity_count_ = 0;
  Elimination free_;
};

}  // namespace

bool solve(Arena &arena, const ModularLayout &layout, std::span<const uint64_t> values, uint64_t &input) {
  if (values.size() != layout.outs().size()) {
    arena.fail(Fault::kInvalid, "the layout has " + std::to_string(layout.outs().size()) + " out dims, not " +
                                    std::to_string(values.size()));
    return false;
  }
  for (size_t o = 0; o < values.size(); ++o) {
    if (values[o] < layout.outs()[o].size) continue;
    arena.fail(Fault::kInvalid, std::to_string(values[o]) + " lies past the " + std::to_string(layout.outs()[o].size) +
                                    " values of out dim " + std::string(dim_text(layout.outs()[o].name)));
    return false;
  }
  if (!Solver(arena, layout, values).run(input)) return false;
  // Whatever the way, the result is looked at.
  std::vector<uint64_t> reached(values.size());
  layout.apply(input, reached);
  if (layout.is_input(input) && std::equal(values.begin(), values.end(), reached.begin())) return true;
  arena.fail(Fault::kUnsupported, "the input found does not have the values");
  return false;
}

}  // namespace sonde::layout
