// Accesses by scope, layer and phase, by hand.
#include "scope_accesses.h"

#include <gtest/gtest.h>

#include "scripted.h"

namespace sonde::workload {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;

constexpr uint32_t kOther = 1, kTorch = 2, kStep = 10, kMatmul = 11, kLinear = 12, kAdam = 13;

class ScopeAccessesTest : public ::testing::Test {
 protected:
  void open(uint32_t name, int64_t time, uint64_t scope = 0, uint64_t thread = 1, ScopeHint hint = {},
            bool is_layer = false) {
    scopes.begin({0, ScopeKind::kScope, kTorch, name}, thread, scope, time, hint, is_layer);
  }
  void close(int64_t time, uint64_t scope = 0, uint64_t thread = 1) {
    scopes.end(0, ScopeKind::kScope, kTorch, thread, scope, time);
  }
  void launch(int64_t time, const std::vector<MemoryTouch> &touches, uint64_t accesses = 1) {
    const MemoryOperation operation = script.launch(time, accesses);
    scopes.operation(operation, sum_up(operation, touches), touches);
  }
  const ScopeAccessRow &row(uint32_t name) { return scopes.scopes().at({0, ScopeKind::kScope, kTorch, name}); }
  uint64_t launches(Phase phase) {
    const auto it = scopes.phases().find({0, 0, phase});
    return it == scopes.phases().end() ? 0 : it->second.sums.launches;
  }
  static ScopeHint forward(uint64_t sequence) { return {Phase::kForward, sequence, 0}; }
  static ScopeHint backward(uint64_t sequence, uint64_t thread) { return {Phase::kBackward, sequence, thread}; }

