// What must hold for every plan of every strategy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/races.h"
#include "core/schedule/strategies/strategy_options.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

struct Case {
  std::string strategy;  // or "testing"
  int devices;
  bool hidden_broadcast;
  bool normalised = false;  // a net that exchanges statistics of the batch
  bool clips = false;       // gradients, and adds them up over two batches
  std::string reduce{};     // of layerwise
};

Plan plan_of(const Case& which) {
  static const Net training = small_net(9), testing = small_net(9, TANDEM_TEST);
  static const Net normalised = normalised_net(9), normalised_test = normalised_net(9, TANDEM_TEST);
  const bool tests = which.strategy == "testing";
  const Net& net =
      which.normalised ? (tests ? normalised_test : normalised) : (tests ? testing : training);
  StrategyInputs inputs = inputs_of(net, which.devices);
  inputs.options.hidden_broadcast = which.hidden_broadcast;
  inputs.options.split = "fc1";
  inputs.options.reduce = which.reduce;
  inputs.options.bucket = 16 << 10;
  inputs.options = options_of(which.strategy, inputs.options);
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  inputs.micro_batches_per_step = which.clips ? 2 : 1;
  return tests ? build_testing_plan(inputs) : build_plan(which.strategy, inputs);
}

class EveryPlan : public testing::TestWithParam<Case> {};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_on_{}{}", info.param.strategy,
                     !info.param.reduce.empty()    ? info.param.reduce.c_str()
                     : info.param.hidden_broadcast ? "hidden"
                                                   : "plain",
                     info.param.devices,
                     info.param.normalised ? "_normalised" : (info.param.clips ? "_clipped" : ""));
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const bool normalised : {false, true}) {
      result.push_back({"sequential", devices, false, normalised});
      result.push_back({"two_phase", devices, false, normalised});
      result.push_back({"two_phase", devices, true, normalised});
      result.push_back({"testing", devices, false, normalised});
    }
    result.push_back({"sequential", devices, false, false, true});
    result.push_back({"two_phase", devices, false, false, true});
    result.push_back({"two_phase", devices, true, false, true});
    for (const char* reduce : {"serial", "tree", "ring"}) {
      result.push_back({"layerwise", devices, false, false, false, reduce});
      result.push_back({"layerwise", devices, false, true, false, reduce});
      result.push_back({"layerwise", devices, false, false, true, reduce});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryPlan, testing::ValuesIn(cases()), name_of);

TEST_P(EveryPlan, HasNoRace) {
  const Plan plan = plan_of(GetParam());
  const std::vector<Race> races = find_races(plan);
  EXPECT_TRUE(races.empty()) << races.front().text;
}

TEST_P(EveryPlan, HasNoRaceWhereBuffersShareMemory) {
  Plan plan = plan_of(GetParam());
  for (Buffer& buffer : plan.buffers) {
    if (buffer.bytes == 0) buffer.bytes = 256;  // as kernels would fill in saved and scratch
  }
  const MemoryPlan memory = plan_memory(plan);
  const std::vector<Race> races = find_races(plan, &memory);
  EXPECT_TRUE(races.empty()) << races.front().text;
}

TEST_P(EveryPlan, HasNoWaitThatCouldBeLeftOut) {
  Plan plan = plan_of(GetParam());
  int waits = 0;
  for (Task& task : plan.tasks) {
    const std::vector<Dependency> all = task.after;
    for (size_t i = 0; i < all.size(); ++i, ++waits) {
      task.after.erase(task.after.begin() + static_cast<int64_t>(i));
      EXPECT_FALSE(find_races(plan).empty())
          << "'" << task.label << "' without waiting for '"
          << plan.tasks[static_cast<size_t>(all[i].task)].label << "'";
      task.after = all;
    }
  }
  EXPECT_GT(waits, 0);
}

// A copy or pass that reads what no task of the step wrote would train on the step before.
TEST_P(EveryPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  const Plan plan = plan_of(GetParam());
  std::map<int, std::vector<Region>> written;
  const auto is_written = [&](const Region& region) {
    for (const Region& w : written[region.buffer]) {
      if (w.offset < region.offset + plan.bytes(region) && region.offset < w.offset + plan.bytes(w))
        return true;
    }
    return false;
  };
  for (const Task& task : plan.tasks) {
    for (const Region& region : task.reads) {
      const Buffer& buffer = plan.buffers[static_cast<size_t>(region.buffer)];
      if (buffer.kind != BufferKind::transient || plan.bytes(region) == 0) continue;
      EXPECT_TRUE(is_written(region)) << "'" << task.label << "' reads '" << buffer.name << "'";
    }
    for (const Region& region : task.writes) written[region.buffer].push_back(region);
  }
}

TEST_P(EveryPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  const Plan plan = plan_of(GetParam());
  for (const Task& task : plan.tasks) {
    const bool computes = std::holds_alternative<LayerWork>(task.work);
    for (const StreamId& stream : task.streams) {
      if (computes) {
        EXPECT_EQ(stream.kind, StreamKind::compute) << task.label;
      } else if (task.stage == Stage::input) {
        EXPECT_EQ(stream.kind, StreamKind::copy) << task.label;
      } else {
        EXPECT_TRUE(stream.kind != StreamKind::compute && stream.kind != StreamKind::copy)
            << task.label;
      }
    }
  }
}

TEST_P(EveryPlan, GivesEachRowOfTheBatchToOneDevice) {
  const Plan plan = plan_of(GetParam());
  std::vector<int> owners(static_cast<size_t>(plan.batch), 0);
  for (const PlanBinding& binding : plan.bindings) {
    if (binding.layer != 0) continue;
    for (int64_t row = binding.rows.begin; row < binding.rows.end; ++row)
      ++owners[static_cast<size_t>(row)];
  }
  EXPECT_THAT(owners, testing::Each(1));
}

}  // namespace
}  // namespace tandem::test
