// Which passes of layers count as slow.
#include "core/schedule/report/slow_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/schedule/cost/cost_table.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

// Every task takes what its work takes at 100 GFLOP/s and 10 GB/s, in two micro-batches.
struct Traced {
  Net net;
  Plan plan;
  std::vector<TraceEvent> events;

  explicit Traced(int devices = 1)
      : net(FakeNet("traced", 32, {1, 64, 16, 16})
                .convolution("conv1", 64, 3, 1, 1)
                .relu("relu1")
                .convolution("conv2", 64, 3, 1, 1)
                .pooling("pool2", 2, 2)
                .inner_product("fc1", 10)
                .loss()
                .finish()),
        plan(build_plan("two_phase", inputs_of(net, devices))) {
    const CostTable costs{Roofline{1e11, 1e10}};
    for (int64_t micro_batch : {0, 1}) {
      for (size_t i = 0; i < plan.tasks.size(); ++i) {
        const double seconds = costs.seconds(net, plan, plan.tasks[i]);
        events.push_back({static_cast<int>(i), micro_batch, 1.0, 1.0 + seconds});
      }
    }
  }

  void stretch(const std::string& label, double factor, int64_t only_micro_batch = -1) {
    for (TraceEvent& event : events) {
      if (plan.tasks[size_t(event.task)].label != label) continue;
      if (only_micro_batch >= 0 && event.micro_batch != only_micro_batch) continue;
      event.end = event.start + factor * (event.end - event.start);
    }
  }
  [[nodiscard]] std::vector<SlowPass> found() const { return slow_passes(net, plan, events); }
};

TEST(SlowPasses, ThereAreNoneWhereWorkTakesItsTime) {
  EXPECT_TRUE(Traced().found().empty());
}

TEST(SlowPasses, APassIsHeldAgainstTheFastestOfItsNet) {
  Traced traced;
  traced.stretch("backward_weights conv2 @0", 30);
  const std::vector<SlowPass> found = traced.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].layer, traced.net.find_layer("conv2"));
  EXPECT_EQ(found[0].pass, LayerPass::backward_weights);
  EXPECT_NEAR(found[0].seconds / found[0].expected, 30, 0.01);
  EXPECT_GT(found[0].share, 0.5);
  const std::string line = to_text(traced.net, found[0]);
  EXPECT_THAT(line, HasSubstr("layer 'conv2' (Convolution) is slow: the gradient of its weights"));
  EXPECT_THAT(line,
              HasSubstr("30 times as long as its operations take at the rate of layer 'conv"));
}

// Then no other takes a two-hundredth of the net's time.
TEST(SlowPasses, APassThatTakesNearlyAllOfTheTimeIsNoMeasureForItself) {
  Traced traced;
  traced.stretch("backward_weights conv2 @0", 10000);
  const std::vector<SlowPass> found = traced.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds / found[0].expected, 10000, 1);
}

TEST(SlowPasses, APassThatMovesDataIsHeldAgainstItsBytes) {
  Traced traced;
  traced.stretch("forward pool2 @0", 1000);
  const std::vector<SlowPass> found = traced.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].layer, traced.net.find_layer("pool2"));
  EXPECT_THAT(to_text(traced.net, found[0]), HasSubstr("its forward pass takes"));
  EXPECT_THAT(to_text(traced.net, found[0]),
              HasSubstr("times as long as moving its data takes at 10 GB/s"));
}

TEST(SlowPasses, AFactorOfFourIsNotSlow) {
  Traced traced;
  traced.stretch("backward_weights conv2 @0", 4);
  EXPECT_TRUE(traced.found().empty());
}

TEST(SlowPasses, ASmallShareOfTheTimeIsNotTold) {
  Traced traced;
  traced.stretch("forward fc1 @0", 20);
  EXPECT_TRUE(traced.found().empty());
}

// Its threads may have waited for a processor.
TEST(SlowPasses, APassOfAFewMillisecondsIsNotTold) {
  Traced traced;
  traced.stretch("forward relu1 @0", 20);
  EXPECT_TRUE(traced.found().empty());
  traced.stretch("forward relu1 @0", 10);
  EXPECT_EQ(traced.found().size(), 1U);
}

TEST(SlowPasses, OneLongEventOfATaskIsAnAccident) {
  Traced traced;
  traced.stretch("backward_weights conv2 @0", 30, 1);
  EXPECT_TRUE(traced.found().empty());
}

TEST(SlowPasses, APassThatIsSlowOnSeveralDevicesIsToldOnce) {
  Traced traced(2);
  traced.stretch("backward_weights conv2 @0", 30);
  traced.stretch("backward_weights conv2 @1", 40);
  const std::vector<SlowPass> found = traced.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].seconds / found[0].expected, 40, 0.01);
}

TEST(SlowPasses, WithoutEventsThereAreNone) {
  Traced traced;
  EXPECT_TRUE(slow_passes(traced.net, traced.plan, {}).empty());
}

}  // namespace
}  // namespace tandem::test
