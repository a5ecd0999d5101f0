// Layouts with value syntax over sonde.layout/1 and its neighbours. See sonde/sonde.hpp.
//
//   sonde::LayoutArena arena(host);
//   sonde::Layout tile = arena.layout({{"register", {{0, 1}, {1, 0}}}, {"lane", {{0, 2}, {0, 4}}}}, {"dim0", "dim1"});
//   sonde::Layout back = tile.invert();
//   assert(tile.apply({1, 2}) == std::vector<uint64_t>({0, 5}));
//
// A Layout is a handle into its arena: copying it costs nothing, and it ends with the arena (or with its reset). The
// names of the methods are those of the C tables, where each is described; a failure is the exception sonde::Failure.
#ifndef SONDE_CPP_LAYOUT_HPP
#define SONDE_CPP_LAYOUT_HPP

#include <sonde/sonde.h>
#include <sonde/cpp/host.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sonde {

class Layout;

// Bases of one in dim: a row for each bit, with a value for each out dim.
struct LayoutBases {
  std::string in;
  std::vector<std::vector<uint64_t>> rows;
};

// Memory for layouts. Used by one thread at a time. Movable; its layouts stay valid then.
class LayoutArena {
 public:
  explicit LayoutArena(const Host &host, uint64_t cap_bytes = 0)
      : inside_(std::make_unique<Inside>(Inside{host, &host.service<sonde_layout_service_t>(),
                                                &host.service<sonde_layout_shape_service_t>(), nullptr})) {
    host.check(inside_->layouts->open(cap_bytes, &inside_->arena));
  }
  LayoutArena(LayoutArena &&) = default;
  LayoutArena &operator=(LayoutArena &&other) noexcept {
    std::swap(inside_, other.inside_);
    return *this;
  }
  ~LayoutArena() {
    if (inside_ != nullptr && inside_->arena != nullptr) inside_->layouts->close(inside_->arena);
  }

  sonde_dim_t dim(const std::string &name) const {
    sonde_dim_t id = 0;
    inside_->host.check(inside_->layouts->dim(name.c_str(), &id));
    return id;
  }

  // Dims of these sizes, which are powers of two.
  std::vector<sonde_layout_dim_t> dims(const std::vector<std::pair<std::string, uint64_t>> &sizes) const {
    std::vector<sonde_layout_dim_t> result;
    for (const auto &[name, size] : sizes) {
      if (!std::has_single_bit(size)) throw Failure(SONDE_E_INVALID, "dim " + name + ": a size is a power of two");
      result.push_back({dim(name), static_cast<uint8_t>(std::countr_zero(size)), 0, 0});
    }
    return result;
  }

  // Out dims as large as the largest value needs.
  Layout layout(const std::vector<LayoutBases> &bases, const std::vector<std::string> &outs) const;
  // Sizes given: a power of two for each out dim.
  Layout sized_layout(const std::vector<LayoutBases> &bases,
                      const std::vector<std::pair<std::string, uint64_t>> &outs) const;
  Layout identity(uint64_t size, const std::string &in, const std::string &out) const;
  Layout strided(uint64_t size, uint64_t stride, const std::string &in, const std::string &out) const;
  Layout zeros(uint64_t size, const std::string &in, const std::string &out, uint64_t out_size = 1) const;
  Layout from_json(const std::string &text) const;
  Layout from_bytes(const std::vector<uint8_t> &bytes) const;
  // Ends every layout of the arena.
  void reset() const { inside_->host.check(inside_->layouts->reset(inside_->arena)); }

  sonde_layout_arena_t *get() const { return inside_->arena; }
  const Host &host() const { return inside_->host; }

 private:
  friend class Layout;
  struct Inside {
    Host host;
    const sonde_layout_service_t *layouts;
    const sonde_layout_shape_service_t *shapes;
    sonde_layout_arena_t *arena;
  };
  std::unique_ptr<Inside> inside_;
};

