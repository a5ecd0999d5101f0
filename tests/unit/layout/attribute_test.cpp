// Attribute texts: every kind there and back, the spellings of older compilers, real modules, and what is no attribute.
#include "layout/attribute.h"

#include <cctype>
#include <fstream>
#include <random>

#include "support.h"

namespace sonde::layout::test {
namespace {

using Sizes = std::vector<uint64_t>;

EncodingPointer parsed(std::string_view text, const AliasTable &aliases = {}) {
  AttributeError error;
  EncodingPointer encoding = parse_attribute(text, aliases, error);
  EXPECT_NE(encoding, nullptr) << text << ": " << error.text << " at " << error.offset;
  return encoding == nullptr ? std::make_shared<Encoding>() : encoding;
}

// In the newest spelling already: they are printed as they were read.
constexpr const char *kCanonical[] = {
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1], "
    "[0]]}>",
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CTAsPerCGA = [2], "
    "CTASplitNum = [1], CTAOrder = [0]}>",
    "#ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 0, parent = #ttg.linear<{register = [[0, 0, 1]], lane = [[0, 1, "
    "0]], warp = [[1, 0, 0]], block = []}>}>}>",
    "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>",
    "#ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 8], instrShape = [16, 16, 128], isTransposed = true, tilesPerWarp = "
    "[1, 2], elementBitWidth = 64}>",
    "#ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {register = [[0, 1]], warp = [[1, 0]]}, instrShape = "
    "[16, 16, 32]}>",
    "#ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
    "instrShape = [16, 8]}>, kWidth = 2}>",
    "#sonde.scale_op<{opIdx = 1, parent = #ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], "
    "instrShape = [16, 16, 128]}>, scaleBlock = 16}>",
    "#ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>",
    "#ttg.generic_linear<{register = [], lane = [[1], [2], [4], [8]], warp = [[3]], block = []}>",
    "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
    "#ttg.amd_rotating_shared<{vec = 4, perPhase = 2, maxPhase = 8, order = [0, 1]}>",
    "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true, rank = "
    "3}>",
    "#ttg.padded_shared<[32:+4, 64:+8] {order = [1, 0], shape = [64, 64]}>",
    "#ttg.padded_shared<[64:+4] {offset = [[1], [2], [4], [8], [64], [128], [16], [32]], block = [[0]]}>",
    "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [4, 0]], block = [[2, 0]]}, alignment = 16>",
    "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = "
    "#ttg.padded_shared<[128:+4] {order = [1, 0], shape = [16, 16]}>}>",
    "#sonde.scale_shared<>",
    "#ttng.tensor_memory_encoding<blockM = 64, blockN = 128, colStride = 2, fp4Padded = true, twoCTAs = true, "
    "CGALayout "
    "= [[1, 0]]>",
    "#ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn, CGALayout = [[0, 0]]>",
};

TEST(AttributeTest, EveryKindIsWrittenAsItWasRead) {
  uint32_t kinds = 0;
  for (const char *const text : kCanonical) {
    const EncodingPointer encoding = parsed(text);
    EXPECT_EQ(attribute_text(*encoding), text);
    EXPECT_TRUE(*parsed(attribute_text(*encoding)) == *encoding) << text;
    kinds |= 1u << static_cast<uint32_t>(encoding->kind);
  }
  // Each kind but kNone.
  EXPECT_EQ(kinds, (2u << static_cast<uint32_t>(EncodingKind::kTensorMemoryScales)) - 2);
  // None equals another.
  for (const char *const a : kCanonical) {
    for (const char *const b : kCanonical) EXPECT_EQ(*parsed(a) == *parsed(b), a == b) << a << "\n" << b;
  }
}

TEST(AttributeTest, OlderSpellingsMeanTheSame) {
  const std::pair<const char *, const char *> pairs[] = {
      {"#triton_gpu.blocked<{sizePerThread=[1, 4],threadsPerWarp = [8, 4], warpsPerCTA = [4, 1] ,order = [1, 0]}>",
       kCanonical[0]},
      {"#triton_gpu.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = []}>",
       "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"},
      {"#triton_gpu.mma<{version=2, warpsPerCTA=[1, 2]}>",
       "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>"},
      {"#ttg.amd_mfma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [32, 32], isTransposed = "
       "true}>",
       "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32], isTransposed = true}>"},
      {"#triton_gpu.mfma<{version = 3.0, warpsPerCTA = [4, 1], nonKDim = 32, isTranspose=false}>",
       "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32], isTransposed = false}>"},
      {"#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16], isTransposed = true, elementType = "
       "f64}>",
       "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16], isTransposed = true, elementBitWidth "
       "= "
       "64}>"},
      {"#triton_gpu.amd_wmma<{warpsPerCTA = [2, 2]}>",
       "#ttg.amd_wmma<{version = 1, isTranspose = false, warpsPerCTA = [2, 2]}>"},
      {"#triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0], hasLeadingOffset = false}>",
       "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>"},
      // vec * bits = 128, perPhase * bytes = 128.
      {"#triton_gpu.shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0], hasLeadingOffset = true}>",
       "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>"},
      {"#triton_gpu.shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1], hasLeadingOffset = true}>",
       "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>"},
      {"#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [], alignment = 16}>",
       "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>"},
      {"#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>",
       "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>"},
      {"#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true, CTASplitN = 2>",
       "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTAsPerCGA = [1, 2], CTASplitNum = [1, "
       "2], CTAOrder = [0, 1]>"},
      {"#triton_nvidia_gpu.tensor_memory_scales_encoding", "#ttng.tensor_memory_scales_encoding<>"},
      {" #ttg.slice<{\n  dim = 0,\n  parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], "
       "warpsPerCTA "
       "= [4, 1], order = [1, 0]}>\n}>\n",
       "#ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, "
       "1], order = [1, 0]}>}>"},
  };
  for (const auto &[older, newest] : pairs) {
    EXPECT_EQ(attribute_text(*parsed(older)), newest);
    EXPECT_TRUE(*parsed(older) == *parsed(newest)) << older;
  }
}

// The clusters of Triton 3.3 and of 3.6 in their own words: 2 x 2 blocks that share a tensor along dim 0 only.
TEST(AttributeTest, BothFormsOfAClusterGiveTheSameLayout) {
  const std::string head =
      "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = "
      "[1, 0], ";
  Arena arena;
  const Sizes shape{16, 4};
  const Layout *const split =
      encoding_layout(arena, *parsed(head + "CTAsPerCGA = [2, 2], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>"), shape);
  const Layout *const bases = encoding_layout(arena, *parsed(head + "CGALayout = [[0, 0], [1, 0]]}>"), shape);
  ASSERT_NE(split, nullptr) << arena.text();
  ASSERT_NE(bases, nullptr) << arena.text();
  EXPECT_EQ(text_of(split), text_of(bases));
}

TEST(AttributeTest, NamesAreLookedUpInTheTable) {
  AliasTable aliases;
  aliases["mma"] = parsed(kCanonical[4]);
  aliases["blocked1"] = parsed(kCanonical[0]);
  EXPECT_TRUE(*parsed("#blocked1", aliases) == *aliases["blocked1"]);
  const EncodingPointer operand = parsed("#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>", aliases);
  EXPECT_EQ(operand->parent, aliases["mma"]);
  EXPECT_EQ(operand->k_width, 2u);

  AttributeError error;
  size_t length = 0;
  const std::string_view type = "#blocked1>, %arg0";
  ASSERT_NE(parse_attribute_at(type, aliases, error, length), nullptr) << error.text;
  EXPECT_EQ(length, 9u);
}

TEST(AttributeTest, ErrorsSayWhereAndWhat) {
  struct Case {
    std::string text;
    size_t offset;
    const char *expected;
  };
  const Case bad[] = {
      {"", 0, "'#'"},
      {"blocked", 0, "'#'"},
      {"#", 1, "a name after '#'"},
      {"#blocked", 0, "#blocked is not one that has been defined"},
      {"#ttg.", 5, "the name of a layout, not #ttg."},
      {"#ttg.shared_memory", 5, "the name of a layout"},
      {"#other.blocked<{}>", 7, "not #other.blocked"},
      {"#ttg.slice", 10, "'<' after slice"},
      {"#ttg.slice<", 11, "'{'"},
      {"#ttg.slice<{", 12, "the name of a parameter"},
      {"#ttg.slice<{dim 1", 16, "'=' after"},
      {"#ttg.slice<{dim = -1}>", 18, "a number that is not negative"},
      {"#ttg.slice<{dim = 4294967296}>", 18, "below 2^32"},
      {"#ttg.swizzled_shared<{vec = 18446744073709551616}>", 28, "below 2^64"},
      {"#ttg.slice<{dim = 1 parent", 20, "',' or '}'"},
      {"#ttg.slice<{dim = 1, dim = 2}>", 21, "dim only once"},
      {"#ttg.slice<{dim = 1, size = 2}>", 21, "slice, which has no size"},
      {"#ttg.slice<{dim = 1}>", 0, "parent among the parameters of slice"},
      {"#ttg.slice<{dim = 1, parent = 7}>", 30, "'#'"},
      {"#ttg.slice<{dim = 1, parent = #mma}>", 30, "#mma"},
      {"#ttg.linear<{register = 1", 24, "'[' of a list of bases"},
      {"#ttg.linear<{register = [1]", 25, "'[' of a list of numbers"},
      {"#ttg.linear<{register = [[1, ]]", 29, "a number"},
      {"#ttg.linear<{register = [[1 2]]", 28, "']' or ','"},
      {"#ttg.nvmma_shared<{transposed = maybe}>", 32, "true or false"},
      {"#ttg.padded_shared<{order = [0]}>", 19, "'[' of the paddings"},
      {"#ttg.padded_shared<[4+1] {order = [0]}>", 21, "':'"},
      {"#ttg.padded_shared<[4:1] {order = [0]}>", 22, "'+'"},
      {"#ttg.padded_shared<[4:+1] {}>", 0, "offset or order"},
      {"#ttg.amd_wmma<{version = 3, ctaLayout = {lane = []}}>", 41, "register or warp"},
      {"#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1]}>", 0, "instrShape"},
      {"#ttg.shared<{vec = 3, perPhase = 1, maxPhase = 8, order = [0, 1], hasLeadingOffset = true}>", 0,
       "32, 64 or 128"},
      {"#ttng.tensor_memory_scales_encoding<blockRepOrder = sideways>", 52, "kThenMn or mnThenK"},
      {"#sonde.scale_shared<> 1", 22, "the end of the text"},
  };
  for (const Case &one : bad) {
    AttributeError error;
    EXPECT_EQ(parse_attribute(one.text, {}, error), nullptr) << one.text;
    EXPECT_EQ(error.offset, one.offset) << one.text << ": " << error.text;
    EXPECT_NE(error.text.find(one.expected), std::string::npos) << one.text << ": " << error.text;
    EXPECT_EQ(error.text.find("expected"), 0u) << error.text;
  }
}

std::string nested(uint32_t levels, const std::string &inner) {
  std::string text;
  for (uint32_t i = 0; i < levels; ++i) text += "#ttg.slice<{dim = 0, parent = ";
  text += inner;
  for (uint32_t i = 0; i < levels; ++i) text += "}>";
  return text;
}

TEST(AttributeTest, NestingIsBounded) {
  AttributeError error;
  EXPECT_NE(parse_attribute(nested(31, kCanonical[0]), {}, error), nullptr) << error.text;
  EXPECT_EQ(parse_attribute(nested(32, kCanonical[0]), {}, error), nullptr);
  EXPECT_NE(error.text.find("at most 32"), std::string::npos);
  EXPECT_EQ(error.offset, 32 * std::string("#ttg.slice<{dim = 0, parent = ").size());
  EXPECT_EQ(parse_attribute(nested(100000, kCanonical[0]), {}, error), nullptr);
  // By way of names too.
  AliasTable aliases;
  aliases["a0"] = parsed(kCanonical[0]);
  EncodingPointer last;
  uint32_t made = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    last = parse_attribute(nested(1, "#a" + std::to_string(i)), aliases, error);
    if (last == nullptr) break;
    aliases["a" + std::to_string(i + 1)] = last;
    ++made;
  }
  EXPECT_EQ(made, 31u);
}

