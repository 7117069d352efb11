// What the tests of strategies ask of a plan.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/schedule/plan/plan.h"
#include "core/schedule/strategies/strategies.h"
#include "tests/support/fake_net.h"
#include "tests/support/message_of.h"

namespace tandem::test {

inline StrategyInputs inputs_of(const Net& net, int devices) {
  StrategyInputs inputs;
  inputs.net = &net;
  inputs.devices = devices;
  return inputs;
}

inline StrategyInputs layerwise_inputs(const Net& net, int devices, const std::string& reduce,
                                       int64_t bucket = 1) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["reduce"] = reduce;
  inputs.options["bucket"] = bucket;
  return inputs;
}

// -1: no such task.
inline int find_task(const Plan& plan, const std::string& label) {
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].label == label) return static_cast<int>(i);
  }
  return -1;
}
inline const Task& task(const Plan& plan, const std::string& label) {
  const int index = find_task(plan, label);
  EXPECT_GE(index, 0) << "no task '" << label << "'";
  static const Task none;
  return index < 0 ? none : plan.tasks[static_cast<size_t>(index)];
}

// Labels of the tasks of a stream, in its order.
inline std::vector<std::string> labels(const Plan& plan, const StreamId& stream) {
  std::vector<std::string> result;
  for (const Task& task : plan.tasks) {
    for (const StreamId& used : task.streams) {
      if (used == stream) result.push_back(task.label);
    }
  }
  return result;
}

}  // namespace tandem::test
