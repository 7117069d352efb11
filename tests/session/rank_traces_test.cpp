// Traces of several ranks on one clock. The ranks are threads here, whose clocks are made up.
#include "core/session/rank_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/thread_transport.h"

namespace tandem {
namespace {

using test::ThreadWorld;
using testing::ElementsAre;

// The seconds since some moment, on a clock that is that much ahead.
double time_ahead(double seconds) {
  return seconds +
         std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Function>
void as_ranks(int count, const Function& function) {
  ThreadWorld world(count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      world.join(rank);
      const Communicator ranks(ThreadWorld::transport());
      function(ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RankClocks, AreFoundToDifferByWhatTheyDoWithinTheStatedUncertainty) {
  const std::vector<double> ahead{0, 5, -3600.25};
  std::vector<ClockShift> shifts(ahead.size());
  as_ranks(3, [&](const Communicator& ranks) {
    const auto rank = static_cast<size_t>(ranks.rank());
    shifts[rank] = compare_clocks(ranks, [&] { return time_ahead(ahead[rank]); });
  });
  EXPECT_EQ(shifts[0].seconds, 0);
  EXPECT_EQ(shifts[0].uncertainty, 0);
  for (size_t rank = 1; rank < ahead.size(); ++rank) {
    EXPECT_GT(shifts[rank].uncertainty, 0);
    EXPECT_NEAR(shifts[rank].seconds, -ahead[rank], shifts[rank].uncertainty) << rank;
  }
}

// Two devices, of which the second one has a task.
Plan plan_of(int rank) {
  Plan plan;
  plan.strategy = "handmade";
  plan.devices = 2;
  for (const char* label : {"never", "forward"}) {
    Task task;
    task.label = std::string(label) + " of rank " + std::to_string(rank);
    task.stage = Stage::forward;
    task.layer = 7;
    task.streams = {{1, StreamKind::compute}, {0, StreamKind::send}};
    plan.tasks.push_back(task);
  }
  return plan;
}

JointTrace joint_trace() {
  JointTrace result;
  as_ranks(2, [&](const Communicator& ranks) {
    const Plan plan = plan_of(ranks.rank());
    RankTrace mine{&plan, {{1, 3, 10, 11}, {1, 4, 12, 13}}, {{"decoder 0", "load", 1, 2}}, {}};
    if (ranks.rank() == 1) mine.shift = {-4, 0.5};
    JointTrace joint = gather_traces(ranks, mine);
    if (ranks.rank() == 0) result = std::move(joint);
  });
  return result;
}

TEST(RankTraces, HaveTheTasksOfAllOnTheClockOfTheFirstInTheNumbersOfAllDevices) {
  const JointTrace joint = joint_trace();
  EXPECT_EQ(joint.plan.devices, 4);
  ASSERT_EQ(joint.plan.tasks.size(), 2U) << "tasks that were traced";
  EXPECT_EQ(joint.plan.tasks[1].label, "forward of rank 1");
  EXPECT_EQ(joint.plan.tasks[1].layer, 7);
  EXPECT_THAT(joint.plan.tasks[1].streams,
              ElementsAre(StreamId{3, StreamKind::compute}, StreamId{2, StreamKind::send}));
  ASSERT_EQ(joint.events.size(), 4U);
  EXPECT_EQ(joint.events[0].start, 10);
  EXPECT_EQ(joint.events[3].task, 1);
  EXPECT_EQ(joint.events[3].micro_batch, 4);
  EXPECT_EQ(joint.events[3].start, 8);
  EXPECT_EQ(joint.events[3].end, 9);
  EXPECT_EQ(joint.host[1].start, -3);
  EXPECT_EQ(joint.host[1].rank, 1);
}

TEST(RankTraces, AreDrawnAsAProcessForEachRankThatSaysHowFarItsClockWasOff) {
  const JointTrace joint = joint_trace();
  const nlohmann::json tree =
      nlohmann::json::parse(to_chrome_trace(joint.plan, joint.events, joint.host, joint.ranks));
  std::map<std::string, int> processes;
  std::map<std::pair<int, int>, std::string> tracks;
  for (const auto& event : tree.at("traceEvents")) {
    if (event["name"] == "process_name") processes[event["args"]["name"]] = event["pid"];
    if (event["name"] != "thread_name") continue;
    EXPECT_TRUE(tracks.try_emplace({event["pid"], event["tid"]}, event["args"]["name"]).second);
  }
  EXPECT_EQ(processes, (std::map<std::string, int>{{"rank 0", 0}, {"rank 1", 1}}));
  std::vector<std::string> seen;
  for (const auto& event : tree.at("traceEvents")) {
    if (event["ph"] == "X" && event["pid"] == 1) seen.push_back(tracks[{1, event["tid"]}]);
  }
  EXPECT_THAT(seen, ElementsAre("device 3 compute", "device 2 send", "device 3 compute",
                                "device 2 send", "decoder 0"));
  const auto& clock = tree.at("otherData").at("clocks").at(1);
  EXPECT_EQ(clock.at("shift_seconds"), -4);
  EXPECT_EQ(clock.at("uncertainty_seconds"), 0.5);
}

}  // namespace
}  // namespace tandem
