#include "report/utf8.h"

#include <gtest/gtest.h>

namespace sonde::report {
namespace {

// Unicode 15, table 3-8: each maximal subpart of an ill-formed sequence becomes one U+FFFD.
TEST(Utf8, ReplacesMaximalSubpartsAsTheStandardShows) {
  EXPECT_EQ(to_valid_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
}

// Unicode 15, tables 3-9 and 3-10: overlong forms and surrogates are ill-formed byte by byte.
TEST(Utf8, RefusesOverlongFormsAndSurrogates) {
  EXPECT_EQ(to_valid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, LeavesWellFormedTextAlone) {
  const std::string text = "a\u00D7\u20AC\U0001F600\U0010FFFF";
  EXPECT_EQ(to_valid_utf8(text), text);
}

TEST(Utf8, CutsATruncatedSequenceAtTheEnd) { EXPECT_EQ(to_valid_utf8("x\xE2\x82"), "x\uFFFD"); }

TEST(Utf8, CountsCellsOfATerminal) {
  EXPECT_EQ(display_width("kernel"), 6u);
  EXPECT_EQ(display_width("\u00D7\u00B5"), 2u);
  EXPECT_EQ(display_width("\u6838\u51FD"), 4u);  // two wide ideographs
  EXPECT_EQ(display_width("e\u0301"), 1u);       // a combining accent
}

TEST(Utf8, ShortensInTheMiddleToTheWidth) {
  EXPECT_EQ(shorten_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 6), "abc…ij");
  EXPECT_EQ(shorten_middle("abcdefghij", 1), "…");
  EXPECT_EQ(shorten_middle("abc", 0), "");
  // A wide character that does not fit whole is left out.
  EXPECT_EQ(shorten_middle("\u6838\u51FD\u6838\u51FD", 4), "\u6838…");
}

TEST(Utf8, ShortensLongTextExactly) {
  const std::string name(30000, 'k');
  for (size_t width = 1; width < 200; ++width) EXPECT_EQ(display_width(shorten_middle(name, width)), width);
}

TEST(Utf8, ShowsWhatWouldSteerATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\x01\x7f\n"), "a\\x1b[31mb\\x01\\x7f\\n");
  EXPECT_EQ(printable("a\u202Eb"), "a\\u{202e}b");
  EXPECT_EQ(printable("a\u009Bb"), "a\\x9bb");  // one-character control sequence introducer
  EXPECT_EQ(printable("a\x9F"), "a\uFFFD");
}

TEST(Utf8, PadsByCells) {
  EXPECT_EQ(pad_right("\u6838", 4), "\u6838  ");
  EXPECT_EQ(pad_left("\u00D7", 3), "  \u00D7");
  EXPECT_EQ(pad_left("long", 2), "long");
}

}  // namespace
}  // namespace sonde::report
