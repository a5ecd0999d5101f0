#include "layouts.h"

namespace sonde::layout_lint {

Layouts::Layouts(const Host &host, const ir::Module &module)
    : host_(host),
      layouts_(host.service<sonde_layout_service_t>()),
      shapes_(host.service<sonde_layout_shape_service_t>()),
      encodings_(host.service<sonde_layout_encoding_service_t>()),
      plans_(host.service<sonde_layout_plan_service_t>()),
      module_(module.text()) {
  host.check(layouts_.open(kArenaBytes, &arena_));
}

Layouts::~Layouts() {
  for (auto &[text, known] : known_) {
    if (known.encoding != nullptr) encodings_.release(known.encoding);
  }
  layouts_.close(arena_);
}

const sonde_encoding_t *Layouts::encoding(std::string_view text, std::string *reason) {
  const auto [place, is_new] = known_.try_emplace(text);
  Known &known = place->second;
  if (is_new &&
      encodings_.parse(text.data(), text.size(), module_.data(), module_.size(), &known.encoding) != SONDE_OK) {
    known.encoding = nullptr;
    known.reason = "the encoding " + std::string(text) + " cannot be read: " + last_error();
    ++unparsed_;
  }
  *reason = known.reason;
  return known.encoding;
}

LayoutOrReason Layouts::layout_of(const ir::Type *type) {
  LayoutOrReason result;
  if (type == nullptr) {
    result.reason = "the type is not written in the module";
    return result;
  }
  if (type->encoding.empty()) {
    result.reason = "the type " + std::string(type->text) + " has no encoding: this is no TTGIR, or a stage before it";
    return result;
  }
  const sonde_encoding_t *const encoding = this->encoding(type->encoding, &result.reason);
  if (encoding == nullptr) return result;
  std::vector<uint64_t> shape;
  const size_t rank = type->shape.size();
  const bool is_part = type->allocation.size() >= rank;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = is_part ? type->allocation[type->allocation.size() - rank + i] : type->shape[i];
    if (size < 0) {
      result.reason = "the type " + std::string(type->text) + " has a dynamic shape";
      return result;
    }
    shape.push_back(static_cast<uint64_t>(size));
  }
  if (encodings_.layout(arena_, encoding, shape.data(), static_cast<uint32_t>(rank), &result.layout) != SONDE_OK) {
    result.layout = nullptr;
    result.reason = "the type " + std::string(type->text) + " has no layout: " + last_error();
  }
  return result;
}

sonde_layout_view_t Layouts::view(const sonde_layout_t *layout) const {
  sonde_layout_view_t view{};
  host_.check(layouts_.view(layout, &view));
  return view;
}

std::vector<uint64_t> columns_of(const sonde_layout_view_t &view, sonde_dim_t in) {
  std::vector<uint64_t> columns;
  for (uint32_t dim = 0; dim < view.in_count; ++dim) {
    if (view.ins[dim].name != in) continue;
    for (uint32_t bit = 0; bit < view.ins[dim].bits; ++bit) columns.push_back(view.columns[view.ins[dim].shift + bit]);
  }
  return columns;
}

uint64_t part_of(const sonde_layout_view_t &view, uint64_t flat, uint32_t index) {
  const sonde_layout_dim_t &dim = view.outs[index];
  if (dim.bits == 0) return 0;
  return (flat >> dim.shift) & (UINT64_MAX >> (64 - dim.bits));
}

}  // namespace sonde::layout_lint
