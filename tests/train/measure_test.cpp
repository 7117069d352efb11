// A plan that was made once is measured with and without copies.
#include "core/train/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/run_support.h"

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

}  // namespace
}  // namespace tandem::test
