// Checks files of layout vectors:
//
//   layout_vectors FILE.json...
//
// Two forms: {"vectors": [{"shape", "encoding", "expected"}, ...]}, encodings and the layouts they stand for, and
// [{"dim", "bitwidth", "src", "dst", "smem", "conflicts_read", "conflicts_write"}, ...], optimal swizzles. Prints the
// mismatches and "N checked, M mismatched" for each file; exits with 1 when there are mismatches, with 2 when a file
// cannot be read.
#include <cstdio>
#include <fstream>

#include "vectors_encoding.h"
#include "vectors_swizzle.h"

namespace {

using namespace sonde::layout;
using nlohmann::json;

std::string mismatch_of_encoding(Arena &arena, const json &vector) {
  const auto shape = vector.at("shape").get<std::vector<uint64_t>>();
  const Layout *const layout = encoding_layout(arena, test::encoding_of_json(vector.at("encoding")), shape);
  if (layout == nullptr) return arena.text();
  const Layout *const expected = test::layout_of_json(arena, vector.at("expected"));
  if (expected == nullptr) return "the expected layout is none: " + arena.text();
  return equal(*layout, *expected) ? "" : to_string(*layout);
}

int check_file(const char *path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be opened\n", path);
    return 2;
  }
  const json content = json::parse(file);
  const bool are_swizzles = content.is_array();
  uint64_t checked = 0;
  uint64_t mismatched = 0;
  Arena arena;
  for (const json &vector : are_swizzles ? content : content.at("vectors")) {
    arena.reset();
    const std::string mismatch =
        are_swizzles ? test::mismatch_of_swizzle(arena, vector) : mismatch_of_encoding(arena, vector);
    ++checked;
    if (mismatch.empty()) continue;
    ++mismatched;
    std::printf("%s\n  came out as %s\n", vector.dump().c_str(), mismatch.c_str());
  }
  std::printf("%llu checked, %llu mismatched\n", static_cast<unsigned long long>(checked),
              static_cast<unsigned long long>(mismatched));
  return mismatched == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: layout_vectors FILE.json...\n");
    return 2;
  }
  int result = 0;
  for (int i = 1; i < argc; ++i) {
    try {
      result = std::max(result, check_file(argv[i]));
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.what());
      result = 2;
    }
  }
  return result;
}
