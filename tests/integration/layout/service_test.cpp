// sonde.layout/1 and sonde.layout_shape/1 as a program sees them: through the host, with handles and statuses.
#include <gtest/gtest.h>
#include <sonde/sonde.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

template <typename Service>
const Service &service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(Service), &table), SONDE_OK) << sonde_host()->last_error();
  return *static_cast<const Service *>(table);
}

class LayoutService : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(layouts.open(0, &arena_), SONDE_OK); }
  void TearDown() override { EXPECT_EQ(layouts.close(arena_), SONDE_OK); }

  sonde_dim_t dim(const char *name) {
    sonde_dim_t id = 0;
    EXPECT_EQ(layouts.dim(name, &id), SONDE_OK);
    return id;
  }
  const sonde_layout_t *make(std::vector<sonde_layout_dim_t> ins, std::vector<sonde_layout_dim_t> outs,
                             std::vector<uint64_t> bases) {
    const sonde_layout_t *layout = nullptr;
    EXPECT_EQ(layouts.make(arena_, ins.data(), static_cast<uint32_t>(ins.size()), outs.data(),
                           static_cast<uint32_t>(outs.size()), bases.data(), nullptr, &layout),
              SONDE_OK)
        << sonde_host()->last_error();
    return layout;
  }
  // Registers and lanes of a 4x8 tile: register 1 -> (0, 1), lane 1 -> (0, 2), 2 -> (0, 4), 4 -> (1, 0), 8 -> (2, 0).
  const sonde_layout_t *tile() {
    return make({{SONDE_DIM_REGISTER, 1, 0, 0}, {SONDE_DIM_LANE, 4, 0, 0}},
                {{SONDE_DIM_FIRST, 2, 0, 0}, {SONDE_DIM_FIRST + 1, 3, 0, 0}}, {0, 1, 0, 2, 0, 4, 1, 0, 2, 0});
  }
  std::string text(const sonde_layout_t *layout) {
    uint64_t needed = 0;
    EXPECT_EQ(layouts.print(layout, nullptr, 0, &needed), SONDE_OK);
    std::string all(needed + 1, '\0');
    EXPECT_EQ(layouts.print(layout, all.data(), all.size(), &needed), SONDE_OK);
    all.resize(needed);
    return all;
  }
  static std::string error() { return sonde_host()->last_error(); }

  const sonde_layout_service_t &layouts = service<sonde_layout_service_t>(SONDE_LAYOUT_SERVICE);
  const sonde_layout_shape_service_t &shapes = service<sonde_layout_shape_service_t>(SONDE_LAYOUT_SHAPE_SERVICE);
  sonde_layout_arena_t *arena_ = nullptr;
};

TEST_F(LayoutService, BuildsShowsAndApplies) {
  const sonde_layout_t *const layout = tile();
  sonde_layout_view_t view{};
  ASSERT_EQ(layouts.view(layout, &view), SONDE_OK);
  EXPECT_EQ(view.in_bits, 5u);
  EXPECT_EQ(view.outs[1].name, SONDE_DIM_FIRST + 1);
  EXPECT_EQ(view.outs[1].shift, 2u);
  // Register 1 of lane 5: (0, 1) ^ (0, 2) ^ (1, 0) = (1, 3)
  const uint64_t values[] = {1, 5};
  uint64_t out[2] = {};
  ASSERT_EQ(layouts.apply(layout, values, out), SONDE_OK);
  EXPECT_EQ(out[0], 1u);
  EXPECT_EQ(out[1], 3u);
  EXPECT_EQ(sonde_layout_at(&view, 1 | 5 << 1), 1u | 3u << 2);
  uint32_t rank = 0;
  uint32_t flags = 0;
  ASSERT_EQ(layouts.properties(layout, &rank, &flags), SONDE_OK);
  EXPECT_EQ(rank, 5u);
  EXPECT_EQ(flags, SONDE_LAYOUT_SURJECTIVE | SONDE_LAYOUT_INJECTIVE | SONDE_LAYOUT_PERMUTATION | SONDE_LAYOUT_MEMORY);
  EXPECT_NE(text(layout).find("register=1 -> (0, 1)"), std::string::npos) << text(layout);
}

