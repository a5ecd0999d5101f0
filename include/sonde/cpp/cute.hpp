// CuTe layouts, layouts of any size and searches with value syntax. See sonde/sonde.hpp.
//
//   sonde::Cute a(arena, "(6,2):(8,2)");
//   std::optional<sonde::Cute> b = a.compose("(4,3):(3,1)");   // ((2,2),3):((24,2),8)
//
// Handles into an arena, as Layout is; the names are those of the C tables in cute.h, layout_modular.h and
// layout_search.h. What may have no solution is an optional, other failures are the exception sonde::Failure.
#ifndef SONDE_CPP_CUTE_HPP
#define SONDE_CPP_CUTE_HPP

#include <sonde/cpp/layout.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sonde {

class Cute {
 public:
  Cute(const LayoutArena &arena, const std::string &text) : Cute(arena, nullptr) {
    check(service().parse(arena_->get(), text.data(), text.size(), &handle_));
  }
  Cute(const LayoutArena &arena, const sonde_cute_t *handle) : arena_(&arena), handle_(handle) {}

  const sonde_cute_t *get() const { return handle_; }
  sonde_cute_info_t info() const {
    sonde_cute_info_t result{};
    result.struct_size = sizeof(result);
    check(service().info(handle_, &result));
    return result;
  }
  int64_t size() const { return info().size; }
  int64_t cosize() const { return info().cosize; }
  int64_t operator()(int64_t coordinate) const {
    int64_t index = 0;
    check(service().apply(handle_, coordinate, &index));
    return index;
  }
  std::string print() const {
    uint64_t needed = 0;
    check(service().print(handle_, nullptr, 0, &needed));
    std::string text(needed + 1, '\0');
    check(service().print(handle_, text.data(), text.size(), &needed));
    text.resize(needed);
    return text;
  }
  friend bool operator==(const Cute &a, const Cute &b) {
    uint32_t same = 0;
    a.check(a.service().equal(a.handle_, b.handle_, 0, &same));
    return same != 0;
  }

  // SONDE_CUTE_COALESCE ... NULLSPACE
  std::optional<Cute> transform(uint32_t what) const {
    return found(service().transform, handle_, what, static_cast<const char *>(nullptr));
  }
  std::optional<Cute> compose(const std::string &tiler) const {
    return found(service().compose, handle_, tiler.c_str());
  }
  std::optional<Cute> complement(int64_t least = 1) const { return found(service().complement, handle_, least); }
  std::optional<Cute> divide(const std::string &tiler, uint32_t how = SONDE_CUTE_LOGICAL) const {
    return found(service().divide, handle_, how, tiler.c_str());
  }
  std::optional<Cute> product(const std::string &tiler, uint32_t how = SONDE_CUTE_LOGICAL) const {
    return found(service().product, handle_, how, tiler.c_str());
  }

  // As a linear layout; empty where it is not linear. Dims are names with sizes.
  using Sizes = std::vector<std::pair<std::string, uint64_t>>;
  std::optional<Layout> to_linear(const Sizes &ins, const Sizes &outs) const {
    const auto in_dims = arena_->dims(ins);
    const auto out_dims = arena_->dims(outs);
    const sonde_layout_t *out = nullptr;
    const sonde_status status =
        service().to_linear(arena_->get(), print().c_str(), in_dims.data(), static_cast<uint32_t>(in_dims.size()),
                            out_dims.data(), static_cast<uint32_t>(out_dims.size()), &out);
    if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
    check(status);
    return Layout(*arena_, out);
  }

 private:
  const sonde_cute_service_t &service() const { return arena_->host().service<sonde_cute_service_t>(); }
  void check(sonde_status status) const { arena_->host().check(status); }
  template <typename Function, typename... Arguments>
  std::optional<Cute> found(Function function, Arguments... arguments) const {
    const sonde_cute_t *out = nullptr;
    const sonde_status status = function(arena_->get(), arguments..., &out);
    if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
    check(status);
    return Cute(*arena_, out);
  }

  const LayoutArena *arena_;
  const sonde_cute_t *handle_;
};

