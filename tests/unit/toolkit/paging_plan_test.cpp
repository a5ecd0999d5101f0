// Plans for managed memory: written, read back, and refused with the place of the fault.
#include <gtest/gtest.h>

#include <memory>

#include <sonde/sonde.h>
#include <sonde/toolkit/paging_plan.h>

namespace sonde::toolkit {
namespace {

const sonde_config_service_t &config() {
  static const sonde_config_service_t *const service = [] {
    const void *table = nullptr;
    sonde_host()->get_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, print), &table);
    return static_cast<const sonde_config_service_t *>(table);
  }();
  return *service;
}

// The error, "" when the plan could be read.
std::string read(const std::string &yaml, PagingPlan &plan) {
  sonde_config_t *tree = nullptr;
  if (config().parse(yaml.c_str(), "p.yaml", &tree) != SONDE_OK) return sonde_host()->last_error();
  const auto release = [](sonde_config_t *one) { config().release(one); };
  const std::unique_ptr<sonde_config_t, decltype(release)> owned(tree, release);
  std::string error;
  const bool is_read = read_paging_plan(config(), tree, plan, error);
  EXPECT_EQ(is_read, error.empty());
  return error;
}
std::string read(const std::string &yaml) {
  PagingPlan plan;
  return read(yaml, plan);
}

TEST(PagingPlanText, IsReadBackAsItWas) {
  PagingPlan plan;
  plan.device = 1;
  plan.allocations = {{0, 128 << 20, {{PagingAdvice::kPreferHost, 0, 4096}, {PagingAdvice::kAccessedBy, 4096, 4096}}},
                      {7, 1000, {{PagingAdvice::kReadMostly, 0, 1000}, {PagingAdvice::kPreferDevice, 0, 1}}}};
  PlannedStep step;
  step.launch = 3;
  step.kernel = "void \"odd\" \\ name<int>(char const*)\x01\n: #";
  step.occurrence = 2;
  step.waits_for_device = true;
  step.moves = {{true, 0, 0, 64 << 20, PlannedMove::kNobody}, {false, 7, 1, 999, 5}};
  plan.steps.push_back(step);
  step = {};
  step.launch = 4;
  plan.steps.push_back(step);
  PagingPlan back;
  ASSERT_EQ(read(paging_plan_text(plan), back), "") << paging_plan_text(plan);
  EXPECT_EQ(paging_plan_text(back), paging_plan_text(plan));
  ASSERT_EQ(back.steps.size(), 2u);
  EXPECT_EQ(back.steps[0].kernel, plan.steps[0].kernel);
  EXPECT_TRUE(back.steps[0].waits_for_device);
  EXPECT_TRUE(back.steps[0].moves[0].is_eviction);
  EXPECT_EQ(back.steps[0].moves[1].needed, 5u);
  EXPECT_EQ(back.steps[1].occurrence, PlannedStep::kAny);
  EXPECT_EQ(back.allocations[1].advise[1].advice, PagingAdvice::kPreferDevice);
}

TEST(PagingPlanText, IsWhatAPersonWouldWrite) {
  PagingPlan plan;
  plan.allocations = {{0, 128 << 20, {}}};
  PlannedStep step;
  step.kernel = "k";
  step.moves = {{false, 0, 0, 128 << 20, 0}};
  plan.steps = {step};
  EXPECT_EQ(paging_plan_text(plan, 2),
            "  version: 1\n  device: 0\n  allocations:\n    - allocation: 0\n      bytes: 128Mi\n  steps:\n"
            "    - launch: 0\n      kernel: \"k\"\n      when: host\n      moves:\n"
            "        - {prefetch: 0, offset: 0, bytes: 128Mi, needed: 0}\n");
}

