// CuTe layouts: published examples, the inputs on which CuTe itself goes wrong, and the laws of each operation on
// random layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>

#include "layout/bits.h"
#include "layout/cute_swizzle.h"

namespace sonde::layout {
namespace {

class Cute : public testing::Test {
 protected:
  const CuteLayout &read(std::string_view text) {
    const CuteLayout *const layout = parse_cute(arena_, text);
    EXPECT_NE(layout, nullptr) << text << ": " << arena_.text();
    return layout == nullptr ? *make_cute_leaf(arena_, 1, 0) : *layout;
  }
  const CuteTuple &tuple(std::string_view text) {
    const CuteTuple *const read_tuple = parse_cute_tuple(arena_, text);
    EXPECT_NE(read_tuple, nullptr) << text << ": " << arena_.text();
    return read_tuple == nullptr ? *make_cute_value(arena_, 0) : *read_tuple;
  }
  const CuteTiler &tiler(std::string_view text) {
    const CuteTiler *const read_tiler = parse_cute_tiler(arena_, text);
    EXPECT_NE(read_tiler, nullptr) << text << ": " << arena_.text();
    return read_tiler == nullptr ? *make_cute_tiler_keep(arena_) : *read_tiler;
  }
  std::string text(const CuteLayout *layout) {
    return layout == nullptr ? "fault " + std::to_string(static_cast<int>(arena_.fault())) + ": " + arena_.text()
                             : to_string(*layout);
  }
  std::string composed(std::string_view a, std::string_view b) { return text(compose(arena_, read(a), read(b))); }
  Fault refused(const CuteLayout *layout) {
    EXPECT_EQ(layout, nullptr) << to_string(*layout);
    return layout == nullptr ? arena_.fault() : Fault::kNone;
  }

