#include "core/schedule/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::Maker;

int64_t offset(const MemoryPlan& memory, const Region& region) {
  return memory.offsets[static_cast<size_t>(region.buffer)];
}

// a -> b -> c -> d, each read by the task that writes the next.
Plan chain(Maker& maker) {
  Region before = maker.floats("a", 0, 1024);
  maker.touch("write a", {compute(0)}, {}, {before});
  for (const char* name : {"b", "c", "d"}) {
    const Region next = maker.floats(name, 0, 1024);
    maker.touch(std::string("write ") + name, {compute(0)}, {before}, {next});
    before = next;
  }
  return maker.derived();
}

TEST(MemoryPlan, BuffersOfOneStreamShareMemoryWhenTheirUsesDoNotOverlap) {
  Maker maker(1);
  const Plan plan = chain(maker);
  EXPECT_EQ(plan_memory(plan).transient_bytes[0], 2 * 4096);
}

TEST(MemoryPlan, WithoutReuseEveryBufferHasItsOwnBytes) {
  Maker maker(1);
  const Plan plan = chain(maker);
  EXPECT_EQ(plan_memory(plan, false).transient_bytes[0], 4 * 4096);
}

TEST(MemoryPlan, WhatNoTaskTouchesTakesNone) {
  Maker maker(1);
  (void)maker.floats("unused", 0, 1 << 20);
  const Plan plan = chain(maker);
  EXPECT_EQ(plan_memory(plan).transient_bytes[0], 2 * 4096);
}

TEST(MemoryPlan, WhatAnotherStreamUsesSharesNothing) {
  Maker maker(1);
  chain(maker);
  maker.touch("look", {communication(0)}, {{1}}, {});
  EXPECT_EQ(plan_memory(maker.derived()).transient_bytes[0], 3 * 4096);
}

TEST(MemoryPlan, WhatARepeatedPassWritesAgainIsFreeInBetween) {
  for (const bool repeats : {false, true}) {
    Maker maker(1);
    const Region again = maker.floats("again", 0, 1024), other = maker.floats("other", 0, 1024);
    maker.touch("write", {compute(0)}, {}, {again});
    maker.touch("use", {compute(0)}, {again}, {});
    maker.touch("write other", {compute(0)}, {}, {other});
    maker.task("write again", {compute(0)}, {}, {again},
               LayerWork{0, LayerPass::forward, false, repeats});
    maker.touch("use again", {compute(0)}, {again}, {});
    const MemoryPlan memory = plan_memory(maker.plan);
    EXPECT_EQ(memory.transient_bytes[0], (repeats ? 1 : 2) * 4096);
    EXPECT_EQ(offset(memory, again) == offset(memory, other), repeats);
  }
}

TEST(MemoryPlan, WhatARepeatedPassReadsItselfIsNotFree) {
  Maker maker(1);
  const Region again = maker.floats("again", 0, 1024), other = maker.floats("other", 0, 1024);
  maker.touch("write", {compute(0)}, {}, {again});
  maker.touch("write other", {compute(0)}, {}, {other});
  maker.task("change", {compute(0)}, {again}, {again},
             LayerWork{0, LayerPass::forward, false, true});
  EXPECT_EQ(plan_memory(maker.plan).transient_bytes[0], 2 * 4096);
}

TEST(MemoryPlan, WhatIsReadBeforeItIsWrittenLivesTheWholeMicroBatch) {
  Maker maker(1);
  const Region kept = maker.floats("kept", 0, 16), early = maker.floats("early", 0, 16),
               late = maker.floats("late", 0, 16);
  maker.touch("write early", {compute(0)}, {}, {early});
  maker.touch("count", {compute(0)}, {kept}, {kept});
  maker.touch("write late", {compute(0)}, {}, {late});
  const MemoryPlan memory = plan_memory(maker.derived());
  EXPECT_EQ(memory.transient_bytes[0], 128);
  EXPECT_EQ(offset(memory, early), offset(memory, late));
  EXPECT_NE(offset(memory, kept), offset(memory, late));
}

TEST(MemoryPlan, WhatIsWrittenInPartAndReadAsAWholeLivesTheWholeMicroBatch) {
  Maker maker(1);
  const Region kept = maker.floats("kept", 0, 16), late = maker.floats("late", 0, 16);
  maker.touch("write half", {compute(0)}, {}, {{kept.buffer, 0, 32}});
  maker.touch("read all", {compute(0)}, {kept}, {});
  maker.touch("write late", {compute(0)}, {}, {late});
  EXPECT_EQ(plan_memory(maker.derived()).transient_bytes[0], 128);
}

TEST(MemoryPlan, WhatIsWrittenInTwoPartsAndReadAsAWholeDoesNot) {
  Maker maker(1);
  const Region kept = maker.floats("kept", 0, 16), late = maker.floats("late", 0, 16);
  maker.touch("write end", {compute(0)}, {}, {{kept.buffer, 32, 32}});
  maker.touch("write begin", {compute(0)}, {}, {{kept.buffer, 0, 32}});
  maker.touch("read all", {compute(0)}, {kept}, {});
  maker.touch("write late", {compute(0)}, {}, {late});
  EXPECT_EQ(plan_memory(maker.derived()).transient_bytes[0], 64);
}

TEST(MemoryPlan, SlotsFollowEachOtherAndShareNothing) {
  Maker maker(1);
  const Region input = maker.floats("input", 0, 5, BufferKind::transient, 2);
  const Region next = maker.floats("next", 0, 1);
  maker.touch("write", {compute(0)}, {}, {input});
  maker.touch("later", {compute(0)}, {}, {next});
  const MemoryPlan memory = plan_memory(maker.derived());
  EXPECT_EQ(slot_stride(maker.plan.buffers[0]), 64);
  const int64_t first = offset(memory, input), second = offset(memory, next);
  EXPECT_TRUE(second >= first + 128 || second + 64 <= first) << first << " " << second;
}

TEST(MemoryPlan, LargeBuffersBeginOnAPage) {
  Maker maker(1);
  maker.persistent("small", 0, 1);
  const Region large = maker.persistent("large", 0, 1 << 20);
  const MemoryPlan memory = plan_memory(maker.plan);
  EXPECT_EQ(offset(memory, large), 4096);
  EXPECT_EQ(memory.persistent_bytes[0], 4096 + (4 << 20));
}

TEST(MemoryPlan, CountsEveryDeviceAndTheHostApart) {
  Maker maker(2);
  maker.persistent("weights", 0, 16);
  maker.persistent("weights", 1, 32);
  maker.persistent("results", -1, 16, 2);
  maker.floats("batch", -1, 1000, BufferKind::external);
  const MemoryPlan memory = plan_memory(maker.plan);
  EXPECT_EQ(memory.persistent_bytes[0], 64);
  EXPECT_EQ(memory.persistent_bytes[1], 128);
  EXPECT_EQ(memory.host_bytes[0], 128);
}

}  // namespace
}  // namespace tandem