class Layout {
 public:
  // A handle of `arena`, made by C functions.
  Layout(const LayoutArena &arena, const sonde_layout_t *handle) : arena_(arena.inside_.get()), handle_(handle) {}

  const sonde_layout_t *get() const { return handle_; }
  sonde_layout_view_t view() const {
    sonde_layout_view_t result{};
    arena_->host.check(arena_->layouts->view(handle_, &result));
    return result;
  }

  std::vector<uint64_t> apply(const std::vector<uint64_t> &values) const {
    const sonde_layout_view_t own = view();
    if (values.size() != own.in_count) throw Failure(SONDE_E_INVALID, "apply: one value for each in dim is needed");
    std::vector<uint64_t> result(own.out_count);
    arena_->host.check(arena_->layouts->apply(handle_, values.data(), result.data()));
    return result;
  }
  // Flattened.
  uint64_t operator()(uint64_t index) const {
    const sonde_layout_view_t own = view();
    return sonde_layout_at(&own, index);
  }
  std::vector<uint64_t> table(uint64_t first, uint64_t count) const {
    std::vector<uint64_t> result(count);
    arena_->host.check(arena_->layouts->table(handle_, first, count, result.data()));
    return result;
  }

  uint32_t rank() const { return properties().first; }
  bool is_surjective() const { return (properties().second & SONDE_LAYOUT_SURJECTIVE) != 0; }
  bool is_injective() const { return (properties().second & SONDE_LAYOUT_INJECTIVE) != 0; }
  bool is_invertible() const { return is_surjective() && is_injective(); }
  bool is_permutation() const { return (properties().second & SONDE_LAYOUT_PERMUTATION) != 0; }
  bool is_memory() const { return (properties().second & SONDE_LAYOUT_MEMORY) != 0; }
  // For each in dim: bits whose columns depend on those before.
  std::vector<uint64_t> free_masks() const {
    std::vector<uint64_t> masks(view().in_count);
    arena_->host.check(arena_->shapes->free_masks(handle_, masks.data()));
    return masks;
  }
  // Of a register layout: for each out dim the consecutive elements of one thread; its registers, and those of them
  // that are not copies of others.
  std::vector<uint64_t> contiguous_per_thread() const {
    std::vector<uint64_t> sizes(view().out_count);
    arena_->host.check(arena_->shapes->contiguous_per_thread(handle_, sizes.data()));
    return sizes;
  }
  std::pair<uint64_t, uint64_t> elements_per_thread() const {
    std::pair<uint64_t, uint64_t> result;
    arena_->host.check(arena_->shapes->elements_per_thread(handle_, &result.first, &result.second));
    return result;
  }
  bool equal(const Layout &other, uint32_t how = SONDE_LAYOUT_EQUAL_EXACT) const {
    uint32_t result = 0;
    arena_->host.check(arena_->layouts->equal(handle_, other.handle_, how, &result));
    return result != 0;
  }
  friend bool operator==(const Layout &a, const Layout &b) { return a.equal(b); }
  uint64_t hash(uint32_t how = SONDE_LAYOUT_EQUAL_EXACT) const {
    uint64_t result = 0;
    arena_->host.check(arena_->layouts->hash(handle_, how, &result));
    return result;
  }

  Layout product(const Layout &outer) const { return make(arena_->layouts->product, handle_, outer.handle_); }
  friend Layout operator*(const Layout &inner, const Layout &outer) { return inner.product(outer); }
  Layout compose(const Layout &outer) const { return make(arena_->layouts->compose, handle_, outer.handle_); }
  // Empty where there is no quotient.
  std::optional<Layout> divide_left(const Layout &divisor) const {
    return try_make(arena_->layouts->divide_left, handle_, divisor.handle_);
  }
  std::optional<Layout> divide_right(const Layout &divisor) const {
    return try_make(arena_->layouts->divide_right, handle_, divisor.handle_);
  }
  // X with this(X(x)) = b(x); empty where there is none.
  std::optional<Layout> least_solution(const Layout &b) const {
    return try_make(arena_->layouts->least_solution, handle_, b.handle_);
  }
  Layout invert_and_compose(const Layout &outer, bool block_local = false) const {
    return make(arena_->layouts->invert_and_compose, handle_, outer.handle_, static_cast<uint32_t>(block_local));
  }
  Layout pseudoinvert() const { return make(arena_->layouts->pseudoinvert, handle_); }
  Layout invert() const { return make(arena_->layouts->invert, handle_); }
  Layout subspace(uint32_t what) const {
    return make(arena_->layouts->subspace, what, handle_, static_cast<const sonde_layout_t *>(nullptr));
  }

