#include "layout/serial.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

namespace sonde::layout {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kMagic[4] = {'S', 'N', 'D', 'L'};
constexpr uint8_t kVersion = 1;
constexpr uint64_t kMostJsonBytes = 16 << 20;

std::string quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string row_text(std::span<const Dim> outs, uint64_t value) {
  std::string text = "[";
  for (const Dim &out : outs) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(out.of(value));
  }
  return text + "]";
}

const Layout *parse_error(Arena &arena, const std::string &text) {
  arena.fail(Fault::kParse, "layout: " + text);
  return nullptr;
}

// log2 of a size written as a number or as "2^k".
bool read_bits(const Json &value, uint32_t &bits) {
  if (value.is_number_unsigned() && is_power_of_two(value.get<uint64_t>())) {
    bits = lowest_bit(value.get<uint64_t>());
    return true;
  }
  if (!value.is_string()) return false;
  const auto &text = value.get_ref<const std::string &>();
  if (text.size() < 3 || text.size() > 4 || text.compare(0, 2, "2^") != 0) return false;
  bits = 0;
  for (size_t i = 2; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    bits = bits * 10 + static_cast<uint32_t>(text[i] - '0');
  }
  return bits <= kMaxBits;
}

bool is_entry(const Json &entry) { return entry.is_array() && entry.size() == 2 && entry[0].is_string(); }

bool read_row(const Json &row, size_t size, std::vector<uint64_t> &out) {
  if (!row.is_array() || row.size() != size) return false;
  for (const Json &value : row) {
    if (!value.is_number_unsigned()) return false;
    out.push_back(value.get<uint64_t>());
  }
  return true;
}

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool take(void *out, size_t size) {
    if (bytes_.size() - at_ < size) return false;
    if (size == 0) return true;  // `out` may then be nullptr
    std::memcpy(out, bytes_.data() + at_, size);
    at_ += size;
    return true;
  }
  bool text(size_t size, std::string &out) {
    out.resize(size);
    return take(out.data(), size);
  }
  bool pad() {
    while (at_ % 8 != 0) {
      uint8_t zero = 1;
      if (!take(&zero, 1) || zero != 0) return false;
    }
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string to_json(const Layout &layout) {
  std::string text = "{\"in\": [";
  for (const Dim &in : layout.ins()) {
    if (&in != layout.ins().data()) text += ", ";
    text += "[" + quoted(dim_text(in.name)) + ", [";
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      if (bit != 0) text += ", ";
      text += row_text(layout.outs(), layout.columns_of(in)[bit]);
    }
    text += "]]";
  }
  text += "], \"out\": [";
  for (const Dim &out : layout.outs()) {
    if (&out != layout.outs().data()) text += ", ";
    text += "[" + quoted(dim_text(out.name)) + ", " +
            (out.bits < 64 ? std::to_string(uint64_t{1} << out.bits) : "\"2^64\"") + "]";
  }
  text += "]";
  if (layout.offset() != 0) text += ", \"offset\": " + row_text(layout.outs(), layout.offset());
  return text + "}";
}

