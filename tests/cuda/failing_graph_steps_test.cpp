// The messages about steps that should run as captured graphs but cannot, fail, or do not end.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/cuda/graph_rig.h"
#include "tests/schedule/capture_plans.h"
#include "tests/support/backend_copy.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class GraphStepsOfTrainingThatFail : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Devices, GraphStepsOfTrainingThatFail,
                         testing::Values("cuda:0,0", two_gpus), device_name);

TEST_P(GraphStepsOfTrainingThatFail, AreRefusedWithThePlansReasonIfTheUserRequiresGraphs) {
  const Plan plan = given_in_the_middle();
  EXPECT_THAT(message_of([&] { GpuRig(GetParam(), plan, cuda(), with_graphs(GraphUse::on)); }),
              testing::AllOf(StartsWith("--graphs on: the plan of 'handmade' cannot be captured: "),
                             HasSubstr("task 'overwrite'")));
  EXPECT_FALSE(
      GpuRig(GetParam(), plan, cuda(), with_graphs(GraphUse::automatic)).executor->has_graphs());
}

// Works that tests control, instead of the backend's add.
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
  if (++calls != fails_at) return cuda().arithmetic->add(call, target, sources, count, floats);
  host_table().explain("the sum overflows");
  return TANDEM_FAILED;
}

// The cuda backend, except that its add counts its calls from now on and fails at the nth.
BackendCopy failing_at(int nth, decltype(tandem_arithmetic::add) add) {
  calls = 0;
  fails_at = nth;
  BackendCopy backend = cuda();
  backend.arithmetic.add = add;
  return backend;
}

Plan adding() {
  Maker maker(1);
  const Region a = maker.constant("a", 0, {1}), b = maker.constant("b", 0, {2});
  maker.copy("before", {compute(0)}, maker.persistent("d", 0, 1), b);
  maker.add("sum", compute(0), a, {b});
  maker.copy("send", {communication(0)}, maker.persistent("c", 0, 1), a);
  return maker.derived();
}

TEST_P(GraphStepsOfTrainingThatFail, ReportOfAStuckStepThatItsTasksRanAsOneGraph) {
  BackendCopy backend = cuda();
  backend.arithmetic.add = &hold;
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
  const std::string text = message_of([&] { rig.executor->wait(4); });
  is_held = false;
  EXPECT_EQ(
      text,
      "step 5: its 3 tasks from 'before' to 'send', which run as one graph, have not finished "
      "in 0.2 s; --graphs off names the one that is stuck");
}

TEST_P(GraphStepsOfTrainingThatFail, ReportWhichTaskFailsInTheCapture) {
  const BackendCopy backend = failing_at(3, &break_down);
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  rig.executor->issue(0, {});
  rig.executor->issue(1, {});
  const std::string text = message_of([&] { rig.executor->issue(2, {}); });
  EXPECT_THAT(text, StartsWith("step 3: "));
  EXPECT_THAT(text,
              HasSubstr("task 'sum': the sum overflows (--graphs off runs steps task by task"));
  EXPECT_EQ(message_of([&] { rig.executor->issue(3, {}); }), text);
}

TEST_P(GraphStepsOfTrainingThatFail, RunTaskByTaskAfterAFailedCaptureThatWasNotRequired) {
  const BackendCopy backend = failing_at(3, &break_down);
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
  EXPECT_THAT(message_of([&] {
                rig.executor->issue(7, {});
                rig.executor->drain();
              }),
              StartsWith("step 8: devices 'cuda': task 'sum': the sum overflows"));
}

tandem_status grow(const tandem_call* call, float* target, const float* const* sources,
                   uint32_t count, int64_t floats) {
  void* memory = nullptr;
  if (++calls != fails_at) return cuda().arithmetic->add(call, target, sources, count, floats);
  if (cudaMalloc(&memory, 256) == cudaSuccess) return TANDEM_OK;
  host_table().explain("it needs more memory");
  return TANDEM_FAILED;
}

// The streams that join keep records of the first.
TEST_P(GraphStepsOfTrainingThatFail, ReportAlsoTheFailureOfALaterCapture) {
  const BackendCopy backend = failing_at(4, &grow);
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  for (int64_t step = 0; step < 3; ++step) rig.executor->issue(step, {});
  EXPECT_TRUE(rig.executor->ran_as_graph(2));
  EXPECT_EQ(message_of([&] { rig.executor->issue(3, {}); }),
            "step 4: a capture: task 'sum': it needs more memory (--graphs off runs steps task by "
            "task)");
}

bool refuses_waits;
tandem_status refuse_wait(tandem_stream* stream, tandem_event* event) {
  if (!refuses_waits) return cuda().streams->wait(stream, event);
  host_table().explain("the event is of another capture");
  return TANDEM_INVALID;
}
tandem_status end_with_reason(tandem_stream* stream, tandem_graph** graph) {
  if (cuda().capture->end(stream, graph) == TANDEM_OK) cuda().capture->destroy_graph(*graph);
  host_table().explain("task 'sum': it needs more memory");
  return TANDEM_FAILED;
}

TEST_P(GraphStepsOfTrainingThatFail, ReportFirstTheErrorFromTheEndOfTheCapture) {
  BackendCopy backend = cuda();
  backend.streams.wait = &refuse_wait;
  backend.capture.end = &end_with_reason;
  refuses_waits = false;
  GpuRig rig(GetParam(), adding(), backend, with_graphs(GraphUse::on));
  for (int64_t step = 0; step < 2; ++step) rig.executor->issue(step, {});
  refuses_waits = true;
  const std::string text = message_of([&] { rig.executor->issue(2, {}); });
  refuses_waits = false;
  EXPECT_THAT(text, StartsWith("step 3: a capture: task 'sum': it needs more memory ("));
  EXPECT_THAT(text, HasSubstr("the event is of another capture"));
}

}  // namespace
}  // namespace tandem::test