  Layout transpose(uint32_t side, const std::vector<std::string> &order) const {
    const auto ids = dims(order);
    return make(arena_->shapes->transpose, handle_, side, ids.data(), static_cast<uint32_t>(ids.size()));
  }
  Layout flatten(uint32_t side) const { return make(arena_->shapes->flatten, handle_, side); }
  Layout reshape(uint32_t side, const std::vector<std::pair<std::string, uint64_t>> &sizes) const {
    std::vector<sonde_layout_dim_t> cut;
    for (const auto &[name, size] : sizes) cut.push_back(sized(*arena_, name, size));
    return make(arena_->shapes->reshape, handle_, side, cut.data(), static_cast<uint32_t>(cut.size()));
  }
  Layout sublayout(const std::vector<std::string> &ins, const std::vector<std::string> &outs) const {
    const auto in_ids = dims(ins);
    const auto out_ids = dims(outs);
    return make(arena_->shapes->sublayout, handle_, in_ids.data(), static_cast<uint32_t>(in_ids.size()), out_ids.data(),
                static_cast<uint32_t>(out_ids.size()));
  }

  std::string print() const { return text(arena_->layouts->print); }
  std::string to_json() const { return text(arena_->layouts->to_json); }
  std::vector<uint8_t> to_bytes() const {
    uint64_t needed = 0;
    std::vector<uint8_t> bytes(256);
    sonde_status status = arena_->layouts->to_bytes(handle_, bytes.data(), bytes.size(), &needed);
    const bool fits = needed <= bytes.size();
    bytes.resize(needed);
    if (!fits) status = arena_->layouts->to_bytes(handle_, bytes.data(), bytes.size(), &needed);
    arena_->host.check(status);
    return bytes;
  }

 private:
  friend class LayoutArena;
  using Inside = LayoutArena::Inside;
  Layout(Inside *arena, const sonde_layout_t *handle) : arena_(arena), handle_(handle) {}

  std::pair<uint32_t, uint32_t> properties() const {
    std::pair<uint32_t, uint32_t> result;
    arena_->host.check(arena_->layouts->properties(handle_, &result.first, &result.second));
    return result;
  }
  std::vector<sonde_dim_t> dims(const std::vector<std::string> &names) const {
    std::vector<sonde_dim_t> ids(names.size());
    for (size_t i = 0; i < names.size(); ++i) arena_->host.check(arena_->layouts->dim(names[i].c_str(), &ids[i]));
    return ids;
  }
  static sonde_layout_dim_t sized(const Inside &arena, const std::string &name, uint64_t size) {
    if (!std::has_single_bit(size)) throw Failure(SONDE_E_INVALID, "dim " + name + ": a size is a power of two");
    sonde_layout_dim_t dim{0, static_cast<uint8_t>(std::countr_zero(size)), 0, 0};
    arena.host.check(arena.layouts->dim(name.c_str(), &dim.name));
    return dim;
  }
  template <typename Function, typename... Arguments>
  Layout make(Function function, Arguments... arguments) const {
    const sonde_layout_t *out = nullptr;
    arena_->host.check(function(arena_->arena, arguments..., &out));
    return Layout(arena_, out);
  }
  template <typename Function, typename... Arguments>
  std::optional<Layout> try_make(Function function, Arguments... arguments) const {
    const sonde_layout_t *out = nullptr;
    const sonde_status status = function(arena_->arena, arguments..., &out);
    if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
    arena_->host.check(status);
    return Layout(arena_, out);
  }
  template <typename Function>
  std::string text(Function function) const {
    uint64_t needed = 0;
    arena_->host.check(function(handle_, nullptr, 0, &needed));
    std::string result(needed + 1, '\0');
    arena_->host.check(function(handle_, result.data(), result.size(), &needed));
    result.resize(needed);
    return result;
  }

