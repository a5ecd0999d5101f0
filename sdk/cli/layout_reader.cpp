#include "cli/layout_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <unordered_map>

#include "toolkit/ttgir.h"

namespace sonde::cli {
namespace {

constexpr const char *kForms =
    "an attribute '#ttg...<{...}>', FILE:#alias, JSON '{\"in\": ...}', CuTe '(4,8):(8,1)' or @FILE";

struct ElementType {
  std::string_view name;
  uint32_t bits;
};

// As they lie in memory: a boolean takes a byte.
constexpr std::array kTypes = {
    ElementType{"i1", 8},   ElementType{"i4", 4},       ElementType{"i8", 8},     ElementType{"i16", 16},
    ElementType{"i32", 32}, ElementType{"i64", 64},     ElementType{"u8", 8},     ElementType{"u16", 16},
    ElementType{"u32", 32}, ElementType{"u64", 64},     ElementType{"f4", 4},     ElementType{"f8", 8},
    ElementType{"f16", 16}, ElementType{"bf16", 16},    ElementType{"tf32", 32},  ElementType{"f32", 32},
    ElementType{"f64", 64}, ElementType{"f8E4M3FN", 8}, ElementType{"f8E5M2", 8}, ElementType{"ptr", 64},
};

// Names of the aliases of a module, for messages.
std::string alias_list(const std::vector<FoundEncoding> &found) {
  std::vector<std::string> names;
  for (const FoundEncoding &one : found) {
    if (!one.alias.empty()) names.push_back("#" + one.alias);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Encoding encoding_of_alias(const Host &host, const std::string &module, const std::string &path,
                           const std::string &alias) {
  const std::vector<FoundEncoding> found = Encoding::scan(host, module);
  for (const FoundEncoding &one : found) {
    if ("#" + one.alias != alias) continue;
    if (!one.error.empty()) {
      throw CommandError(kUsage, fmt::format("{}: {} cannot be read: {}", path, alias, one.error));
    }
    return Encoding::parse(host, one.text);
  }
  throw CommandError(kUsage, fmt::format("{} has no layout {}; it has {}", path, alias, alias_list(found)));
}

bool fits(const LayoutArena &arena, const Encoding &encoding, const std::vector<uint64_t> &shape) {
  try {
    encoding.layout(arena, shape);
    return true;
  } catch (const Failure &) {
    return false;
  }
}

// The size that all elements of a layout have in a module; 0 where they differ.
uint32_t agreed_bits(const std::vector<UsedShape> &used) {
  uint32_t bits = used.empty() ? 0 : used.front().bits;
  for (const UsedShape &one : used) {
    if (one.bits != bits) bits = 0;
  }
  return bits;
}

// Some attributes of memories say their element's size.
uint32_t bits_in(const std::string &attribute) {
  constexpr std::string_view kField = "elementBitWidth = ";
  const size_t place = attribute.find(kField);
  uint32_t bits = 0;
  if (place != std::string::npos) {
    std::from_chars(attribute.data() + place + kField.size(), attribute.data() + attribute.size(), bits);
  }
  return bits;
}

NamedLayout shaped(const LayoutArena &arena, const std::string &name, const Encoding &encoding,
                   const std::vector<uint64_t> &shape, uint32_t bits) {
  return about(name, [&] {
    const std::string text = encoding.text();
    return NamedLayout{text, encoding, encoding.layout(arena, shape), bits != 0 ? bits : bits_in(text)};
  });
}

NamedLayout from_module(const LayoutArena &arena, const std::string &path, const std::string &alias,
                        const LayoutFlags &flags) {
  const std::string module = read_file(path);
  const Encoding encoding = encoding_of_alias(arena.host(), module, path, alias);
  std::vector<uint64_t> shape = flags.shape_sizes();
  uint32_t bits = flags.element_bits();
  std::vector<UsedShape> used = shapes_of(arena, module, alias, encoding);
  if (shape.empty()) {
    std::vector<std::vector<uint64_t>> shapes;
    for (const UsedShape &one : used) {
      if (std::find(shapes.begin(), shapes.end(), one.shape) == shapes.end()) shapes.push_back(one.shape);
    }
    if (shapes.size() != 1) {
      std::vector<std::string> texts;
      for (const auto &one : shapes) texts.push_back(shape_text(one));
      throw CommandError(kUsage, fmt::format("{}: give --shape{}", alias,
                                             texts.empty() ? ", as in --shape 128x64"
                                                           : fmt::format("; tensors of {} have the shapes {}", path,
                                                                         fmt::join(texts, ", "))));
    }
    shape = shapes.front();
  }
  if (bits == 0) bits = agreed_bits(used);
  return shaped(arena, alias, encoding, shape, bits);
}

// CuTe's text of a memory maps a tensor's coordinates to offsets; a layout of ours goes from the offset to the tensor.
Layout from_cute(const LayoutArena &arena, const std::string &text, const LayoutFlags &flags) {
  const Host &host = arena.host();
  const auto &service =
      host.service<sonde_cute_service_t>(SONDE_CUTE_SERVICE, SONDE_NEED(sonde_cute_service_t, from_linear));
  // "Sw<3,4,3> o 0 o (8,8):(8,1)": the shape is that of the last part.
  const size_t last = text.rfind(" o ");
  const std::string plain = last == std::string::npos ? text : text.substr(last + 3);
  const sonde_cute_t *parsed = nullptr;
  host.check(service.parse(arena.get(), plain.data(), plain.size(), &parsed));
  sonde_cute_info_t info{};
  info.struct_size = sizeof(info);
  host.check(service.info(parsed, &info));
  std::vector<uint64_t> shape = flags.shape_sizes();
  if (shape.empty()) {
    if (info.leaves != std::max<uint32_t>(info.rank, 1)) {
      throw CommandError(kUsage, text + ": its modes are nested; give the tensor's --shape");
    }
    std::vector<int64_t> shapes(info.leaves);
    std::vector<int64_t> strides(info.leaves);
    host.check(service.leaves(parsed, shapes.data(), strides.data()));
    shape.assign(shapes.begin(), shapes.end());
  }
  std::vector<sonde_layout_dim_t> ins;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::has_single_bit(shape[i])) {
      throw CommandError(kUsage,
                         fmt::format("{}: size {} is no power of two, so it is no linear layout", text, shape[i]));
    }
    ins.push_back({arena.dim(fmt::format("dim{}", i)), static_cast<uint8_t>(std::countr_zero(shape[i])), 0, 0});
  }
  const auto reach = static_cast<uint64_t>(std::max<int64_t>(info.cosize, 1));
  const sonde_layout_dim_t offset = {SONDE_DIM_OFFSET, static_cast<uint8_t>(std::bit_width(reach - 1)), 0, 0};
  const sonde_layout_t *made = nullptr;
  host.check(
      service.to_linear(arena.get(), text.c_str(), ins.data(), static_cast<uint32_t>(ins.size()), &offset, 1, &made));
  const Layout layout(arena, made);
  if (!layout.is_invertible()) {
    throw CommandError(kUsage,
                       text + ": offsets with holes or several elements are no layout from offsets to elements");
  }
  return layout.invert();
}

NamedLayout from_text(const LayoutArena &arena, const std::string &name, std::string_view text,
                      const LayoutFlags &flags) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const size_t end = text.find_last_not_of(" \t\r\n");
  const std::string body(begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1));
  if (text.starts_with("SNDL")) {
    return about_file(name, [&] {
      return NamedLayout{name, std::nullopt, arena.from_bytes(std::vector<uint8_t>(text.begin(), text.end())),
                         flags.element_bits()};
    });
  }
  if (body.starts_with('{')) {
    const auto read = [&] {
      return NamedLayout{name.starts_with('{') ? "layout from JSON" : name, std::nullopt, arena.from_json(body),
                         flags.element_bits()};
    };
    return name.starts_with('{') ? about("JSON", read) : about_file(name, read);
  }
  if (body.starts_with('#')) {
    if (body.find('<') == std::string::npos) {
      throw CommandError(kUsage, fmt::format("{} is an alias; name its file too: FILE.ttgir:{}", body, body));
    }
    const Encoding encoding = about(name, [&] { return Encoding::parse(arena.host(), body); });
    const std::vector<uint64_t> shape = flags.shape_sizes();
    if (shape.empty()) {
      throw CommandError(kUsage, fmt::format("{}: give the tensor's --shape, as in --shape 128x64", name));
    }
    return shaped(arena, name, encoding, shape, flags.element_bits());
  }
  if (body.starts_with('(') || body.starts_with("Sw<") || (!body.empty() && body[0] >= '0' && body[0] <= '9')) {
    return NamedLayout{body, std::nullopt, about(name, [&] { return from_cute(arena, body, flags); }),
                       flags.element_bits()};
  }
  throw CommandError(kUsage, fmt::format("\"{}\" names no layout; a layout is {}", name, kForms));
}

}  // namespace