// A layout whose dims have any size.
class ModularLayout {
 public:
  struct In {
    std::string name;
    uint64_t size;
    std::vector<std::vector<uint64_t>> bases;  // a row for each bit of size - 1, a value for each out dim
  };
  ModularLayout(const LayoutArena &arena, const std::vector<In> &ins,
                const std::vector<std::pair<std::string, uint64_t>> &outs)
      : ModularLayout(arena, nullptr) {
    std::vector<sonde_modular_dim_t> in_dims;
    std::vector<sonde_modular_dim_t> out_dims;
    std::vector<uint64_t> values;
    for (const auto &[name, size] : outs) out_dims.push_back({arena.dim(name), 0, size});
    for (const In &in : ins) {
      in_dims.push_back({arena.dim(in.name), 0, in.size});
      if (in.size == 0 || in.bases.size() != static_cast<size_t>(std::bit_width(in.size - 1))) {
        throw Failure(SONDE_E_INVALID, "in dim " + in.name + " needs a basis for each bit of its size - 1");
      }
      for (const auto &row : in.bases) {
        if (row.size() != outs.size())
          throw Failure(SONDE_E_INVALID, "a basis of " + in.name + " has the wrong length");
        values.insert(values.end(), row.begin(), row.end());
      }
    }
    check(service().make(arena.get(), in_dims.data(), static_cast<uint32_t>(in_dims.size()), out_dims.data(),
                         static_cast<uint32_t>(out_dims.size()), values.data(), &handle_));
  }
  ModularLayout(const LayoutArena &arena, const sonde_modular_layout_t *handle) : arena_(&arena), handle_(handle) {}

  const sonde_modular_layout_t *get() const { return handle_; }
  std::vector<uint64_t> apply(const std::vector<uint64_t> &values) const {
    if (values.size() != count(SONDE_SIDE_IN)) throw Failure(SONDE_E_INVALID, "apply: one value for each in dim");
    std::vector<uint64_t> result(count(SONDE_SIDE_OUT));
    check(service().apply(handle_, values.data(), result.data()));
    return result;
  }
  // An input with these values; empty where there is none.
  std::optional<std::vector<uint64_t>> solve(const std::vector<uint64_t> &values) const {
    if (values.size() != count(SONDE_SIDE_OUT)) throw Failure(SONDE_E_INVALID, "solve: one value for each out dim");
    std::vector<uint64_t> result(count(SONDE_SIDE_IN));
    const sonde_status status = service().solve(arena_->get(), handle_, values.data(), result.data());
    if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
    check(status);
    return result;
  }
  std::optional<ModularLayout> product(const ModularLayout &outer) const {
    return found(service().product, handle_, outer.handle_);
  }
  std::optional<ModularLayout> compose(const ModularLayout &outer) const {
    return found(service().compose, handle_, outer.handle_);
  }
  std::optional<ModularLayout> invert() const { return found(service().invert, handle_); }
  std::optional<ModularLayout> invert_and_compose(const ModularLayout &outer) const {
    return found(service().invert_and_compose, handle_, outer.handle_);
  }

 private:
  const sonde_layout_modular_service_t &service() const {
    return arena_->host().service<sonde_layout_modular_service_t>();
  }
  void check(sonde_status status) const { arena_->host().check(status); }
  size_t count(uint32_t side) const {
    uint32_t result = 0;
    check(service().dims(handle_, side, nullptr, 0, &result));
    return result;
  }
  template <typename Function, typename... Arguments>
  std::optional<ModularLayout> found(Function function, Arguments... arguments) const {
    const sonde_modular_layout_t *out = nullptr;
    const sonde_status status = function(arena_->get(), arguments..., &out);
    if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
    check(status);
    return ModularLayout(*arena_, out);
  }

  const LayoutArena *arena_;
  const sonde_modular_layout_t *handle_;
};

// The register layout that a request asks for; empty where there is none. struct_size is set here.
inline std::optional<Layout> find_registers(const LayoutArena &arena, sonde_register_request_t request) {
  request.struct_size = sizeof(request);
  const sonde_layout_t *out = nullptr;
  const sonde_status status =
      arena.host().service<sonde_layout_search_service_t>().registers(arena.get(), &request, &out);
  if (status == SONDE_E_NO_SOLUTION) return std::nullopt;
  arena.host().check(status);
  return Layout(arena, out);
}

}  // namespace sonde

#endif