  Inside *arena_;
  const sonde_layout_t *handle_;
};

inline Layout LayoutArena::sized_layout(const std::vector<LayoutBases> &bases,
                                        const std::vector<std::pair<std::string, uint64_t>> &outs) const {
  std::vector<sonde_layout_dim_t> in_dims;
  std::vector<sonde_layout_dim_t> out_dims;
  std::vector<uint64_t> values;
  for (const LayoutBases &in : bases) {
    if (in.rows.size() > 64) throw Failure(SONDE_E_UNSUPPORTED, "dim " + in.in + " has more than 64 bases");
    in_dims.push_back({dim(in.in), static_cast<uint8_t>(in.rows.size()), 0, 0});
    for (const auto &row : in.rows) {
      if (row.size() != outs.size()) throw Failure(SONDE_E_INVALID, "a basis of " + in.in + " has the wrong length");
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  for (const auto &[name, size] : outs) out_dims.push_back(Layout::sized(*inside_, name, size));
  const sonde_layout_t *out = nullptr;
  inside_->host.check(inside_->layouts->make(inside_->arena, in_dims.data(), static_cast<uint32_t>(in_dims.size()),
                                             out_dims.data(), static_cast<uint32_t>(out_dims.size()), values.data(),
                                             nullptr, &out));
  return Layout(inside_.get(), out);
}

inline Layout LayoutArena::layout(const std::vector<LayoutBases> &bases, const std::vector<std::string> &outs) const {
  std::vector<std::pair<std::string, uint64_t>> sizes;
  for (size_t i = 0; i < outs.size(); ++i) {
    uint64_t all = 0;
    for (const LayoutBases &in : bases) {
      for (const auto &row : in.rows) all |= i < row.size() ? row[i] : 0;
    }
    if (all >> 63 != 0)
      throw Failure(SONDE_E_UNSUPPORTED, "dim " + outs[i] + ": give sizes past 2^63 to the C function");
    sizes.emplace_back(outs[i], uint64_t{1} << std::bit_width(all));
  }
  return sized_layout(bases, sizes);
}

inline Layout LayoutArena::identity(uint64_t size, const std::string &in, const std::string &out) const {
  return strided(size, 1, in, out);
}

inline Layout LayoutArena::strided(uint64_t size, uint64_t stride, const std::string &in,
                                   const std::string &out) const {
  const sonde_layout_t *made = nullptr;
  inside_->host.check(inside_->layouts->strided(inside_->arena, size, stride, dim(in), dim(out), &made));
  return Layout(inside_.get(), made);
}

inline Layout LayoutArena::zeros(uint64_t size, const std::string &in, const std::string &out,
                                 uint64_t out_size) const {
  const sonde_layout_t *made = nullptr;
  inside_->host.check(inside_->layouts->zeros(inside_->arena, size, dim(in), dim(out), out_size, &made));
  return Layout(inside_.get(), made);
}

inline Layout LayoutArena::from_json(const std::string &text) const {
  const sonde_layout_t *made = nullptr;
  inside_->host.check(inside_->layouts->from_json(inside_->arena, text.data(), text.size(), &made));
  return Layout(inside_.get(), made);
}

inline Layout LayoutArena::from_bytes(const std::vector<uint8_t> &bytes) const {
  const sonde_layout_t *made = nullptr;
  inside_->host.check(inside_->layouts->from_bytes(inside_->arena, bytes.data(), bytes.size(), &made));
  return Layout(inside_.get(), made);
}

}  // namespace sonde

#endif
