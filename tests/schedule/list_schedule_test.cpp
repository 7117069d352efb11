// Steps in virtual time while a plan is made: they are those of sim, another order of the tasks is
// valid, and no order beats the bounds.
#include "core/schedule/cost/list_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/report/critical_path.h"
#include "core/schedule/strategies/common/collectives.h"
#include "tests/schedule/simulate.h"
#include "tests/support/folders.h"

namespace tandem::test {
namespace {

const Net& large_dense_net() {
  static const Net dense = FakeNet("dense", 64, {1, 1, 25, 40})
                               .inner_product("fc1", 900)
                               .relu("relu1")
                               .inner_product("fc2", 800)
                               .relu("relu2")
                               .inner_product("fc3", 1000)
                               .loss()
                               .finish();
  return dense;
}

StrategyInputs inputs_for(int devices, const CostTable& costs) {
  StrategyInputs inputs = inputs_of(large_dense_net(), devices);
  inputs.costs = &costs;
  inputs.link = {2e9, 10e-6};
  return inputs;
}

StepModel model_of(const StrategyInputs& inputs, const Plan& plan) {
  return {*inputs.net, plan, *inputs.costs, inputs.link, inputs.topology};
}

TEST(StepModel, GivesTheStepThatSimGives) {
  const CostTable costs(Roofline{5e11, 5e10});
  const std::string file = test::source_folder().string() + "/examples/topologies/pcie_hubs_4.txt";
  const auto hubs = std::make_shared<const Topology>(read_topology(file));
  for (const std::string strategy : {"asymmetric", "layerwise", "two_phase"}) {
    for (const auto& topology : {std::shared_ptr<const Topology>(), hubs}) {
      StrategyInputs inputs = inputs_for(4, costs);
      inputs.topology = topology.get();
      const Plan plan = build_plan(strategy, inputs);
      const StepModel model = model_of(inputs, plan);
      const double seconds = model.in_order(model.given_order()).step_seconds;
      // Whose mean has a first step in it.
      EXPECT_NEAR(seconds, step_on_sim(strategy, inputs, topology), 0.01 * seconds) << strategy;
    }
  }
}

// The events of a step that was simulated without an executor.
std::vector<TraceEvent> events_of(const StepTimes& times) {
  std::vector<TraceEvent> events;
  for (size_t i = 0; i < times.tasks.size(); ++i) {
    events.push_back({static_cast<int>(i), 0, times.tasks[i].start, times.tasks[i].end});
  }
  return events;
}

TEST(CriticalPath, OfAPlanWithoutWaitsIsThatOfThePlanWithWaits) {
  const CostTable costs(Roofline{5e11, 5e10});
  for (const Strategy& strategy : built_in_strategies()) {
    const StrategyInputs inputs = inputs_for(4, costs);
    const std::vector<StrategyOptions> cases = strategy.lossless_cases(4);
    if (strategy.name == "hybrid") continue;  // this net has no convolution
    for (const StrategyOptions& options : cases) {
      StrategyInputs of_case = inputs;
      of_case.options = options;
      const Plan plan = build_plan(strategy.name, of_case);
      const StepModel model = model_of(of_case, plan);
      const std::vector<TraceEvent> events = events_of(model.in_order(model.given_order()));
      const auto with = critical_path(plan, events);
      const auto without = critical_path(plan, events, model.before());
      ASSERT_EQ(with.size(), without.size()) << strategy.name;
      for (size_t i = 0; i < with.size(); ++i) {
        EXPECT_EQ(with[i].stage, without[i].stage) << strategy.name;
        EXPECT_EQ(with[i].seconds, without[i].seconds) << strategy.name;
      }
    }
  }
}

TEST(StepModel, WithoutTransfersLeavesOutTheTimeOfCopiesBetweenDevices) {
  const CostTable costs(Roofline{5e11, 5e10});
  StrategyInputs inputs = inputs_for(4, costs);
  const Plan plan = build_plan("sequential", inputs);
  const StepModel slow = model_of(inputs, plan);
  inputs.link = {2e9, 20e-6};
  const StepModel slower = model_of(inputs, plan);
  const auto seconds = [](const StepModel& model, bool has_transfers) {
    return model.in_order(model.given_order(), has_transfers).step_seconds;
  };
  EXPECT_LT(seconds(slow, true), seconds(slower, true));
  EXPECT_EQ(seconds(slow, false), seconds(slower, false));
}

// What a large plan takes is what its tasks take.
TEST(StepModel, TakesFewBytesATask) {
  EXPECT_LE(sizeof(StepModel::TimedTask), 64U);
  EXPECT_LE(sizeof(timing::Operation), 72U) << "three for each task, of the steps under way";
  EXPECT_LE(sizeof(timing::Follower), 16U);
}

// A large copy that no device waits for comes before a small one that a device waits for.
Plan badly_ordered() {
  Plan plan;
  plan.devices = 2;
  const auto buffer = [&](const std::string& name, int device, int64_t bytes) {
    plan.buffers.push_back({name, device, BufferKind::persistent, bytes, 1, {}});
    return Region{static_cast<int>(plan.buffers.size()) - 1, 0, bytes};
  };
  const auto task = [&](const std::string& label, const std::vector<StreamId>& streams,
                        const Region& from, const Region& to, bool adds = false) {
    Task& made = plan.tasks.emplace_back();
    made.label = label;
    made.streams = streams;
    made.reads = {from};
    made.writes = {to};
    if (adds) {
      made.work = AddWork{to, {from}};
    } else {
      made.work = CopyWork{{{from, to}}};
    }
  };
  const Region much = buffer("much", 0, 32 << 20), there = buffer("there", 1, 32 << 20);
  const Region little = buffer("little", 0, 1 << 20), urgent = buffer("urgent", 1, 1 << 20);
  const Region sum = buffer("sum", 1, 1 << 20), result = buffer("result", 0, 1 << 20);
  const std::vector<StreamId> way{{1, StreamKind::communication}, {0, StreamKind::send}};
  const std::vector<StreamId> back{{0, StreamKind::communication}, {1, StreamKind::send}};
  task("begin", {{0, StreamKind::update}}, result, much);
  plan.tasks.back().writes.push_back(little);
  plan.tasks.back().work = CopyWork{};
  task("send much", way, much, there);
  task("send little", way, little, urgent);
  task("add", {{1, StreamKind::compute}}, urgent, sum, true);
  task("send back", back, sum, result);
  return plan;
}

TEST(ListSchedule, SendsFirstWhatADeviceWaitsFor) {
  Plan plan = badly_ordered();
  const CostTable costs(Roofline{1e8, 1e8});  // to add takes as long as to send much
  const StepModel model({}, plan, costs, {1e9, 10e-6}, nullptr);
  const OrderedStep better = list_schedule(model);
  EXPECT_LT(better.times.step_seconds, 0.8 * model.in_order(model.given_order()).step_seconds);
  reorder(plan, better.order);
  EXPECT_LT(find_task(plan, "send little"), find_task(plan, "send much"));
}

TEST(ListSchedule, KeepsTheOrderOfTasksThatTouchTheSameMemory) {
  const CostTable costs(Roofline{5e11, 5e10});
  const StrategyInputs inputs = inputs_for(4, costs);
  for (const std::string strategy : {"asymmetric", "layerwise"}) {
    const Plan plan = build_plan(strategy, inputs);
    const StepModel model = model_of(inputs, plan);
    const OrderedStep found = list_schedule(model);
    ASSERT_EQ(found.order.size(), plan.tasks.size());
    std::vector<size_t> place(plan.tasks.size());
    for (size_t i = 0; i < found.order.size(); ++i) place[size_t(found.order[i])] = i;
    int kept = 0;
    for (size_t task = 0; task < plan.tasks.size(); ++task) {
      for (const Dependency& wait : model.before()[task]) {
        if (wait.micro_batches_back > 0) continue;
        EXPECT_LT(place[size_t(wait.task)], place[task]) << plan.tasks[task].label;
        ++kept;
      }
    }
    EXPECT_GT(kept, 0);
  }
}

TEST(ChainBound, IsNotBeatenByAnyStrategy) {
  const CostTable costs(Roofline{5e11, 5e10});
  const StrategyInputs inputs = inputs_for(4, costs);
  for (const std::string strategy : {"sequential", "two_phase", "layerwise", "asymmetric"}) {
    const Plan plan = build_plan(strategy, inputs);
    const ChainBound chain = chain_bound(model_of(inputs, plan), plan);
    EXPECT_GT(chain.seconds, 0) << strategy;
    EXPECT_LE(chain.seconds, 1.000001 * step_on_sim(strategy, inputs)) << strategy;
  }
}

// One layer for each array, of which the second takes the longest by far. A device's pass reads
// the array and makes its gradient, from which the array is updated.
Plan with_layers(int count) {
  Plan plan;
  const auto buffer = [&](const std::string& name, int64_t bytes) {
    plan.buffers.push_back({name, 0, BufferKind::persistent, bytes, 1, {}});
    return Region{static_cast<int>(plan.buffers.size()) - 1, 0, bytes};
  };
  for (int i = 0; i < count; ++i) {
    const int64_t bytes = i == 1 ? 64 << 20 : 4096;
    const Region weights = buffer(fmt::format("weights {}", i), bytes);
    const Region gradient = buffer(fmt::format("gradient {}", i), bytes);
    Task pass{fmt::format("pass {}", i), stages::backward, -1, {{0, StreamKind::compute}}};
    pass.reads = {weights};
    pass.writes = {gradient};
    pass.work = AddWork{gradient, {weights}};
    plan.tasks.push_back(std::move(pass));
    Task update{fmt::format("update {}", i), stages::update, -1, {{0, StreamKind::update}}};
    update.reads = {gradient};
    update.writes = {weights};
    update.work = UpdateWork{{{i, weights, gradient, {}, 0}}, {}, {}};
    plan.tasks.push_back(std::move(update));
  }
  return plan;
}

// Or the time of a net would be that of its layers times its tasks.
TEST(ChainBound, LooksAtAllLayersOfANetAndAtSomeOfAVeryDeepOne) {
  const CostTable costs(Roofline{5e11, 5e10});
  const auto bound = [&](int layers) {
    const Plan plan = with_layers(layers);
    return chain_bound(StepModel({}, plan, costs, {1e9, 10e-6}, nullptr), plan);
  };
  EXPECT_EQ(bound(512).task, "update 1");
  const ChainBound of_some = bound(1024);
  EXPECT_NE(of_some.task, "update 1");
  EXPECT_GT(of_some.seconds, 0);
  EXPECT_LT(of_some.seconds, bound(512).seconds);
}

// The copies to W and back lie between a device's last activation gradients and its next forward.
TEST(ChainBound, AddsTheCopiesBetweenTheLastGradientsAndTheNextForward) {
  const CostTable costs(Roofline{5e11, 5e10});
  StrategyInputs inputs = inputs_for(2, costs);
  inputs.options["groups"] = "E=0/W=1";
  const auto idle = [&](double latency) {
    inputs.link.latency = latency;
    const Plan plan = build_plan("asymmetric", inputs);
    const ChainBound chain = chain_bound(model_of(inputs, plan), plan);
    return chain.seconds - chain.computes;
  };
  EXPECT_NEAR(idle(50e-3) - idle(10e-3), 2 * 40e-3, 1e-3);
}

}  // namespace
}  // namespace tandem::test
