// Encodings by their text, and their layouts as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layout/attribute.h"
#include "layout/encoding.h"
#include "support.h"

namespace sonde::layout::test {

using Sizes = std::vector<uint64_t>;

inline constexpr const char *kMma16x8 =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>";
inline constexpr const char *kMfma32 =
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 4], instrShape = [32, 32, 8], isTransposed = false}>";
inline constexpr const char *kMfma16 =
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 4], instrShape = [16, 16, 16], isTransposed = false}>";

inline std::string operand_of(const char *parent, int index, int width) {
  return "#ttg.dot_op<{opIdx = " + std::to_string(index) + ", parent = " + parent +
         ", kWidth = " + std::to_string(width) + "}>";
}

class EncodingTest : public LayoutTest {
 protected:
  Encoding encoding(const std::string &text) {
    AttributeError error;
    const EncodingPointer parsed = parse_attribute(text, {}, error);
    EXPECT_NE(parsed, nullptr) << text << ": " << error.text << " at " << error.offset;
    return parsed == nullptr ? Encoding{} : *parsed;
  }
  const Layout *layout(const std::string &text, const Sizes &shape) {
    const Layout *const result = encoding_layout(arena_, encoding(text), shape);
    EXPECT_NE(result, nullptr) << text << ": " << arena_.text();
    return result;
  }
  void check(const std::string &text, const Sizes &shape, std::string_view wanted) {
    SCOPED_TRACE(text);
    expect(layout(text, shape), wanted);
  }
  void check_fails(const Encoding &encoding, const Sizes &shape, Fault fault, std::string_view part) {
    expect_none(encoding_layout(arena_, encoding, shape), fault);
    EXPECT_NE(arena_.text().find(part), std::string::npos) << arena_.text() << "\nhas no: " << part;
  }
  void check_fails(const std::string &text, const Sizes &shape, Fault fault, std::string_view part) {
    SCOPED_TRACE(text);
    check_fails(encoding(text), shape, fault, part);
  }
};

}  // namespace sonde::layout::test
