// Layouts written as text in tests, and the text of what came out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "layout/algebra.h"
#include "layout/layout.h"

namespace sonde::layout::test {

inline uint64_t cases() {
  const char *const text = std::getenv("SONDE_CASES");
  return text == nullptr ? 2000 : std::strtoull(text, nullptr, 10);
}

// "in1 (1,1)(0,1); in2 (1,0) -> out1[4] out2": bases by in dim, then the out dims, each with its size where the bases
// do not imply it. One out dim may be written without parentheses: "in 1 2 4 -> out". A dim without bases has one value.
inline const Layout *parse(Arena &arena, std::string_view text) {
  const size_t arrow = text.find("->");
  std::vector<NamedBases> bases;
  std::vector<DimName> outs;
  std::vector<uint64_t> sizes;
  std::istringstream out_text{std::string(text.substr(arrow + 2))};
  for (std::string word; out_text >> word;) {
    const size_t bracket = word.find('[');
    outs.push_back(intern_dim(word.substr(0, bracket)));
    sizes.push_back(bracket == std::string::npos ? 0 : std::strtoull(word.c_str() + bracket + 1, nullptr, 10));
  }
  std::istringstream in_text{std::string(text.substr(0, arrow))};
  for (std::string part; std::getline(in_text, part, ';');) {
    size_t at = part.find_first_not_of(' ');
    if (at == std::string::npos) continue;
    const size_t end = std::min(part.find_first_of(" (", at), part.size());
    bases.push_back({intern_dim(part.substr(at, end - at)), {}});
    std::vector<uint64_t> row;
    bool inside = false;
    for (at = end; at < part.size();) {
      if (part[at] == '(') {
        inside = true;
        row.clear();
        ++at;
      } else if (part[at] == ')') {
        inside = false;
        bases.back().rows.push_back(row);
        ++at;
      } else if (std::isdigit(static_cast<unsigned char>(part[at])) != 0) {
        size_t used = 0;
        const uint64_t value = std::stoull(part.substr(at), &used);
        at += used;
        if (inside) {
          row.push_back(value);
        } else {
          bases.back().rows.push_back({value});
        }
      } else {
        ++at;
      }
    }
  }
  const Layout *const inferred = make_inferred(arena, bases, outs, false);
  if (inferred == nullptr) {
    ADD_FAILURE() << text << ": " << arena.text();
    return make_empty(arena);
  }
  std::vector<DimSize> ins;
  std::vector<DimSize> out_sizes;
  std::vector<uint64_t> rows;
  for (const Dim &in : inferred->ins()) ins.push_back({in.name, in.bits});
  for (size_t i = 0; i < outs.size(); ++i) {
    const auto given = sizes[i] == 0 ? 0u : static_cast<uint32_t>(std::countr_zero(sizes[i]));
    out_sizes.push_back({outs[i], std::max<uint32_t>(inferred->outs()[i].bits, given)});
  }
  for (const NamedBases &in : bases) {
    for (const auto &row : in.rows) rows.insert(rows.end(), row.begin(), row.end());
  }
  const Layout *const layout = make_from_bases(arena, ins, out_sizes, rows);
  EXPECT_NE(layout, nullptr) << text << ": " << arena.text();
  return layout == nullptr ? make_empty(arena) : layout;
}

// What `parse` reads, with every size.
inline std::string text_of(const Layout *layout) {
  if (layout == nullptr) return "none";
  std::string text;
  for (const Dim &in : layout->ins()) {
    if (!text.empty()) text += "; ";
    text += dim_text(in.name);
    for (const uint64_t column : layout->columns_of(in)) {
      if (layout->outs().size() == 1) {
        text += " " + std::to_string(column);
        continue;
      }
      text += " (";
      for (const Dim &out : layout->outs()) {
        if (&out != layout->outs().data()) text += ",";
        text += std::to_string(out.of(column));
      }
      text += ")";
    }
  }
  text += " ->";
  for (const Dim &out : layout->outs()) {
    text += " " + std::string(dim_text(out.name)) + "[" + std::to_string(uint64_t{1} << out.bits) + "]";
  }
  if (layout->offset() != 0) text += " + " + std::to_string(layout->offset());
  return text;
}

// An arena for each test, and layouts compared as text.
class LayoutTest : public testing::Test {
 protected:
  const Layout *L(std::string_view text) { return parse(arena_, text); }
  const Layout *identity(uint64_t size, std::string_view in, std::string_view out) {
    return make_identity(arena_, size, intern_dim(in), intern_dim(out));
  }
  const Layout *zeros(uint64_t size, std::string_view in, std::string_view out, uint64_t out_size = 1) {
    return make_zeros(arena_, size, intern_dim(in), intern_dim(out), out_size);
  }
  const Layout *times(const Layout *a, const Layout *b) {
    const Layout *const result = product(arena_, *a, *b);
    EXPECT_NE(result, nullptr) << arena_.text();
    return result;
  }
  void expect(const Layout *layout, std::string_view wanted) { EXPECT_EQ(text_of(layout), text_of(L(wanted))); }
  void expect_none(const Layout *layout, Fault fault) {
    EXPECT_EQ(text_of(layout), "none");
    EXPECT_EQ(arena_.fault(), fault) << arena_.text();
    EXPECT_FALSE(arena_.text().empty());
  }