  Options options;
  ScopeAccesses scopes{options, kOther};
  Script script;
};

TEST_F(ScopeAccessesTest, LaunchesCountForAllScopesAroundThem) {
  const MemoryObject a = script.object(0x1000, 100);
  open(kStep, 0);
  open(kMatmul, 10);
  launch(20, {Script::touch(a, 3)}, 3);
  close(30);
  launch(40, {Script::touch(a, 2)}, 2);
  close(50);
  launch(60, {Script::touch(a, 1)}, 1);
  scopes.finish();
  EXPECT_EQ(row(kMatmul).sums.launches, 1u);
  EXPECT_EQ(row(kMatmul).sums.accesses, 3u);
  EXPECT_EQ(row(kStep).sums.launches, 2u);
  EXPECT_EQ(row(kStep).sums.accesses, 5u);
  EXPECT_EQ(row(kStep).self_launches, 1u);
  EXPECT_EQ(row(kStep).sums.read_bytes, 20u);
}

TEST_F(ScopeAccessesTest, ScopesAreHalfOpenAtEqualStamps) {
  const MemoryObject a = script.object(0x1000, 100);
  open(kStep, 10);
  launch(10, {Script::touch(a, 1)});
  close(20);
  launch(20, {Script::touch(a, 1)});
  EXPECT_EQ(row(kStep).sums.launches, 1u);
}

TEST_F(ScopeAccessesTest, TheWorkingSetOfARunIsItsDifferentObjects) {
  const MemoryObject a = script.object(0x1000, 100), b = script.object(0x2000, 30);
  open(kStep, 0);
  launch(1, {Script::touch(a, 1)});
  open(kMatmul, 2);
  launch(3, {Script::touch(a, 1), Script::touch(b, 1)});
  launch(4, {Script::touch(b, 1)});
  close(5);
  launch(6, {Script::touch(b, 1)});
  close(7);
  open(kStep, 8);
  launch(9, {Script::touch(b, 1)});
  close(10);
  scopes.finish();
  EXPECT_EQ(row(kMatmul).objects[0].statistics.max(), 130);  // a and b, b once
  EXPECT_EQ(row(kStep).runs, 2u);
  EXPECT_EQ(row(kStep).objects[0].statistics.max(), 130);
  EXPECT_EQ(row(kStep).objects[0].statistics.min(), 30);
}

TEST_F(ScopeAccessesTest, AScopeInsideOneOfTheSameNameCountsALaunchOnce) {
  open(kStep, 0, 1);
  open(kStep, 1, 2);
  launch(2, {});
  close(3, 2);
  close(4, 1);
  scopes.finish();
  EXPECT_EQ(row(kStep).sums.launches, 1u);
  EXPECT_EQ(row(kStep).runs, 2u);
}

TEST_F(ScopeAccessesTest, ALaunchBelongsToTheThreadWhoseScopeBeganLast) {
  open(kStep, 0, 0, 1);     // waits for the other thread
  open(kMatmul, 10, 0, 2);  // works
  launch(20, {});
  scopes.finish();
  EXPECT_EQ(row(kMatmul).sums.launches, 1u);
  EXPECT_EQ(row(kStep).sums.launches, 0u);
  EXPECT_EQ(scopes.ambiguous(), 1u);
}

TEST_F(ScopeAccessesTest, PhasesFollowLinksAndNames) {
  open(kStep, 0);
  launch(1, {});
  open(kMatmul, 2, 0, 1, forward(7));
  launch(3, {});
  close(4);
  open(kMatmul, 5, 0, 1, backward(7, 1));
  launch(6, {});
  close(7);
  open(kAdam, 8, 0, 1, {Phase::kOptimizer, 0, 0});
  open(kMatmul, 9, 0, 1, forward(8));  // inside the optimizer it is the optimizer's
  launch(10, {});
  scopes.finish();
  EXPECT_EQ(launches(Phase::kOther), 1u);
  EXPECT_EQ(launches(Phase::kForward), 1u);
  EXPECT_EQ(launches(Phase::kBackward), 1u);
  EXPECT_EQ(launches(Phase::kOptimizer), 1u);
}

TEST_F(ScopeAccessesTest, ABackwardOperatorBelongsToTheLayerThatMadeItsNode) {
  const MemoryObject a = script.object(0x1000, 100);
  open(kLinear, 0, 0, 1, {}, true);
  open(kMatmul, 1, 0, 1, forward(7));
  launch(2, {Script::touch(a, 2)}, 2);
  close(3);
  close(4);
  open(kMatmul, 5, 0, 9, backward(7, 1));  // on a thread of autograd's own
  launch(6, {Script::touch(a, 5)}, 5);
  close(7, 0, 9);
  open(kMatmul, 8, 0, 9, backward(99, 1));  // of a node that nobody is known to have made
  launch(9, {Script::touch(a, 1)}, 1);
  scopes.finish();
  const LayerRow &layer = scopes.layers().at({0, kLinear});
  EXPECT_EQ(layer.forward.launches, 1u);
  EXPECT_EQ(layer.forward.accesses, 2u);
  EXPECT_EQ(layer.backward.launches, 1u);
  EXPECT_EQ(layer.backward.accesses, 5u);
}

TEST_F(ScopeAccessesTest, OfSeveralOperatorsWithOneNumberTheLastMadeTheNode) {
  open(kStep, 0, 1, 1, {}, true);
  open(kMatmul, 1, 2, 1, forward(7));
  open(kLinear, 2, 3, 1, {}, true);
  open(kMatmul, 3, 4, 1, forward(7));
  close(4, 4);
  close(5, 3);
  close(6, 2);
  close(7, 1);
  open(kMatmul, 8, 5, 1, backward(7, 1));
  launch(9, {});
  scopes.finish();
  EXPECT_EQ(scopes.layers().at({0, kLinear}).backward.launches, 1u);
  EXPECT_EQ(scopes.layers().at({0, kStep}).backward.launches, 1u) << "the layer around it has the launch too";
}

TEST_F(ScopeAccessesTest, EndsWithoutABeginAndBeginsWithoutAnEndDoNoHarm) {
  close(0);
  open(kStep, 1);
  launch(2, {});
  close(3, 42);  // another identity
  launch(4, {});
  scopes.finish();
  EXPECT_EQ(row(kStep).sums.launches, 2u);
  EXPECT_EQ(row(kStep).runs, 1u);
}

TEST_F(ScopeAccessesTest, ScopesThatComeInAnyOrderArePutInOrder) {
  close(30);
  open(kStep, 10);
  launch(20, {});
  launch(40, {});
  scopes.finish();
  EXPECT_EQ(row(kStep).sums.launches, 1u);
}

TEST_F(ScopeAccessesTest, ALaunchBehindWhatWasTakenIsCounted) {
  options.join_records = 1;
  open(kStep, 10);
  close(20);  // the second one pushes the first out
  launch(5, {});
  EXPECT_EQ(scopes.early(), 1u);
}

}  // namespace
}  // namespace sonde::workload
