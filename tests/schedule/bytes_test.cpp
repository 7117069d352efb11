// Plans whose batches have bytes for pixels: what travels, what becomes floats where, and that
// every strategy orders it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/strategies/strategies.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

constexpr PixelScale scale{{104, 117, 123, 0}, 0.017F};
constexpr int64_t pixels_of_row = 3 * 16 * 16;

Plan plan_with(const Net& net, const std::string& strategy, int devices, bool bytes) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["split"] = "fc1";
  inputs.options["bucket"] = 16 << 10;
  if (strategy != "testing")
    inputs.options = built_in_strategies().options_of(strategy, inputs.options);
  if (bytes) inputs.bytes = scale;
  return strategy == "testing" ? build_testing_plan(inputs) : build_plan(strategy, inputs);
}

struct BytesCase {
  std::string strategy;
  int devices;
};
Plan bytes_plan(const BytesCase& which, bool bytes = true) {
  static const Net training = small_net(9), testing = small_net(9, TANDEM_TEST);
  return plan_with(which.strategy == "testing" ? testing : training, which.strategy, which.devices,
                   bytes);
}

class PlansOfBytes : public testing::TestWithParam<BytesCase> {};

std::vector<BytesCase> bytes_cases() {
  std::vector<BytesCase> result;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const char* strategy : {"sequential", "two_phase", "layerwise", "testing"}) {
      result.push_back({strategy, devices});
    }
    for (const char* strategy : {"hybrid", "asymmetric", "fc_parallel"}) {
      if (devices > 1) result.push_back({strategy, devices});
    }
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(Strategies, PlansOfBytes, testing::ValuesIn(bytes_cases()),
                         [](const auto& i) {
                           return fmt::format("{}_on_{}", i.param.strategy, i.param.devices);
                         });

TEST_P(PlansOfBytes, HaveNoRaceAlsoWhereBuffersShareMemory) {
  expect_no_race(bytes_plan(GetParam()));
}
TEST_P(PlansOfBytes, HaveNoWaitThatCouldBeLeftOut) {
  expect_each_wait_needed(bytes_plan(GetParam()));
}
TEST_P(PlansOfBytes, ReadNoMemoryBeforeItIsWritten) {
  expect_written_before_read(bytes_plan(GetParam()));
}

// So that the next batch is brought while a graph runs: nothing of what is captured lies on the
// copy streams, and what brings a batch waits for nothing of the micro-batch before.
TEST_P(PlansOfBytes, LeaveTheConversionOutOfTheGraph) {
  const Plan plan = bytes_plan(GetParam());
  const CaptureSplit split = split_for_capture(plan);
  ASSERT_EQ(split.reason, "");
  for (const int task : split.captured) {
    if (plan.devices > 1) break;  // tensors may be sent and kept on the copy streams
    for (const StreamId stream : plan.tasks[static_cast<size_t>(task)].streams) {
      EXPECT_NE(stream.kind, StreamKind::copy) << plan.tasks[static_cast<size_t>(task)].label;
    }
  }
  int conversions = 0;
  for (const int index : split.before) {
    const Task& task = plan.tasks[static_cast<size_t>(index)];
    if (std::holds_alternative<ConvertWork>(task.work)) ++conversions;
    for (const Dependency& wait : task.after) EXPECT_NE(wait.micro_batches_back, 1) << task.label;
  }
  EXPECT_GE(conversions, 1);
}

