// Kernels of a layer (tests/schedule/probe) prepared for plans' bindings, and run by the executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/probe_plan.h"

namespace tandem {
namespace {

using test::Machines;
using test::message_of;
using test::probe_net;
using test::probe_plan;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Kernels, AreGivenTheirShareOfTheBatchAndWhatIsWanted) {
  Plan plan = probe_plan(2);
  const Net net = probe_net();
  Machines on(2);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(kernels.algorithm(0), "3x2x1x1 of 5 from 0, flags 3, slice 0 to 2, device 0");
  EXPECT_EQ(kernels.algorithm(1), "2x2x1x1 of 5 from 3, flags 3, slice 0 to 2, device 1");
}

TEST(Kernels, AreGivenThePermissionToUseTf32) {
  Plan plan = probe_plan(1);
  Net net = probe_net();
  net.layers[0].allows_tf32 = true;
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(kernels.algorithm(0), "5x2x1x1 of 5 from 0, flags 19, slice 0 to 2, device 0");
}

TEST(Kernels, SaveInMemoryOfTheirOwnAndShareTheLargestScratch) {
  Plan plan = probe_plan(1);
  plan.bindings.push_back(plan.bindings[0]);
  plan.bindings[1].rows.end = 1;
  plan.buffers.push_back({"second saved", 0, BufferKind::transient, 0, 1, {}});
  plan.bindings[1].saved = static_cast<int>(plan.buffers.size()) - 1;
  const Net net = probe_net();
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("saved", 0))].bytes, 40);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("second saved", 0))].bytes, 8);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("scratch", 0))].bytes, 80);
}

TEST(Kernels, ARefusalNamesTheLayerItsTypeAndItsPlace) {
  Plan plan = probe_plan(1);
  const Net net = probe_net(13);
  Machines on(1);
  EXPECT_EQ(message_of([&] { Kernels(plan, net, test::registry(), on.runtime); }),
            "layer 'double1' (probe.Double): 13 channels bring bad luck (probe.prototxt:4)");
}

TEST(Kernels, ARefusalLeavesTheMachineInOrder) {
  Plan plan = probe_plan(1);
  const Net refused = probe_net(13), net = probe_net();
  Machines on(1);
  EXPECT_NE(message_of([&] { Kernels(plan, refused, test::registry(), on.runtime); }), "");
  EXPECT_EQ(message_of([&] { Kernels(plan, net, test::registry(), on.runtime); }), "");
}

TEST(Kernels, RunInThePlansMemory) {
  const Net net = probe_net();
  Plan plan = probe_plan(2);
  Machines on(2);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  const MemoryPlan memory = plan_memory(plan);
  on.runtime.reserve(plan, memory, 5);
  Executor executor(plan, memory, net, on.runtime, &kernels, nullptr, {}, {});
  const std::vector<float> in{1, 2, 3, 4}, gradient{1, 0, 0, 10};
  on.runtime.write_persistent("in", 1, in.data(), 16);
  on.runtime.write_persistent("out gradient", 1, gradient.data(), 16);
  for (int64_t step = 0; step < 4; ++step) executor.issue(step, {});
  executor.drain();
  std::vector<float> values(4);
  on.runtime.read_persistent("out", 1, values.data(), 16);
  EXPECT_THAT(values, ElementsAre(2.5, 4.5, 6.5, 8.5));
  on.runtime.read_persistent("in gradient", 1, values.data(), 16);
  EXPECT_THAT(values, ElementsAre(2, 0, 0, 20));
  float sum = 0;
  on.runtime.read_persistent("gradients", 1, &sum, 4);
  EXPECT_EQ(sum, 82);  // 41, overwritten in every micro-batch, then accumulated once
}

TEST(Kernels, AFailingPassSaysWhichTaskFailed) {
  const Net net = probe_net();
  Plan plan = probe_plan(1);
  plan.bindings[0].input_gradients.clear();  // the probe refuses that when it runs
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  const MemoryPlan memory = plan_memory(plan);
  on.runtime.reserve(plan, memory, 5);
  Executor executor(plan, memory, net, on.runtime, &kernels, nullptr, {}, {});
  executor.issue(0, {});
  EXPECT_THAT(
      message_of([&] { executor.drain(); }),
      testing::AllOf(testing::StartsWith("step 1: "),
                     HasSubstr("'backward @0': layer 'double1' (probe.Double): no place for the "
                               "input's gradient")));
}

TEST(Kernels, WithoutThemALayersWorkFailsAndSaysSo) {
  const Net net = probe_net();
  const Plan plan = probe_plan(1);
  test::Rig rig(plan, test::cpu(), {}, {}, net);
  rig.executor->issue(0, {});
  EXPECT_THAT(message_of([&] { rig.executor->drain(); }), HasSubstr("made without kernels"));
}

TEST(Kernels, RefuseANetThatWasMadeForKernelsThatFuseMore) {
  Plan plan = probe_plan(1);
  plan.bindings[0].activation = TANDEM_ACTIVATION_RELU;
  const Net net = probe_net();
  Machines on(1);
  EXPECT_THAT([&] { const Kernels kernels(plan, net, test::registry(), on.runtime); },
              testing::ThrowsMessage<Error>(testing::HasSubstr(
                  "layer 'double1' (probe.Double): its kernel for cpu devices does not fuse relu, "
                  "but the net was made for one that does")));
}

}  // namespace
}  // namespace tandem
