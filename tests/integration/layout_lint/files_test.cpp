// Modules as Triton dumped them, damaged ones, and the options.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "lint_case.h"
#include "options.h"

namespace sonde::layout_lint {
namespace {

const std::string kFolder = std::string(SONDE_TEST_SOURCE_DIR) + "/tests/data/layouts/ttgir";

std::string read(const std::string &path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Occurrences of an operation's name as the text has it, whatever the reader makes of it.
size_t count_in(const std::string &text, const std::string &name) {
  size_t count = 0;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char next = text[at + name.size()];
    count += next == ' ' || next == '"' ? 1 : 0;
  }
  return count;
}

TEST(Files, EverySiteOfTheTextIsFoundAndPlanned) {
  size_t files = 0, conversions = 0;
  for (const auto &entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string text = read(entry.path().string());
    const FileResult result = lint(text);
    EXPECT_EQ(result.error, "") << entry.path();
    EXPECT_EQ(result.unparsed, 0u) << entry.path();
    std::map<std::string, size_t> found;
    for (const Site &site : result.sites) {
      ++found[site.operation];
      EXPECT_FALSE(site.plan.empty()) << entry.path() << ":" << site.ir_line << " " << site.reason;
      EXPECT_NE(site.line, 0u) << entry.path() << ":" << site.ir_line;
      EXPECT_NE(site.kernel, "");
    }
    for (const char *const name : {"ttg.convert_layout", "ttg.local_load", "ttg.local_store", "tt.load", "tt.store",
                                   "tt.reduce", "tt.dot", "ttng.warp_group_dot", "ttg.async_copy_global_to_local"}) {
      EXPECT_EQ(found[name], count_in(text, name)) << entry.path() << " " << name;
    }
    conversions += found["ttg.convert_layout"];
    ++files;
  }
  EXPECT_GE(files, 5u);
  EXPECT_GE(conversions, 1u);
}

// The compiler wrote down the width that it found for the copies of grouped_order_clamped, swizzled_tail, ...:
// "contiguity = 8 : i32" of 16-bit elements is 128 bits.
TEST(Files, WidthsOfCopiesAreThoseThatTheCompilerFound) {
  size_t compared = 0;
  for (const auto &entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string text = read(entry.path().string());
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    for (const Site &site : lint(text).sites) {
      if (site.operation != "ttg.async_copy_global_to_local") continue;
      const std::string &line = lines[site.ir_line - 1];
      const size_t at = line.find("contiguity = ");
      if (at == std::string::npos) continue;
      const uint64_t bits = line.find("xf32") != std::string::npos ? 32 : 16;
      EXPECT_EQ(site.vector_bits, std::strtoull(line.c_str() + at + 13, nullptr, 10) * bits)
          << entry.path() << ":" << site.ir_line;
      ++compared;
    }
  }
  EXPECT_GE(compared, 1u);
}

// matmul_hopper: 64x128 and 128x64 of 16 bits in memory with the widest swizzle; the result, 64x64 of 16 bits.
TEST(Files, MatmulHopper) {
  const FileResult result = lint(read(kFolder + "/matmul_hopper.ttgir"));
  EXPECT_EQ(result.target, "cuda:90");
  EXPECT_EQ(result.sites.size(), 7u);
  const Site &dot = site_of(result, "ttng.warp_group_dot");
  EXPECT_EQ(dot.shared_bytes, 2u * 64 * 128 * 2);
  EXPECT_TRUE(dot.issues.empty());
  const Site &conversion = site_of(result, "ttg.convert_layout");
  EXPECT_EQ(conversion.line, 100u);
  EXPECT_EQ(conversion.plan, "shared memory");
  EXPECT_EQ(*conversion.shared_bytes * *conversion.repetitions, 64u * 64 * 2);
  // A lane has 2 elements of 16 bits in a row; rows of 90 elements are 180 bytes apart, a multiple of 4.
  const Site &load = site_of(result, "tt.load");
  EXPECT_EQ(load.vector_bits, 32u);
  EXPECT_EQ(load.sectors, 4u);
}

TEST(Files, DamagedModulesAreReadOrRefused) {
  const char *const cases = std::getenv("SONDE_CASES");
  const size_t count = cases == nullptr ? 2000 : std::strtoull(cases, nullptr, 10);
  std::mt19937_64 random(11);
  for (const char *const name : {"/swizzled_tail.ttgir", "/descriptor_argument.ttgir"}) {
    const std::string whole = read(kFolder + name);
    for (size_t i = 0; i < count / 20; ++i) {
      std::string text = whole;
      for (uint64_t change = 1 + random() % 6; change-- > 0;) {
        const size_t place = random() % text.size();
        if (random() % 2 == 0) {
          text[place] = "0123456789x#%,<>[]"[random() % 18];
        } else {
          text.erase(place, 1 + random() % 6);
        }
      }
      for (const Site &site : lint(text).sites) EXPECT_TRUE(!site.plan.empty() || !site.reason.empty());
    }
  }
}

TEST(Files, WhatIsNoModuleIsCounted) {
  const FileResult result = lint("no module\n");
  EXPECT_EQ(result.unparsed, 1u);
  EXPECT_EQ(result.error, "1:1: the name of an operation was expected");
  Options options;
  options.files = {"/nonexistent/x.ttgir"};
  Lint missing(Host(sonde_host()), options);
  EXPECT_THROW(missing.run(), Failure);
  options.files = {kFolder};
  Lint folder(Host(sonde_host()), options);
  folder.run();
  EXPECT_GE(folder.files().size(), 5u);
  EXPECT_EQ(folder.unparsed(), 0u);
  EXPECT_EQ(folder.unsupported(), 0u);
}

TEST(Options, DefaultsAreThoseOfTheDeclaration) {
  const Host host(sonde_host());
  const auto &service = host.service<sonde_config_service_t>();
  sonde_config_t *config = nullptr;
  host.check(service.check(nullptr, "defaults", kOptionSpecs, kOptionCount, sizeof(sonde_option_t), &config));
  const Options read = read_options(host, Config(host, config));
  const Options own;
  EXPECT_EQ(read.files, own.files);
  EXPECT_EQ(read.matrix_instructions, own.matrix_instructions);
  EXPECT_EQ(read.banks, own.banks);
  EXPECT_EQ(read.least_vector_bits, own.least_vector_bits);
  EXPECT_EQ(read.least_efficiency, own.least_efficiency);
  EXPECT_EQ(read.least_conflicts, own.least_conflicts);
  EXPECT_EQ(read.least_copies, own.least_copies);
  EXPECT_EQ(read.reports_notes, own.reports_notes);
  service.release(config);
}

}  // namespace
}  // namespace sonde::layout_lint
