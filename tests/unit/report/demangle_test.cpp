#include "report/demangle.h"

#include <gtest/gtest.h>

#include "report/utf8.h"

namespace sonde::report {
namespace {

// Examples of the Itanium C++ ABI, section 5.1.
TEST(Demangle, ReadsMangledNames) {
  EXPECT_EQ(demangle("_Z1fv"), "f()");
  EXPECT_EQ(demangle("_ZN9ns01gEi"), "_ZN9ns01gEi");  // a length that does not fit: not a mangled name
  EXPECT_EQ(demangle("_ZN2at6native6kernelILi4EEEvi"), "void at::native::kernel<4>(int)");
}

TEST(Demangle, LeavesOtherNamesAlone) {
  EXPECT_EQ(demangle("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(demangle("_Z"), "_Z");
  EXPECT_EQ(demangle(""), "");
}

// Fault 72: no limit on the length of a symbol.
TEST(Demangle, ReadsTheQualifiedNameOfASymbolOf30000Bytes) {
  std::string mangled = "_ZN2at6native6kernelI";
  while (mangled.size() < 30000) mangled += "NS_7functorE";
  mangled += "EEvv";
  EXPECT_EQ(demangle(mangled), "at::native::kernel<…>");
  EXPECT_LE(display_width(shorten_name(mangled, 40)), 40u);

  const std::string plain = "_Z30000" + std::string(30000, 'k') + "v";
  EXPECT_EQ(demangle(plain).substr(0, 4), "kkkk");
  EXPECT_EQ(display_width(shorten_name(plain, 50)), 50u);
}

TEST(Demangle, ShowsAnonymousNamespacesOfLongSymbols) {
  std::string mangled = "_ZN2at12_GLOBAL__N_16kernelI";
  while (mangled.size() < 2000) mangled += "NS_7functorE";
  EXPECT_EQ(demangle(mangled + "EEvv"), "at::(anonymous namespace)::kernel<…>");
}

TEST(Demangle, DoesNotReadPastADamagedLongSymbol) {
  EXPECT_EQ(demangle("_ZN99999999999999999999" + std::string(2000, 'x')),
            "_ZN99999999999999999999" + std::string(2000, 'x'));
  EXPECT_EQ(demangle("_ZN3abc" + std::string(2000, '9')), "abc…");
}

TEST(Demangle, GivesUpReturnTypeAndParametersBeforeTheName) {
  EXPECT_EQ(shorten_name("_ZN2at6native6kernelILi4EEEvi", 100), "void at::native::kernel<4>(int)");
  EXPECT_EQ(shorten_name("_ZN2at6native6kernelILi4EEEvi", 22), "at::native::kernel<4>");
  EXPECT_EQ(shorten_name("_ZN2at6native6kernelILi4EEEvi", 11), "at::n…el<4>");
}

}  // namespace
}  // namespace sonde::report
