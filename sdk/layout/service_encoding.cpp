// Service sonde.layout_encoding/1.
#include <sonde/layout_encoding.h>

#include <string_view>

#include "layout/attribute.h"
#include "layout/boundary.h"
#include "layout/service_tables.h"

namespace sonde::layout {
namespace {

constexpr uint64_t kMostParameterValues = 1 << 20;

// What stands behind a handle.
struct Handle {
  EncodingPointer encoding;
};

const Handle *inside(const sonde_encoding_t *encoding) { return reinterpret_cast<const Handle *>(encoding); }

sonde_status give(EncodingPointer encoding, sonde_encoding_t **out) {
  *out = reinterpret_cast<sonde_encoding_t *>(new Handle{std::move(encoding)});
  return SONDE_OK;
}

sonde_status refuse_attribute(const char *function, const AttributeError &error) {
  return refuse(SONDE_E_PARSE, std::string(function) + ": at byte " + std::to_string(error.offset) + ": " + error.text);
}

sonde_status parse(const char *text, uint64_t bytes, const char *module, uint64_t module_bytes,
                   sonde_encoding_t **out) noexcept {
  if (text == nullptr || out == nullptr || (module == nullptr && module_bytes != 0)) {
    return refuse(SONDE_E_INVALID, "layout_encoding.parse: the text and out are needed");
  }
  *out = nullptr;
  return guarded([&] {
    AliasTable aliases;
    if (module != nullptr) aliases = scan_attributes({module, module_bytes}).aliases;
    AttributeError error;
    EncodingPointer encoding = parse_attribute({text, bytes}, aliases, error);
    return encoding != nullptr ? give(std::move(encoding), out) : refuse_attribute("layout_encoding.parse", error);
  });
}

// Parameters become the attribute's text, so that both are read by the same rules.
void append_list(std::string &text, const uint64_t *values, uint32_t count) {
  text += '[';
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(values[i]);
  }
  text += ']';
}

bool is_word(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  for (const char letter : text) {
    const bool fits = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '_';
    if (!fits) return false;
  }
  return true;
}

bool append_parameter(std::string &text, const sonde_encoding_parameter_t &parameter) {
  const uint64_t count = uint64_t{parameter.rows} * parameter.columns;
  if (parameter.name == nullptr || !is_word(parameter.name) || count > kMostParameterValues) return false;
  const bool is_list = parameter.is_rows != 0 || parameter.rows != 0 || parameter.columns != 0;
  if (parameter.values == nullptr && (!is_list || count != 0)) return false;
  text += parameter.name;
  text += " = ";
  if (!is_list) {
    text += parameter.is_flag == 0 ? std::to_string(parameter.values[0]) : parameter.values[0] != 0 ? "true" : "false";
  } else if (parameter.is_rows == 0) {
    append_list(text, parameter.values, static_cast<uint32_t>(count));
  } else {
    text += '[';
    for (uint32_t row = 0; row < parameter.rows; ++row) {
      if (row != 0) text += ", ";
      append_list(text, parameter.values + uint64_t{row} * parameter.columns, parameter.columns);
    }
    text += ']';
  }
  return true;
}

sonde_status make(const char *kind, const sonde_encoding_parameter_t *parameters, uint32_t count,
                  const sonde_encoding_t *parent, sonde_encoding_t **out) noexcept {
  if (out != nullptr) *out = nullptr;
  if (kind == nullptr || out == nullptr || (parameters == nullptr && count != 0)) {
    return refuse(SONDE_E_INVALID, "layout_encoding.make: a kind, parameters and out are needed");
  }
  if (!is_word(kind)) return refuse(SONDE_E_INVALID, "layout_encoding.make: the kind is one word");
  return guarded([&] {
    const std::string_view word = kind;
    const bool is_tensor_memory = word.starts_with("tensor_memory");
    std::string text = std::string(is_tensor_memory ? "#ttng." : "#ttg.") + kind + "<{";
    bool is_first = true;
    for (uint32_t i = 0; i < count; ++i) {
      if (!is_first) text += ", ";
      is_first = false;
      if (!append_parameter(text, parameters[i])) {
        return refuse(SONDE_E_INVALID,
                      "layout_encoding.make: parameter " + std::to_string(i) + " has no name, no values, or too many");
      }
    }
    if (parent != nullptr) {
      if (!is_first) text += ", ";
      text += "parent = " + attribute_text(*inside(parent)->encoding);
    }
    text += "}>";
    AttributeError error;
    EncodingPointer encoding = parse_attribute(text, {}, error);
    if (encoding != nullptr) return give(std::move(encoding), out);
    return refuse(SONDE_E_INVALID, "layout_encoding.make: " + error.text + " (read as " + text + ")");
  });
}

sonde_status release(sonde_encoding_t *encoding) noexcept {
  delete reinterpret_cast<Handle *>(encoding);
  return SONDE_OK;
}

sonde_status scan(const char *module, uint64_t bytes,
                  sonde_status (*found)(void *user, const sonde_found_encoding_t *attribute), void *user,
                  uint64_t *unparsed) noexcept {
  if (module == nullptr && bytes != 0) return refuse(SONDE_E_INVALID, "layout_encoding.scan: the module is NULL");
  return guarded([&] {
    const ModuleAttributes all = scan_attributes({module, bytes});
    if (unparsed != nullptr) *unparsed = all.unparsed;
    if (found == nullptr) return SONDE_OK;
    for (const FoundAttribute &attribute : all.found) {
      const Handle handle{attribute.encoding};
      const sonde_found_encoding_t entry = {
          attribute.offset, attribute.length, attribute.alias.c_str(),
          attribute.encoding == nullptr ? nullptr : reinterpret_cast<const sonde_encoding_t *>(&handle),
          attribute.error.text.c_str()};
      if (const sonde_status status = found(user, &entry); status < 0) return status;
    }
    return SONDE_OK;
  });
}

sonde_status text_of(const sonde_encoding_t *encoding, char *text, uint64_t capacity, uint64_t *needed) noexcept {
  if (encoding == nullptr) return refuse(SONDE_E_INVALID, "layout_encoding.text: the encoding is NULL");
  return guarded([&] { return give_text(attribute_text(*inside(encoding)->encoding), text, capacity, needed); });
}

sonde_status kind_of(const sonde_encoding_t *encoding, const char **kind, uint32_t *space) noexcept {
  if (encoding == nullptr) return refuse(SONDE_E_INVALID, "layout_encoding.kind: the encoding is NULL");
  const EncodingKind own = inside(encoding)->encoding->kind;
  if (kind != nullptr) *kind = encoding_kind_text(own).data();  // texts of literals
  if (space != nullptr) *space = static_cast<uint32_t>(encoding_space(own));
  return SONDE_OK;
}

static_assert(static_cast<uint32_t>(EncodingSpace::kRegisters) == SONDE_ENCODING_REGISTERS &&
              static_cast<uint32_t>(EncodingSpace::kShared) == SONDE_ENCODING_SHARED &&
              static_cast<uint32_t>(EncodingSpace::kTensorMemory) == SONDE_ENCODING_TENSOR_MEMORY);

bool is_shape(const void *shape, uint32_t rank) { return (shape != nullptr || rank == 0) && rank <= dim::kNumbered; }

sonde_status refuse_shape(const char *function) noexcept {
  return guarded([&] {
    return refuse(SONDE_E_INVALID, std::string(function) + ": an encoding and a shape of at most 32 dims are needed");
  });
}

sonde_status layout_of(sonde_layout_arena_t *arena, const sonde_encoding_t *encoding, const uint64_t *shape,
                       uint32_t rank, const sonde_layout_t **out) noexcept {
  if (encoding == nullptr || !is_shape(shape, rank)) {
    if (out != nullptr) *out = nullptr;
    return refuse_shape("layout_encoding.layout");
  }
  return make_in("layout_encoding.layout", arena, out, [&](Arena &a) {
    return encoding_layout(a, *inside(encoding)->encoding, {shape, rank});
  });
}

sonde_status padded(const sonde_encoding_t *encoding, uint64_t offset, uint64_t *out) noexcept {
  if (encoding == nullptr || out == nullptr) {
    return refuse(SONDE_E_INVALID, "layout_encoding.padded_address: an encoding and out are needed");
  }
  *out = padded_address(inside(encoding)->encoding->paddings, offset);
  return SONDE_OK;
}

sonde_status share(sonde_layout_arena_t *arena, const sonde_encoding_t *encoding, const uint64_t *shape, uint32_t rank,
                   uint64_t *shares, uint64_t *elements_per_thread) noexcept {
  if (arena == nullptr || encoding == nullptr || !is_shape(shape, rank)) return refuse_shape("layout_encoding.share");
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Encoding &what = *inside(encoding)->encoding;
    if (shares != nullptr && !shape_per_cta(own, what, {shape, rank}, {shares, rank})) return refuse(own);
    if (elements_per_thread == nullptr) return SONDE_OK;
    if (encoding_space(what.kind) != EncodingSpace::kRegisters) {
      return refuse(SONDE_E_INVALID, "layout_encoding.share: memory has no elements of a thread");
    }
    *elements_per_thread = total_elements_per_thread(own, what, {shape, rank});
    return *elements_per_thread == 0 ? refuse(own) : SONDE_OK;
  });
}

