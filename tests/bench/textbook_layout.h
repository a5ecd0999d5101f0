// Linear layouts as a textbook writes them: named dims in a list, a basis is a vector of numbers, matrices are vectors of
// rows of bytes. Correct and plain; the baseline that moves with the machine in the layout benchmark.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace textbook {

using Basis = std::vector<int64_t>;  // a value for each out dim

struct Layout {
  std::vector<std::pair<std::string, std::vector<Basis>>> ins;
  std::vector<std::pair<std::string, int64_t>> outs;  // sizes

  const std::vector<Basis> *bases(const std::string &name) const {
    for (const auto &[in, all] : ins) {
      if (in == name) return &all;
    }
    return nullptr;
  }
  int out_index(const std::string &name) const {
    for (size_t i = 0; i < outs.size(); ++i) {
      if (outs[i].first == name) return static_cast<int>(i);
    }
    return -1;
  }
  Basis apply(const std::map<std::string, int64_t> &values) const {
    Basis result(outs.size(), 0);
    for (const auto &[in, all] : ins) {
      const int64_t value = values.at(in);
      for (size_t bit = 0; bit < all.size(); ++bit) {
        if ((value >> bit & 1) == 0) continue;
        for (size_t i = 0; i < outs.size(); ++i) result[i] ^= all[bit][i];
      }
    }
    return result;
  }
};

using Matrix = std::vector<std::vector<uint8_t>>;  // rows of bits

inline int log2_of(int64_t size) {
  int bits = 0;
  while (int64_t{1} << bits < size) ++bits;
  return bits;
}

inline Matrix matrix_of(const Layout &layout) {
  size_t rows = 0;
  size_t columns = 0;
  for (const auto &out : layout.outs) rows += static_cast<size_t>(log2_of(out.second));
  for (const auto &in : layout.ins) columns += in.second.size();
  Matrix matrix(rows, std::vector<uint8_t>(columns, 0));
  size_t column = 0;
  for (const auto &in : layout.ins) {
    for (const Basis &basis : in.second) {
      size_t row = 0;
      for (size_t i = 0; i < layout.outs.size(); ++i) {
        for (int bit = 0; bit < log2_of(layout.outs[i].second); ++bit) {
          matrix[row++][column] = static_cast<uint8_t>(basis[i] >> bit & 1);
        }
      }
      ++column;
    }
  }
  return matrix;
}

// X with A X = B, free variables 0, by Gauss-Jordan on (A | B).
inline std::optional<Matrix> solve(const Matrix &a, const Matrix &b) {
  const size_t rows = a.size();
  const size_t unknowns = rows == 0 ? 0 : a[0].size();
  const size_t sides = rows == 0 ? 0 : b[0].size();
  Matrix both = a;
  for (size_t row = 0; row < rows; ++row) both[row].insert(both[row].end(), b[row].begin(), b[row].end());
  std::vector<size_t> pivots;
  size_t rank = 0;
  for (size_t column = 0; column < unknowns && rank < rows; ++column) {
    size_t pivot = rank;
    while (pivot < rows && both[pivot][column] == 0) ++pivot;
    if (pivot == rows) continue;
    std::swap(both[pivot], both[rank]);
    for (size_t row = 0; row < rows; ++row) {
      if (row == rank || both[row][column] == 0) continue;
      for (size_t k = 0; k < unknowns + sides; ++k) both[row][k] ^= both[rank][k];
    }
    pivots.push_back(column);
    ++rank;
  }
  for (size_t row = rank; row < rows; ++row) {
    for (size_t k = 0; k < sides; ++k) {
      if (both[row][unknowns + k] != 0) return std::nullopt;
    }
  }
  Matrix x(unknowns, std::vector<uint8_t>(sides, 0));
  for (size_t i = 0; i < rank; ++i) {
    for (size_t k = 0; k < sides; ++k) x[pivots[i]][k] = both[i][unknowns + k];
  }
  return x;
}

// The layout whose matrix is `matrix`, over the ins of `ins` and outs with the sizes of `outs`.
inline Layout layout_of(const Matrix &matrix, const Layout &ins, std::vector<std::pair<std::string, int64_t>> outs) {
  Layout result;
  result.outs = std::move(outs);
  size_t column = 0;
  for (const auto &in : ins.ins) {
    std::vector<Basis> all;
    for (size_t bit = 0; bit < in.second.size(); ++bit, ++column) {
      Basis basis(result.outs.size(), 0);
      size_t row = 0;
      for (size_t i = 0; i < result.outs.size(); ++i) {
        for (int place = 0; place < log2_of(result.outs[i].second); ++place, ++row) {
          basis[i] |= static_cast<int64_t>(matrix[row][column]) << place;
        }
      }
      all.push_back(std::move(basis));
    }
    result.ins.emplace_back(in.first, std::move(all));
  }
  return result;
}