// Everything else is the plan of floats, task by task.
TEST_P(PlansOfBytes, AddAConversionAfterEachCopyOfPixelsAndNothingElse) {
  const Plan bytes = bytes_plan(GetParam()), floats = bytes_plan(GetParam(), false);
  std::vector<std::string> labels, float_labels;
  int64_t rows = 0;
  for (size_t i = 0; i < bytes.tasks.size(); ++i) {
    const Task& task = bytes.tasks[i];
    const auto* convert = std::get_if<ConvertWork>(&task.work);
    if (convert == nullptr) {
      labels.push_back(task.label);
      continue;
    }
    rows += convert->shape.n;
    EXPECT_EQ(convert->scale, scale);
    EXPECT_THAT(task.label, testing::StartsWith("convert "));
    size_t before = i;  // on its stream
    while (before > 0 && bytes.tasks[before - 1].streams != task.streams) --before;
    ASSERT_GT(before, 0U);
    EXPECT_THAT(bytes.tasks[before - 1].label, testing::StartsWith("copy "));
    EXPECT_EQ(task.stage, Stage::input);
  }
  for (const Task& task : floats.tasks) float_labels.push_back(task.label);
  EXPECT_EQ(labels, float_labels);
  EXPECT_GE(rows, 9);
}

TEST(BytesInAPlan, TravelAsAQuarterAndLieWhereFloatsWouldHaveCome) {
  const Plan plan = bytes_plan({"sequential", 2}), floats = bytes_plan({"sequential", 2}, false);
  const BatchLayout global = make_batch_layout(9, {1, 3, 16, 16}, {}, PixelForm::bytes);
  const BatchLayout local = make_batch_layout(4, {1, 3, 16, 16});
  const auto& copy = std::get<CopyWork>(task(plan, "copy input @1").work);
  ASSERT_EQ(copy.segments.size(), 3U);
  EXPECT_EQ(copy.segments[1].source.offset, global.label_offset + 5 * 4);
  EXPECT_EQ(copy.segments[2].source.offset, global.data_offset + 5 * pixels_of_row);
  EXPECT_EQ(copy.segments[2].source.bytes, 4 * pixels_of_row);
  const auto& convert = std::get<ConvertWork>(task(plan, "convert input @1").work);
  EXPECT_EQ(to_string(convert.shape), "4x3x16x16");
  EXPECT_EQ(convert.pixels.buffer, copy.segments[2].target.buffer);
  EXPECT_EQ(convert.target.offset, local.data_offset);
  EXPECT_EQ(convert.target.bytes, 4 * 4 * pixels_of_row);
  const Net net = small_net(9);
  const auto moved = [&](const Plan& of) { return cost_bytes(of, task(of, "copy input @1")); };
  EXPECT_EQ(moved(floats) - moved(plan), 3 * 4 * pixels_of_row);
}

TEST(BytesInAPlan, AreForecastInTheMemoryOfHostAndDevices) {
  const Plan plan = bytes_plan({"sequential", 1}), floats = bytes_plan({"sequential", 1}, false);
  const MemoryPlan bytes = plan_memory(plan), as_floats = plan_memory(floats);
  constexpr int64_t pixels = 9 * pixels_of_row;
  EXPECT_EQ(as_floats.prefetched_bytes - bytes.prefetched_bytes, ring_slots * 3 * pixels);
  // On the device they come on top, once: the floats stay in two slots.
  EXPECT_EQ(bytes.transient_bytes[0] - as_floats.transient_bytes[0], pixels);
}

TEST(BytesInAPlan, CostWhatTheirConversionMoves) {
  const Net net = small_net(9);
  const Plan plan = bytes_plan({"sequential", 1});
  const Task& convert = task(plan, "convert input @0");
  EXPECT_EQ(cost_key(net, plan, convert), "convert");
  EXPECT_EQ(cost_bytes(plan, convert), 5 * 9 * pixels_of_row);  // a byte read, a float written
  CostTable costs;
  costs.set("convert", {2e-3, 0, 5 * 9 * pixels_of_row / 2});
  EXPECT_DOUBLE_EQ(costs.seconds(net, plan, convert), 4e-3);
}

TEST(BytesInAPlan, AreCheckedAgainstTheirShape) {
  Plan plan = bytes_plan({"sequential", 1});
  for (Task& task : plan.tasks) {
    if (auto* convert = std::get_if<ConvertWork>(&task.work)) convert->target.bytes -= 4;
  }
  EXPECT_THAT(message_of([&] { validate(plan); }), HasSubstr("'convert input @0'"));
}

}  // namespace
}  // namespace tandem::test
