#include "config/service.h"

#include <gtest/gtest.h>
#include <sonde/config.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/services.h"

namespace sonde::config {
namespace {

class ConfigService : public testing::Test {
 protected:
  void SetUp() override {
    install();
    const void *table = nullptr;
    ASSERT_EQ(get_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, print), &table), SONDE_OK);
    config_ = static_cast<const sonde_config_service_t *>(table);
    live_before_ = live_documents();
  }
  void TearDown() override { EXPECT_EQ(live_documents(), live_before_); }

  sonde_config_t *parsed(const char *text) {
    sonde_config_t *out = nullptr;
    EXPECT_EQ(config_->parse(text, "run.yaml", &out), SONDE_OK) << host_table()->last_error();
    return out;
  }

  const sonde_config_service_t *config_ = nullptr;
  size_t live_before_ = 0;
};

TEST_F(ConfigService, ReadsValuesByDottedPath) {
  sonde_config_t *const tree = parsed("a: {b: 64Ki, c: 3%, t: 2.5ms, on: yes}\nlist: [x, {name: y}]\n");
  int64_t integer = 0;
  EXPECT_EQ(config_->get_i64(tree, "a.b", &integer), SONDE_OK);
  EXPECT_EQ(integer, 65536);
  EXPECT_EQ(config_->get_time(tree, "a.t", &integer), SONDE_OK);
  EXPECT_EQ(integer, 2500000);
  double number = 0;
  EXPECT_EQ(config_->get_f64(tree, "a.c", &number), SONDE_OK);
  EXPECT_EQ(number, 0.03);
  uint32_t flag = 0;
  EXPECT_EQ(config_->get_bool(tree, "a.on", &flag), SONDE_OK);
  EXPECT_EQ(flag, 1u);
  const char *text = nullptr;
  EXPECT_EQ(config_->get_text(tree, "list.1.name", &text), SONDE_OK);
  EXPECT_STREQ(text, "y");
  uint64_t count = 0;
  EXPECT_EQ(config_->count(tree, "list", &count), SONDE_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(config_->count(tree, "a.b", &count), SONDE_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(config_->key(tree, "a", 2, &text), SONDE_OK);
  EXPECT_STREQ(text, "t");
  const sonde_config_t *view = nullptr;
  EXPECT_EQ(config_->child(tree, "list.1", &view), SONDE_OK);
  EXPECT_EQ(config_->get_text(view, "name", &text), SONDE_OK);
  EXPECT_EQ(config_->where(view, "name", &text), SONDE_OK);
  EXPECT_STREQ(text, "run.yaml:2:18");
  EXPECT_EQ(config_->print(tree, "list", &text), SONDE_OK);
  EXPECT_STREQ(text, "- x\n- name: y\n");
  EXPECT_EQ(config_->release(tree), SONDE_OK);
}

TEST_F(ConfigService, ErrorsSayWhereAndWhat) {
  sonde_config_t *const tree = parsed("a: {b: word}\nl: [1]\n");
  int64_t integer = 0;
  EXPECT_EQ(config_->get_i64(tree, "a.b", &integer), SONDE_E_TYPE);
  EXPECT_STREQ(host_table()->last_error(), "run.yaml:1:8: 'a.b' is 'word'; expected an integer");
  EXPECT_EQ(config_->get_i64(tree, "a.x", &integer), SONDE_E_NOT_FOUND);
  const char *text = nullptr;
  EXPECT_EQ(config_->get_text(tree, "a", &text), SONDE_E_TYPE);
  EXPECT_EQ(config_->key(tree, "l", 0, &text), SONDE_E_TYPE);
  EXPECT_EQ(config_->key(tree, "a", 1, &text), SONDE_E_RANGE);
  EXPECT_EQ(config_->get_i64(nullptr, "a", &integer), SONDE_E_INVALID);
  EXPECT_EQ(config_->get_i64(tree, nullptr, &integer), SONDE_E_INVALID);
  EXPECT_EQ(config_->get_i64(tree, "a.b", nullptr), SONDE_E_INVALID);
  sonde_config_t *bad = tree;
  EXPECT_EQ(config_->parse("a: [", "bad.yaml", &bad), SONDE_E_PARSE);
  EXPECT_EQ(bad, nullptr);
  EXPECT_EQ(std::strncmp(host_table()->last_error(), "bad.yaml:", 9), 0);
  EXPECT_EQ(config_->release(tree), SONDE_OK);
}

TEST_F(ConfigService, ReleasesOnceAndNeverAView) {
  sonde_config_t *const tree = parsed("a: {b: 1}\n");
  const sonde_config_t *view = nullptr;
  ASSERT_EQ(config_->child(tree, "a", &view), SONDE_OK);
  EXPECT_EQ(config_->release(const_cast<sonde_config_t *>(view)), SONDE_E_INVALID);
  EXPECT_EQ(config_->release(tree), SONDE_OK);
  EXPECT_EQ(config_->release(tree), SONDE_E_INVALID);
  EXPECT_EQ(config_->release(nullptr), SONDE_OK);
}

TEST_F(ConfigService, CheckedTreeOutlivesItsSource) {
  const sonde_option_t options[] = {{"limit", "5ms", "h", "ns", "", SONDE_OPTION_TIME, 0},
                                    {"tree", "{}", "h", "", "", SONDE_OPTION_TREE, 0}};
  sonde_config_t *const tree = parsed("limit: 7us\ntree: {k: [1, 2]}\n");
  sonde_config_t *checked = nullptr;
  ASSERT_EQ(config_->check(tree, "p", options, 2, sizeof(sonde_option_t), &checked), SONDE_OK);
  EXPECT_EQ(config_->release(tree), SONDE_OK);
  int64_t limit = 0;
  EXPECT_EQ(config_->get_time(checked, "limit", &limit), SONDE_OK);
  EXPECT_EQ(limit, 7000);
  EXPECT_EQ(config_->get_i64(checked, "tree.k.1", &limit), SONDE_OK);
  EXPECT_EQ(limit, 2);
  const char *text = nullptr;
  EXPECT_EQ(config_->where(checked, "tree.k.1", &text), SONDE_OK);
  EXPECT_STREQ(text, "run.yaml:2:15");
  EXPECT_EQ(config_->release(checked), SONDE_OK);
}

TEST_F(ConfigService, IsReadByManyThreads) {
  sonde_config_t *const tree = parsed("a: {b: 1, c: [1, 2, 3]}\n");
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const char *text = nullptr;
        EXPECT_EQ(config_->print(tree, "a", &text), SONDE_OK);
        EXPECT_EQ(config_->where(tree, "a.c", &text), SONDE_OK);
        sonde_config_t *own = nullptr;
        EXPECT_EQ(config_->parse("x: 1", "t", &own), SONDE_OK);
        EXPECT_EQ(config_->release(own), SONDE_OK);
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(config_->release(tree), SONDE_OK);
}

}  // namespace
}  // namespace sonde::config