// --- Modules ---

std::string read_module(const std::string &name) {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/layouts/ttgir/" + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Module {
  const char *name;
  size_t definitions;  // grep -cE '^#[a-z0-9]+ = #ttg\.[a-z_]+<'
  size_t in_place;     // grep -oE '#ttg\.[a-z_]+<' | wc -l, less the definitions and those behind "parent = "
};
constexpr Module kModules[] = {
    {"block3d_masked.ttgir", 1, 12}, {"descriptor_argument.ttgir", 3, 8}, {"grouped_order_clamped.ttgir", 5, 28},
    {"matmul_hopper.ttgir", 4, 21},  {"swizzled_tail.ttgir", 5, 8},
};

TEST(AttributeModuleTest, EveryAttributeOfRealModulesIsRead) {
  for (const Module &module : kModules) {
    const std::string text = read_module(module.name);
    const ModuleAttributes attributes = scan_attributes(text);
    EXPECT_EQ(attributes.unparsed, 0u) << module.name;
    size_t definitions = 0;
    for (const FoundAttribute &found : attributes.found) {
      definitions += found.alias.empty() ? 0 : 1;
      ASSERT_NE(found.encoding, nullptr);
      EXPECT_EQ(text[found.offset], '#');
      EXPECT_EQ(text[found.offset + found.length - 1], '>');
      EXPECT_TRUE(*parsed(attribute_text(*found.encoding)) == *found.encoding);
    }
    EXPECT_EQ(definitions, module.definitions) << module.name;
    EXPECT_EQ(attributes.found.size() - definitions, module.in_place) << module.name;
    EXPECT_EQ(attributes.aliases.size(), module.definitions) << module.name;
  }
}

