// Steps of an executor that run as captured graphs: which steps do, and that their bits are those
// of running task by task.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/cuda/graph_plans.h"
#include "tests/cuda/graph_rig.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

// The buffers after some steps, and how many of the steps ran as graphs.
struct Outcome {
  std::vector<Floats> buffers;
  int graphs = 0;
};

Outcome run_plan(const std::string& devices, const Plan& plan, GraphUse use, int64_t steps = 12,
                 const MachineOptions& options = {}, int64_t traced = 0) {
  ExecutorOptions executor = with_graphs(use);
  executor.trace = true;
  GpuRig rig(devices, plan, cuda(), executor, options);
  rig.executor->trace_only(6, 6 + traced);
  Outcome outcome;
  const int batch = plan.find_buffer("batch", -1);
  constexpr int ring = 4;
  const Memory pinned(rig.machine, 0, TANDEM_MEMORY_PINNED, ring * 16);
  auto* values = reinterpret_cast<float*>(pinned.data());
  for (int64_t step = 0; step < steps; ++step) {
    float* given = values + step % ring * 4;
    if (step >= ring) rig.executor->wait(step - ring + 2);
    for (int i = 0; i < 4; ++i) given[i] = 0.125F * static_cast<float>(step % 5 - i);
    std::vector<External> externals;
    if (batch >= 0) externals.push_back({batch, given});
    rig.executor->issue(step, externals);
    if (rig.executor->ran_as_graph(step)) ++outcome.graphs;
  }
  rig.executor->drain();
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.kind != BufferKind::persistent) continue;
    Floats& floats = outcome.buffers.emplace_back(4);
    rig.runtime.read_persistent(buffer.name, buffer.device, floats.data(), 16);
    for (const float value : floats) EXPECT_TRUE(std::isfinite(value)) << buffer.name;
  }
  return outcome;
}

class GraphStepsOfTraining : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Devices, GraphStepsOfTraining, testing::Values("cuda:0,0", two_gpus),
                         device_name);

TEST_P(GraphStepsOfTraining, HaveTheBitsOfStepsThatRunTaskByTask) {
  MachineOptions delayed;
  delayed.delay_seed = 5;
  delayed.delay_seconds = 0.0005;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Plan plan = random_arithmetic(seed);
    const Outcome live = run_plan(GetParam(), plan, GraphUse::off),
                  graphs = run_plan(GetParam(), plan, GraphUse::on);
    EXPECT_EQ(live.graphs, 0);
    EXPECT_EQ(graphs.graphs, 10) << "the first step of each parity runs task by task";
    EXPECT_EQ(graphs.buffers, live.buffers) << "seed " << seed;
    EXPECT_EQ(run_plan(GetParam(), plan, GraphUse::on, 12, delayed).buffers, live.buffers)
        << "seed " << seed;
    const Outcome mixed = run_plan(GetParam(), plan, GraphUse::on, 12, delayed, 3);
    EXPECT_EQ(mixed.graphs, 7);
    EXPECT_EQ(mixed.buffers, live.buffers) << "seed " << seed << ", three steps traced";
  }
}

TEST_P(GraphStepsOfTraining, KeepTheOrderOfStreamsWithoutEvents) {
  const Plan plan = streams_of_their_own();
  const Outcome live = run_plan(GetParam(), plan, GraphUse::off);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    MachineOptions delayed;
    delayed.delay_seed = seed;
    delayed.delay_seconds = 0.004;
    EXPECT_EQ(run_plan(GetParam(), plan, GraphUse::on, 12, delayed, 1).buffers, live.buffers)
        << "seed " << seed;
  }
}

TEST_P(GraphStepsOfTraining, HaveOtherBitsIfAWaitWithinTheStepIsMissing) {
  if (!runs_on_stand_in()) GTEST_SKIP() << "on a GPU the order of execution may hide it";
  const Plan plan = chain_of_sums();
  const Outcome right = run_plan(GetParam(), plan, GraphUse::on);
  EXPECT_EQ(run_plan(GetParam(), plan, GraphUse::off).buffers, right.buffers);
  int removed = 0;
  for (size_t task = 0; task < plan.tasks.size(); ++task) {
    for (size_t i = 0; i < plan.tasks[task].after.size(); ++i) {
      if (plan.tasks[task].after[i].micro_batches_back != 0) continue;
      Plan broken = plan;
      broken.tasks[task].after.erase(broken.tasks[task].after.begin() + static_cast<int64_t>(i));
      EXPECT_NE(run_plan(GetParam(), broken, GraphUse::on).buffers, right.buffers)
          << "'" << plan.tasks[task].label << "' without its wait " << i;
      ++removed;
    }
  }
  EXPECT_GE(removed, 5);
}

TEST_P(GraphStepsOfTraining, AreTheDefaultOnOneDeviceOnly) {
  Maker one(1);
  const Region a = one.persistent("a", 0, 4);
  one.add("double", compute(0), a, {a});
  EXPECT_TRUE(GpuRig(GetParam(), one.derived(), cuda(), with_graphs(GraphUse::automatic))
                  .executor->has_graphs());
  EXPECT_FALSE(
      GpuRig(GetParam(), one.derived(), cuda(), with_graphs(GraphUse::off)).executor->has_graphs());
  const Plan two = random_arithmetic(1);
  EXPECT_FALSE(
      GpuRig(GetParam(), two, cuda(), with_graphs(GraphUse::automatic)).executor->has_graphs());
}

TEST_P(GraphStepsOfTraining, AreNotUsedForTracedSteps) {
  Maker maker(1);
  const Region a = maker.persistent("a", 0, 4);
  maker.add("double", compute(0), a, {a});
  ExecutorOptions options = with_graphs(GraphUse::on);
  options.trace = true;
  GpuRig rig(GetParam(), maker.derived(), cuda(), options);
  rig.executor->trace_only(3, 6);
  std::vector<int64_t> graphs;
  double before = 0;
  for (int64_t step = 0; step < 10; ++step) {
    rig.executor->issue(step, {});
    rig.executor->drain();
    EXPECT_GE(rig.executor->end_time(step), before);
    before = rig.executor->end_time(step);
    if (rig.executor->ran_as_graph(step)) {
      graphs.push_back(step);
      EXPECT_THAT(message_of([&] { static_cast<void>(rig.executor->trace(step)); }),
                  HasSubstr("it ran as one graph"));
    } else {
      EXPECT_EQ(rig.executor->trace(step).size(), 1U);
    }
  }
  EXPECT_EQ(graphs, (std::vector<int64_t>{2, 6, 7, 8, 9}));
}

TEST_P(GraphStepsOfTraining, CanBeginAtAnyStepNumber) {
  const auto run_all = [&](GraphUse use) {
    Maker maker(1);
    const Region a = maker.constant("a", 0, {1, 2, 3, 4}), b = maker.constant("b", 0, {1, 0, 1, 0});
    maker.add("sum", compute(0), a, {b});
    maker.copy("send", {communication(0)}, b, a);
    GpuRig rig(GetParam(), maker.derived(), cuda(), with_graphs(use));
    for (const int64_t step : {0, 1, 2, 3, 9, 10, 2, 3, 4, 5}) rig.executor->issue(step, {});
    rig.executor->drain();
    Floats values(4);
    rig.runtime.read_persistent("a", 0, values.data(), 16);
    return values;
  };
  EXPECT_EQ(run_all(GraphUse::on), run_all(GraphUse::off));
}

}  // namespace
}  // namespace tandem::test
