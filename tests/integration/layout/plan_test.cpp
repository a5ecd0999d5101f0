// sonde.layout_encoding/1, layout_plan/1 and layout_search/1 as a program sees them.
#include <cstring>

#include "support.h"

namespace sonde::test {
namespace {

class LayoutPlans : public LayoutServices {
 protected:
  sonde_encoding_t *parse(const std::string &text, const std::string &module = "") {
    sonde_encoding_t *encoding = nullptr;
    EXPECT_EQ(
        encodings.parse(text.data(), text.size(), module.empty() ? nullptr : module.data(), module.size(), &encoding),
        SONDE_OK)
        << error();
    return encoding;
  }
  const sonde_layout_t *layout(const std::string &text, std::vector<uint64_t> shape) {
    sonde_encoding_t *const encoding = parse(text);
    const sonde_layout_t *out = nullptr;
    EXPECT_EQ(encodings.layout(arena_, encoding, shape.data(), static_cast<uint32_t>(shape.size()), &out), SONDE_OK)
        << error();
    encodings.release(encoding);
    return out;
  }
  const sonde_layout_t *blocked() {
    return layout(
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 2], warpsPerCTA = [1, 1], order = [1, 0]}>",
        {16, 16});
  }
  const sonde_layout_t *mma() {
    return layout("#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>",
                  {16, 16});
  }

  const sonde_layout_encoding_service_t &encodings =
      service<sonde_layout_encoding_service_t>(SONDE_LAYOUT_ENCODING_SERVICE);
  const sonde_layout_plan_service_t &plans = service<sonde_layout_plan_service_t>(SONDE_LAYOUT_PLAN_SERVICE);
  const sonde_layout_search_service_t &search = service<sonde_layout_search_service_t>(SONDE_LAYOUT_SEARCH_SERVICE);
};

TEST_F(LayoutPlans, AnAttributeAndItsParametersAreOneEncoding) {
  const uint64_t size_per_thread[] = {1, 4};
  const uint64_t threads[] = {8, 4};
  const uint64_t warps[] = {2, 2};
  const uint64_t order[] = {1, 0};
  const sonde_encoding_parameter_t parameters[] = {{"sizePerThread", size_per_thread, 1, 2, 0, 0},
                                                   {"threadsPerWarp", threads, 1, 2, 0, 0},
                                                   {"warpsPerCTA", warps, 1, 2, 0, 0},
                                                   {"order", order, 1, 2, 0, 0}};
  sonde_encoding_t *made = nullptr;
  ASSERT_EQ(encodings.make("blocked", parameters, 4, nullptr, &made), SONDE_OK) << error();
  sonde_encoding_t *const read = parse("#b",
                                       "#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], "
                                       "warpsPerCTA = [2, 2], order = [1, 0]}>");
  EXPECT_EQ(text(encodings.text, made), text(encodings.text, read));
  const uint64_t one = 1;
  const sonde_encoding_parameter_t slice[] = {{"dim", &one, 0, 0, 0, 0}};
  sonde_encoding_t *part = nullptr;
  ASSERT_EQ(encodings.make("slice", slice, 1, made, &part), SONDE_OK) << error();
  const uint64_t shape[] = {16};
  const sonde_layout_t *out = nullptr;
  ASSERT_EQ(encodings.layout(arena_, part, shape, 1, &out), SONDE_OK) << error();
  // The parent on 16 x 16: warps (8, 0) and (0, 0); without dim 1: register bases that are 0 go, lanes 1, 2 too stay.
  EXPECT_EQ(json(out), R"({"in": [["register", []], ["lane", [[0], [0], [1], [2], [4]]], ["warp", [[0], [8]]], )"
                       R"(["block", []]], "out": [["dim0", 16]]})");
  const char *kind = nullptr;
  uint32_t space = 9;
  ASSERT_EQ(encodings.kind(part, &kind, &space), SONDE_OK);
  EXPECT_STREQ(kind, "slice");
  EXPECT_EQ(space, SONDE_ENCODING_REGISTERS);
  for (sonde_encoding_t *encoding : {made, read, part}) EXPECT_EQ(encodings.release(encoding), SONDE_OK);
}