TEST(PagingPlanText, RangesMayBeLeftOut) {
  PagingPlan plan;
  ASSERT_EQ(read("version: 1\nallocations: [{allocation: 2, bytes: 8Ki, advise: [{advice: read_mostly}]}]\n"
                 "steps: [{launch: 1, moves: [{prefetch: 2}, {evict: 2, offset: 4Ki}]}]\n",
                 plan),
            "");
  EXPECT_EQ(plan.allocations[0].advise[0].bytes, 8192u);
  EXPECT_EQ(plan.steps[0].moves[0].bytes, 8192u);
  EXPECT_EQ(plan.steps[0].moves[1].bytes, 4096u);
  EXPECT_EQ(plan.steps[0].moves[0].needed, PlannedMove::kNobody);
  EXPECT_FALSE(plan.steps[0].waits_for_device);
}

TEST(PagingPlanText, FaultsAreNamedWithTheirPlace) {
  const std::string allocations = "version: 1\nallocations: [{allocation: 0, bytes: 4096}]\n";
  const auto expect = [](const std::string &yaml, const char *place, const char *part) {
    const std::string error = read(yaml);
    EXPECT_EQ(error.find(place), 0u) << error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect("allocations: []\n", "p.yaml:1:1", "'version' is missing");
  expect("version: 2\n", "p.yaml:1:10", "a plan of version 2; this reads version 1");
  expect("version: 1\nstep: []\n", "p.yaml:2", "a plan has no 'step' here");
  expect("version: 1\nallocations: {}\nsteps: {a: 1}\n", "p.yaml:3", "'steps' must be a list");
  expect("version: 1\nallocations: [{bytes: 1}]\n", "p.yaml:2", "'allocation' is missing");
  expect("version: 1\nallocations: [{allocation: -1, bytes: 1}]\n", "p.yaml:2", "must be a number from 0 on");
  expect("version: 1\nallocations: [{allocation: 0, bytes: 1}, {allocation: 0, bytes: 1}]\n", "p.yaml:2",
         "allocation 0 is listed twice");
  expect("version: 1\nallocations: [{allocation: 0, bytes: 9, advise: [{advice: often}]}]\n", "p.yaml:2",
         "'often' is none of");
  expect(allocations + "steps: [{launch: 1}, {launch: 1}]\n", "p.yaml:3", "does not come after launch 1");
  expect(allocations + "steps: [{launch: 1, when: soon}]\n", "p.yaml:3", "'soon' is neither host nor device");
  expect(allocations + "steps: [{launch: 1, moves: [{offset: 0}]}]\n", "p.yaml:3", "either 'prefetch' or 'evict'");
  expect(allocations + "steps: [{launch: 1, moves: [{prefetch: 0, evict: 0}]}]\n", "p.yaml:3",
         "either 'prefetch' or 'evict'");
  expect(allocations + "steps: [{launch: 1, moves: [{prefetch: 9}]}]\n", "p.yaml:3", "allocation 9 is not among");
  expect(allocations + "steps: [{launch: 1, moves: [{prefetch: 0, offset: 1, bytes: 4096}]}]\n", "p.yaml:3",
         "is not within the allocation, which has 4096 bytes");
  expect(allocations + "steps: [{launch: 1, moves: [{prefetch: 0, bytes: 0}]}]\n", "p.yaml:3", "is not within");
  expect(allocations + "steps: [{launch: 1, moves: [{prefetch: 0, needed: 0}]}]\n", "p.yaml:3",
         "launch 0 is before the launch");
  // At the boundaries there is nothing wrong.
  EXPECT_EQ(read(allocations + "steps: [{launch: 1, moves: [{prefetch: 0, offset: 4095, bytes: 1, needed: 1}]}]\n"),
            "");
}

TEST(PagingPlanText, BytesAreWrittenInTheGreatestExactUnit) {
  EXPECT_EQ(exact_bytes_text(0), "0");
  EXPECT_EQ(exact_bytes_text(1023), "1023");
  EXPECT_EQ(exact_bytes_text(1024), "1Ki");
  EXPECT_EQ(exact_bytes_text(1536), "1536");
  EXPECT_EQ(exact_bytes_text(uint64_t{5} << 30), "5Gi");
  EXPECT_EQ(exact_bytes_text(uint64_t{1} << 40), "1024Gi");
}

}  // namespace
}  // namespace sonde::toolkit