const Layout *from_json(Arena &arena, std::string_view text) {
  if (text.size() > kMostJsonBytes) return parse_error(arena, "more than 16 MiB of JSON");
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const Json::exception &error) {  // also numbers past what any type holds
    return parse_error(arena, "not JSON: " + std::string(error.what()));
  }
  if (!json.is_object() || !json.contains("in") || !json.contains("out") || !json["in"].is_array() ||
      !json["out"].is_array()) {
    return parse_error(arena, "expected an object with the arrays \"in\" and \"out\"");
  }
  for (const auto &[key, value] : json.items()) {
    if (key != "in" && key != "out" && key != "offset") return parse_error(arena, "unknown key \"" + key + "\"");
  }
  std::vector<DimSize> ins;
  std::vector<DimSize> outs;
  std::vector<uint64_t> rows;
  for (const Json &entry : json["out"]) {
    uint32_t bits = 0;
    if (!is_entry(entry) || !read_bits(entry[1], bits)) {
      return parse_error(arena, "an out dim is [name, size], the size a power of two: " +
                                    entry.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    outs.push_back({intern_dim(entry[0].get<std::string>()), bits});
  }
  for (const Json &entry : json["in"]) {
    if (!is_entry(entry) || !entry[1].is_array() || entry[1].size() > kMaxBits) {
      return parse_error(arena, "an in dim is [name, bases], at most 64 of them");
    }
    for (const Json &row : entry[1]) {
      if (read_row(row, outs.size(), rows)) continue;
      return parse_error(arena, "a basis of \"" + entry[0].get<std::string>() + "\" is a row of " +
                                    std::to_string(outs.size()) + " numbers from 0 on");
    }
    ins.push_back({intern_dim(entry[0].get<std::string>()), static_cast<uint32_t>(entry[1].size())});
  }
  const Layout *const layout = make_from_bases(arena, ins, outs, rows);
  if (layout == nullptr || !json.contains("offset")) return layout;
  std::vector<uint64_t> offset;
  if (!read_row(json["offset"], outs.size(), offset)) {
    return parse_error(arena, "the offset is a row of " + std::to_string(outs.size()) + " numbers from 0 on");
  }
  return with_offset(arena, *layout, offset);
}

std::vector<uint8_t> to_bytes(const Layout &layout) {
  std::vector<uint8_t> bytes(kMagic, kMagic + 4);
  const auto put = [&bytes](const void *data, size_t size) {
    const auto *const begin = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  const uint8_t head[4] = {kVersion, static_cast<uint8_t>(layout.ins().size()),
                           static_cast<uint8_t>(layout.outs().size()), 0};
  put(head, sizeof(head));
  for (const auto side : {layout.ins(), layout.outs()}) {
    for (const Dim &dim : side) {
      const std::string_view name = dim_text(dim.name).substr(0, 255);
      const uint8_t entry[2] = {dim.bits, static_cast<uint8_t>(name.size())};
      put(entry, sizeof(entry));
      put(name.data(), name.size());
    }
  }
  bytes.resize((bytes.size() + 7) / 8 * 8);
  put(layout.columns().data(), layout.columns().size_bytes());
  const uint64_t tail[2] = {layout.offset(), hash(layout)};
  put(tail, sizeof(tail));
  return bytes;
}

const Layout *from_bytes(Arena &arena, std::span<const uint8_t> bytes) {
  const auto damaged = [&arena](const char *what) -> const Layout * {
    arena.fail(Fault::kCorrupt, std::string("layout: ") + what);
    return nullptr;
  };
  Reader reader(bytes);
  uint8_t head[8];
  if (!reader.take(head, sizeof(head)) || std::memcmp(head, kMagic, sizeof(kMagic)) != 0) {
    return damaged("these bytes do not begin as a layout does");
  }
  if (head[4] != kVersion || head[7] != 0) return damaged("a version that this reader does not know");
  std::vector<DimSize> sides[2];
  uint32_t in_bits = 0;
  for (int side = 0; side < 2; ++side) {
    for (uint32_t i = 0; i < head[5 + side]; ++i) {
      uint8_t entry[2];
      std::string name;
      if (!reader.take(entry, sizeof(entry)) || !reader.text(entry[1], name)) return damaged("cut short");
      sides[side].push_back({intern_dim(name), entry[0]});
      if (side == 0) in_bits += entry[0];
    }
  }
  if (in_bits > kMaxBits || !reader.pad()) return damaged("more than 64 in bits, or wrong padding");
  std::vector<uint64_t> columns(in_bits);
  uint64_t tail[2];
  if (!reader.take(columns.data(), columns.size() * 8) || !reader.take(tail, sizeof(tail))) return damaged("cut short");
  if (!reader.at_end()) return damaged("bytes follow the layout");
  const Layout *const layout = make_layout(arena, sides[0], sides[1], columns, tail[0]);
  if (layout == nullptr) {
    arena.fail(Fault::kCorrupt, "layout: " + arena.text());
    return nullptr;
  }
  return hash(*layout) == tail[1] ? layout : damaged("the hash does not match");
}

}  // namespace sonde::layout