TEST_F(LayoutPlans, WrongParametersAreNamed) {
  sonde_encoding_t *out = nullptr;
  const uint64_t values[] = {1, 2};
  const sonde_encoding_parameter_t unknown[] = {{"colour", values, 1, 2, 0, 0}};
  EXPECT_EQ(encodings.make("blocked", unknown, 1, nullptr, &out), SONDE_E_INVALID);
  EXPECT_NE(error().find("colour"), std::string::npos) << error();
  EXPECT_EQ(encodings.make("round", nullptr, 0, nullptr, &out), SONDE_E_INVALID);
  EXPECT_EQ(encodings.make("blocked<{", nullptr, 0, nullptr, &out), SONDE_E_INVALID);
  const std::string broken = "#ttg.blocked<{sizePerThread = [1, 4}>";
  EXPECT_EQ(encodings.parse(broken.data(), broken.size(), nullptr, 0, &out), SONDE_E_PARSE);
  EXPECT_NE(error().find("at byte"), std::string::npos) << error();
  sonde_encoding_t *const encoding =
      parse("#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>");
  const uint64_t odd[] = {96};
  const sonde_layout_t *layout = nullptr;
  EXPECT_EQ(encodings.layout(arena_, encoding, odd, 1, &layout), SONDE_E_UNSUPPORTED);
  EXPECT_EQ(encodings.layout(arena_, encoding, odd, 33, &layout), SONDE_E_INVALID);
  encodings.release(encoding);
}

TEST_F(LayoutPlans, ScansAModule) {
  const std::string module =
      "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
      "tt.func @f(%0: tensor<64xf32, #ttg.slice<{dim = 0, parent = #a}>>, %1: tensor<1xf32, #ttg.blocked<{oops}>>)\n";
  std::vector<std::string> found;
  uint64_t unparsed = 0;
  const auto collect = [](void *user, const sonde_found_encoding_t *attribute) -> sonde_status {
    static_cast<std::vector<std::string> *>(user)->push_back(std::string(attribute->alias) + "@" +
                                                             std::to_string(attribute->offset) + ":" +
                                                             (attribute->encoding == nullptr ? "bad" : "good"));
    return SONDE_OK;
  };
  ASSERT_EQ(encodings.scan(module.data(), module.size(), collect, &found, &unparsed), SONDE_OK) << error();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].substr(0, 1), "a");
  EXPECT_EQ(unparsed, 1u);
  EXPECT_NE(found[2].find("bad"), std::string::npos) << found[2];
}

TEST_F(LayoutPlans, PlansAndCarriesOut) {
  sonde_plan_options_t options{};
  options.struct_size = sizeof(options);
  options.bits_per_element = 16;
  options.most_transpositions = 1;
  sonde_plan_t plan{};
  plan.struct_size = sizeof(plan);
  ASSERT_EQ(plans.plan(arena_, blocked(), mma(), &options, &plan), SONDE_OK) << error();
  EXPECT_EQ(plan.kind, SONDE_PLAN_SHARED_MEMORY);
  EXPECT_STREQ(plan.kind_text, "shared memory");
  EXPECT_EQ(plan.shared_bytes * plan.repetitions, 16u * 16 * 2);
  EXPECT_EQ(plan.store.conflicts + plan.load.conflicts, 0u);
  ASSERT_NE(plan.memory, nullptr);
  // Every element arrives: values are tensor indices on both sides.
  std::vector<uint64_t> values(256);
  std::vector<uint64_t> out(256);
  std::vector<uint64_t> wanted(256);
  ASSERT_EQ(layouts.table(blocked(), 0, 256, values.data()), SONDE_OK);
  ASSERT_EQ(layouts.table(mma(), 0, 256, wanted.data()), SONDE_OK);
  ASSERT_EQ(plans.execute(arena_, blocked(), mma(), &options, values.data(), 256, out.data(), 256), SONDE_OK)
      << error();
  EXPECT_EQ(out, wanted);
  EXPECT_EQ(plans.execute(arena_, blocked(), mma(), &options, values.data(), 255, out.data(), 256), SONDE_E_INVALID);
}

