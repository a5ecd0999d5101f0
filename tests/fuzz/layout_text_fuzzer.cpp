// Arbitrary bytes as layouts in JSON, in bytes, and as CuTe text. The first byte chooses which. What is read is written
// and read back to the same; nothing may crash or hang.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layout/cute_algebra.h"
#include "layout/cute_convert.h"
#include "layout/cute_tiling.h"
#include "layout/serial.h"

namespace sonde::layout {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_cute(Arena &arena, std::string_view text) {
  const size_t cut = text.find('|');
  const CuteLayout *const a = parse_cute(arena, text.substr(0, cut));
  if (a == nullptr) return;
  const CuteLayout *const again = parse_cute(arena, to_string(*a));
  require(again != nullptr && equal(*a, *again));
  if (const CuteLayout *const simple = coalesce(arena, *a)) require(equal_as_functions(*a, *simple));
  (void)right_inverse(arena, *a);
  (void)left_inverse(arena, *a);
  (void)complement(arena, *a, 1);
  if (cut == std::string_view::npos) return;
  const CuteTiler *const tiler = parse_cute_tiler(arena, text.substr(cut + 1));
  if (tiler == nullptr) return;
  (void)logical_divide(arena, *a, *tiler);
  (void)zipped_product(arena, *a, *tiler);
  const CuteLayout *const result = compose(arena, *a, *tiler);
  if (result == nullptr || tiler->layout == nullptr) return;
  for (int64_t i = 0; i < result->size() && i < 64; ++i) require(result->apply(i) == a->apply(tiler->layout->apply(i)));
}

}  // namespace
}  // namespace sonde::layout

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace sonde::layout;
  if (size == 0) return 0;
  Arena arena(16 << 20);
  const std::string_view text(reinterpret_cast<const char *>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      if (const Layout *const layout = from_json(arena, text)) {
        const Layout *const again = from_json(arena, to_json(*layout));
        require(again != nullptr && equal(*layout, *again));
      }
      break;
    case 1:
      if (const Layout *const layout = from_bytes(arena, {data + 1, size - 1})) {
        const auto bytes = to_bytes(*layout);
        require(bytes.size() == size - 1 && std::equal(bytes.begin(), bytes.end(), data + 1));
      }
      break;
    default:
      read_cute(arena, text);
  }
  return 0;
}