sonde_status swizzle_for(sonde_layout_arena_t *arena, const sonde_encoding_t *operand, const uint64_t *shape,
                         const uint32_t *order, uint32_t rank, uint32_t element_bits, uint32_t needs_transposition,
                         sonde_encoding_t **out) noexcept {
  if (out != nullptr) *out = nullptr;
  if (arena == nullptr || operand == nullptr || out == nullptr || !is_shape(shape, rank) || !is_shape(order, rank)) {
    return refuse_shape("layout_encoding.swizzle_for_operand");
  }
  return guarded([&] {
    Arena &own = layout::inside(arena);
    Encoding chosen = swizzle_for_operand(own, *inside(operand)->encoding, {shape, rank}, {order, rank}, element_bits,
                                          needs_transposition != 0);
    if (chosen.kind == EncodingKind::kNone) return refuse(own);
    return give(std::make_shared<const Encoding>(std::move(chosen)), out);
  });
}

sonde_status default_swizzle(const uint64_t *shape, const uint32_t *order, uint32_t rank, uint32_t element_bits,
                             uint32_t *bytes) noexcept {
  if (bytes == nullptr || rank == 0 || element_bits == 0 || !is_shape(shape, rank) || !is_shape(order, rank)) {
    return refuse_shape("layout_encoding.default_swizzle");
  }
  uint64_t seen = 0;
  for (uint32_t i = 0; i < rank; ++i) seen |= order[i] < rank ? uint64_t{1} << order[i] : 0;
  if (seen != low_mask(rank))
    return refuse(SONDE_E_INVALID, "layout_encoding.default_swizzle: `order` ranks each dim once");
  *bytes = default_swizzle_bytes({shape, rank}, {order, rank}, element_bits);
  return SONDE_OK;
}

}  // namespace

const sonde_layout_encoding_service_t kEncodingService = {
    sizeof(sonde_layout_encoding_service_t),
    0,
    parse,
    make,
    release,
    scan,
    text_of,
    kind_of,
    layout_of,
    padded,
    share,
    swizzle_for,
    default_swizzle,
};

}  // namespace sonde::layout