// A type of a module that has a layout: tensor<32x32xf16, #blocked> and its kind.
struct ShapedType {
  Sizes shape;
  bool is_buffer;    // a memdesc
  size_t attribute;  // where its '#' stands
};

std::vector<ShapedType> shaped_types(const std::string &text) {
  std::vector<ShapedType> types;
  for (const std::string_view word : {"tensor<", "memdesc<"}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ShapedType type{};
      type.is_buffer = word.front() == 'm';
      size_t place = at + word.size();
      while (place < text.size() && std::isdigit(static_cast<unsigned char>(text[place])) != 0) {
        const size_t end = text.find_first_not_of("0123456789", place);
        if (end == std::string::npos || text[end] != 'x') break;
        type.shape.push_back(std::stoull(text.substr(place, end - place)));
        place = end + 1;
      }
      // The element type, which may have parameters of its own, then ", #".
      int depth = 0;
      while (place < text.size() && (depth > 0 || (text[place] != ',' && text[place] != '>'))) {
        depth += text[place] == '<' ? 1 : text[place] == '>' ? -1 : 0;
        ++place;
      }
      if (type.shape.empty() || text.compare(place, 3, ", #") != 0) continue;
      type.attribute = place + 2;
      types.push_back(std::move(type));
    }
  }
  return types;
}

