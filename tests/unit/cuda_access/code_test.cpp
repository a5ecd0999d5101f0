// Which functions of a code object copy through tensor maps; damaged objects.
#include "code.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sonde::cuda::access {
namespace {

using Names = std::vector<std::string>;

std::vector<char> read(const char *name) {
  std::ifstream file(std::string(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/access/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Exactly as long as the image, so that a sanitizer sees a byte read past it.
Names functions_of(const char *image, size_t bytes) {
  const auto copy = std::make_unique<char[]>(bytes);
  std::memcpy(copy.get(), image, bytes);
  Names names = functions_with_tensor_copies(copy.get(), bytes);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(TensorCopies, TheKernelsThatUseAMapAreNamedAndNoOthers) {
  const std::vector<char> image = read("copies.cubin");
  ASSERT_FALSE(image.empty());
  EXPECT_EQ(functions_of(image.data(), image.size()), (Names{"tensor_load", "tensor_reduce", "tensor_store"}));
}

TEST(TensorCopies, CodeOfAnOlderCapabilityHasNone) {
  const std::vector<char> image = read("plain.cubin");
  ASSERT_FALSE(image.empty());
  EXPECT_EQ(functions_of(image.data(), image.size()), Names{});
}

TEST(TensorCopies, WhatIsNoCodeObjectHasNone) {
  EXPECT_EQ(functions_with_tensor_copies(nullptr, 0), Names{});
  EXPECT_EQ(functions_of("", 0), Names{});
  const std::string ptx(4096, 'x');
  EXPECT_EQ(functions_of(ptx.data(), ptx.size()), Names{});
}

TEST(TensorCopies, TruncatedImagesAreRead) {
  const std::vector<char> image = read("copies.cubin");
  for (size_t bytes = 0; bytes < image.size(); bytes += bytes < 256 ? 1 : 37) {
    const Names names = functions_of(image.data(), bytes);
    EXPECT_LE(names.size(), 3u) << bytes;
  }
}

TEST(TensorCopies, DamagedHeadersAreRead) {
  const std::vector<char> image = read("copies.cubin");
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof(header));
  std::mt19937_64 random(7);
  static constexpr uint64_t kWords[] = {0, 1, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63};
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> damaged = image;
    // In the header or the section headers, which hold offsets and sizes.
    const size_t tables = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
    size_t at = random() % 2 == 0 ? random() % sizeof(header) : header.e_shoff + random() % (tables - header.e_shoff);
    at &= ~size_t{7};
    const uint64_t word = random() % 2 == 0 ? kWords[random() % std::size(kWords)] : random() % (2 * image.size());
    std::memcpy(damaged.data() + at, &word, std::min(sizeof(word), damaged.size() - at));
    (void)functions_of(damaged.data(), damaged.size());
  }
}

TEST(TensorCopies, RandomBytesBehindAGoodHeaderAreRead) {
  const std::vector<char> image = read("copies.cubin");
  std::mt19937_64 random(8);
  for (int round = 0; round < 2000; ++round) {
    std::vector<char> damaged = image;
    for (size_t at = sizeof(Elf64_Ehdr); at < damaged.size(); ++at) damaged[at] = static_cast<char>(random());
    (void)functions_of(damaged.data(), damaged.size());
  }
}

}  // namespace
}  // namespace sonde::cuda::access
