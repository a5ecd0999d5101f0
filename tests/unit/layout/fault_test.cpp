// Faults that users of other tools reported, each with its smallest input.
#include "layout/algebra.h"
#include "layout/plan.h"
#include "vectors_fixture.h"

namespace sonde::layout::test {
namespace {

class LayoutFaults : public EncodingTest {
 protected:
  // The plan from one layout to the other, carried out, gives everyone what the definition gives.
  void expect_right_conversion(const Layout *source, const Layout *destination) {
    PlanOptions options;
    options.bits_per_element = 16;
    const Plan *const plan = plan_conversion(arena_, *source, *destination, options);
    ASSERT_NE(plan, nullptr) << arena_.text();
    std::vector<uint64_t> data(uint64_t{1} << source->in_bits());
    for (uint64_t i = 0; i < data.size(); ++i) data[i] = source->apply(i);
    std::vector<uint64_t> planned;
    std::vector<uint64_t> direct;
    ASSERT_TRUE(execute(arena_, *plan, data, planned)) << arena_.text();
    ASSERT_TRUE(convert_directly(arena_, *source, *destination, data, direct)) << arena_.text();
    EXPECT_EQ(planned, direct) << plan_text(plan->kind);
    for (uint64_t i = 0; i < planned.size(); ++i) ASSERT_EQ(planned[i], destination->apply(i));
  }
  static std::string blocked(const char *per_thread, const char *threads, const char *warps) {
    return std::string("#ttg.blocked<{sizePerThread = [") + per_thread + "], threadsPerWarp = [" + threads +
           "], warpsPerCTA = [" + warps + "], order = [1, 0]}>";
  }
  void expect_refused(const std::string &text, const Sizes &shape) {
    AttributeError error;
    const EncodingPointer parsed = parse_attribute(text, {}, error);
    if (parsed == nullptr) {
      EXPECT_FALSE(error.text.empty()) << text;
      return;
    }
    EXPECT_EQ(encoding_layout(arena_, *parsed, shape), nullptr) << text;
    EXPECT_FALSE(arena_.text().empty()) << text;
  }
};

// triton#1910: two warps hold the same elements on one side only.
TEST_F(LayoutFaults, WarpsThatReplicateOnOneSide) {
  const Layout *const two = layout(blocked("1, 1", "4, 8", "1, 2"), {32, 32});
  const Layout *const one = layout(blocked("1, 4", "8, 4", "1, 1"), {32, 32});
  expect_right_conversion(two, one);
  expect_right_conversion(one, two);
}

// triton#2483, #2361: lanes and registers that hold duplicates on both sides.
TEST_F(LayoutFaults, DuplicatedLanesAndRegisters) {
  const Layout *const source = layout(blocked("1, 4", "4, 8", "2, 2"), {4, 8});
  const Layout *const destination = layout(blocked("2, 1", "32, 1", "1, 4"), {4, 8});
  expect_right_conversion(source, destination);
  expect_right_conversion(destination, source);
}

// triton#4116: three dims, threads [2, 2, 8], through a nested slice.
TEST_F(LayoutFaults, NestedSlices) {
  const std::string parent =
      "#ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [2, 2, 8], warpsPerCTA = [2, 2, 1], order = [2, 1, "
      "0]}>";
  const std::string slice = "#ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = " + parent + "}>}>";
  const Layout *const source = layout(slice, {64});
  const Layout *const destination =
      layout("#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>", {64});
  expect_right_conversion(source, destination);
  expect_right_conversion(destination, source);
}

// triton#4727: a swizzle of 128 bytes over 4 rows is refused, not asserted; the plain swizzle of 4 rows is a layout.
TEST_F(LayoutFaults, FourRowsOfASwizzledTile) {
  expect_refused("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", {4, 64});
  const Layout *const four =
      layout("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>", {4, 64});
  EXPECT_TRUE(is_invertible(*four));
}

// intel-xpu-backend#1153: more elements a thread than the tensor has.
TEST_F(LayoutFaults, MoreElementsAThreadThanTheTensorHas) {
  const Layout *const wide = layout(blocked("2, 8", "4, 8", "4, 1"), {1, 4});
  EXPECT_TRUE(is_surjective(*wide));
  expect_right_conversion(wide, layout(blocked("1, 1", "1, 32", "1, 4"), {1, 4}));
}

// triton#11875: zero, negative and odd parameters are errors with a reason.
TEST_F(LayoutFaults, ParametersThatAreNoPowersOfTwo) {
  for (const char *const parameters : {"vec = 0, perPhase = 1, maxPhase = 1", "vec = 1, perPhase = 0, maxPhase = 1",
                                       "vec = 1, perPhase = 1, maxPhase = 0", "vec = 3, perPhase = 1, maxPhase = 4",
                                       "vec = -1, perPhase = 1, maxPhase = 1"}) {
    expect_refused(std::string("#ttg.swizzled_shared<{") + parameters + ", order = [1, 0]}>", {16, 64});
  }
  expect_refused(blocked("0, 1", "4, 8", "4, 1"), {16, 64});
  expect_refused(blocked("1, 1", "3, 8", "4, 1"), {16, 64});
  expect_refused(
      "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 1]}>",
      {16, 64});
  expect_refused(
      "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 2]}>",
      {16, 64});
  expect_refused("#ttg.nvmma_shared<{swizzlingByteWidth = 48, transposed = false, elementBitWidth = 16}>", {16, 64});
  expect_refused("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 0}>", {16, 64});
  expect_refused("#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [0, 4], instrShape = [16, 8]}>",
                 {16, 64});
}

}  // namespace
}  // namespace sonde::layout::test
