// Steps of an executor that run as captured graphs: the same bits as task by task, and what is said
// when they fail or do not end.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "tests/cuda/graph_plans.h"
#include "tests/cuda/graph_rig.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The buffers after some steps, and how many of them ran as graphs.
struct Outcome {
  std::vector<Floats> buffers;
  int graphs = 0;
};

Outcome run(const std::string& devices, const Plan& plan, GraphUse use, int64_t steps = 12,
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

TEST_P(GraphStepsOfTraining, GiveTheBitsOfStepsThatAreIssuedTaskByTask) {
  MachineOptions delayed;
  delayed.delay_seed = 5;
  delayed.delay_seconds = 0.0005;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Plan plan = random_arithmetic(seed);
    const Outcome live = run(GetParam(), plan, GraphUse::off),
                  graphs = run(GetParam(), plan, GraphUse::on);
    EXPECT_EQ(live.graphs, 0);
    EXPECT_EQ(graphs.graphs, 10) << "the first step of each parity runs task by task";
    EXPECT_EQ(graphs.buffers, live.buffers) << "seed " << seed;
    EXPECT_EQ(run(GetParam(), plan, GraphUse::on, 12, delayed).buffers, live.buffers)
        << "seed " << seed;
    const Outcome mixed = run(GetParam(), plan, GraphUse::on, 12, delayed, 3);
    EXPECT_EQ(mixed.graphs, 7);
    EXPECT_EQ(mixed.buffers, live.buffers) << "seed " << seed << ", three steps traced";
  }
}

TEST_P(GraphStepsOfTraining, KeepTheOrderOfStreamsThatNoEventMakes) {
  const Plan plan = streams_of_their_own();
  const Outcome live = run(GetParam(), plan, GraphUse::off);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    MachineOptions delayed;
    delayed.delay_seed = seed;
    delayed.delay_seconds = 0.004;
    EXPECT_EQ(run(GetParam(), plan, GraphUse::on, 12, delayed, 1).buffers, live.buffers)
        << "seed " << seed;
  }
}

TEST_P(GraphStepsOfTraining, LoseBitsWhereAWaitWithinTheStepIsMissing) {
  if (!runs_on_stand_in()) GTEST_SKIP() << "the order in which a GPU runs it may hide it";
  const Plan plan = chain_of_sums();
  const Outcome right = run(GetParam(), plan, GraphUse::on);
  EXPECT_EQ(run(GetParam(), plan, GraphUse::off).buffers, right.buffers);
  int removed = 0;
  for (size_t task = 0; task < plan.tasks.size(); ++task) {
    for (size_t i = 0; i < plan.tasks[task].after.size(); ++i) {
      if (plan.tasks[task].after[i].steps_back != 0) continue;
      Plan broken = plan;
      broken.tasks[task].after.erase(broken.tasks[task].after.begin() + static_cast<int64_t>(i));
      EXPECT_NE(run(GetParam(), broken, GraphUse::on).buffers, right.buffers)
          << "'" << plan.tasks[task].label << "' without its wait " << i;
      ++removed;
    }
  }
  EXPECT_GE(removed, 5);
}

TEST_P(GraphStepsOfTraining, AreTakenByThemselvesOnOneDeviceOnly) {
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

TEST_P(GraphStepsOfTraining, AreRefusedWithThePlansReasonWhereTheUserInsists) {
  Maker maker(1);
  const Region out = maker.floats("out", -1, 4, BufferKind::external);
  const Region a = maker.persistent("a", 0, 4), b = maker.persistent("b", 0, 4);
  maker.add("one", compute(0), a, {b});
  maker.copy("give", {copies(0)}, out, a);
  maker.add("overwrite", compute(0), a, {b});
  const Plan plan = maker.derived();
  EXPECT_THAT(error_of([&] { GpuRig(GetParam(), plan, cuda(), with_graphs(GraphUse::on)); }),
              testing::AllOf(StartsWith("--graphs on: the plan of 'handmade' cannot be captured: "),
                             HasSubstr("task 'overwrite'")));
  EXPECT_FALSE(
      GpuRig(GetParam(), plan, cuda(), with_graphs(GraphUse::automatic)).executor->has_graphs());
}

TEST_P(GraphStepsOfTraining, AreNotThoseThatAreTraced) {
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
      EXPECT_THAT(error_of([&] { static_cast<void>(rig.executor->trace(step)); }),
                  HasSubstr("it ran as one graph"));
    } else {
      EXPECT_EQ(rig.executor->trace(step).size(), 1U);
    }
  }
  EXPECT_EQ(graphs, (std::vector<int64_t>{2, 6, 7, 8, 9}));
}

