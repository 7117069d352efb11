// A plan that was made once is measured with and without copies.
#include "core/session/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;

SessionOptions on_two_devices() {
  SessionOptions options;
  options.devices = "sim:2";
  options.strategy = "asymmetric";
  options.machine.link = {1e8, 1e-5};
  options.batch = 4;
  options.data = {1, 3, 20, 20};
  options.testing = false;
  return options;
}

TEST(Measuring, UsesThePlanThatIsGiven) {
  Registry registry = Registry::with_defaults();
  SessionOptions options = on_two_devices();
  Session made(registry, small_net(), options);
  Plan plan = made.training().plan;
  plan.notes = {"given"};
  options.plan = std::make_shared<const Plan>(plan);
  Session taken(registry, small_net(), options);
  EXPECT_THAT(taken.training().plan.notes, ElementsAre("given"));
}

TEST(Measuring, WithoutCommunicationStepsOfTheSamePlanAreShorter) {
  Registry registry = Registry::with_defaults();
  SessionOptions options = on_two_devices();
  Session session(registry, small_net(), options);
  const double with_copies = measure(session, 2, 3).step_seconds;
  const double alone = step_seconds_without_communication(registry, small_net(), options,
                                                          session.training().plan, 2, 3);
  EXPECT_LT(alone, with_copies);
  options.executor.communication = false;
  Session made_again(registry, small_net(), options);
  EXPECT_EQ(alone, measure(made_again, 2, 3).step_seconds);
}

TEST(Measuring, OfALargePlanIsThatOfTheModelAndTakesTheSameTime) {
  Registry registry = Registry::with_defaults();
  SessionOptions options = on_two_devices();
  options.devices = "sim:96";
  options.batch = 96;
  options.strategy = "layerwise";
  options.strategy_options = {{"reduce", std::string("ring")}};
  Session run(registry, small_net(), options);
  options.models_large_plans = true;
  Session modelled(registry, small_net(), options);
  ASSERT_GE(modelled.training().plan.tasks.size(), large_plan);
  EXPECT_EQ(modelled.training().executor, nullptr);
  for (const Task& task : modelled.training().plan.tasks) ASSERT_TRUE(task.after.empty());
  const Measurement of_sim = measure(run, 4, 4), of_model = measure(modelled, 4, 4);
  EXPECT_NEAR(of_model.step_seconds, of_sim.step_seconds, 1e-9);
  EXPECT_EQ(of_model.stages.size(), of_sim.stages.size());
  ASSERT_TRUE(of_model.without_communication_seconds);
  options.models_large_plans = false;
  EXPECT_NEAR(
      *of_model.without_communication_seconds,
      step_seconds_without_communication(registry, small_net(), options, run.training().plan, 4, 4),
      1e-9);
}

// A task is the product of a device's 2 or 1 of 3 rows and half of the weights.
TEST(Measuring, OfADividedLayerGivesTheCostOfItsShareOfTheRows) {
  Registry registry = Registry::with_defaults();
  SessionOptions options = on_two_devices();
  options.batch = 3;
  options.strategy = "fc_parallel";
  Session session(registry, small_net(), options);
  const Measurement measurement = measure(session, 1, 2);
  const Net& net = session.training().net;
  const CostTable costs = costs_of(session, net, session.training().plan, measurement.events);
  const MeasuredCost* cost = costs.find("fc3 forward");
  ASSERT_NE(cost, nullptr);
  EXPECT_EQ(cost->rows, 0.75);
  EXPECT_DOUBLE_EQ(costs.pass_seconds(net, net.find_layer("fc3"), LayerPass::forward, 3),
                   4 * cost->seconds);
}

}  // namespace
}  // namespace tandem::test
