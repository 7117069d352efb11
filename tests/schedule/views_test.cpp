// Where a plan places tensors that are views of others, and scratch memory.
#include <gtest/gtest.h>

#include "core/schedule/plan/memory_plan.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/fake_net.h"
#include "tests/support/races.h"

namespace tandem::test {
namespace {

// Its ReLU stands for a Split that the host put in.
Net net_with_view() {
  Net net = FakeNet("viewed", 8, {1, 3, 16, 16})
                .convolution("conv1", 16, 3)
                .relu("view")
                .inner_product("fc1", 10)
                .loss()
                .finish();
  Layer& layer = net.layers[static_cast<size_t>(net.find_layer("view"))];
  layer.runs_in_place = false;
  Tensor& output = net.tensors[static_cast<size_t>(layer.outputs[0])];
  output.alias_of = -1;
  output.view_of = layer.inputs[0];
  return net;
}

TEST(Views, AreReadWhereTheTensorLiesAndNeverWritten) {
  const Net net = net_with_view();
  const Plan plan = build_plan("sequential", inputs_of(net, 1));
  EXPECT_GE(find_task(plan, "forward conv1 @0"), 0);
  EXPECT_EQ(find_task(plan, "forward view @0"), -1);
  EXPECT_GE(find_task(plan, "backward_data view @0"), 0);
  EXPECT_GE(plan.find_buffer("conv1 output", 0), 0);
  EXPECT_EQ(plan.find_buffer("view output", 0), -1);
}

TEST(Views, HaveAGradientOfTheirOwn) {
  const Net net = net_with_view();
  const Plan plan = build_plan("sequential", inputs_of(net, 1));
  EXPECT_GE(plan.find_buffer("conv1 output gradient", 0), 0);
  EXPECT_GE(plan.find_buffer("view output gradient", 0), 0);
}

TEST(Scratch, OfAPassTakesMemoryOnlyWhileThePassRuns) {
  const Net net = net_with_view();
  Plan plan = build_plan("sequential", inputs_of(net, 1));
  const int64_t without = plan_memory(plan).transient_bytes[0];
  constexpr int64_t bytes = 1 << 20;
  int buffers = 0;
  for (Buffer& buffer : plan.buffers) {
    if (buffer.name.find("scratch") == std::string::npos) continue;
    buffer.bytes = bytes;
    ++buffers;
  }
  EXPECT_GT(buffers, 3);
  EXPECT_LE(plan_memory(plan).transient_bytes[0], without + bytes + 4096);
  EXPECT_TRUE(find_races(plan).empty());
}

}  // namespace
}  // namespace tandem::test
