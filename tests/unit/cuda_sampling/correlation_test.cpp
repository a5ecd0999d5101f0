// The line reader against CUPTI's own, which reads cubins without a GPU. Skipped where CUPTI is not installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include <sonde/toolkit/cubin_lines.h>

#include "cupti_api.h"

namespace sonde::toolkit {
namespace {

struct CorrelationParams {
  size_t size;
  const void *cubin;
  const char *function;
  size_t bytes;
  uint32_t line;
  uint64_t pc;
  char *file;
  char *folder;
};

TEST(CubinLinesAgainstCupti, EveryInstructionHasTheSameLine) {
  const cuda::CuptiApi cupti = cuda::open_cupti("");
  if (!cupti.complete()) GTEST_SKIP() << cupti.error;
  using Correlate = int (*)(CorrelationParams *);
  const auto correlate = reinterpret_cast<Correlate>(
      dlsym(dlopen(cupti.path.c_str(), RTLD_NOW | RTLD_LOCAL), "cuptiGetSassToSourceCorrelation"));
  if (correlate == nullptr) GTEST_SKIP() << cupti.path << " does not correlate";

  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/hot_line.cubin", std::ios::binary);
  const std::vector<uint8_t> image(std::istreambuf_iterator<char>(file), {});
  std::string error;
  const auto lines = CubinLines::read(image, error);
  ASSERT_TRUE(lines) << error;
  uint64_t compared = 0;
  for (const auto &function : lines->functions()) {
    if (function.name.front() == '$') continue;  // CUPTI finds these under their kernel only
    for (uint64_t pc = 0; pc < function.bytes; pc += 16) {
      CorrelationParams ask = {sizeof(ask), image.data(), function.name.c_str(), image.size(), 0, pc, nullptr, nullptr};
      ASSERT_EQ(correlate(&ask), 0);
      const auto mine = lines->find(function.name, pc);
      ASSERT_FALSE(mine.empty());
      EXPECT_EQ(mine.front().line, ask.line) << function.name << " + " << pc;
      EXPECT_EQ(mine.front().file, std::string(ask.folder) + "/" + ask.file);
      free(ask.file);
      free(ask.folder);
      ++compared;
    }
  }
  EXPECT_EQ(compared, (2432u + 384u) / 16);  // the sizes of `hot` and `second` in the symbol table
}

}  // namespace
}  // namespace sonde::toolkit
