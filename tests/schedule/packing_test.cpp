// Buffers keep the bytes that tasks touch, and every region of them follows.
#include <gtest/gtest.h>

#include "core/schedule/plan/packing.h"
#include "tests/schedule/handmade.h"

namespace tandem::test {
namespace {

TEST(Packing, TakesOutWhatNoTaskTouchesAndMovesRegionsAlong) {
  Maker maker(1);
  const int buffer = maker.floats("gradients", 0, 1024).buffer;
  const Region first{buffer, 64, 64}, second{buffer, 2048, 100}, third{buffer, 2176, 64};
  maker.copy("copy", {compute(0)}, second, {buffer, 512, 100});
  maker.touch("write", {compute(0)}, {}, {first, third});
  pack_buffers(maker.plan, {buffer});
  const Plan& plan = maker.derived();
  // 64 to 128, 512 to 640 and 2048 to 2240, the last of which were neighbors
  EXPECT_EQ(plan.buffers[size_t(buffer)].bytes, 64 + 128 + 192);
  EXPECT_EQ(plan.tasks[1].writes[0].offset, 0);
  EXPECT_EQ(plan.tasks[1].writes[1].offset, 320);
  const auto& copy = std::get<CopyWork>(plan.tasks[0].work);
  EXPECT_EQ(copy.segments[0].source.offset, 64);
  EXPECT_EQ(copy.segments[0].target.offset, 192);
  EXPECT_EQ(copy.segments[0].target.bytes, 100);
}

TEST(Packing, LeavesWhollyUsedAndOtherBuffersAsTheyAre) {
  Maker maker(1);
  const Region whole = maker.floats("whole", 0, 100), other = maker.floats("other", 0, 100);
  maker.touch("write", {compute(0)}, {}, {whole, {other.buffer, 200, 8}});
  pack_buffers(maker.plan, {whole.buffer});
  EXPECT_EQ(maker.plan.buffers[0].bytes, 448);  // to the next 64
  EXPECT_EQ(maker.plan.buffers[1].bytes, 400);
  EXPECT_EQ(maker.plan.tasks[0].writes[1].offset, 200);
}

TEST(Packing, MakesRegionsThatNoTaskUsesNone) {
  Maker maker(1);
  const int buffer = maker.floats("gradients", 0, 1024).buffer;
  PlanBinding use;
  use.weight_gradients = {{buffer, 0, 64}, {buffer, 1024, 64}};
  maker.plan.bindings.push_back(use);
  maker.touch("write", {compute(0)}, {}, {{buffer, 1024, 64}});
  pack_buffers(maker.plan, {buffer});
  EXPECT_EQ(maker.plan.bindings[0].weight_gradients[0].buffer, -1);
  EXPECT_EQ(maker.plan.bindings[0].weight_gradients[1].offset, 0);
}

}  // namespace
}  // namespace tandem::test