TEST(AttributeModuleTest, EveryTypeOfRealModulesHasALayout) {
  Arena arena;
  size_t checked = 0;
  for (const Module &module : kModules) {
    const std::string text = read_module(module.name);
    const AliasTable aliases = scan_attributes(text).aliases;
    for (ShapedType &type : shaped_types(text)) {
      Sizes &shape = type.shape;
      AttributeError error;
      size_t length = 0;
      const EncodingPointer encoding =
          parse_attribute_at(std::string_view(text).substr(type.attribute), aliases, error, length);
      ASSERT_NE(encoding, nullptr) << text.substr(type.attribute, 60) << ": " << error.text;
      // Buffers of a pipeline have a leading dim that is none of the encoding's.
      const uint32_t rank = encoding_rank(*encoding);

      if (type.is_buffer && (rank == 0 ? shape.size() > 2 : shape.size() == rank + 1)) shape.erase(shape.begin());
      arena.reset();
      EXPECT_NE(encoding_layout(arena, *encoding, shape), nullptr)
          << text.substr(type.attribute, 60) << ": " << arena.text();
      ++checked;
    }
  }
  EXPECT_EQ(checked, 333u);  // grep -ohE '(tensor|memdesc)<([0-9]+x)+[^,<>]*(<[^<>]*>)?, #' *.ttgir | wc -l
}