void LayoutFlags::add(CLI::App &app) {
  app.add_option("--shape", shape, "The tensor's shape, sizes that are powers of two: 128x64");
  auto *const by_type = app.add_option("--type", type, "Type of the elements: f16, bf16, f32, f8, i8, ...");
  app.add_option("--bits", bits, "Bits of an element: 16")->check(CLI::Range(1, 128))->excludes(by_type);
}

uint32_t LayoutFlags::element_bits() const {
  if (bits != 0) return bits;
  if (type.empty()) return 0;
  for (const ElementType &known : kTypes) {
    if (known.name == type) return known.bits;
  }
  const std::string_view wanted = type;
  // The variants of 8-bit floats differ in what their bits mean only.
  if (wanted.starts_with("f8")) return 8;
  std::vector<std::string_view> names;
  for (const ElementType &known : kTypes) names.push_back(known.name);
  throw CommandError(kUsage,
                     fmt::format("--type {}: known types are {}; --bits takes any size", type, fmt::join(names, ", ")));
}

std::vector<uint64_t> LayoutFlags::shape_sizes() const {
  std::vector<uint64_t> sizes;
  const char *at = shape.data();
  const char *const end = at + shape.size();
  while (at != end) {
    uint64_t size = 0;
    const auto [next, fault] = std::from_chars(at, end, size);
    const bool goes_on = next != end && (*next == 'x' || *next == ',') && next + 1 != end;
    if (fault != std::errc{} || (next != end && !goes_on) || !std::has_single_bit(size)) {
      throw CommandError(kUsage, fmt::format("--shape {}: sizes are powers of two with x between them: 128x64", shape));
    }
    sizes.push_back(size);
    at = next == end ? end : next + 1;
  }
  return sizes;
}

