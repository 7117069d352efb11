#include "core/schedule/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/schedule/strategies/common/stages.h"
#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::Maker;
using testing::HasSubstr;

// forward @0 and @1, then a send that occupies both devices.
Plan two_devices() {
  Maker maker(2);
  const Region a = maker.floats("a", 0, 4), b = maker.floats("b", 1, 4);
  maker.touch("forward @0", {compute(0)}, {}, {a});
  maker.touch("forward @1", {compute(1)}, {}, {b});
  const int send = maker.copy("send \"b\"", {communication(0), communication(1)}, a, b);
  maker.plan.tasks[static_cast<size_t>(send)].stage = stages::send_fc_gradients;
  return maker.derived();
}

std::vector<TraceEvent> events() {
  return {{0, 3, 10.0, 10.5}, {1, 3, 10.25, 10.75}, {2, 3, 10.75, 11.0}};
}

TEST(Report, TextShowsStageLabelStreamsAndWaits) {
  const std::string text = to_text(two_devices());
  EXPECT_THAT(text, HasSubstr("3 tasks"));
  EXPECT_THAT(text, HasSubstr("communication 0 + communication 1"));
  EXPECT_THAT(text, HasSubstr("after 'forward @1', 'forward @0'"));
  EXPECT_THAT(text, HasSubstr("'send \"b\"' of the micro-batch before"));
}

TEST(Report, DotClustersStreamsInDevicesAndDrawsWaitsOfTheMicroBatchBeforeDashed) {
  const std::string dot = to_dot(two_devices());
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_1 {"));
  EXPECT_THAT(dot, HasSubstr("subgraph cluster_0_communication {"));
  EXPECT_THAT(dot, HasSubstr("label=\"send \\\"b\\\"\""));
  EXPECT_THAT(dot, HasSubstr("t0 -> t2 [penwidth=2]"));
  EXPECT_THAT(dot, HasSubstr("t2 -> t1 [style=dashed"));
}

TEST(Report, TheChromeTraceHasEveryTaskOnEachOfItsStreamsInMicroseconds) {
  const auto trace = nlohmann::json::parse(to_chrome_trace(two_devices(), events()));
  int sends = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "send \"b\"") continue;
    EXPECT_EQ(event["pid"], sends++);
    EXPECT_EQ(event["tid"], 1);
    EXPECT_DOUBLE_EQ(event["ts"], 10.75e6);
    EXPECT_DOUBLE_EQ(event["dur"], 0.25e6);
    EXPECT_EQ(event["args"]["stage"], "send_fc_gradients");
    EXPECT_EQ(event["args"]["step"], 3);
  }
  EXPECT_EQ(sends, 2);
}

TEST(Report, TheChromeTraceHasTheStepAndItsMicroBatch) {
  Plan plan = two_devices();
  plan.micro_batches_per_step = 2;
  const auto trace = nlohmann::json::parse(to_chrome_trace(plan, events()));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["args"]["step"], 1);
    EXPECT_EQ(event["args"]["micro_batch"], 1);
  }
}

TEST(Report, TheChromeTraceNamesDevicesAndStreams) {
  const auto trace = nlohmann::json::parse(to_chrome_trace(two_devices(), {}));
  std::vector<std::string> processes, threads;
  for (const auto& event : trace["traceEvents"]) {
    auto& names = event["name"] == "process_name" ? processes : threads;
    names.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(processes, testing::ElementsAre("device 0", "device 1"));
  EXPECT_THAT(threads, testing::ElementsAre("compute", "communication", "copy", "compute",
                                            "communication", "copy"));
}

TEST(Report, StageTimesCountFromTheFirstTaskOnEveryDeviceOfAStage) {
  const std::vector<StageTime> stages = stage_times(two_devices(), events());
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[1].stage, Stage::forward);
  EXPECT_EQ(stages[1].device, 1);
  EXPECT_DOUBLE_EQ(stages[1].start, 0.25);
  EXPECT_DOUBLE_EQ(stages[1].duration, 0.5);
  EXPECT_EQ(stages[3].stage, stages::send_fc_gradients);
  EXPECT_EQ(stages[3].device, 1);
  EXPECT_EQ(stages[3].stream, StreamKind::communication);
  EXPECT_DOUBLE_EQ(stages[3].start, 0.75);
}

TEST(Report, AStagesDurationHasItsGapsAndItsBusyTimeHasNot) {
  Maker maker(1);
  maker.touch("first", {compute(0)}, {}, {});
  maker.touch("second", {compute(0)}, {}, {});
  const std::vector<StageTime> stages =
      stage_times(maker.plan, {{1, 0, 3.0, 4.0}, {0, 0, 0.0, 1.0}});
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_DOUBLE_EQ(stages[0].duration, 4);
  EXPECT_DOUBLE_EQ(stages[0].busy, 2);
}

TEST(Report, TheStageTableHasMilliseconds) {
  const std::string table = stage_table(stage_times(two_devices(), events()));
  EXPECT_THAT(table, HasSubstr("send_fc_gradients"));
  EXPECT_THAT(table, HasSubstr("750.000"));
}

}  // namespace
}  // namespace tandem
