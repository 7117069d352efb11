// How much of a plan is simulated to forecast its step.
#include "core/session/forecast.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(SimulatedSteps, AreFewerForLargePlansUnlessStepsVary) {
  Plan plan;
  plan.tasks.resize(100);
  EXPECT_EQ(simulated_steps(plan, 6, false).measured, 6);
  plan.tasks.resize(100000);
  EXPECT_LT(simulated_steps(plan, 6, false).measured, 6);
  EXPECT_EQ(simulated_steps(plan, 1, false).measured, 1);
  EXPECT_EQ(simulated_steps(plan, 40, true).measured, 40);
}

}  // namespace
}  // namespace tandem