TEST_F(LayoutService, EachKindOfFailureHasItsStatus) {
  const sonde_layout_t *const layout = tile();
  const sonde_layout_t *out = layout;
  EXPECT_EQ(layouts.compose(arena_, layout, layout, &out), SONDE_E_INVALID);
  EXPECT_EQ(out, nullptr);
  EXPECT_NE(error().find("compose"), std::string::npos) << error();
  const sonde_layout_t *const half = make({{SONDE_DIM_REGISTER, 1, 0, 0}}, {{SONDE_DIM_FIRST, 2, 0, 0}}, {1});
  EXPECT_EQ(layouts.pseudoinvert(arena_, half, &out), SONDE_E_NO_SOLUTION);
  EXPECT_NE(error().find("2^1 of its 2^2"), std::string::npos) << error();
  const sonde_layout_t *wide = nullptr;
  ASSERT_EQ(layouts.strided(arena_, uint64_t{1} << 63, 1, dim("x"), dim("y"), &wide), SONDE_OK);
  EXPECT_EQ(layouts.product(arena_, wide, wide, &out), SONDE_E_UNSUPPORTED);
  EXPECT_EQ(layouts.divide_left(arena_, layout, half, &out), SONDE_E_NO_SOLUTION);
  const uint64_t values[] = {2, 0};
  uint64_t results[2] = {};
  EXPECT_EQ(layouts.apply(layout, values, results), SONDE_E_RANGE);
  EXPECT_EQ(layouts.from_json(arena_, "{", 1, &out), SONDE_E_PARSE);
  const uint8_t nothing[] = {1, 2, 3};
  EXPECT_EQ(layouts.from_bytes(arena_, nothing, 3, &out), SONDE_E_CORRUPT);
}

TEST_F(LayoutService, AnArenaThatIsFullSaysSo) {
  sonde_layout_arena_t *small = nullptr;
  ASSERT_EQ(layouts.open(1 << 16, &small), SONDE_OK);
  const sonde_layout_t *out = nullptr;
  sonde_status status = SONDE_OK;
  while (status == SONDE_OK) status = layouts.strided(small, 1 << 10, 1, dim("x"), dim("y"), &out);
  EXPECT_EQ(status, SONDE_E_FULL);
  EXPECT_NE(error().find("65536"), std::string::npos) << error();
  EXPECT_EQ(layouts.close(small), SONDE_OK);
}

TEST_F(LayoutService, MarksEndWhatCameAfterThem) {
  const sonde_layout_t *const kept = tile();
  const std::string before = text(kept);
  uint64_t mark[2] = {};
  ASSERT_EQ(layouts.mark(arena_, mark), SONDE_OK);
  for (int i = 0; i < 1000; ++i) {
    const sonde_layout_t *out = nullptr;
    ASSERT_EQ(layouts.copy(arena_, kept, &out), SONDE_OK);
  }
  ASSERT_EQ(layouts.release(arena_, mark), SONDE_OK);
  EXPECT_EQ(text(kept), before);
  mark[1] += 1 << 30;
  EXPECT_EQ(layouts.release(arena_, mark), SONDE_E_INVALID);
}

