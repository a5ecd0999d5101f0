// What the tests of the layout services share: the tables, an arena, text.
#pragma once

#include <gtest/gtest.h>
#include <sonde/sonde.h>

#include <string>
#include <vector>

namespace sonde::test {

template <typename Service>
const Service &service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(Service), &table), SONDE_OK) << sonde_host()->last_error();
  return *static_cast<const Service *>(table);
}

class LayoutServices : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(layouts.open(0, &arena_), SONDE_OK); }
  void TearDown() override { EXPECT_EQ(layouts.close(arena_), SONDE_OK); }

  static std::string error() { return sonde_host()->last_error(); }
  sonde_dim_t dim(const char *name) {
    sonde_dim_t id = 0;
    EXPECT_EQ(layouts.dim(name, &id), SONDE_OK);
    return id;
  }
  // Calls a function that ends in (text, capacity, needed).
  template <typename Function, typename... Arguments>
  static std::string text(Function function, Arguments... arguments) {
    uint64_t needed = 0;
    EXPECT_EQ(function(arguments..., nullptr, 0, &needed), SONDE_OK) << error();
    std::string all(needed + 1, '\0');
    EXPECT_EQ(function(arguments..., all.data(), all.size(), &needed), SONDE_OK) << error();
    all.resize(needed);
    return all;
  }
  std::string json(const sonde_layout_t *layout) { return text(layouts.to_json, layout); }

  const sonde_layout_service_t &layouts = service<sonde_layout_service_t>(SONDE_LAYOUT_SERVICE);
  sonde_layout_arena_t *arena_ = nullptr;
};

}  // namespace sonde::test