inline std::vector<std::pair<std::string, int64_t>> in_sizes(const Layout &layout) {
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const auto &in : layout.ins) sizes.emplace_back(in.first, int64_t{1} << in.second.size());
  return sizes;
}

inline Layout compose(const Layout &inner, const Layout &outer) {
  Layout result;
  result.outs = outer.outs;
  for (const auto &in : inner.ins) {
    std::vector<Basis> all;
    for (const Basis &basis : in.second) {
      std::map<std::string, int64_t> values;
      for (size_t i = 0; i < inner.outs.size(); ++i) values[inner.outs[i].first] = basis[i];
      all.push_back(outer.apply(values));
    }
    result.ins.emplace_back(in.first, std::move(all));
  }
  return result;
}

inline Layout invert_and_compose(const Layout &layout, const Layout &outer) {
  const auto x = solve(matrix_of(outer), matrix_of(layout));
  if (!x) std::abort();
  return layout_of(*x, layout, in_sizes(outer));
}

inline Layout identity_on_outs(const Layout &layout) {
  Layout identity;
  identity.outs = layout.outs;
  for (size_t i = 0; i < layout.outs.size(); ++i) {
    std::vector<Basis> all;
    for (int bit = 0; bit < log2_of(layout.outs[i].second); ++bit) {
      Basis basis(layout.outs.size(), 0);
      basis[i] = int64_t{1} << bit;
      all.push_back(std::move(basis));
    }
    identity.ins.emplace_back(layout.outs[i].first, std::move(all));
  }
  return identity;
}

inline Layout pseudoinvert(const Layout &layout) { return invert_and_compose(identity_on_outs(layout), layout); }

inline Layout product(const Layout &inner, const Layout &outer) {
  Layout result = inner;
  for (const auto &[name, size] : outer.outs) {
    const int index = result.out_index(name);
    if (index >= 0) {
      result.outs[static_cast<size_t>(index)].second *= size;
      continue;
    }
    result.outs.emplace_back(name, size);
    for (auto &in : result.ins) {
      for (Basis &basis : in.second) basis.push_back(0);
    }
  }
  for (const auto &in : outer.ins) {
    std::vector<Basis> *target = nullptr;
    for (auto &own : result.ins) {
      if (own.first == in.first) target = &own.second;
    }
    if (target == nullptr) target = &result.ins.emplace_back(in.first, std::vector<Basis>()).second;
    for (const Basis &basis : in.second) {
      Basis moved(result.outs.size(), 0);
      for (size_t i = 0; i < outer.outs.size(); ++i) {
        const int own = inner.out_index(outer.outs[i].first);
        const int64_t scale = own < 0 ? 1 : inner.outs[static_cast<size_t>(own)].second;
        moved[static_cast<size_t>(result.out_index(outer.outs[i].first))] = basis[i] * scale;
      }
      target->push_back(std::move(moved));
    }
  }
  return result;
}

inline Layout transpose_outs(const Layout &layout, const std::vector<std::string> &order) {
  Layout result;
  std::vector<size_t> from;
  for (const std::string &name : order) {
    from.push_back(static_cast<size_t>(layout.out_index(name)));
    result.outs.push_back(layout.outs[from.back()]);
  }
  for (const auto &in : layout.ins) {
    std::vector<Basis> all;
    for (const Basis &basis : in.second) {
      Basis moved;
      for (const size_t index : from) moved.push_back(basis[index]);
      all.push_back(std::move(moved));
    }
    result.ins.emplace_back(in.first, std::move(all));
  }
  return result;
}

inline Layout flatten_outs(const Layout &layout) {
  Layout result;
  int64_t size = 1;
  for (const auto &out : layout.outs) size *= out.second;
  result.outs.emplace_back(layout.outs[0].first, size);
  for (const auto &in : layout.ins) {
    std::vector<Basis> all;
    for (const Basis &basis : in.second) {
      int64_t value = 0;
      int64_t scale = 1;
      for (size_t i = 0; i < basis.size(); ++i) {
        value += basis[i] * scale;
        scale *= layout.outs[i].second;
      }
      all.push_back({value});
    }
    result.ins.emplace_back(in.first, std::move(all));
  }
  return result;
}

inline Layout sublayout(const Layout &layout, const std::vector<std::string> &ins,
                        const std::vector<std::string> &outs) {
  Layout result;
  std::vector<size_t> kept;
  for (const std::string &name : outs) {
    kept.push_back(static_cast<size_t>(layout.out_index(name)));
    result.outs.push_back(layout.outs[kept.back()]);
  }
  for (const std::string &name : ins) {
    std::vector<Basis> all;
    for (const Basis &basis : *layout.bases(name)) {
      Basis moved;
      for (const size_t index : kept) moved.push_back(basis[index]);
      all.push_back(std::move(moved));
    }
    result.ins.emplace_back(name, std::move(all));
  }
  return result;
}

}  // namespace textbook
