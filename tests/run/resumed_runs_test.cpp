// What a run that goes on is: the run that was never stopped, on any devices, to its new length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "core/run/trainer.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class ResumedRuns : public Runs {
 protected:
  // Stops a run from within after some steps, as Ctrl-C would.
  class StopAfter : public Observer {
   public:
    StopAfter(int64_t step, std::atomic<bool>& stop) : step_(step), stop_(stop) {}
    void on_step(const StepReport& report) override {
      if (report.step == step_) stop_ = true;
    }

   private:
    int64_t step_;
    std::atomic<bool>& stop_;
  };
};

TEST_F(ResumedRuns, AResumedRunEqualsOneThatWasNeverStopped) {
  const Weights whole = run(options());
  TrainOptions o = options();
  std::atomic<bool> stop{false};
  o.stop = &stop;
  StopAfter stopper(7, stop);
  const TrainResult half = train(o, stopper);
  EXPECT_TRUE(half.stopped);
  EXPECT_LT(half.steps, 20);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  EXPECT_EQ(run(rest), whole);
}

// As if the disk had failed after `last` was written and before its other names were.
TEST_F(ResumedRuns, AResumedRunHasTheBestCheckpointAndTheSnapshotThatAFailureKeptFromBeing) {
  TrainOptions o = options(4);
  o.test_interval = 4;
  o.snapshot = 4;
  (void)run(o);
  const Weights best = weights_in(o.out / "best.safetensors");
  std::vector<std::filesystem::path> lost;
  for (const auto& entry : std::filesystem::directory_iterator(o.out)) {
    const std::string name = entry.path().filename();
    const bool is_other = name.starts_with("best.") || name.find("_iter_4.") != std::string::npos;
    if (is_other) lost.push_back(entry.path());
  }
  ASSERT_EQ(lost.size(), 4U);
  for (const auto& file : lost) std::filesystem::remove(file);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  EXPECT_THAT(failure_of(rest), HasSubstr("is complete"));
  for (const auto& file : lost) EXPECT_TRUE(std::filesystem::exists(file)) << file;
  EXPECT_EQ(weights_in(o.out / "best.safetensors"), best);
}

TEST_F(ResumedRuns, ARunResumesOnOtherDevicesAndAnotherStrategy) {
  TrainOptions o = options(10);
  (void)run(o);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  rest.steps = 20;
  rest.devices = "cpu:3";
  rest.strategy = "sequential";
  const Weights resumed = run(rest);
  TrainOptions still = options(1);
  still.rate = 0.0;
  EXPECT_LT(max_difference(run(options(20)), resumed, run(still)), 1e-3);
}

TEST_F(ResumedRuns, ACompleteRunIsNotResumed) {
  TrainOptions o = options(3);
  (void)run(o);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  EXPECT_THAT(failure_of(rest), HasSubstr("is complete: it has done 3 of 3 steps"));
}

TEST_F(ResumedRuns, AnInterruptedEvaluationIsDoneFirst) {
  TrainOptions o = options(6);
  o.test_interval = 6;
  std::atomic<bool> stop{false};
  o.stop = &stop;
  StopAfter stopper(6, stop);
  EXPECT_TRUE(train(o, stopper).stopped);
  EXPECT_FALSE(std::filesystem::exists(o.out / "best.safetensors"));
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  Observer quiet;
  const TrainResult done = train(rest, quiet);
  EXPECT_EQ(done.last.samples, 15);
  EXPECT_TRUE(std::filesystem::exists(o.out / "best.safetensors"));
}

TEST_F(ResumedRuns, AResumedRunRemembersItsNewLength) {
  (void)run(options(2));
  TrainOptions o = options(2);
  (void)run(o);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  rest.steps = 4;
  (void)run(rest);
  rest.steps = 0;
  EXPECT_THAT(failure_of(rest), HasSubstr("it has done 4 of 4 steps"));
}

// A timeline would be written as a default.
TEST_F(ResumedRuns, ATrialGoesOnWithTheOptionsOfItsSearch) {
  SearchOptions o;
  o.base = options(8);
  o.base.snapshot = 1;
  o.base.timeline = false;
  std::atomic<bool> stop{false};
  o.base.stop = &stop;
  o.trials = 1;
  StopAfter stopper(3, stop);
  EXPECT_TRUE(search(o, stopper).stopped);
  stop = false;
  o.base.resume = true;
  Observer quiet;
  EXPECT_EQ(search(o, quiet).best, o.base.out / "round-1-trial-01");
  EXPECT_FALSE(std::filesystem::exists(o.base.out / "round-1-trial-01/timeline.json"));
}

}  // namespace
}  // namespace tandem::test
