// Arbitrary bytes as attribute texts and as modules. The first byte chooses what they are:
//   even: one attribute, which is also turned into a layout of a few shapes;
//   odd: a module, of which every attribute is found.
// Nothing may crash, hang, or be written differently from how it is read back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layout/attribute.h"

namespace sonde::layout {
namespace {

// A layout has the shape that was asked for, a failure has a reason.
void convert(const Encoding &encoding) {
  static constexpr uint64_t kShapes[][4] = {
      {128, 64, 2, 4}, {16, 16, 16, 1}, {1, 1, 1, 1}, {4, 256, 32, 8}, {3, 5, 7, 9}};
  Arena arena(16 << 20);
  for (const auto &sizes : kShapes) {
    for (uint32_t rank = 1; rank <= 4; ++rank) {
      const std::span<const uint64_t> shape(sizes, rank);
      arena.reset();
      arena.fail(Fault::kNone, "");
      const Layout *const layout = encoding_layout(arena, encoding, shape);
      if (layout == nullptr) {
        if (arena.fault() == Fault::kNone || arena.text().empty()) std::abort();
        continue;
      }
      if (layout->outs().size() != rank) std::abort();
      for (uint32_t i = 0; i < rank; ++i) {
        if (uint64_t{1} << layout->outs()[i].bits != shape[i]) std::abort();
      }
      uint64_t part[4];
      if (!shape_per_cta(arena, encoding, shape, {part, rank})) std::abort();
    }
  }
}

void check_written(const Encoding &encoding) {
  AttributeError error;
  const EncodingPointer again = parse_attribute(attribute_text(encoding), {}, error);
  if (again == nullptr || !(*again == encoding)) std::abort();
  encoding_rank(encoding);
}

void read_one(std::string_view text) {
  static const AliasTable aliases = scan_attributes(
                                        "#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], "
                                        "warpsPerCTA = [4, 1], order = [1, 0]}>\n"
                                        "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, "
                                        "2], instrShape = [16, 8]}>\n")
                                        .aliases;
  AttributeError error;
  const EncodingPointer encoding = parse_attribute(text, aliases, error);
  if (encoding == nullptr) {
    if (error.offset > text.size() || error.text.empty()) std::abort();
    return;
  }
  check_written(*encoding);
  convert(*encoding);
}

void read_module(std::string_view text) {
  const ModuleAttributes attributes = scan_attributes(text);
  size_t unparsed = 0;
  size_t end = 0;
  for (const FoundAttribute &found : attributes.found) {
    if (found.offset < end || found.offset + found.length > text.size()) std::abort();
    end = found.offset + found.length;
    if (found.encoding == nullptr) {
      ++unparsed;
      if (found.error.offset > text.size() || found.error.text.empty()) std::abort();
    } else {
      check_written(*found.encoding);
    }
  }
  if (unparsed != attributes.unparsed) std::abort();
}

}  // namespace
}  // namespace sonde::layout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char *>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    sonde::layout::read_one(text);
  } else {
    sonde::layout::read_module(text);
  }
  return 0;
}
