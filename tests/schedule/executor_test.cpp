// The executor on the cpu backend: real threads, real memory.
#include "core/schedule/execution/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/numbers/random.h"
#include "core/schedule/kernels/kernels.h"
#include "core/schedule/kernels/runtime.h"
#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::copies;
using test::cpu;
using test::Maker;
using test::message_of;
using test::Rig;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Every stream of two devices adds and copies between a few persistent buffers.
Plan random_arithmetic(uint64_t seed) {
  Random random(seed, stream_of("arithmetic"));
  Maker maker(2);
  std::vector<Region> regions;
  for (int i = 0; i < 6; ++i) {
    regions.push_back(
        maker.constant("b" + std::to_string(i), i % 2, {1.0F + static_cast<float>(i), -1, 0.5, 3}));
  }
  regions.push_back(maker.persistent("slots", 0, 4, 2));
  const auto pick = [&] { return random.below(regions.size()); };
  for (int i = 0; i < 20; ++i) {
    const StreamId stream{static_cast<int>(random.below(2)),
                          static_cast<StreamKind>(random.below(3))};
    const StreamId other{1 - stream.device, StreamKind::communication};
    const size_t target = pick(), source = (target + 1 + random.below(5)) % regions.size();
    const std::string label = "t" + std::to_string(i);
    if (random.below(2) == 0) {
      maker.add(label, stream, regions[target], {regions[source]});
    } else if (random.below(2) == 0) {
      maker.copy(label, {stream}, regions[target], regions[source]);
    } else {
      maker.copy(label, {stream, other}, regions[target], regions[source]);
    }
  }
  return maker.derived();
}

// What a plan of copies and additions means: its tasks one after the other.
class Interpreter {
 public:
  explicit Interpreter(const Plan& plan) : plan_(plan) {
    for (const Buffer& buffer : plan.buffers) {
      std::vector<float> values = buffer.initial;
      values.resize(static_cast<size_t>(buffer.bytes / 4));
      memory_.push_back(std::vector(static_cast<size_t>(buffer.slots), values));
    }
  }
  void run(int64_t step) {
    for (const Task& task : plan_.tasks) {
      if (const auto* add = std::get_if<AddWork>(&task.work)) {
        std::vector<float>& target = at(add->target, step);
        for (const Region& source : add->sources) {
          for (size_t i = 0; i < target.size(); ++i) target[i] += at(source, step)[i];
        }
      } else if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
        for (const CopySegment& segment : copy->segments) {
          at(segment.target, step) = at(segment.source, step);
        }
      }
    }
  }
  std::vector<float>& at(const Region& region, int64_t step) {
    auto& slots = memory_[static_cast<size_t>(region.buffer)];
    return slots[static_cast<size_t>(step) % slots.size()];
  }

 private:
  const Plan& plan_;
  std::vector<std::vector<std::vector<float>>> memory_;
};

TEST(Executor, GivesWhatTheTasksOneAfterTheOtherGiveWhateverTheStreamsDelays) {
  constexpr int64_t steps = 5;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Plan plan = random_arithmetic(seed);
    Interpreter interpreter(plan);
    for (int64_t step = 0; step < steps; ++step) interpreter.run(step);
    MachineOptions delays;
    delays.delay_seed = seed;
    delays.delay_seconds = 300e-6;
    Rig rig(plan, cpu(), delays);
    rig.run(steps);
    for (int buffer = 0; buffer < 7; ++buffer) {
      const Buffer& b = plan.buffers[static_cast<size_t>(buffer)];
      for (int64_t slot = 0; slot < b.slots; ++slot) {
        const std::vector<float> expected = interpreter.at({buffer}, slot);
        EXPECT_EQ(rig.read(b.name, b.device, 4, slot * slot_stride(b)), expected)
            << "seed " << seed << ", buffer " << b.name << ", slot " << slot;
      }
    }
  }
}

TEST(Executor, ReadsAnExternalBufferAtTheAddressOfEachMicroBatch) {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 2, BufferKind::external);
  const Region input = maker.floats("input", 0, 2, BufferKind::transient, 2);
  const Region sum = maker.persistent("sum", 0, 2);
  maker.copy("input", {copies(0)}, input, batch);
  maker.add("sum", compute(0), sum, {input});
  Rig rig(maker.derived(), cpu());
  std::vector<std::vector<float>> batches;
  for (int step = 0; step < 6; ++step) batches.push_back({1.0F + static_cast<float>(step), 10});
  for (int64_t step = 0; step < 6; ++step) {
    rig.executor->issue(step, {{batch.buffer, batches[static_cast<size_t>(step)].data()}});
  }
  rig.executor->drain();
  EXPECT_THAT(rig.read("sum", 0, 2), ElementsAre(21, 60));
}

TEST(Executor, NamesAnExternalBufferWithoutAnAddress) {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 2, BufferKind::external);
  maker.copy("input", {copies(0)}, maker.floats("input", 0, 2), batch);
  Rig rig(maker.derived(), cpu());
  EXPECT_EQ(message_of([&] { rig.executor->issue(0, {}); }),
            "step 1: no address for buffer 'batch'");
}

