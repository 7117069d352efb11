// A plan's step in virtual time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/schedule/execution/executor.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/plan/buffers.h"
#include "tests/device/backends.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {

// One step on sim where the ones before and after it are under way, too.
inline double step_on_sim(const std::string& strategy, const StrategyInputs& inputs,
                          const std::shared_ptr<const Topology>& topology = nullptr,
                          const ExecutorOptions& how = {}) {
  const Plan plan = build_plan(strategy, inputs);
  const MemoryPlan memory = plan_memory(plan);
  MachineOptions options;
  options.link = inputs.link;
  options.topology = topology;
  Machine machine = open_machine(fmt::format("sim:{}", inputs.devices), options);
  Runtime runtime(machine);
  runtime.reserve(plan, memory, inputs.net->batch);
  Executor executor(plan, memory, *inputs.net, runtime, nullptr, inputs.costs, UpdateRule{}, how);
  const int batch = plan.find_buffer(buffers::batch, TANDEM_HOST);
  std::vector<std::byte> bytes(static_cast<size_t>(plan.buffers[size_t(batch)].bytes));
  std::vector<double> ends;
  const auto take_end = [&](int64_t step) {
    executor.wait(step);
    double end = 0;
    for (const TraceEvent& event : executor.trace(step)) end = std::max(end, event.end);
    ends.push_back(end);
  };
  // One step ahead, as the trainer is: a host that waits for every step leaves nothing to overlap.
  for (int64_t step = 0; step < 6; ++step) {
    executor.issue(step, {{batch, bytes.data()}});
    if (step > 0) take_end(step - 1);
  }
  take_end(5);
  return (ends[5] - ends[1]) / 4;
}

}  // namespace tandem::test