TEST_F(LayoutService, NullsAndStrangersAreRefused) {
  const sonde_layout_t *const layout = tile();
  const sonde_layout_t *out = nullptr;
  const uint64_t stranger[16] = {};
  const auto *const fake = reinterpret_cast<const sonde_layout_t *>(stranger);
  EXPECT_EQ(layouts.invert(nullptr, layout, &out), SONDE_E_INVALID);
  EXPECT_EQ(layouts.invert(arena_, nullptr, &out), SONDE_E_INVALID);
  EXPECT_EQ(layouts.invert(arena_, fake, &out), SONDE_E_INVALID);
  EXPECT_EQ(layouts.invert(arena_, layout, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(shapes.transpose(arena_, layout, SONDE_SIDE_OUT, nullptr, 2, &out), SONDE_E_INVALID);
  EXPECT_EQ(shapes.transpose(arena_, layout, 2, nullptr, 0, &out), SONDE_E_INVALID);
  EXPECT_EQ(layouts.make(arena_, nullptr, 1, nullptr, 0, nullptr, nullptr, &out), SONDE_E_INVALID);
  const sonde_layout_dim_t in{SONDE_DIM_LANE, 2, 0, 0};
  const sonde_layout_dim_t to{SONDE_DIM_FIRST, 2, 0, 0};
  EXPECT_EQ(layouts.make(arena_, &in, 1, &to, 1, nullptr, nullptr, &out), SONDE_E_INVALID);
  uint64_t count = 0;
  EXPECT_EQ(shapes.contiguous(layout, dim("nowhere"), &count), SONDE_E_INVALID);
  EXPECT_NE(error().find("nowhere"), std::string::npos) << error();
}

TEST_F(LayoutService, TablesStayInsideTheLayout) {
  const sonde_layout_t *const layout = tile();
  uint64_t wide[32] = {};
  uint32_t narrow[32] = {};
  ASSERT_EQ(layouts.table(layout, 0, 32, wide), SONDE_OK);
  ASSERT_EQ(layouts.table32(layout, 3, 29, narrow), SONDE_OK);
  sonde_layout_view_t view{};
  ASSERT_EQ(layouts.view(layout, &view), SONDE_OK);
  for (uint64_t i = 0; i < 32; ++i) EXPECT_EQ(wide[i], sonde_layout_at(&view, i));
  for (uint64_t i = 3; i < 32; ++i) EXPECT_EQ(narrow[i - 3], wide[i]);
  EXPECT_EQ(layouts.table(layout, 1, 32, wide), SONDE_E_RANGE);
  EXPECT_EQ(layouts.table(layout, UINT64_MAX, 2, wide), SONDE_E_RANGE);
  const sonde_layout_t *large = nullptr;
  ASSERT_EQ(layouts.strided(arena_, 2, uint64_t{1} << 40, dim("x"), dim("y"), &large), SONDE_OK);
  EXPECT_EQ(layouts.table32(large, 0, 2, narrow), SONDE_E_RANGE);
  const uint64_t past[] = {32};
  EXPECT_EQ(layouts.apply_many(layout, past, 1, wide), SONDE_E_RANGE);
}

TEST_F(LayoutService, ShapesAndQuestions) {
  const sonde_layout_t *const layout = tile();
  const sonde_layout_t *out = nullptr;
  const sonde_dim_t order[] = {SONDE_DIM_FIRST + 1, SONDE_DIM_FIRST};
  ASSERT_EQ(shapes.transpose(arena_, layout, SONDE_SIDE_OUT, order, 2, &out), SONDE_OK);
  uint32_t same = 0;
  ASSERT_EQ(layouts.equal(layout, out, SONDE_LAYOUT_EQUAL_AS_MAPS, &same), SONDE_OK);
  EXPECT_EQ(same, 1u);
  ASSERT_EQ(layouts.equal(layout, out, SONDE_LAYOUT_EQUAL_EXACT, &same), SONDE_OK);
  EXPECT_EQ(same, 0u);
  // With dim1 first, registers and lanes run along it: 1, 2, 4 of the first dims are an identity of 2 registers.
  uint64_t run = 0;
  ASSERT_EQ(shapes.consecutive(out, &run), SONDE_OK);
  EXPECT_EQ(run, 2u);
  uint64_t sizes[2] = {};
  ASSERT_EQ(shapes.contiguous_per_thread(layout, sizes), SONDE_OK);
  EXPECT_EQ(sizes[0], 1u);
  EXPECT_EQ(sizes[1], 2u);
  uint64_t mask = 0;
  const sonde_dim_t lanes[] = {SONDE_DIM_LANE};
  ASSERT_EQ(shapes.output_mask(layout, lanes, 1, SONDE_DIM_FIRST + 1, &mask), SONDE_OK);
  EXPECT_EQ(mask, 6u);
  const uint64_t shape[] = {8, 4};
  ASSERT_EQ(shapes.reshape_tensor(arena_, layout, shape, 2, &out), SONDE_OK);
  // Element (1, 0) of 4x8 is number 8, which is (2, 0) of 8x4.
  const uint64_t values[] = {0, 4};
  uint64_t point[2] = {};
  ASSERT_EQ(layouts.apply(out, values, point), SONDE_OK);
  EXPECT_EQ(point[0], 2u);
  EXPECT_EQ(point[1], 0u);
}

TEST_F(LayoutService, ALayoutLivesInACallersMemory) {
  const sonde_layout_t *const layout = tile();
  const sonde_layout_t *placed = layout;
  uint64_t needed = 0;
  ASSERT_EQ(layouts.place(layout, nullptr, 0, &needed, &placed), SONDE_OK) << error();
  EXPECT_EQ(placed, nullptr);
  std::vector<uint64_t> memory((needed + 7) / 8);
  EXPECT_EQ(layouts.place(layout, memory.data(), needed - 1, &needed, &placed), SONDE_E_FULL);
  ASSERT_EQ(layouts.place(layout, memory.data(), needed, &needed, &placed), SONDE_OK) << error();
  const std::string before = text(layout);
  ASSERT_EQ(layouts.reset(arena_), SONDE_OK);
  EXPECT_EQ(text(placed), before);
  const std::vector<uint64_t> moved = memory;
  EXPECT_EQ(text(reinterpret_cast<const sonde_layout_t *>(moved.data())), before);
}

TEST_F(LayoutService, ActionsAndOrders) {
  // Registers 4, 1, 0, 8, 2 of an offset; lane 16.
  const sonde_layout_t *const layout = make({{SONDE_DIM_REGISTER, 5, 0, 0}, {SONDE_DIM_LANE, 1, 0, 0}},
                                            {{SONDE_DIM_OFFSET, 5, 0, 0}}, {4, 1, 0, 8, 2, 16});
  uint32_t permutation[64] = {};
  uint32_t count = 0;
  ASSERT_EQ(shapes.drop_broadcasts(layout, permutation, &count), SONDE_OK);
  EXPECT_EQ(std::vector<uint32_t>(permutation, permutation + count), (std::vector<uint32_t>{0, 1, 3, 4}));
  const sonde_layout_t *dense = nullptr;
  ASSERT_EQ(shapes.permute(arena_, layout, SONDE_DIM_REGISTER, permutation, count, &dense), SONDE_OK) << error();
  uint64_t elements = 0;
  ASSERT_EQ(shapes.vectorise(arena_, dense, 16, 0, &elements, permutation, &count), SONDE_OK) << error();
  EXPECT_EQ(elements, 8u);  // 128 bits: offsets 1, 2 and 4 lie in registers 1, 3 and 0
  ASSERT_EQ(count, 4u);
  EXPECT_EQ(std::vector<uint32_t>(permutation, permutation + 3), (std::vector<uint32_t>{1, 3, 0}));
  EXPECT_EQ(shapes.vectorise(arena_, dense, 3, 0, &elements, permutation, &count), SONDE_E_INVALID);
  uint32_t order[2] = {};
  ASSERT_EQ(shapes.order_per_dim(tile(), SONDE_DIM_REGISTER, order), SONDE_OK);
  EXPECT_EQ(order[0], 1u);
  EXPECT_EQ(order[1], 0u);
  const sonde_dim_t a[] = {SONDE_DIM_REGISTER, SONDE_DIM_LANE};
  const sonde_dim_t b[] = {SONDE_DIM_LANE, SONDE_DIM_WARP};
  const sonde_dim_t reversed[] = {SONDE_DIM_LANE, SONDE_DIM_REGISTER};
  sonde_dim_t all[4] = {};
  ASSERT_EQ(shapes.supremum(a, 2, b, 2, all, &count), SONDE_OK) << error();
  EXPECT_EQ(std::vector<sonde_dim_t>(all, all + count),
            (std::vector<sonde_dim_t>{SONDE_DIM_REGISTER, SONDE_DIM_LANE, SONDE_DIM_WARP}));
  EXPECT_EQ(shapes.supremum(a, 2, reversed, 2, all, &count), SONDE_E_INVALID);
}

TEST_F(LayoutService, TextIsCutWhereThereIsNoRoom) {
  char room[8] = {};
  uint64_t needed = 0;
  EXPECT_EQ(layouts.to_json(tile(), room, sizeof(room), &needed), SONDE_E_FULL);
  EXPECT_EQ(std::string(room), "{\"in\": ");
  EXPECT_GT(needed, sizeof(room));
}

// Whatever is called in whatever order, every answer is a status, and what is given out can be read.
TEST_F(LayoutService, RandomCallsKeepTheirPromises) {
  const char *const cases_text = std::getenv("SONDE_CASES");
  const uint64_t cases = cases_text == nullptr ? 2000 : std::strtoull(cases_text, nullptr, 10);
  std::mt19937_64 random(5);
  std::vector<const sonde_layout_t *> pool{tile()};
  const sonde_dim_t names[] = {SONDE_DIM_REGISTER, SONDE_DIM_LANE, SONDE_DIM_FIRST, SONDE_DIM_FIRST + 1, dim("basis")};
  const auto pick = [&] { return pool[random() % pool.size()]; };
  const auto name = [&] { return names[random() % 5]; };
  uint64_t made = 0;
  for (uint64_t i = 0; i < cases * 5; ++i) {
    if (pool.size() > 64) {
      ASSERT_EQ(layouts.reset(arena_), SONDE_OK);
      pool = {tile()};
    }
    const sonde_layout_t *out = nullptr;
    sonde_status status = SONDE_OK;
    const sonde_dim_t pair[] = {name(), name()};
    const uint32_t side = random() % 2;
    switch (random() % 20) {
      case 0:
        status = layouts.product(arena_, pick(), pick(), &out);
        break;
      case 1:
        status = layouts.compose(arena_, pick(), pick(), &out);
        break;
      case 2:
        status = layouts.divide_left(arena_, pick(), pick(), &out);
        break;
      case 3:
        status = layouts.divide_right(arena_, pick(), pick(), &out);
        break;
      case 4:
        status = layouts.invert_and_compose(arena_, pick(), pick(), random() % 2, &out);
        break;
      case 5:
        status = layouts.pseudoinvert(arena_, pick(), &out);
        break;
      case 6:
        status = layouts.invert(arena_, pick(), &out);
        break;
      case 7:
        status = layouts.concat(arena_, side, pick(), pick(), &out);
        break;
      case 8:
        status = layouts.subspace(arena_, random() % 6, pick(), pick(), &out);
        break;
      case 9:
        status = shapes.flatten(arena_, pick(), side, &out);
        break;
      case 10:
        status = shapes.transpose(arena_, pick(), side, pair, 2, &out);
        break;
      case 11:
        status = shapes.resize(arena_, pick(), side, name(), random() % 5, random() % 2, &out);
        break;
      case 12:
        status = shapes.rename(arena_, pick(), side, pair, pair + 1, 1, &out);
        break;
      case 13:
        status = shapes.sublayout(arena_, pick(), pair, 1, pair + 1, 1, &out);
        break;
      case 14:
        status = shapes.quotient(arena_, pick(), pair, 1, &out);
        break;
      case 15:
        status = shapes.unsqueeze(arena_, pick(), side, name(), &out);
        break;
      case 16:
        status = shapes.squeeze(arena_, pick(), side, name(), &out);
        break;
      case 17:
        status = shapes.remove_zero_bases(arena_, pick(), name(), &out);
        break;
      case 18:
        status = layouts.strided(arena_, uint64_t{1} << random() % 4, 1, name(), name(), &out);
        break;
      default:
        status = shapes.remove_tensor_dim(arena_, pick(), random() % 3, &out);
        break;
    }
    ASSERT_EQ(status == SONDE_OK, out != nullptr);
    if (out == nullptr) {
      ASSERT_TRUE(status == SONDE_E_INVALID || status == SONDE_E_NO_SOLUTION || status == SONDE_E_UNSUPPORTED)
          << status;
      ASSERT_FALSE(error().empty());
      continue;
    }
    ++made;
    sonde_layout_view_t view{};
    ASSERT_EQ(layouts.view(out, &view), SONDE_OK);
    uint64_t all = view.offset;
    for (uint32_t bit = 0; bit < view.in_bits; ++bit) all |= view.columns[bit];
    if (view.out_bits < 64) {
      ASSERT_EQ(all >> view.out_bits, 0u) << text(out);
    }
    pool.push_back(out);
  }
  EXPECT_GT(made, cases);
}

}  // namespace