TEST(Executor, ATaskOfAnIssuedMicroBatchCanBeWaitedFor) {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 2, BufferKind::external);
  const int task = maker.copy("input", {copies(0)}, maker.persistent("input", 0, 2), batch);
  Rig rig(maker.derived(), cpu());
  std::vector<float> values{1, 2};
  rig.executor->issue(0, {{batch.buffer, values.data()}});
  rig.executor->wait_task(0, task);
  values = {0, 0};
  EXPECT_THAT(rig.read("input", 0, 2), ElementsAre(1, 2));
}

TEST(Executor, MicroBatchesMayBeginAnywhere) {
  Maker maker(1);
  const Region one = maker.constant("one", 0, {1}), sum = maker.persistent("sum", 0, 1);
  maker.add("sum", compute(0), sum, {one});
  Rig rig(maker.derived(), cpu());
  for (const int64_t step : {1001, 1002, 1003, 5, 6, 6}) rig.executor->issue(step, {});
  rig.executor->drain();
  EXPECT_THAT(rig.read("sum", 0, 1), ElementsAre(6));
}

TEST(Executor, WaitingForAMicroBatchThatWasNotIssuedIsAnError) {
  Maker maker(1);
  maker.touch("nothing", {compute(0)}, {}, {});
  Rig rig(maker.derived(), cpu());
  rig.executor->issue(3, {});
  EXPECT_EQ(message_of([&] { rig.executor->wait(4); }),
            "micro-batch 4 was not issued; the last one is 3");
}

TEST(Executor, WithoutCommunicationOnlyCopiesBetweenDevicesAreLeftOut) {
  Maker maker(2);
  const Region here = maker.constant("here", 0, {7});
  maker.copy("within", {compute(0)}, maker.persistent("within", 0, 1), here);
  maker.copy("between", {communication(0)}, maker.persistent("between", 1, 1), here);
  maker.copy("to the host", {communication(0)}, maker.persistent("host", -1, 1), here);
  ExecutorOptions options;
  options.communication = false;
  Rig rig(maker.derived(), cpu(), {}, options);
  rig.run(1);
  EXPECT_THAT(rig.read("within", 0, 1), ElementsAre(7));
  EXPECT_THAT(rig.read("between", 1, 1), ElementsAre(0));
  EXPECT_THAT(rig.read("host", -1, 1), ElementsAre(7));
}

TEST(Executor, FindsARegionBySlot) {
  Maker maker(1);
  const Region slots = maker.persistent("slots", 0, 5, 2);
  maker.touch("use", {compute(0)}, {}, {slots});
  Rig rig(maker.derived(), cpu());
  std::byte* base = rig.runtime.persistent("slots", 0);
  EXPECT_EQ(rig.executor->address({slots.buffer, 8, 4}, 4), base + 8);
  EXPECT_EQ(rig.executor->address({slots.buffer, 8, 4}, 5), base + 64 + 8);
}

TEST(Executor, CheckSetsTheFlagAndTheUpdateThenChangesNothing) {
  Maker maker(1);
  const Region weights = maker.constant("weights", 0, std::vector<float>(16, 1));
  const Region gradients = maker.constant("gradients", 0, std::vector<float>(16, 1));
  const Region state = maker.persistent("state", 0, 16),
               found_inf = maker.persistent("found_inf", 0, 16);
  const Region loss = maker.persistent("loss", 0, 1), step = maker.persistent("step", 0, 8);
  maker.task("check", {compute(0)}, {loss, found_inf}, {found_inf}, CheckWork{loss, found_inf});
  maker.task("update", {compute(0)}, {weights, gradients, state, step, found_inf}, {weights, state},
             UpdateWork{{{0, weights, gradients, state, 64}}, step, found_inf});
  Net net;
  net.weight_floats = 16;
  net.weights.resize(1);
  net.weights[0].count = 16;
  Rig rig(maker.derived(), cpu(), {}, {}, net);
  const tandem_step control{1, 0, 0.5F, 1, 0, 0};
  rig.runtime.write_persistent("step", 0, &control, sizeof control);
  rig.run(1);
  EXPECT_THAT(rig.read("weights", 0, 16), Each(0.5F));
  const float bad = std::numeric_limits<float>::quiet_NaN();
  rig.runtime.write_persistent("loss", 0, &bad, sizeof bad);
  rig.run(2);
  EXPECT_THAT(rig.read("weights", 0, 16), Each(0.5F));
  int32_t flag = 0;
  rig.runtime.read_persistent("found_inf", 0, &flag, sizeof flag);
  EXPECT_EQ(flag, 1);
}

