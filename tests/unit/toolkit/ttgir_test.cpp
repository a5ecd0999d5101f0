// The reader of TTIR and TTGIR: small texts with what they mean, dumped modules, and texts that are no module.
#include <gtest/gtest.h>
#include <sonde/toolkit/ttgir.h>

#include <time.h>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace sonde::toolkit::ttgir;

Module must_read(std::string_view text) {
  Error error;
  std::optional<Module> module = Module::read(text, &error);
  if (!module) {
    ADD_FAILURE() << error.place.line << ":" << error.place.column << ": " << error.text;
    return *Module::read("module {\n}", nullptr);
  }
  return std::move(*module);
}

Error must_refuse(std::string_view text) {
  Error error;
  EXPECT_FALSE(Module::read(text, &error).has_value()) << text;
  EXPECT_FALSE(error.text.empty());
  return error;
}

const Operation &find(const Module &module, std::string_view name, size_t which = 0) {
  for (const Operation &operation : module.operations()) {
    if (operation.name == name && which-- == 0) return operation;
  }
  ADD_FAILURE() << "no " << name;
  return module.operation(0);
}

std::string sample(const std::string &name) {
  const std::string path = std::string(SONDE_TEST_SOURCE_DIR) + "/tests/data/layouts/ttgir/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t case_count() {
  const char *const cases = std::getenv("SONDE_CASES");
  return cases == nullptr ? 2000 : std::strtoull(cases, nullptr, 10);
}

TEST(Type, TensorHasShapeElementAndEncoding) {
  const Type type = read_type("tensor<128x64xf16, #ttg.slice<{dim = 1, parent = #blocked}>>");
  EXPECT_EQ(type.kind, TypeKind::kTensor);
  EXPECT_EQ(type.shape, (std::vector<int64_t>{128, 64}));
  EXPECT_EQ(type.element, "f16");
  EXPECT_EQ(type.element_bits, 16u);
  EXPECT_EQ(type.encoding, "#ttg.slice<{dim = 1, parent = #blocked}>");
  EXPECT_EQ(type.elements(), 8192u);
}