// What a real compiler chose for operands A and B of 32x32 halves: vec 8, 2 rows a phase, 4 phases.
TEST(AttributeModuleTest, TheCompilersSwizzleIsChosenAgain) {
  const AliasTable aliases = scan_attributes(read_module("grouped_order_clamped.ttgir")).aliases;
  Arena arena;
  for (const auto &[memory, index] : {std::pair{"shared", 0}, std::pair{"shared1", 1}}) {
    const Encoding &chosen = *aliases.at(memory);
    const EncodingPointer operand =
        parsed("#ttg.dot_op<{opIdx = " + std::to_string(index) + ", parent = #mma, kWidth = 2}>", aliases);
    EXPECT_TRUE(swizzle_for_operand(arena, *operand, Sizes{32, 32}, chosen.order, 16, false) == chosen) << memory;
  }
}

TEST(AttributeModuleTest, DefinitionsCountFromWhereTheyStand) {
  const std::string text =
      "// #no = #ttg.blocked<{}>\n"
      "#smem = #ttg.shared_memory\n"
      "#loc = loc(\"#ttg.slice<{\":1:2)\n"
      "#a = #ttg.shared_linear<{offset = [[1]]}, alignment = 16>\n"
      "#same = #a\n"
      "module attributes {\"ttg.num-warps\" = 4 : i32} {\n"
      "  %0 = x.y : tensor<2xf32, #ttg.slice<{dim = 0, parent = #same}>>\n"
      "}\n"
      "// -----\n"
      "#a = #ttg.shared_linear<{offset = [[1], [2]]}, alignment = 16>\n"
      "#b = #ttg.slice<{dim = 0, parent = #a}>\n"
      "#bad = #ttg.slice<{dim = 0, parent = #later}>\n"
      "#worse = #ttg.tetrahedral<{}>\n"
      "#other = #gluon.auto_encoding\n";
  const ModuleAttributes attributes = scan_attributes(text);
  ASSERT_EQ(attributes.found.size(), 6u);
  EXPECT_EQ(attributes.unparsed, 2u);
  EXPECT_EQ(attributes.found[1].encoding->parent->offset_bases.size(), 1u);
  EXPECT_EQ(attributes.found[3].alias, "b");
  EXPECT_EQ(attributes.found[3].encoding->parent->offset_bases.size(), 2u);
  EXPECT_EQ(attributes.found[4].alias, "bad");
  EXPECT_EQ(attributes.found[4].error.offset, text.find("#later"));
  EXPECT_EQ(attributes.found[5].error.offset, text.find("tetrahedral"));
  EXPECT_EQ(attributes.aliases.at("bad"), nullptr);
}

// Texts with bytes changed, dropped or doubled: there is an encoding that can be written and read again, or an error
// that points into the text.
TEST(AttributeTest, DamagedTextsAreErrorsOrAttributes) {
  std::mt19937_64 random(5);
  uint64_t read = 0;
  for (uint64_t i = 0; i < cases(); ++i) {
    std::string text = kCanonical[random() % std::size(kCanonical)];
    for (uint64_t changes = 1 + random() % 3; changes != 0 && !text.empty(); --changes) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 4);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
        default:
          text[at] = std::isdigit(static_cast<unsigned char>(text[at])) != 0 ? "0123456789"[random() % 10]
                                                                             : "[]{}<>=,#."[random() % 10];
      }
    }
    AttributeError error;
    const EncodingPointer encoding = parse_attribute(text, {}, error);
    const ModuleAttributes scanned = scan_attributes(text);
    ASSERT_LE(scanned.unparsed, scanned.found.size());
    if (encoding == nullptr) {
      ASSERT_LE(error.offset, text.size()) << text;
      ASSERT_FALSE(error.text.empty()) << text;
      continue;
    }
    ++read;
    ASSERT_TRUE(*parsed(attribute_text(*encoding)) == *encoding) << text << "\n" << attribute_text(*encoding);
  }
  EXPECT_GT(read, cases() / 100);
}

}  // namespace
}  // namespace sonde::layout::test
