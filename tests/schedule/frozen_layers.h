// What holds for a strategy whose devices play different roles when some layers are not trained.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {

// No backward pass runs below the first trained layer, and a net without any is refused.
inline void expect_frozen_layers_left_alone(const std::string& strategy) {
  FakeNet made("frozen", 8, {1, 1, 8, 8});
  made.convolution("conv1", 4, 3).relu("relu1").convolution("conv2", 4, 3).inner_product("fc1", 12);
  const Net net = made.inner_product("fc2", 10).freeze("conv1").freeze("conv2").loss().finish();
  const Plan plan = build_plan(strategy, inputs_of(net, 2));
  for (const Task& task : plan.tasks) {
    EXPECT_FALSE(task.label.starts_with("backward") && task.label.find("conv") != std::string::npos)
        << task.label;
    EXPECT_FALSE(task.label.starts_with("backward_data fc1")) << task.label;
  }
  expect_no_race(plan);
  expect_written_before_read(plan);
  const Net nothing = FakeNet("nothing", 8, {1, 1, 4, 4})
                          .convolution("conv1", 2, 3)
                          .inner_product("fc1", 8)
                          .freeze("conv1")
                          .freeze("fc1")
                          .loss()
                          .finish();
  EXPECT_THAT(message_of([&] { (void)build_plan(strategy, inputs_of(nothing, 2)); }),
              testing::HasSubstr("no weights to train"));
}

}  // namespace tandem::test