TEST_P(GraphStepsOfTraining, GoOnFromAnyStepNumber) {
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

// Works that tests control: the backend's add, replaced.
std::atomic<bool> is_held, is_reached;
std::atomic<int> fails_at, calls;

void hold_on_stream(void*) {
  is_reached = true;
  while (is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
tandem_status hold(const tandem_call* call, float*, const float* const*, uint32_t, int64_t) {
  return cudaLaunchHostFunc(static_cast<cudaStream_t>(call->native_stream), &hold_on_stream,
                            nullptr) == cudaSuccess
             ? TANDEM_OK
             : TANDEM_FAILED;
}
tandem_status break_down(const tandem_call* call, float* target, const float* const* sources,
                         uint32_t count, int64_t floats) {
  if (++calls != fails_at) return cuda().add(call, target, sources, count, floats);
  host_table().explain("the sum overflows");
  return TANDEM_FAILED;
}

Plan adding() {
  Maker maker(1);
  const Region a = maker.constant("a", 0, {1}), b = maker.constant("b", 0, {2});
  maker.copy("before", {compute(0)}, maker.persistent("d", 0, 1), b);
  maker.add("sum", compute(0), a, {b});
  maker.copy("send", {communication(0)}, maker.persistent("c", 0, 1), a);
  return maker.derived();
}

TEST_P(GraphStepsOfTraining, SayOfAStuckOneThatItsTasksRanAsOneGraph) {
  tandem_backend backend = cuda();
  backend.add = &hold;
  ExecutorOptions options = with_graphs(GraphUse::on);
  options.watchdog_seconds = 0.2;
  is_held = false;
  GpuRig rig(GetParam(), adding(), backend, options);
  for (int64_t step = 0; step < 4; ++step) rig.executor->issue(step, {});
  rig.executor->drain();
  is_held = true;
  is_reached = false;
  rig.executor->issue(4, {});
  while (!is_reached) std::this_thread::yield();
  const std::string text = error_of([&] { rig.executor->wait(4); });
  is_held = false;
  EXPECT_EQ(
      text,
      "step 4: its 3 tasks from 'before' to 'send', which run as one graph, have not finished "
      "in 0.2 s; --graphs off names the one that is stuck");
}

TEST_P(GraphStepsOfTraining, SayWhichTaskFailsInTheCapture) {
  tandem_backend backend = cuda();
  backend.add = &break_down;
  calls = 0;
  fails_at = 3;
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  rig.executor->issue(0, {});
  rig.executor->issue(1, {});
  const std::string text = error_of([&] { rig.executor->issue(2, {}); });
  EXPECT_THAT(text, StartsWith("step 2: "));
  EXPECT_THAT(text,
              HasSubstr("task 'sum': the sum overflows (--graphs off runs steps task by task"));
  EXPECT_EQ(error_of([&] { rig.executor->issue(3, {}); }), text);
}

TEST_P(GraphStepsOfTraining, RunTaskByTaskAfterAFailedCaptureThatNobodyInsistedOn) {
  tandem_backend backend = cuda();
  backend.add = &break_down;
  calls = 0;
  fails_at = 3;
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::automatic));
  for (int64_t step = 0; step < 6; ++step) {
    rig.executor->issue(step, {});
    EXPECT_FALSE(rig.executor->ran_as_graph(step));
  }
  rig.executor->drain();
  EXPECT_THAT(rig.executor->graphs_given_up(),
              HasSubstr("a capture: task 'sum': the sum overflows"));
  Floats sum(1);
  rig.runtime.read_persistent("c", 0, sum.data(), 4);
  EXPECT_EQ(sum, Floats{13});
  fails_at = calls + 2;
  rig.executor->issue(6, {});
  EXPECT_THAT(error_of([&] {
                rig.executor->issue(7, {});
                rig.executor->drain();
              }),
              StartsWith("step 7: devices 'cuda': task 'sum': the sum overflows"));
}

tandem_status grow(const tandem_call* call, float* target, const float* const* sources,
                   uint32_t count, int64_t floats) {
  void* memory = nullptr;
  if (++calls != fails_at) return cuda().add(call, target, sources, count, floats);
  if (cudaMalloc(&memory, 256) == cudaSuccess) return TANDEM_OK;
  host_table().explain("it needs more memory");
  return TANDEM_FAILED;
}

// The streams that join keep records of the first.
TEST_P(GraphStepsOfTraining, SayWhatFailsInALaterCaptureToo) {
  tandem_backend backend = cuda();
  backend.add = &grow;
  calls = 0;
  fails_at = 4;
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  for (int64_t step = 0; step < 3; ++step) rig.executor->issue(step, {});
  EXPECT_TRUE(rig.executor->ran_as_graph(2));
  EXPECT_EQ(error_of([&] { rig.executor->issue(3, {}); }),
            "step 3: a capture: task 'sum': it needs more memory (--graphs off runs steps task by "
            "task)");
}

bool refuses_waits;
tandem_status refuse_wait(tandem_stream* stream, tandem_event* event) {
  if (!refuses_waits) return cuda().wait(stream, event);
  host_table().explain("the event is of another capture");
  return TANDEM_INVALID;
}
tandem_status end_with_reason(tandem_stream* stream, tandem_graph** graph) {
  if (cuda().end_capture(stream, graph) == TANDEM_OK) cuda().destroy_graph(*graph);
  host_table().explain("task 'sum': it needs more memory");
  return TANDEM_FAILED;
}

TEST_P(GraphStepsOfTraining, SayFirstWhatTheEndOfAFailedCaptureTells) {
  tandem_backend backend = cuda();
  backend.wait = &refuse_wait;
  backend.end_capture = &end_with_reason;
  refuses_waits = false;
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  for (int64_t step = 0; step < 2; ++step) rig.executor->issue(step, {});
  refuses_waits = true;
  const std::string text = error_of([&] { rig.executor->issue(2, {}); });
  refuses_waits = false;
  EXPECT_THAT(text, StartsWith("step 2: a capture: task 'sum': it needs more memory ("));
  EXPECT_THAT(text, HasSubstr("the event is of another capture"));
}

}  // namespace
}  // namespace tandem::test
