#include <gtest/gtest.h>
#include <sonde/toolkit/names.h>
#include <sonde/toolkit/strings.h>
#include <sonde/toolkit/text.h>

namespace sonde::toolkit {
namespace {

TEST(Names, MangledOnesAreDemangledAndOthersKept) {
  EXPECT_EQ(demangle("_Z9vectorAddPfS_i"), "vectorAdd(float*, float*, int)");
  EXPECT_EQ(demangle("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(demangle("_Znot_a_mangled_name"), "_Znot_a_mangled_name");
  EXPECT_EQ(demangle(""), "");
}

TEST(Names, OfDifferentSymbolsMayDemangleAlike) { EXPECT_EQ(demangle("_ZN3fooC1Ev"), demangle("_ZN3fooC2Ev")); }

TEST(Names, BeyondTheLimitOfTheDemanglerAreStillShortened) {
  const std::string long_name(30000, 'a');
  EXPECT_TRUE(shorten_kernel_name("_Z30000" + long_name + "v") == long_name);
  const std::string arguments = "I30000" + long_name + "EEvT_";
  EXPECT_EQ(shorten_kernel_name("_ZN2at6native12_GLOBAL__N_13sum" + arguments),
            "at::native::(anonymous namespace)::sum<...>");
  EXPECT_EQ(shorten_kernel_name("_ZNSt3fooE" + long_name).substr(0, 8), "std::foo");
}

TEST(Names, ThatOnlyLookMangledAreKept) {
  for (const char *const name : {"_Z", "_ZN", "_Z99999999999999999999999999x", "_Z5ab", "__Z", "_Zq"}) {
    EXPECT_EQ(shorten_kernel_name(name), name);
  }
}

TEST(Names, AreShortenedToWhatIdentifiesThem) {
  EXPECT_EQ(shorten_kernel_name("_Z9vectorAddPfS_i"), "vectorAdd");
  EXPECT_EQ(shorten_kernel_name("void at::native::(anonymous namespace)::sum<4, float>(float*)"),
            "at::native::(anonymous namespace)::sum<...>");
  EXPECT_EQ(shorten_kernel_name("void a::run<b::f(int)::{lambda(float)#1}, (c)2>(int, d<e>)"), "a::run<...>");
  EXPECT_EQ(shorten_kernel_name("cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>"), "cutlass::Kernel2<...>");
  EXPECT_EQ(shorten_kernel_name("void f<int>::operator()(int) const"), "f<...>::operator()");
  EXPECT_EQ(shorten_kernel_name("_ZN1glsIiEEvi"), "g::operator<<<...>");
}

TEST(Names, AssumeNothingOfPrefixes) {
  EXPECT_EQ(shorten_kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)"),
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(shorten_kernel_name("ncclKernel_AllReduce"), "ncclKernel_AllReduce");
  EXPECT_EQ(shorten_kernel_name("Stream #118(...)"), "Stream #118(...)");
  EXPECT_EQ(shorten_kernel_name("Memcpy HtoD (Pageable)"), "Memcpy HtoD (Pageable)");
  EXPECT_EQ(shorten_kernel_name("my kernel"), "my kernel");
  EXPECT_EQ(shorten_kernel_name("broken<int"), "broken<int");
  EXPECT_EQ(shorten_kernel_name("(odd)"), "(odd)");
}

TEST(Names, AreCutInTheMiddleBetweenCharacters) {
  EXPECT_EQ(ellipsize("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(ellipsize("abcdefghijk", 10), "abcd...ijk");
  // Each of these letters has two bytes; a cut inside one would be invalid UTF-8.
  EXPECT_EQ(ellipsize("\u00d7\u00d7\u00d7\u00d7\u00d7\u00d7\u00d7\u00d7", 10), "\u00d7\u00d7...\u00d7");
}

TEST(Text, WritesMemoryInBinaryUnits) {
  // 81,352,720,384 / 2^30 = 75.765625.
  EXPECT_EQ(format_bytes(81352720384), "75.77 GiB");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes((1ull << 20) - 1), "1.00 MiB") << "not 1024.00 KiB";
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.00 EiB");
}

TEST(Text, WritesTimesWithTheirUnit) {
  EXPECT_EQ(format_ns(999), "999 ns");
  EXPECT_EQ(format_ns(1500), "1.50 us");
  EXPECT_EQ(format_ns(999'999), "1.00 ms");
  EXPECT_EQ(format_ns(-2'500'000), "-2.50 ms");
  EXPECT_EQ(format_ns(12'000'000'000), "12.00 s");
  EXPECT_EQ(format_share(0.256), "25.6 %");
}

TEST(SourceStrings, GiveOneNumberToTheSameTextOfTwoSources) {
  SourceStrings strings([](uint32_t source, sonde_string_t id) -> const char * {
    if (source == 1) return id == 7 ? "kernel_a" : nullptr;
    return id == 7 ? "kernel_b" : "kernel_a";
  });
  EXPECT_EQ(strings.resolve(1, 7), strings.resolve(2, 3));
  EXPECT_NE(strings.resolve(1, 7), strings.resolve(2, 7)) << "equal ids of two sources are two strings";
  EXPECT_EQ(strings.text(strings.resolve(2, 7)), "kernel_b");
  EXPECT_EQ(strings.resolve(1, 0), 0u);
  EXPECT_EQ(strings.text(0), "");
}

TEST(SourceStrings, AskAgainForATextThatWasNotKnownYet) {
  bool known = false;
  SourceStrings strings([&](uint32_t, sonde_string_t) { return known ? "late" : nullptr; });
  EXPECT_EQ(strings.resolve(0, 5), 0u);
  known = true;
  EXPECT_EQ(strings.text(strings.resolve(0, 5)), "late");
}

}  // namespace
}  // namespace sonde::toolkit