TEST(Type, TensorOfPointersHasPointee) {
  const Type type = read_type("tensor<4x!tt.ptr<bf16>, #blocked>");
  EXPECT_EQ(type.kind, TypeKind::kTensor);
  EXPECT_EQ(type.shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(type.element_bits, 64u);
  EXPECT_EQ(type.pointee, "bf16");
  EXPECT_EQ(type.pointee_bits, 16u);
}

TEST(Type, MemoryDescriptorHasSpaceAndAllocation) {
  const Type type = read_type("!ttg.memdesc<64x32xf16, #shared, #smem, mutable, 3x64x32>");
  EXPECT_EQ(type.kind, TypeKind::kMemory);
  EXPECT_EQ(type.shape, (std::vector<int64_t>{64, 32}));
  EXPECT_EQ(type.encoding, "#shared");
  EXPECT_EQ(type.memory_space, "#smem");
  EXPECT_TRUE(type.is_mutable);
  EXPECT_EQ(type.allocation, (std::vector<int64_t>{3, 64, 32}));
}

TEST(Type, ShortMemoryDescriptorIsReadToo) {
  const Type type = read_type("<64x64xbf16, #shared, #smem, mutable>");
  EXPECT_EQ(type.kind, TypeKind::kMemory);
  EXPECT_EQ(type.shape, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(type.element_bits, 16u);
}

TEST(Type, DescriptorHasTheBlocksShape) {
  const Type type = read_type("!tt.tensordesc<tensor<16x32xf32, #shared>>");
  EXPECT_EQ(type.kind, TypeKind::kDescriptor);
  EXPECT_EQ(type.shape, (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(type.encoding, "#shared");
}

TEST(Type, ScalarsHaveBits) {
  const std::vector<std::pair<const char *, uint32_t>> cases = {
      {"i1", 1}, {"i32", 32}, {"ui8", 8}, {"bf16", 16}, {"f64", 64}, {"f8E4M3FN", 8}, {"f4E2M1FN", 4}, {"index", 64}};
  for (const auto &[text, bits] : cases) {
    EXPECT_EQ(read_type(text).kind, TypeKind::kScalar) << text;
    EXPECT_EQ(read_type(text).element_bits, bits) << text;
  }
  for (const char *const text : {"", "i", "x32", "i32x", "tensor<", "tensor<4xfoo>", "!ttg.async.token", "f16E",
                                 "tensor<99999999999999999999xf16>"}) {
    EXPECT_EQ(read_type(text).kind, TypeKind::kOther) << text;
  }
}

TEST(Type, TensorWithoutEncodingAsInTtir) {
  const Type type = read_type("tensor<?x8xi1>");
  EXPECT_EQ(type.kind, TypeKind::kTensor);
  EXPECT_FALSE(type.is_static());
  EXPECT_EQ(type.elements(), 0u);
  EXPECT_EQ(type.encoding, "");
}

TEST(Attributes, AreFoundByName) {
  constexpr std::string_view kText =
      R"("a,b" = "x = 1", start = 0 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>, flag)";
  EXPECT_EQ(find_attribute(kText, "start"), "0 : i32");
  EXPECT_EQ(find_attribute(kText, "a,b"), "\"x = 1\"");
  EXPECT_EQ(find_attribute(kText, "flag"), "");
  EXPECT_FALSE(find_attribute(kText, "x").has_value());
  EXPECT_EQ(dense_integers_of(*find_attribute(kText, "tt.contiguity")), (std::vector<int64_t>{1, 64}));
}

TEST(Attributes, NumbersAreRead) {
  EXPECT_EQ(integer_of("-16 : i32"), -16);
  EXPECT_EQ(integer_of("true"), 1);
  EXPECT_FALSE(integer_of("1.0 : f32").has_value());
  EXPECT_EQ(dense_integers_of("dense<64> : tensor<8xi32, #blocked>"), (std::vector<int64_t>{64}));
  EXPECT_FALSE(dense_integers_of("dense<0.5> : tensor<8xf32>").has_value());
}

constexpr std::string_view kLoop =
    R"(#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#loc = loc("k.py":10:0)
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @walk(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32) attributes {noinline = false} {
    %c-1_i32 = arith.constant -1 : i32 loc(#loc1)
    %c0 = arith.constant 0 : i32
    %r:2 = scf.for %i = %c0 to %n step %c-1_i32 iter_args(%p = %x, %s = %c0) -> (!tt.ptr<f32>, i32)  : i32 {
      %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
      %v = tt.load %q : !tt.ptr<f32> loc(#loc2)
      scf.if %t {
        "test.unknown"(%v) <{axis = 0 : i32}> ({
        ^bb0(%a: f32 loc("a"), %b: f32):
          %v_0 = arith.cmpf ogt, %a, %b : f32
          test.return %v_0 : i1
        }) : (f32) -> ()
      } else {
        tt.print "x: " {hex = false} : %v : f32
      }
      scf.yield %q, %s : !tt.ptr<f32>, i32
    } {tt.num_stages = 3 : i32} loc(#loc3)
    tt.store %r#0, %r#1 : !tt.ptr<f32>
    tt.return
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("v"(#loc4))
#loc3 = loc(callsite(#loc4 at #loc5))
#loc4 = loc("lib.py":7:3)
#loc5 = loc(callsite("k.py":12:8 at fused["k.py":20:1, #loc1]))
)";

TEST(Module, ReadsOperationsWithOperandsAndTypes) {
  const Module module = must_read(kLoop);
  const Operation &load = find(module, "tt.load");
  ASSERT_EQ(module.operands(load).size(), 1u);
  EXPECT_EQ(module.value(module.operands(load)[0]).name, "q");
  EXPECT_EQ(module.type_of(module.results(load)[0])->text, "f32");
  EXPECT_EQ(load.loop_depth, 1u);
  EXPECT_EQ(module.operation(load.function).symbol, "walk");
  EXPECT_EQ(find(module, "module").attributes, R"("ttg.num-warps" = 4 : i32, ttg.target = "cuda:90")");
  EXPECT_EQ(module.alias("#blocked").substr(0, 12), "#ttg.blocked");
  EXPECT_EQ(load.place.line, 9u);
  EXPECT_EQ(load.place.column, 7u);
}

TEST(Module, ConnectsLoopArgumentsWithTheirInitialValues) {
  const Module module = must_read(kLoop);
  const Operation &loop = find(module, "scf.for");
  ASSERT_EQ(module.results(loop).size(), 2u);
  const Operation &add = find(module, "tt.addptr");
  const Value &pointer = module.value(module.operands(add)[0]);
  EXPECT_TRUE(pointer.is_argument());
  EXPECT_EQ(pointer.number, 1u);  // after the counter
  EXPECT_EQ(module.value(pointer.initial).name, "x");
  EXPECT_EQ(module.types()[pointer.type].text, "!tt.ptr<f32>");
  EXPECT_EQ(loop.attributes, "tt.num_stages = 3 : i32");
  const Operation &store = find(module, "tt.store");
  EXPECT_EQ(module.operands(store)[1], module.results(loop)[1]);
  EXPECT_EQ(module.users(module.results(loop)[1]).size(), 1u);
}

TEST(Module, KeepsUnknownOperationsAndTheirRegions) {
  const Module module = must_read(kLoop);
  const Operation &unknown = find(module, "test.unknown");
  EXPECT_EQ(unknown.properties, "axis = 0 : i32");
  EXPECT_EQ(unknown.region_count, 1u);
  const Operation &compare = find(module, "arith.cmpf");
  EXPECT_EQ(&module.operation(compare.parent), &unknown);
  EXPECT_EQ(module.type_of(module.results(compare)[0])->text, "i1");
  EXPECT_EQ(module.value(module.operands(compare)[1]).block, compare.block);
  EXPECT_EQ(find(module, "scf.if").region_count, 2u);
  // %t is defined nowhere: kept, and said so.
  EXPECT_FALSE(module.value(module.operands(find(module, "scf.if"))[0]).is_defined());
}

TEST(Module, FunctionArgumentsCarryTheirAttributes) {
  const Module module = must_read(kLoop);
  const Operation &loop = find(module, "scf.for");
  const Value &pointer = module.value(module.operands(loop)[3]);
  EXPECT_EQ(pointer.name, "x");
  EXPECT_EQ(find_attribute(pointer.attributes, "tt.divisibility"), "16 : i32");
  EXPECT_EQ(module.locations()[pointer.location].line, 10u);
}

TEST(Module, ResolvesLocationsThroughAliasesNamesAndCalls) {
  const Module module = must_read(kLoop);
  const Location load = module.location_of(find(module, "tt.load"));
  EXPECT_EQ(load.file, "lib.py");
  EXPECT_EQ(load.line, 7u);
  EXPECT_EQ(load.column, 3u);
  EXPECT_EQ(load.name, "v");
  const Operation &loop = find(module, "scf.for");
  EXPECT_EQ(module.location_of(loop).line, 7u);
  EXPECT_EQ(module.location_of(loop, "k.py").line, 12u);  // the innermost frame in that file
  EXPECT_EQ(module.call_path(loop), "lib.py:7:3 < k.py:12:8 < k.py:20:1");
  EXPECT_EQ(module.location_of(find(module, "arith.constant")).line, 0u);
  EXPECT_EQ(module.call_path(find(module, "arith.constant")), "");
}

TEST(Module, LocationsThatRefToEachOtherAreUnknown) {
  const Module module = must_read("module {\n} loc(#a)\n#a = loc(\"x\"(#b))\n#b = loc(fused[#a, #b])\n");
  EXPECT_EQ(module.location_of(module.operation(0)).line, 0u);
  EXPECT_EQ(module.location_of(module.operation(0)).name, "x");
}

TEST(Module, NamesMayBeUsedAgainInSiblingRegions) {
  const Module module = must_read(R"(module {
  tt.func @f(%n: i32) {
    %s = scf.while (%a = %n) : (i32) -> i32 {
      %b = arith.addi %a, %n : i32
      scf.condition(%c) %b : i32
    } do {
    ^bb0(%a: i32):
      %b = arith.muli %a, %n : i32
      scf.yield %b : i32
    }
    tt.return
  }
})");
  const Operation &condition = find(module, "scf.condition");
  const Operation &yield = find(module, "scf.yield");
  EXPECT_EQ(module.definition(module.operands(condition)[1])->name, "arith.addi");
  EXPECT_EQ(module.definition(module.operands(yield)[0])->name, "arith.muli");
  EXPECT_EQ(find(module, "arith.muli").loop_depth, 1u);
}

TEST(Module, ReadsBranchesAndValuesUsedBeforeTheirText) {
  const Module module = must_read(R"mlir(module {
  tt.func private @"odd name(4,)"(%n: i32) -> i32 attributes {noinline = true} {
    cf.br ^bb2(%n, %n : i32, i32)
  ^bb1:  // pred: ^bb2
    tt.return %late : i32
  ^bb2(%p: i32 loc(unknown), %q: i32):
    %late = arith.addi %p, %q : i32
    cf.cond_br %c, ^bb1, ^bb2(%p, %late : i32, i32)
  }
})mlir");
  EXPECT_EQ(find(module, "tt.func").symbol, "odd name(4,)");
  const Operation &branch = find(module, "cf.cond_br");
  ASSERT_EQ(module.successors(branch).size(), 2u);
  EXPECT_EQ(module.successors(branch)[1], "bb2");
  EXPECT_EQ(module.operands(branch).size(), 3u);
  const Operation &add = find(module, "arith.addi");
  EXPECT_EQ(module.operands(find(module, "tt.return"))[0], module.results(add)[0]);
  EXPECT_EQ(module.definition(module.results(add)[0]), &add);
}

TEST(Module, WarpSpecializedPartitionsBelongToOneOperation) {
  const Module module = must_read(R"(module {
  tt.func @f(%n: i32) {
    ttg.warp_specialize(%n)
    default {
      ttg.warp_yield
    }
    partition0(%a: i32) num_warps(4) {
      %b = arith.addi %a, %a : i32
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
})");
  EXPECT_EQ(find(module, "ttg.warp_specialize").region_count, 2u);
  EXPECT_TRUE(module.value(module.operands(find(module, "arith.addi"))[0]).is_argument());
}

// Counted in the files with grep.
TEST(Module, ReadsDumpedModules) {
  const std::string text = sample("matmul_hopper.ttgir");
  const Module module = must_read(text);
  size_t constants = 0;
  for (const Operation &operation : module.operations()) constants += operation.name == "arith.constant";
  EXPECT_EQ(constants, 17u);
  const Operation &dot = find(module, "ttng.warp_group_dot");
  EXPECT_EQ(module.type_of(module.operands(dot)[1])->text, "!ttg.memdesc<128x64xbf16, #shared, #smem>");
  EXPECT_EQ(module.location_of(find(module, "ttg.convert_layout")).line, 100u);
  for (const Operation &operation : module.operations()) {
    for (const uint32_t operand : module.operands(operation)) EXPECT_TRUE(module.value(operand).is_defined());
  }
}

TEST(Errors, SayTheirPlace) {
  const Error missing = must_refuse("module {\n  tt.return\n");
  EXPECT_EQ(missing.place.line, 3u);
  EXPECT_EQ(missing.text, "a '}' that ends the region was expected before the end");
  const Error name = must_refuse("module {\n  %x = 5\n}");
  EXPECT_EQ(name.place.line, 2u);
  EXPECT_EQ(name.place.column, 8u);
  EXPECT_EQ(name.text, "the name of an operation was expected");
  const Error type = must_refuse("module {\n  tt.func @f(%x: ) {\n  }\n}");
  EXPECT_EQ(type.place.line, 2u);
  EXPECT_EQ(type.place.column, 18u);
  EXPECT_EQ(type.text, "a type was expected");
  EXPECT_EQ(must_refuse("").text, "an operation was expected, the text has none");
  must_refuse("hello world");
  must_refuse("module { } }");
  must_refuse("#x loc(unknown)");
  must_refuse("%a:99999999 = test.x");
  must_refuse("%a:60000 = test.x");
}

TEST(Errors, NestingIsBounded) {
  std::string regions, brackets = "module {\n test.x ";
  for (int i = 0; i < 100000; ++i) {
    regions += "test.x {\n";
    brackets += "[(";
  }
  EXPECT_EQ(must_refuse(regions).text, "at most 200 regions inside each other were expected");
  must_refuse(brackets);
  std::string types = "module {\n test.x : ";
  for (int i = 0; i < 100000; ++i) types += "tensor<";
  must_refuse(types);
}

// Damaged texts are read or refused, and do not crash (the tests run with sanitizers too).
TEST(Errors, DamagedModulesNeverCrash) {
  std::mt19937_64 random(7);
  for (const char *const name : {"matmul_hopper.ttgir", "descriptor_argument.ttgir", "swizzled_tail.ttgir"}) {
    const std::string whole = sample(name);
    for (size_t i = 0; i < case_count() / 8; ++i) {
      std::string text = whole;
      const uint64_t changes = 1 + random() % 4;
      for (uint64_t change = 0; change < changes; ++change) {
        const size_t place = random() % text.size();
        switch (random() % 4) {
          case 0:
            text.resize(place + 1);
            break;
          case 1:
            text[place] = static_cast<char>(random());
            break;
          case 2:
            text.erase(place, 1 + random() % 20);
            break;
          default:
            text.insert(place, 1, "(){}[]<>\"%#@^:=,-\n!"[random() % 19]);
        }
        if (text.empty()) text = " ";
      }
      Error error;
      if (const auto module = Module::read(text, &error); !module) {
        EXPECT_GE(error.place.line, 1u);
        EXPECT_FALSE(error.text.empty());
      }
    }
  }
}

// 16 times the text may take 16 times as long; quadratic time would take 256 times. The bound leaves room for noise.
// Of this thread, so that other work on the machine does not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(Module, TakesLinearTime) {
  const auto seconds = [](size_t operations) {
    std::string text = "module {\n";
    for (size_t i = 0; i < operations; ++i) {
      text += "%a" + std::to_string(i) + " = tt.load %p" + std::to_string(i / 2) +
              " : tensor<4x!tt.ptr<f16>, #blocked> loc(#loc" + std::to_string(i) + ")\n";
    }
    text += "}\n";
    for (size_t i = 0; i < operations; ++i) {
      text += "#loc" + std::to_string(i) + " = loc(callsite(\"a.py\":1:2 at #loc" + std::to_string(i / 2) + "))\n";
    }
    double best = 1e9;
    for (int repetition = 0; repetition < 3; ++repetition) {
      const double begin = cpu_seconds();
      must_read(text);
      best = std::min(best, cpu_seconds() - begin);
    }
    return best;
  };
  EXPECT_LT(seconds(32000), 80 * seconds(2000));
}

}  // namespace