NamedLayout read_layout(const LayoutArena &arena, const std::string &name, const LayoutFlags &flags) {
  if (const auto parts = module_and_alias(name)) return from_module(arena, parts->first, parts->second, flags);
  if (name.starts_with('@')) return from_text(arena, name.substr(1), read_file(name.substr(1)), flags);
  std::error_code ignored;
  if (!name.starts_with('#') && !name.starts_with('{') && std::filesystem::is_regular_file(name, ignored)) {
    throw CommandError(kUsage, fmt::format("{0} is a file: @{0} reads a layout from it, {0}:#alias an attribute of a "
                                           "module",
                                           name));
  }
  return from_text(arena, short_name(name), name, flags);
}

std::optional<Encoding> read_encoding(const Host &host, const std::string &name) {
  if (const auto parts = module_and_alias(name)) {
    return encoding_of_alias(host, read_file(parts->first), parts->first, parts->second);
  }
  if (!name.starts_with('#') || name.find('<') == std::string::npos) return std::nullopt;
  return about(short_name(name), [&] { return Encoding::parse(host, name); });
}

std::optional<std::pair<std::string, std::string>> module_and_alias(const std::string &name) {
  if (name.starts_with('#') || name.starts_with('{') || name.starts_with('@')) return std::nullopt;
  const size_t colon = name.find(":#");
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return std::pair{name.substr(0, colon), name.substr(colon + 1)};
}

std::vector<UsedShape> shapes_of(const LayoutArena &arena, std::string_view module, std::string_view alias,
                                 const Encoding &encoding) {
  namespace ttgir = toolkit::ttgir;
  ttgir::Error error;
  const std::optional<ttgir::Module> read = ttgir::Module::read(module, &error);
  std::vector<UsedShape> used;
  if (!read) return used;
  for (const ttgir::Type &type : read->types()) {
    if (type.encoding != alias || !type.is_static() || type.shape.empty()) continue;
    UsedShape one{{}, type.element == "i1" ? 8 : type.element_bits};
    // A part of a buffer lies as the whole does.
    for (const int64_t size : type.allocation.empty() ? type.shape : type.allocation) {
      one.shape.push_back(static_cast<uint64_t>(size));
    }
    if (type.kind == ttgir::TypeKind::kMemory && one.shape.size() > 1 && !fits(arena, encoding, one.shape)) {
      one.shape.erase(one.shape.begin());
    }
    if (std::find(used.begin(), used.end(), one) == used.end()) used.push_back(std::move(one));
  }
  return used;
}

std::string read_file(const std::string &path) {
  const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  std::string text;
  if (file != nullptr) {
    std::array<char, 65536> block;
    for (size_t count = 0; (count = std::fread(block.data(), 1, block.size(), file.get())) != 0;) {
      text.append(block.data(), count);
    }
  }
  if (file == nullptr || std::ferror(file.get()) != 0) {
    throw CommandError(kInput, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  return text;
}

void write_output(const std::string &path, std::string_view text) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  const std::string partial = path + ".partial";
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(partial.c_str(), "wb"), &std::fclose);
  bool is_written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  is_written = is_written && std::fclose(file.release()) == 0;
  std::error_code reason(is_written ? 0 : errno, std::generic_category());
  if (is_written) std::filesystem::rename(partial, path, reason);
  if (!reason) return;
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  throw CommandError(kInput, fmt::format("cannot write {}: {}", path, reason.message()));
}

std::string short_name(const std::string &name) { return name.size() <= 60 ? name : name.substr(0, 57) + "..."; }

int layout_exit_code(sonde_status status) {
  switch (status) {
    case SONDE_E_INTERNAL:
    case SONDE_E_FULL:
      return kInternal;
    case SONDE_E_CORRUPT:
      return kInput;
    default:
      return kUsage;
  }
}

std::string shape_text(const std::vector<uint64_t> &shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace sonde::cli