TEST(Executor, UpdatesEveryTrainedArrayWithItsOwnRateAndDecay) {
  Maker maker(1);
  const Region weights = maker.constant("weights", 0, std::vector<float>(64, 1));
  const Region gradients = maker.constant("gradients", 0, std::vector<float>(64, 1));
  const Region state = maker.persistent("state", 0, 64), step = maker.persistent("step", 0, 8),
               found_inf = maker.persistent("found_inf", 0, 1);
  UpdateWork update{{}, step, found_inf};
  for (int i = 0; i < 4; ++i) {
    const auto part = [&](const Region& all) { return Region{all.buffer, 64 * i, 64}; };
    update.arrays.push_back({i, part(weights), part(gradients), part(state), 256});
  }
  maker.task("update", {compute(0)}, {weights, gradients, state, step, found_inf}, {weights, state},
             update);
  Net net;
  net.weight_floats = 64;
  net.weights.resize(4);
  for (size_t i = 0; i < 4; ++i) {
    net.weights[i].offset = static_cast<int64_t>(16 * i);
    net.weights[i].count = 16;
  }
  net.weights[1].rate_multiplier = 2;
  net.weights[2].rate_multiplier = 0;  // frozen
  net.weights[3].decay_multiplier = 0;
  UpdateRule rule;
  rule.weight_decay = 1;
  Rig rig(maker.derived(), cpu(), {}, {}, net, nullptr, rule);
  const tandem_step control{1, 0, 0.125F, 1, 0, 0};
  rig.runtime.write_persistent("step", 0, &control, sizeof control);
  rig.run(1);
  const std::vector<float> after = rig.read("weights", 0, 64);
  EXPECT_EQ(after[0], 0.75F);    // 1 - 0.125 * (1 + 1)
  EXPECT_EQ(after[16], 0.5F);    // 1 - 0.25 * (1 + 1)
  EXPECT_EQ(after[32], 1.0F);    // frozen
  EXPECT_EQ(after[48], 0.875F);  // 1 - 0.125 * 1
}

TEST(Executor, TheTraceKeepsTheOrderOfWaitsAndStreams) {
  const Plan plan = random_arithmetic(3);
  Rig rig(plan, cpu());
  rig.run(3);
  const std::vector<TraceEvent> events = rig.executor->trace(2);
  ASSERT_EQ(events.size(), plan.tasks.size());
  for (const TraceEvent& event : events) {
    EXPECT_EQ(event.micro_batch, 2);
    EXPECT_LE(event.start, event.end);
    for (const Dependency& wait : plan.tasks[static_cast<size_t>(event.task)].after) {
      if (wait.micro_batches_back == 0) {
        EXPECT_LE(events[static_cast<size_t>(wait.task)].end, event.start);
      }
    }
  }
  EXPECT_THAT(message_of([&] { static_cast<void>(rig.executor->trace(0)); }),
              HasSubstr("only the last two"));
}

TEST(Executor, FollowsItsArenaWhenALargerPlanMovesIt) {
  Maker training(1), testing(1);
  const Region weights = training.constant("weights", 0, {1}),
               gradients = training.floats("gradients", 0, 1);
  training.copy("gradient", {compute(0)}, gradients, weights);
  training.add("train", compute(0), weights, {gradients});
  const Region same = testing.persistent("weights", 0, 1);
  testing.copy("look", {compute(0)}, testing.persistent("seen", 0, 1), same);
  const Region large = testing.floats("large", 0, 1 << 20);
  testing.touch("large", {compute(0)}, {}, {large});
  Rig rig(training.derived(), cpu());
  const Plan second = testing.derived();
  const MemoryPlan memory = plan_memory(second);
  rig.runtime.reserve(second, memory, 1);
  Executor other(second, memory, rig.net, rig.runtime, nullptr, nullptr, {}, {});
  rig.run(3);
  float gradient = 0;
  std::memcpy(&gradient, rig.executor->address(gradients, 0), 4);
  EXPECT_EQ(gradient, 4);
  other.issue(0, {});
  other.drain();
  EXPECT_THAT(rig.read("seen", 0, 1), ElementsAre(8));
}

// As the weights in an evaluation.
TEST(Executor, DoesTheWorkOfMicroBatch0AgainWhenItBeginsAgain) {
  Maker maker(2);
  const Region source = maker.constant("source", 0, {1});
  const Region target = maker.persistent("target", 1, 1);
  maker.copy("send", {communication(1), communication(0)}, target, source);
  maker.plan.tasks.back().when = When::micro_batch_0;
  maker.add("add", compute(1), maker.constant("sum", 1, {0}), {target});
  Rig rig(maker.derived(), cpu());
  rig.run(3);
  EXPECT_EQ(rig.read("sum", 1, 1), std::vector<float>{3});
  const float newer = 10;
  rig.runtime.write_persistent("source", 0, &newer, sizeof(newer));
  rig.executor->issue(3, {});
  rig.executor->drain();
  EXPECT_EQ(rig.read("sum", 1, 1), std::vector<float>{4}) << "nothing was sent";
  rig.run(2);
  EXPECT_EQ(rig.read("sum", 1, 1), std::vector<float>{24}) << "sent once more";
}

}  // namespace
}  // namespace tandem