  Arena arena_;
};

inline DimName d(std::string_view name) { return intern_dim(name); }

// Random layouts over the dims named, with `in_bits` and `out_bits` cut at random among them.
class RandomLayouts {
 public:
  RandomLayouts(Arena &arena, uint64_t seed) : arena_(arena), random_(seed) {}

  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  uint64_t word() { return random_(); }

  std::vector<DimSize> cut(std::initializer_list<const char *> names, uint32_t bits) {
    std::vector<DimSize> sizes;
    for (const char *const name : names) sizes.push_back({intern_dim(name), 0});
    for (uint32_t i = 0; i < bits; ++i) ++sizes[below(sizes.size())].bits;
    return sizes;
  }
  const Layout *any(const std::vector<DimSize> &ins, const std::vector<DimSize> &outs, bool affine = false) {
    const uint32_t in_bits = total(ins);
    const uint64_t mask = low_mask(total(outs));
    std::vector<uint64_t> columns(in_bits);
    for (uint64_t &column : columns) column = below(4) == 0 ? 0 : random_() & mask;
    return make_layout(arena_, ins, outs, columns, affine ? random_() & mask : 0);
  }
  // Invertible: products of elementary steps on the identity. Both sides have the same bits.
  const Layout *invertible(const std::vector<DimSize> &ins, const std::vector<DimSize> &outs, bool affine = false) {
    const uint32_t bits = total(ins);
    std::vector<uint64_t> columns(bits);
    for (uint32_t i = 0; i < bits; ++i) columns[i] = uint64_t{1} << i;
    for (uint32_t step = 0; bits > 1 && step < 4 * bits; ++step) {
      const uint64_t from = below(bits);
      const uint64_t to = below(bits);
      if (from != to) columns[to] ^= columns[from];
    }
    std::shuffle(columns.begin(), columns.end(), random_);
    return make_layout(arena_, ins, outs, columns, affine ? random_() & low_mask(bits) : 0);
  }
  // Surjective: an invertible core with more columns among its own.
  const Layout *surjective(const std::vector<DimSize> &ins, const std::vector<DimSize> &outs) {
    const uint32_t in_bits = total(ins);
    const uint32_t out_bits = total(outs);
    std::vector<uint64_t> columns(in_bits);
    for (uint32_t i = 0; i < in_bits; ++i)
      columns[i] = i < out_bits ? uint64_t{1} << i : random_() & low_mask(out_bits);
    for (uint32_t step = 0; out_bits > 1 && step < 4 * out_bits; ++step) {
      const uint64_t from = below(out_bits);
      const uint64_t to = below(out_bits);
      if (from != to) columns[to] ^= columns[from];
    }
    std::shuffle(columns.begin(), columns.end(), random_);
    return make_layout(arena_, ins, outs, columns);
  }

  static uint32_t total(const std::vector<DimSize> &sizes) {
    uint32_t bits = 0;
    for (const DimSize &size : sizes) bits += size.bits;
    return bits;
  }

 private:
  Arena &arena_;
  std::mt19937_64 random_;
};

}  // namespace sonde::layout::test