// A caller built against an older, shorter struct gets what it has room for and nothing behind it.
TEST_F(LayoutPlans, AShorterStructIsNotOverrun) {
  struct {
    sonde_plan_t plan;
    uint64_t guard;
  } room{};
  room.plan.struct_size = offsetof(sonde_plan_t, source_copies);
  room.plan.source_copies = 77;
  sonde_plan_options_t options{};
  options.struct_size = SONDE_NEED(sonde_plan_options_t, bits_per_element);
  options.bits_per_element = 16;
  options.flags = SONDE_PLAN_ONLY_MEMORY;  // past what struct_size says: not read
  ASSERT_EQ(plans.plan(arena_, blocked(), blocked(), &options, &room.plan), SONDE_OK) << error();
  EXPECT_EQ(room.plan.kind, SONDE_PLAN_NOTHING);
  EXPECT_EQ(room.plan.source_copies, 77u);
  EXPECT_EQ(room.plan.struct_size, offsetof(sonde_plan_t, source_copies));
}

TEST_F(LayoutPlans, FormulaAndSimulationAgree) {
  const sonde_layout_t *to_memory = nullptr;
  const sonde_layout_t *const memory =
      layout("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>", {16, 16});
  ASSERT_EQ(layouts.invert_and_compose(arena_, mma(), memory, 0, &to_memory), SONDE_OK) << error();
  sonde_bank_access_t formula{};
  sonde_bank_access_t simulated{};
  formula.struct_size = simulated.struct_size = sizeof(formula);
  ASSERT_EQ(plans.bank_access(arena_, to_memory, SONDE_DIM_OFFSET, 16, 0, 0, &formula), SONDE_OK) << error();
  ASSERT_EQ(plans.bank_access(arena_, to_memory, SONDE_DIM_OFFSET, 16, 0, 1, &simulated), SONDE_OK) << error();
  // Lanes 4, 8, 16 are rows of 32 bytes: 8 words each, and 8 rows of 4 words: 32 words at 8 words distance, so rows 0
  // and 4 share banks: 2 wavefronts.
  EXPECT_EQ(formula.wavefronts, 2u);
  EXPECT_EQ(simulated.wavefronts, formula.wavefronts);
  EXPECT_EQ(simulated.total, formula.total);
}

TEST_F(LayoutPlans, SaysWhoHoldsAnElement) {
  const uint64_t index[] = {3, 9};
  sonde_owner_t owners[4] = {};
  uint64_t count = 0;
  ASSERT_EQ(plans.owners(arena_, blocked(), index, owners, 4, &count), SONDE_OK) << error();
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(owners[0].lane, 7u);  // two lanes a row
  EXPECT_EQ(owners[0].reg, 1u);
}

TEST_F(LayoutPlans, FindsLayoutsFromWhatTheyMustDo) {
  const uint64_t shape[] = {64, 64};
  sonde_register_request_t request{};
  request.struct_size = sizeof(request);
  request.rank = 2;
  request.shape = shape;
  request.element_bits = 16;
  request.lanes = 32;
  request.warps = 4;
  request.vector_bits = 128;
  request.lane_run = 64;
  const sonde_layout_t *found = nullptr;
  ASSERT_EQ(search.registers(arena_, &request, &found), SONDE_OK) << error();
  const uint32_t order[] = {1, 0};
  uint64_t elements = 0;
  ASSERT_EQ(plans.vector_width(arena_, found, order, 2, 16, 128, &elements), SONDE_OK);
  EXPECT_EQ(elements, 8u);
  uint32_t flags = 0;
  ASSERT_EQ(layouts.properties(found, nullptr, &flags), SONDE_OK);
  EXPECT_NE(flags & SONDE_LAYOUT_SURJECTIVE, 0u);
  request.vector_bits = 1024;
  request.registers = 8;
  EXPECT_EQ(search.registers(arena_, &request, &found), SONDE_E_NO_SOLUTION);
  const sonde_layout_t *memory = nullptr;
  ASSERT_EQ(search.memory(arena_, blocked(), mma(), 16, 32, 0, &memory), SONDE_OK) << error();
  for (const sonde_layout_t *side : {blocked(), mma()}) {
    const sonde_layout_t *map = nullptr;
    ASSERT_EQ(layouts.invert_and_compose(arena_, side, memory, 0, &map), SONDE_OK) << error();
    sonde_bank_access_t access{};
    access.struct_size = sizeof(access);
    ASSERT_EQ(plans.bank_access(arena_, map, SONDE_DIM_OFFSET, 16, 0, 1, &access), SONDE_OK) << error();
    EXPECT_EQ(access.conflicts, 0u);
  }
}

}  // namespace
}  // namespace sonde::test