  Arena arena_;
};

int cases() {
  const char *const text = std::getenv("SONDE_CASES");
  return text == nullptr ? 2000 : std::atoi(text);
}

// Up to `most` leaves, now and then nested, of small shapes and strides.
const CuteLayout &any_layout(Arena &arena, std::mt19937_64 &random, uint32_t most = 4, bool tidy = false) {
  std::vector<const CuteLayout *> modes;
  const uint64_t count = 1 + random() % most;
  int64_t dense = 1;
  for (uint64_t i = 0; i < count; ++i) {
    const auto shape = static_cast<int64_t>(1 + random() % 6);
    int64_t stride = static_cast<int64_t>(random() % 13);
    if (tidy || random() % 2 == 0) {
      stride = dense * static_cast<int64_t>(1 + (random() % 3 == 0 ? random() % 3 : 0));
      dense = stride * shape;
    }
    modes.push_back(make_cute_leaf(arena, shape, stride));
  }
  if (tidy) std::shuffle(modes.begin(), modes.end(), random);
  if (count > 2 && random() % 2 == 0) {
    const CuteLayout *const pair = make_cute_modes(arena, std::span(modes).subspan(0, 2));
    modes.erase(modes.begin());
    modes[0] = pair;
  }
  return modes.size() == 1 ? *modes[0] : *make_cute_modes(arena, modes);
}

// --- Reading and printing ---

TEST_F(Cute, PrintsWhatItReads) {
  for (const char *const each : {"((2,2),3):((24,2),8)", "4:2", "(4):(1)", "():()", "(2,(1,6)):(1,(6,2))", "5:-3"}) {
    EXPECT_EQ(to_string(read(each)), each);
  }
  EXPECT_EQ(to_string(read(" ( 2 , 3 ) : ( 3 , 1 ) ")), "(2,3):(3,1)");
  EXPECT_EQ(to_string(tuple("(_,(3,_))")), "(_,(3,_))");
}

TEST_F(Cute, SaysWhatIsWrongWithText) {
  const auto fault = [&](std::string_view bad) {
    EXPECT_EQ(parse_cute(arena_, bad), nullptr) << bad;
    return arena_.fault();
  };
  EXPECT_EQ(fault("(2,3"), Fault::kParse);
  EXPECT_NE(arena_.text().find("column 5"), std::string::npos) << arena_.text();
  EXPECT_EQ(fault("(2,3)"), Fault::kParse);
  EXPECT_EQ(fault("(2,3):(1,2)x"), Fault::kParse);
  EXPECT_EQ(fault(""), Fault::kParse);
  EXPECT_EQ(fault("(2,3):(1,2,3)"), Fault::kInvalid);
  EXPECT_EQ(fault("(2,0):(1,2)"), Fault::kInvalid);
  EXPECT_EQ(fault("(2,_):(1,2)"), Fault::kInvalid);
  EXPECT_EQ(fault("99999999999999999999:1"), Fault::kUnsupported);
  EXPECT_EQ(fault("(4294967296,4294967296):(0,0)"), Fault::kUnsupported);  // 2^64 elements
  EXPECT_EQ(fault("3:4611686018427387904"), Fault::kUnsupported);          // 2^63
  EXPECT_EQ(fault(std::string(10000, '(')), Fault::kUnsupported);
}

TEST_F(Cute, ReadsOrRefusesAnyText) {
  std::mt19937_64 random(8);
  const std::string letters = "0123456789(),:<>_ -Swo";
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    std::string any = round % 2 == 0 ? "Sw<3,4,3> o 0 o ((2,2),3):((24,2),8)" : "<(2,4):(1,8), _, 3:3>";
    for (uint64_t edits = random() % 6; edits > 0; --edits) {
      const size_t at = random() % any.size();
      switch (random() % 3) {
        case 0:
          any[at] = letters[random() % letters.size()];
          break;
        case 1:
          any.insert(at, 1, letters[random() % letters.size()]);
          break;
        default:
          any.resize(std::max<size_t>(at, 1));
          break;
      }
    }
    const CuteComposed *const composed = parse_cute_composed(arena_, any);
    if (composed != nullptr) {
      ASSERT_EQ(to_string(*parse_cute_composed(arena_, to_string(*composed))), to_string(*composed)) << any;
    } else {
      ASSERT_NE(arena_.fault(), Fault::kNone) << any;
    }
    parse_cute_tiler(arena_, any);
    if (const CuteTuple *const read_tuple = parse_cute_tuple(arena_, any)) {
      ASSERT_EQ(to_string(*parse_cute_tuple(arena_, to_string(*read_tuple))), to_string(*read_tuple)) << any;
    }
  }
}

TEST_F(Cute, CountsSizesAndCoordinates) {
  const CuteLayout &layout = read("(4,(2,3)):(1,(10,100))");
  EXPECT_EQ(layout.size(), 24);
  EXPECT_EQ(layout.rank(), 2u);
  EXPECT_EQ(layout.depth(), 2u);
  EXPECT_EQ(layout.cosize(), 3 + 10 + 200 + 1);
  EXPECT_EQ(read("(3,2):(-2,1)").lowest(), -4);
  EXPECT_EQ(read("(3,2):(-2,1)").cosize(), 6);  // -4 .. 1
  // 22 = 2 + 4 * (1 + 2 * 2): coordinate (2, (1, 2)).
  EXPECT_EQ(to_string(*index_to_coordinate(arena_, 22, *cute_shape(arena_, layout))), "(2,(1,2))");
  EXPECT_EQ(layout.apply(22), 2 + 10 + 200);
  int64_t index = 0;
  ASSERT_TRUE(coordinate_to_index(arena_, tuple("(2,(1,2))"), layout, index));
  EXPECT_EQ(index, 212);
  ASSERT_TRUE(coordinate_to_index(arena_, tuple("(2,5)"), layout, index));
  EXPECT_EQ(index, 212);
  EXPECT_FALSE(coordinate_to_index(arena_, tuple("(4,0)"), layout, index));
  EXPECT_FALSE(coordinate_to_index(arena_, tuple("(0,0,0)"), layout, index));
  EXPECT_EQ(index_to_coordinate(arena_, 24, *cute_shape(arena_, layout)), nullptr);
  EXPECT_EQ(layout.apply(24), 300);  // past the size, the last leaf goes on
}

// --- Published examples (CuTe's layout algebra document and pycute's tests) ---

TEST_F(Cute, Coalesces) {
  EXPECT_EQ(text(coalesce(arena_, read("(2,(1,6)):(1,(6,2))"))), "12:1");
  EXPECT_EQ(text(coalesce(arena_, read("(2,(1,6)):(1,(6,2))"), tuple("(1,1)"))), "(2,6):(1,2)");
  EXPECT_EQ(text(coalesce(arena_, read("(1,1):(7,9)"))), "1:0");
  EXPECT_EQ(text(filter(arena_, read("(2,4,3):(0,1,4)"))), "12:1");
  EXPECT_EQ(text(filter_zeros(arena_, read("(2,(4,3)):(0,(1,0))"))), "(1,(4,1)):(0,(1,0))");
  EXPECT_EQ(text(flatten(arena_, read("((2,2),3):((24,2),8)"))), "(2,2,3):(24,2,8)");
}

TEST_F(Cute, ChangesModes) {
  EXPECT_EQ(text(group_modes(arena_, read("(2,3,5,7):(1,2,6,30)"), 1, 3)), "(2,(3,5),7):(1,(2,6),30)");
  EXPECT_EQ(text(ungroup_mode(arena_, read("(2,(3,5),7):(1,(2,6),30)"), 1)), "(2,3,5,7):(1,2,6,30)");
  EXPECT_EQ(text(append(arena_, read("2:1"), read("3:4"))), "(2,3):(1,4)");
  EXPECT_EQ(text(prepend(arena_, read("(2,5):(1,2)"), read("3:4"))), "(3,2,5):(4,1,2)");
  EXPECT_EQ(text(pad_rank(arena_, read("2:1"), 3)), "(2,1,1):(1,0,0)");
  EXPECT_EQ(text(make_cute_ordered(arena_, tuple("(3,5,7)"), std::vector<uint32_t>{2, 0, 1})), "(3,5,7):(35,1,5)");
}

TEST_F(Cute, Composes) {
  EXPECT_EQ(composed("(6,2):(8,2)", "(4,3):(3,1)"), "((2,2),3):((24,2),8)");
  EXPECT_EQ(composed("20:2", "(5,4):(4,1)"), "(5,4):(8,2)");
  EXPECT_EQ(composed("(10,2):(16,4)", "(5,4):(1,5)"), "(5,(2,2)):(16,(80,4))");
  EXPECT_EQ(text(compose(arena_, read("(12,(4,8)):(59,(13,1))"), tiler("<3:4, 8:2>"))), "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(text(compose(arena_, read("(12,(4,8)):(59,(13,1))"), tiler("(3,8)"))), "(3,(4,2)):(59,(13,1))");
  EXPECT_EQ(text(compose(arena_, read("(12,5):(1,12)"), tiler("<_, 5:1>"))), "(12,5):(1,12)");
  // A step over whole modes: (3,6,2,8):(w,x,y,z) every 72nd element reads the last mode every 2nd (72 = 3 * 6 * 2 * 2).
  EXPECT_EQ(composed("(3,6,2,8):(5,15,90,1000)", "4:72"), "4:2000");
}

TEST_F(Cute, RefusesCompositionsThatAreNoLayouts) {
  // cutlass#2955: at (2, 1), the index is 7, and A(7) = A(1, 1) = 8, not 4 + 3.
  EXPECT_EQ(refused(compose(arena_, read("(6,2):(1,7)"), read("(3,2):(2,3)"))), Fault::kNoSolution);
  // cutlass#3177: 0, 6, 7, 9, 8, 10.
  EXPECT_EQ(refused(compose(arena_, read("(4,6,8):(2,3,5)"), read("6:3"))), Fault::kNoSolution);
  // cutlass#2657: elements 0, 3, 6 of (2,3):(4,1) are 0, 5, 3.
  EXPECT_EQ(refused(compose(arena_, read("(2,3):(4,1)"), read("(3,4):(3,1)"))), Fault::kNoSolution);
  EXPECT_EQ(composed("(6,2):(8,3)", "(4,3):(3,1)"), "((2,2),3):((24,3),8)");
  // The same carry where looking at every element is out of reach.
  EXPECT_EQ(refused(compose(arena_, read("(6291456,2):(1,7000000)"), read("(3145728,2):(2,3)"))), Fault::kNoSolution);
  EXPECT_EQ(refused(compose(arena_, read("(4,6):(1,9)"), read("(2,2):(1,-1)"))), Fault::kInvalid);
}

TEST_F(Cute, ComposesWhatTheSizesDoNotShow) {
  // 3 does not divide 4, yet elements 0 and 3 are any line; nor 5 divide 7, but 0, 5, 10 of (7,9):(1,7) are (63):1's.
  EXPECT_EQ(composed("(4,6,8):(2,3,5)", "2:3"), "2:6");
  EXPECT_EQ(composed("(7,9):(1,7)", "3:5"), "3:5");
  // Elements 0, 3, 6, 9 of (4,4):(1,5) are 0, 3, 7, 11: no line. Elements 0, 6 are 0, 7.
  EXPECT_EQ(composed("(4,4):(1,5)", "2:6"), "2:7");
  EXPECT_EQ(refused(compose(arena_, read("(4,4):(1,5)"), read("4:3"))), Fault::kNoSolution);
}

TEST_F(Cute, Complements) {
  const auto complement_text = [&](std::string_view layout, int64_t least) {
    return text(complement(arena_, read(layout), least));
  };
  EXPECT_EQ(complement_text("(2,2):(4,1)", 24), "(2,3):(2,8)");
  EXPECT_EQ(complement_text("4:2", 24), "(2,3):(1,8)");
  EXPECT_EQ(complement_text("4:1", 24), "6:4");
  EXPECT_EQ(complement_text("6:4", 24), "4:1");
  EXPECT_EQ(complement_text("(4,6):(1,4)", 24), "1:0");
  EXPECT_EQ(complement_text("(2,4):(1,6)", 24), "3:2");
  EXPECT_EQ(complement_text("(2,2):(1,6)", 24), "(3,2):(2,12)");
  EXPECT_EQ(complement_text("(2,3):(0,1)", 6), "2:3");
  // Indices 0, 1, 3, 4 do not tile an interval; nor do 0, 2, 3, 5 with an ordered layout.
  EXPECT_EQ(refused(complement(arena_, read("(2,2):(1,3)"), 24)), Fault::kNoSolution);
  EXPECT_EQ(refused(complement(arena_, read("(2,2):(2,3)"), 24)), Fault::kNoSolution);
  EXPECT_EQ(refused(complement(arena_, read("(2,2):(1,1)"), 24)), Fault::kNoSolution);
  EXPECT_EQ(refused(complement(arena_, read("4:-1"), 24)), Fault::kUnsupported);
}

TEST_F(Cute, Inverts) {
  EXPECT_EQ(text(right_inverse(arena_, read("(2,4,6):(4,1,8)"))), "(4,2,6):(2,1,8)");
  EXPECT_EQ(text(right_inverse(arena_, read("(4,2):(2,16)"))), "1:0");
  EXPECT_EQ(text(left_inverse(arena_, read("4:2"))), "(2,4):(4,1)");
  EXPECT_EQ(text(left_inverse(arena_, read("(4,2):(1,16)"))), "(4,4,2):(1,8,4)");  // cutlass#3485, as pycute has it
  // 0, 1, 3, 4 -> 0, 1, 2, 3: three to the second digit.
  EXPECT_EQ(text(left_inverse(arena_, read("(2,2):(1,3)"))), "(3,2):(1,2)");
  EXPECT_EQ(refused(left_inverse(arena_, read("(2,2):(1,1)"))), Fault::kNoSolution);
  EXPECT_EQ(refused(left_inverse(arena_, read("(2,3):(0,1)"))), Fault::kNoSolution);
  EXPECT_EQ(refused(left_inverse(arena_, read("(4,2):(2,3)"))), Fault::kUnsupported);
  EXPECT_EQ(refused(left_inverse(arena_, read("(4,3):(2,3)"))), Fault::kNoSolution);  // 6 = 3 * 2 = 2 * 3
  EXPECT_EQ(text(nullspace(arena_, read("(2,4,3):(1,0,2)"))), "4:2");
}

TEST_F(Cute, FindsWhatTwoLayoutsShare) {
  int64_t elements = 0;
  // Row-major and column-major 8x8 share one element; two that are dense along the rows by fours share four.
  ASSERT_TRUE(max_common_vector(arena_, read("(8,8):(1,8)"), read("(8,8):(8,1)"), elements));
  EXPECT_EQ(elements, 1);
  ASSERT_TRUE(max_common_vector(arena_, read("(8,(4,2)):(4,(1,32))"), read("(8,8):(8,1)"), elements));
  EXPECT_EQ(elements, 4);
  EXPECT_EQ(text(max_common_layout(arena_, read("(8,(4,2)):(4,(1,32))"), read("(8,8):(8,1)"))), "4:8");
}

TEST_F(Cute, Divides) {
  EXPECT_EQ(text(logical_divide(arena_, read("(4,2,3):(2,1,8)"), tiler("4:2"))), "((2,2),(2,3)):((4,1),(2,8))");
  const CuteLayout &layout = read("(9,(4,8)):(59,(13,1))");
  const CuteTiler &tile = tiler("<3:3, (2,4):(1,8)>");
  EXPECT_EQ(text(logical_divide(arena_, layout, tile)), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(text(zipped_divide(arena_, layout, tile)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(text(tiled_divide(arena_, layout, tile)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(text(flat_divide(arena_, layout, tile)), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
  // 10 elements by 4: three tiles, of which the last goes on past the end.
  EXPECT_EQ(text(logical_divide(arena_, read("10:1"), tiler("4:1"))), "(4,3):(1,4)");
}

TEST_F(Cute, Multiplies) {
  EXPECT_EQ(text(logical_product(arena_, read("(2,2):(4,1)"), tiler("6:1"))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(text(blocked_product(arena_, read("(2,5):(5,1)"), read("(3,4):(1,3)"))), "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(text(raked_product(arena_, read("(2,5):(5,1)"), read("(3,4):(1,3)"))), "((3,2),(4,5)):((10,5),(30,1))");
  // An 8x64 block of row-major halves over 128x64: 16 blocks, one below the other.
  EXPECT_EQ(text(tile_to_shape(arena_, read("(8,64):(64,1)"), tuple("(128,64)"))), "(128,64):(64,1)");
  EXPECT_EQ(text(tile_to_shape(arena_, read("(4,4):(1,4)"), tuple("(8,8)"), std::vector<uint32_t>{1, 0})),
            "((4,2),8):((1,32),4)");  // blocks along the rows first: 4:4 and 2:16 fuse
  EXPECT_EQ(refused(tile_to_shape(arena_, read("(4,4):(1,4)"), tuple("(10,8)"))), Fault::kNoSolution);
}

TEST_F(Cute, Recasts) {
  EXPECT_EQ(text(upcast(arena_, read("(8,4):(1,16)"), 4)), "(2,4):(1,4)");
  EXPECT_EQ(text(downcast(arena_, read("(2,4):(1,4)"), 4)), "(8,4):(1,16)");
  EXPECT_EQ(text(recast(arena_, read("(4,8):(8,1)"), 16, 8)), "(4,16):(16,1)");
  EXPECT_EQ(text(recast(arena_, read("(4,8):(8,1)"), 16, 128)), "(4,1):(1,1)");
  EXPECT_EQ(refused(upcast(arena_, read("(6,4):(1,16)"), 4)), Fault::kNoSolution);
  EXPECT_EQ(refused(upcast(arena_, read("8:3"), 4)), Fault::kNoSolution);
  EXPECT_EQ(refused(upcast(arena_, read("(4,4):(1,1)"), 4)), Fault::kNoSolution);
  EXPECT_EQ(refused(downcast(arena_, read("8:2"), 2)), Fault::kNoSolution);
}

TEST_F(Cute, Slices) {
  const CuteLayout &layout = read("((3,2),(4,5)):((4,1),(2,100))");
  const CuteSlice part = slice(arena_, layout, tuple("((_,1),(2,_))"));
  EXPECT_EQ(text(part.layout), "(3,5):(4,100)");
  EXPECT_EQ(part.offset, 1 + 4);
  EXPECT_EQ(text(slice(arena_, layout, tuple("(_,0)")).layout), "((3,2)):((4,1))");
  EXPECT_EQ(slice(arena_, layout, tuple("(_,20)")).layout, nullptr);

  // Tile (1, 2) of 4x8 tiles in a row-major 8x32 begins at row 4, column 16.
  const CuteSlice tile = local_tile(arena_, read("(8,32):(32,1)"), tiler("(4,8)"), tuple("(1,2)"));
  EXPECT_EQ(text(tile.layout), "(4,8):(32,1)");
  EXPECT_EQ(tile.offset, 4 * 32 + 16);
  // Thread 5 of 2x4 threads, row-major, is at (1, 1); it holds each second row's and fourth column's element from there.
  const CuteSlice own = local_partition(arena_, read("(8,32):(32,1)"), read("(2,4):(4,1)"), 5);
  EXPECT_EQ(text(own.layout), "(4,8):(64,4)");
  EXPECT_EQ(own.offset, 32 + 1);
  EXPECT_EQ(local_partition(arena_, read("(8,32):(32,1)"), read("(2,4):(4,1)"), 8).layout, nullptr);
}

TEST_F(Cute, Swizzles) {
  const CuteSwizzle swizzle{3, 4, 3};
  EXPECT_EQ(swizzle.apply(128), 128 + 16);
  EXPECT_EQ(swizzle.apply(7 * 128 + 5), 7 * 128 + 7 * 16 + 5);
  EXPECT_EQ(swizzle.apply(swizzle.apply(12345)), 12345);
  EXPECT_EQ((CuteSwizzle{2, 0, -3}.apply(3)), 3 + 24);
  for (const char *const each : {"Sw<3,4,3> o 0 o (8,8):(8,1)", "Sw<2,4,-3> o 16 o 8:1"}) {
    const CuteComposed *const parsed = parse_cute_composed(arena_, each);
    ASSERT_NE(parsed, nullptr) << arena_.text();
    EXPECT_EQ(to_string(*parsed), each);
  }
  EXPECT_EQ(to_string(*parse_cute_composed(arena_, "4:1")), "Sw<0,0,0> o 0 o 4:1");
  EXPECT_EQ(parse_cute_composed(arena_, "Sw<3,4,2> o 0 o 8:1"), nullptr);  // source and target overlap
  EXPECT_EQ(parse_cute_composed(arena_, "Sw<3,4,3> 8:1"), nullptr);
  EXPECT_EQ(parse_cute_composed(arena_, "Sw<1,0,1> o 2 o 8:-1"), nullptr);  // down to -5
  const CuteComposed *const bytes = parse_cute_composed(arena_, "Sw<3,4,3> o 0 o (8,128):(128,1)");
  EXPECT_EQ(to_string(*recast(arena_, *bytes, 8, 16)), "Sw<3,3,3> o 0 o (8,64):(64,1)");
  EXPECT_EQ(recast(arena_, *bytes, 8, 512), nullptr);  // the swizzle moves pieces of 16 bytes
  EXPECT_EQ(to_string(*slice(arena_, *bytes, tuple("(3,_)"))), "Sw<3,4,3> o 384 o (128):(1)");
}

// --- Laws ---

TEST_F(Cute, ComposesAsItsDefinitionSaysOrNotAtAll) {
  std::mt19937_64 random(1);
  int found = 0;
  int refused_count = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &a = any_layout(arena_, random);
    const CuteLayout &b = any_layout(arena_, random, 3);
    const CuteLayout *const result = compose(arena_, a, b);
    const CuteLayout &extended = *coalesce(arena_, a);
    if (result != nullptr) {
      ++found;
      ASSERT_EQ(result->size(), b.size());
      for (int64_t i = 0; i < b.size(); ++i) ASSERT_EQ(result->apply(i), extended.apply(b.apply(i)));
      continue;
    }
    ++refused_count;
    ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
    // Truly none with b's leaves: either a leaf's elements are no layout, or they do not add up.
    bool exists = true;
    std::vector<std::vector<int64_t>> along;
    for (const CuteLeaf &leaf : b.leaves()) {
      along.emplace_back();
      for (int64_t i = 0; i < leaf.shape; ++i) along.back().push_back(extended.apply(i * leaf.stride));
    }
    for (int64_t i = 0; exists && i < b.size(); ++i) {
      int64_t rest = i;
      int64_t total = 0;
      for (size_t leaf = 0; leaf < along.size(); ++leaf) {
        const auto length = static_cast<int64_t>(along[leaf].size());
        total += along[leaf][static_cast<size_t>(rest % length)];
        rest /= length;
      }
      exists = total == extended.apply(b.apply(i));
    }
    for (const auto &values : along) {
      // A layout of n elements, by its first factor: s:d for some divisor s, and the same of every s-th element.
      const auto is_layout = [](const auto &self, const std::vector<int64_t> &all) -> bool {
        const size_t count = all.size();
        if (count == 1) return true;
        for (size_t length = 2; length <= count; ++length) {
          if (count % length != 0) continue;
          std::vector<int64_t> next;
          for (size_t i = 0; i < count; i += length) next.push_back(all[i]);
          bool fits = true;
          for (size_t i = 0; fits && i < count; ++i) {
            fits = all[i] == all[i - i % length] + static_cast<int64_t>(i % length) * all[1];
          }
          if (fits && self(self, next)) return true;
        }
        return false;
      };
      exists = exists && is_layout(is_layout, values);
    }
    ASSERT_FALSE(exists) << to_string(a) << " of " << to_string(b) << ": " << arena_.text();
  }
  EXPECT_GT(found, cases() / 5);
  EXPECT_GT(refused_count, cases() / 20);
}

TEST_F(Cute, ComplementsTileAnInterval) {
  std::mt19937_64 random(2);
  int found = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &layout = any_layout(arena_, random, 3, round % 2 == 0);
    const auto least = static_cast<int64_t>(1 + random() % 200);
    const CuteLayout *const rest = complement(arena_, layout, least);
    if (rest == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
      continue;
    }
    ++found;
    std::set<int64_t> own;
    for (int64_t i = 0; i < layout.size(); ++i) own.insert(layout.apply(i));
    std::set<int64_t> sums;
    for (int64_t i = 0; i < rest->size(); ++i) {
      ASSERT_TRUE(i == 0 || rest->apply(i) > rest->apply(i - 1));
      for (const int64_t index : own) ASSERT_TRUE(sums.insert(index + rest->apply(i)).second);
    }
    ASSERT_GE(*sums.rbegin() + 1, least);
    ASSERT_EQ(static_cast<int64_t>(sums.size()), *sums.rbegin() + 1);
  }
  EXPECT_GT(found, cases() / 2);
}

TEST_F(Cute, InversesInvert) {
  std::mt19937_64 random(3);
  int left = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &layout = any_layout(arena_, random, 4, round % 2 == 0);
    const CuteLayout *const right = right_inverse(arena_, layout);
    ASSERT_NE(right, nullptr) << arena_.text();
    for (int64_t i = 0; i < right->size(); ++i) ASSERT_EQ(layout.apply(right->apply(i)), i);
    const CuteLayout *const zeros = nullspace(arena_, layout);
    for (int64_t i = 0; i < zeros->size(); ++i) ASSERT_EQ(layout.apply(zeros->apply(i)), 0);
    ASSERT_EQ(zeros->size() * filter(arena_, layout)->size(), layout.size());

    std::set<int64_t> indices;
    for (int64_t i = 0; i < layout.size(); ++i) indices.insert(layout.apply(i));
    const bool injective = static_cast<int64_t>(indices.size()) == layout.size();
    const CuteLayout *const inverse = left_inverse(arena_, layout);
    if (inverse == nullptr) {
      ASSERT_TRUE(!injective || arena_.fault() == Fault::kUnsupported) << arena_.text();
      ASSERT_TRUE(injective || arena_.fault() == Fault::kNoSolution) << arena_.text();
      continue;
    }
    ++left;
    ASSERT_TRUE(injective);
    for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ(inverse->apply(layout.apply(i)), i);
  }
  EXPECT_GT(left, cases() / 4);
}

TEST_F(Cute, DivisionsAndProductsKeepTheirPromises) {
  std::mt19937_64 random(4);
  int divided = 0;
  int multiplied = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &layout = any_layout(arena_, random, 3, true);
    const CuteLayout &tile = any_layout(arena_, random, 2, true);
    if (const CuteLayout *const parts = logical_divide(arena_, layout, *make_cute_tiler(arena_, tile))) {
      ++divided;
      const CuteLayout &simple = *coalesce(arena_, layout);
      for (int64_t i = 0; i < tile.size(); ++i) ASSERT_EQ(parts->mode(0).apply(i), simple.apply(tile.apply(i)));
      if (layout.size() % tile.size() == 0 && parts->size() == layout.size()) {
        std::multiset<int64_t> before;
        std::multiset<int64_t> after;
        for (int64_t i = 0; i < layout.size(); ++i) before.insert(layout.apply(i));
        for (int64_t i = 0; i < parts->size(); ++i) after.insert(parts->apply(i));
        ASSERT_EQ(before, after) << to_string(layout) << " / " << to_string(tile);
      }
    }
    if (const CuteLayout *const product = logical_product(arena_, layout, *make_cute_tiler(arena_, tile))) {
      ++multiplied;
      ASSERT_TRUE(equal(product->mode(0), layout));
      std::set<int64_t> indices;
      for (int64_t i = 0; i < product->size(); ++i) indices.insert(product->apply(i));
      ASSERT_EQ(static_cast<int64_t>(indices.size()), product->size());  // repeats never overlap
    }
  }
  EXPECT_GT(divided, cases() / 4);
  EXPECT_GT(multiplied, cases() / 4);
}

TEST_F(Cute, CastsThereAndBack) {
  std::mt19937_64 random(5);
  int found = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &layout = any_layout(arena_, random);
    const int64_t factor = int64_t{1} << random() % 4;
    if (const CuteLayout *const coarse = upcast(arena_, layout, factor)) {
      std::set<int64_t> expected;
      std::set<int64_t> got;
      for (int64_t i = 0; i < layout.size(); ++i) expected.insert(layout.apply(i) / factor);
      for (int64_t i = 0; i < coarse->size(); ++i) got.insert(coarse->apply(i));
      ASSERT_EQ(got, expected) << to_string(layout) << " by " << factor;
    }
    if (const CuteLayout *const fine = downcast(arena_, layout, factor)) {
      ++found;
      const CuteLayout *const back = upcast(arena_, *fine, factor);
      ASSERT_NE(back, nullptr) << to_string(layout) << " by " << factor << ": " << arena_.text();
      ASSERT_TRUE(equal(*back, layout)) << to_string(layout) << " by " << factor << " -> " << to_string(*back);
    }
  }
  EXPECT_GT(found, cases() / 10);
}

// Far past what is looked at element by element: the structural arguments, at points here and there.
TEST_F(Cute, LargeLayoutsKeepTheirPromises) {
  std::mt19937_64 random(7);
  const auto large = [&](uint32_t most_bits) {
    std::vector<CuteLeaf> leaves;
    const uint64_t count = 1 + random() % 4;
    int64_t dense = 1;
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t shape = (int64_t{1} << random() % most_bits) * static_cast<int64_t>(1 + 2 * (random() % 2));
      int64_t stride = dense;
      if (random() % 4 == 0) stride = static_cast<int64_t>(random() >> (2 + random() % 62));
      if (random() % 8 == 0) stride = -stride;
      leaves.push_back({shape, stride});
      if (__builtin_mul_overflow(dense, shape, &dense)) dense = 1;
    }
    if (random() % 2 == 0) std::shuffle(leaves.begin(), leaves.end(), random);
    return make_cute_flat(arena_, leaves);
  };
  int composed_count = 0;
  int complements = 0;
  int inverses = 0;
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout *const a = large(20);
    const CuteLayout *const b = large(14);
    if (a == nullptr || b == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kUnsupported);
      continue;
    }
    const auto somewhere = [&](const CuteLayout &layout) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(layout.size()));
    };
    if (const CuteLayout *const result = compose(arena_, *a, *b); result != nullptr && b->size() > kCuteChecked) {
      ++composed_count;
      for (int i = 0; i < 64; ++i) {
        const int64_t at = somewhere(*b);
        ASSERT_EQ(result->apply(at), coalesce(arena_, *a)->apply(b->apply(at))) << to_string(*a) << to_string(*b);
      }
      ASSERT_EQ(result->apply(b->size() - 1), coalesce(arena_, *a)->apply(b->apply(b->size() - 1)));
    }
    if (const CuteLayout *const rest = complement(arena_, *b, b->highest() + 1)) {
      ++complements;
      // Sums are distinct and fill the interval: its end is the number of sums.
      const CuteLayout &own = *filter(arena_, *b);
      ASSERT_EQ(static_cast<Int128>(own.size()) * rest->size(), Int128{own.highest()} + rest->highest() + 1);
    }
    if (const CuteLayout *const inverse = left_inverse(arena_, *b); inverse != nullptr && b->size() > kCuteChecked) {
      ++inverses;
      for (int i = 0; i < 64; ++i) {
        const int64_t at = somewhere(*b);
        ASSERT_EQ(inverse->apply(b->apply(at)), at) << to_string(*b);
      }
    }
    if (const CuteLayout *const inverse = right_inverse(arena_, *a)) {
      for (int i = 0; i < 16; ++i) {
        const int64_t at = somewhere(*inverse);
        ASSERT_EQ(a->apply(inverse->apply(at)), at);
      }
    }
    const CuteTiler &by_b = *make_cute_tiler(arena_, *b);
    logical_divide(arena_, *a, by_b);
    logical_product(arena_, *a, by_b);
    max_common_layout(arena_, *a, *b);
    upcast(arena_, *a, 8);
    downcast(arena_, *a, 8);
    ASSERT_EQ(parse_cute(arena_, to_string(*a)) != nullptr, true) << arena_.text();
  }
  EXPECT_GT(composed_count, cases() / 20);
  EXPECT_GT(complements, cases() / 10);
  EXPECT_GT(inverses, cases() / 20);
}

TEST_F(Cute, EqualFunctionsAreEqual) {
  std::mt19937_64 random(6);
  for (int round = 0; round < cases(); ++round) {
    arena_.reset();
    const CuteLayout &a = any_layout(arena_, random, 3);
    const CuteLayout &b = any_layout(arena_, random, 3);
    bool same = a.size() == b.size();
    for (int64_t i = 0; same && i < a.size(); ++i) same = a.apply(i) == b.apply(i);
    ASSERT_EQ(equal_as_functions(a, b), same) << to_string(a) << " and " << to_string(b);
    ASSERT_TRUE(equal_as_functions(a, *coalesce(arena_, a)));
  }
}

}  // namespace
}  // namespace sonde::layout
