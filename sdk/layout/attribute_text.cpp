// Encodings written out.
#include "layout/attribute.h"
#include "layout/attribute_fields.h"

namespace sonde::layout {
namespace {

using attribute::Field;
using attribute::Presence;
using attribute::Special;

template <typename Number>
std::string list_text(const std::vector<Number> &values) {
  std::string text = "[";
  for (const auto &value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

std::string bases_text(const Bases &rows) {
  std::string text = "[";
  for (const auto &row : rows) {
    if (text.size() > 1) text += ", ";
    text += list_text(row);
  }
  return text + "]";
}

// The value of a field; empty where it need not be written.
std::string special_text(const Encoding &encoding, Special special) {
  switch (special) {
    case Special::kParent:
      return encoding.parent == nullptr ? "" : attribute_text(*encoding.parent);
    case Special::kCtasPerCga:
      return encoding.cga.ctas_per_cga.empty() ? "" : list_text(encoding.cga.ctas_per_cga);
    case Special::kCtaSplitNum:
      return encoding.cga.cta_split_num.empty() ? "" : list_text(encoding.cga.cta_split_num);
    case Special::kCtaOrder:
      return encoding.cga.cta_order.empty() ? "" : list_text(encoding.cga.cta_order);
    case Special::kCgaLayout:
      return encoding.cga.block.empty() ? "" : bases_text(encoding.cga.block);
    case Special::kCtaLayout: {
      if (encoding.register_bases.empty() && encoding.warp_bases.empty()) return "";
      std::string text = "{";
      if (!encoding.register_bases.empty()) text += "register = " + bases_text(encoding.register_bases) + ", ";
      return text + "warp = " + bases_text(encoding.warp_bases) + "}";
    }
    case Special::kBlockRepOrder:
      return encoding.k_then_mn ? "kThenMn" : "";
    case Special::kVersion:
      // Minor versions are no longer written, but what has one keeps it.
      return std::to_string(encoding.version_major) +
             (encoding.version_minor == 0 ? "" : "." + std::to_string(encoding.version_minor));
    default:
      return "";
  }
}

std::string field_text(const Encoding &encoding, const Field &field) {
  static const Encoding defaults;
  const bool is_optional = field.presence == Presence::kOptional;
  return std::visit(
      [&](auto target) -> std::string {
        using Type = decltype(target);
        if constexpr (std::is_same_v<Type, Special>) {
          return special_text(encoding, target);
        } else {
          const auto &value = encoding.*target;
          if (is_optional && value == defaults.*target) return "";
          if constexpr (std::is_same_v<Type, bool Encoding::*>) {
            return value ? "true" : "false";
          } else if constexpr (std::is_same_v<Type, Bases Encoding::*>) {
            return bases_text(value);
          } else if constexpr (std::is_same_v<Type, uint32_t Encoding::*> ||
                               std::is_same_v<Type, uint64_t Encoding::*>) {
            return std::to_string(value);
          } else {
            return list_text(value);
          }
        }
      },
      field.target);
}

}  // namespace

std::string attribute_text(const Encoding &encoding) {
  if (encoding.kind == EncodingKind::kNone) return "none";
  std::string parameters;
  std::string behind;
  for (const Field &field : attribute::fields_of(encoding.kind)) {
    if (field.presence == Presence::kFormer) continue;
    const std::string value = field_text(encoding, field);
    if (value.empty()) continue;
    const std::string one = std::string(field.key) + " = " + value;
    if (field.key == "alignment") {
      behind = ", " + one;
    } else {
      parameters += (parameters.empty() ? "" : ", ") + one;
    }
  }
  std::string text = "#" + std::string(attribute::dialect_of(encoding.kind)) + "." +
                     std::string(encoding_kind_text(encoding.kind)) + "<";
  if (attribute::has_bare_parameters(encoding.kind) || encoding.kind == EncodingKind::kScaleShared) {
    return text + parameters + ">";
  }
  if (encoding.kind == EncodingKind::kPaddedShared) {
    std::string pads;
    for (const Padding &padding : encoding.paddings) {
      pads += (pads.empty() ? "" : ", ") + std::to_string(padding.interval) + ":+" + std::to_string(padding.pad);
    }
    text += "[" + pads + "] ";
  }
  return text + "{" + parameters + "}" + behind + ">";
}

}  // namespace sonde::layout
