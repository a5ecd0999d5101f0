#include "layout/attribute.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "layout/attribute_fields.h"

namespace sonde::layout {
namespace {

using attribute::Field;
using attribute::is_letter;
using attribute::is_name_letter;
using attribute::Presence;
using attribute::Special;

// Parameters that are no members: formerly used forms that become members when everything has been read.
struct Former {
  bool has_leading_offset = false;
  bool has_version = false;
  uint64_t split_m = 1;
  uint64_t split_n = 1;
};

uint32_t nesting_of(const Encoding &encoding) {
  uint32_t depth = 1;
  for (const Encoding *parent = encoding.parent.get(); parent != nullptr; parent = parent->parent.get()) ++depth;
  return depth;
}

// Recursive descent; every function returns false once `error_` is set.
class Parser {
 public:
  Parser(std::string_view text, const AliasTable &aliases, AttributeError &error)
      : text_(text), aliases_(aliases), error_(error) {}

  // `depth`: the attributes around this one.
  EncodingPointer attribute(uint32_t depth) {
    skip_spaces();
    const size_t start = at_;
    if (!take('#')) return fail(start, "expected '#'"), nullptr;
    const std::string_view name = word(is_name_letter);
    if (name.empty()) return fail(at_, "expected a name after '#'"), nullptr;
    if (!take('.')) return alias(name, start, depth);
    const size_t kind_start = at_;
    const std::string_view kind_name = word(is_letter);
    const auto kind = attribute::is_layout_dialect(name) ? attribute::kind_of(kind_name) : std::nullopt;
    if (!kind) {
      const std::string full = std::string(name) + "." + std::string(kind_name);
      return fail(kind_start, "expected the name of a layout, not #" + full), nullptr;
    }
    if (depth >= kMaxNesting) return fail(start, "expected at most 32 attributes inside each other"), nullptr;
    auto encoding = std::make_shared<Encoding>();
    encoding->kind = *kind;
    if (!body(*encoding, start, depth)) return nullptr;
    return encoding;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  size_t at() const { return at_; }
  bool fail(size_t offset, std::string text) {
    error_.offset = offset;
    error_.text = std::move(text);
    return false;
  }

 private:
  bool peek(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  // Without spaces before it.
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_after_spaces(char c) { return peek(c) && take(c); }
  bool expect(char c, const char *where) {
    if (take_after_spaces(c)) return true;
    return fail(at_, std::string("expected '") + c + "' " + where);
  }
  std::string_view word(bool (*is_part)(char)) {
    const size_t start = at_;
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  EncodingPointer alias(std::string_view name, size_t start, uint32_t depth) {
    const auto found = aliases_.find(name);
    if (found == aliases_.end() || found->second == nullptr) {
      return fail(start, "expected a layout; #" + std::string(name) + " is not one that has been defined"), nullptr;
    }
    // Names may stand for attributes that name others, so that depth is not bounded by the text.
    if (depth + nesting_of(*found->second) > kMaxNesting) {
      return fail(start, "expected at most 32 attributes inside each other"), nullptr;
    }
    return found->second;
  }

  bool number(uint64_t &value) {
    skip_spaces();
    const size_t start = at_;
    value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) {
        return fail(start, "expected a number below 2^64");
      }
      value = value * 10 + digit;
      ++at_;
    }
    return at_ != start || fail(start, "expected a number that is not negative");
  }
  bool number(uint32_t &value) {
    skip_spaces();
    const size_t start = at_;
    uint64_t wide = 0;
    if (!number(wide)) return false;
    if (wide > std::numeric_limits<uint32_t>::max()) return fail(start, "expected a number below 2^32");
    value = static_cast<uint32_t>(wide);
    return true;
  }
  bool boolean(bool &value) {
    skip_spaces();
    const size_t start = at_;
    const std::string_view text = word(is_letter);
    value = text == "true" || text == "1";
    return value || text == "false" || text == "0" || fail(start, "expected true or false");
  }
  // "[" item, item "]"
  template <typename Item>
  bool list(const char *what, Item item) {
    if (!take_after_spaces('[')) return fail(at_, std::string("expected '[' of ") + what);
    if (take_after_spaces(']')) return true;
    do {
      if (!item()) return false;
    } while (take_after_spaces(','));
    return expect(']', "or ',' in the list");
  }
  template <typename Number>
  bool numbers(std::vector<Number> &values) {
    values.clear();
    return list("a list of numbers", [&] {
      values.emplace_back();
      return number(values.back());
    });
  }
  bool bases(Bases &rows) {
    rows.clear();
    return list("a list of bases", [&] {
      rows.emplace_back();
      return numbers(rows.back());
    });
  }

  // key = value, key = value; up to `end`, which is read.
  template <typename Value>
  bool parameters(char end, Value value) {
    if (take_after_spaces(end)) return true;
    do {
      skip_spaces();
      const size_t start = at_;
      const std::string_view key = word(is_letter);
      if (key.empty()) return fail(start, "expected the name of a parameter");
      if (!expect('=', "after the name of a parameter") || !value(key, start)) return false;
    } while (take_after_spaces(','));
    return take_after_spaces(end) || fail(at_, std::string("expected ',' or '") + end + "' after a parameter");
  }

  bool body(Encoding &encoding, size_t start, uint32_t depth) {
    const std::span<const Field> fields = attribute::fields_of(encoding.kind);
    const std::string_view name = encoding_kind_text(encoding.kind);
    uint64_t seen = 0;
    Former former;
    const auto value = [&](std::string_view key, size_t key_start) {
      for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].key != key) continue;
        if ((seen >> i & 1) != 0) return fail(key_start, "expected " + std::string(key) + " only once");
        seen |= uint64_t{1} << i;
        return set(encoding, fields[i], former, depth);
      }
      return fail(key_start, "expected a parameter of " + std::string(name) + ", which has no " + std::string(key));
    };
    if (!take('<')) {
      // Without parameters there may be nothing.
      if (!attribute::has_bare_parameters(encoding.kind) && encoding.kind != EncodingKind::kScaleShared) {
        return fail(at_, "expected '<' after " + std::string(name));
      }
    } else if (attribute::has_bare_parameters(encoding.kind) || encoding.kind == EncodingKind::kScaleShared) {
      if (!parameters('>', value)) return false;
    } else {
      if (encoding.kind == EncodingKind::kPaddedShared && !paddings(encoding)) return false;
      if (!expect('{', "before the parameters") || !parameters('}', value)) return false;
      // Of shared linear memory the alignment stands outside.
      if (take_after_spaces(',')) {
        if (!parameters('>', value)) return false;
      } else if (!expect('>', "at the end of the attribute")) {
        return false;
      }
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].presence != Presence::kRequired || (seen >> i & 1) != 0) continue;
      if (fields[i].key == "versionMajor" && former.has_version) continue;
      return fail(start, "expected " + std::string(fields[i].key) + " among the parameters of " + std::string(name));
    }
    return finish(encoding, former, start);
  }

  // [interval:+pad, ...]
  bool paddings(Encoding &encoding) {
    return list("the paddings [interval:+pad]", [&] {
      Padding padding{};
      if (!number(padding.interval) || !expect(':', "after the interval") || !expect('+', "before the pad") ||
          !number(padding.pad)) {
        return false;
      }
      encoding.paddings.push_back(padding);
      return true;
    });
  }

  bool set(Encoding &encoding, const Field &field, Former &former, uint32_t depth) {
    return std::visit(
        [&](auto target) {
          using Type = decltype(target);
          if constexpr (std::is_same_v<Type, Special>) {
            return set_special(encoding, target, former, depth);
          } else if constexpr (std::is_same_v<Type, bool Encoding::*>) {
            return boolean(encoding.*target);
          } else if constexpr (std::is_same_v<Type, Bases Encoding::*>) {
            return bases(encoding.*target);
          } else if constexpr (std::is_same_v<Type, uint32_t Encoding::*> ||
                               std::is_same_v<Type, uint64_t Encoding::*>) {
            return number(encoding.*target);
          } else {
            return numbers(encoding.*target);
          }
        },
        field.target);
  }

  bool set_special(Encoding &encoding, Special special, Former &former, uint32_t depth) {
    bool ignored = false;
    switch (special) {
      case Special::kParent:
        encoding.parent = attribute(depth + 1);
        return encoding.parent != nullptr;
      case Special::kCtasPerCga:
        return numbers(encoding.cga.ctas_per_cga);
      case Special::kCtaSplitNum:
        return numbers(encoding.cga.cta_split_num);
      case Special::kCtaOrder:
        return numbers(encoding.cga.cta_order);
      case Special::kCgaLayout:
        return bases(encoding.cga.block);
      case Special::kCtaLayout:
        return expect('{', "before the bases") && parameters('}', [&](std::string_view key, size_t start) {
                 if (key == "register") return bases(encoding.register_bases);
                 if (key == "warp") return bases(encoding.warp_bases);
                 return fail(start, "expected register or warp");
               });
      case Special::kBlockRepOrder: {
        skip_spaces();
        const size_t start = at_;
        const std::string_view order = word(is_letter);
        encoding.k_then_mn = order == "kThenMn";
        return encoding.k_then_mn || order == "mnThenK" || fail(start, "expected kThenMn or mnThenK");
      }
      case Special::kVersion:
        former.has_version = true;
        return number(encoding.version_major) && (!take('.') || number(encoding.version_minor));
      case Special::kNonKDim: {
        uint64_t size = 0;
        if (!number(size)) return false;
        encoding.instruction_shape = {size, size};
        return true;
      }
      case Special::kElementType: {
        skip_spaces();
        const size_t start = at_;
        const std::string_view type = word(is_letter);
        encoding.element_bits = type == "f64" ? 64 : 0;
        return !type.empty() || fail(start, "expected a type");
      }
      case Special::kHasLeadingOffset:
        return boolean(former.has_leading_offset);
      case Special::kUnpacked:
        return boolean(ignored);
      case Special::kSplitM:
        return number(former.split_m);
      case Special::kSplitN:
        return number(former.split_n);
    }
    return false;
  }

  bool finish(Encoding &encoding, const Former &former, size_t start) {
    if (encoding.kind == EncodingKind::kNvidiaMma && encoding.instruction_shape.empty()) {
      if (encoding.version_major == 3) return fail(start, "expected instrShape among the parameters of nvidia_mma");
      if (encoding.version_major == 2) encoding.instruction_shape = {16, 8};
    }
    // The only one there was when it had no number.
    if (encoding.kind == EncodingKind::kWmma && !former.has_version) encoding.version_major = 1;
    if (encoding.kind == EncodingKind::kMfma && encoding.instruction_shape.empty()) {
      return fail(start, "expected instrShape among the parameters of amd_mfma");
    }
    if (encoding.kind == EncodingKind::kMfma && encoding.element_bits == 32) encoding.element_bits = 0;
    if (encoding.kind == EncodingKind::kPaddedShared && encoding.order.empty() && encoding.offset_bases.empty()) {
      return fail(start, "expected offset or order among the parameters of padded_shared");
    }
    if (former.split_m != 1 || former.split_n != 1) {
      encoding.cga.ctas_per_cga = {former.split_m, former.split_n};
      encoding.cga.cta_split_num = encoding.cga.ctas_per_cga;
      encoding.cga.cta_order = {0, 1};
    }
    return !former.has_leading_offset || to_nvmma(encoding, start);
  }

  // vec * bits = 128, perPhase * bytes = 128, maxPhase * 16 = bytes.
  bool to_nvmma(Encoding &encoding, size_t start) {
    const bool is_known = (encoding.per_phase == 1 || encoding.per_phase == 2 || encoding.per_phase == 4) &&
                          encoding.max_phase * encoding.per_phase == 8 && encoding.vec >= 2 && encoding.vec <= 16 &&
                          128 % encoding.vec == 0 && !encoding.order.empty();
    if (!is_known) {
      return fail(start, "expected a swizzle of 32, 64 or 128 bytes where hasLeadingOffset is true");
    }
    Encoding nvmma;
    nvmma.kind = EncodingKind::kNvmmaShared;
    nvmma.swizzle_bytes = static_cast<uint32_t>(128 / encoding.per_phase);
    nvmma.element_bits = static_cast<uint32_t>(128 / encoding.vec);
    nvmma.transposed = encoding.order[0] + 1 != encoding.order.size();
    nvmma.cga = std::move(encoding.cga);
    encoding = std::move(nvmma);
    return true;
  }

  std::string_view text_;
  const AliasTable &aliases_;
  AttributeError &error_;
  size_t at_ = 0;
};

}  // namespace

EncodingPointer parse_attribute_at(std::string_view text, const AliasTable &aliases, AttributeError &error,
                                   size_t &length) {
  Parser parser(text, aliases, error);
  EncodingPointer encoding = parser.attribute(0);
  length = encoding == nullptr ? 0 : parser.at();
  return encoding;
}

EncodingPointer parse_attribute(std::string_view text, const AliasTable &aliases, AttributeError &error) {
  Parser parser(text, aliases, error);
  EncodingPointer encoding = parser.attribute(0);
  if (encoding == nullptr) return nullptr;
  parser.skip_spaces();
  if (parser.at() == text.size()) return encoding;
  parser.fail(parser.at(), "expected the end of the text");
  return nullptr;
}

}  // namespace sonde::layout
