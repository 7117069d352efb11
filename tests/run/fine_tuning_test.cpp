// Fine-tuning: frozen layers keep their bits, with every strategy; a net with frozen layers first
// takes less memory and fewer tasks. The head learns alone at first, also where the run was
// stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/model/passes/build_net.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/session/session.h"
#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class FineTuning : public StrategyRuns {
 protected:
  // Two steps of a run of this net; its weights are for the others to begin with.
  static std::filesystem::path trained(const std::string& net) {
    static std::map<std::string, std::filesystem::path> known;
    std::filesystem::path& file = known[net];
    if (!file.empty()) return file;
    const TrainOptions o = one_device({"sequential", 1, {}, net}, 1, 2);
    (void)run(o);
    return file = o.out / "last.safetensors";
  }
  static TrainOptions from(const std::string& net, int64_t steps) {
    TrainOptions o = one_device({"sequential", 1, {}, net}, 1, steps);
    o.solver_fields["weights"] = trained(net).string();
    return o;
  }
  // It refers to the layer types of registry_.
  Net net_of(const TrainOptions& o) const {
    NetOptions options;
    options.batch = 16;
    options.data = {1, 3, 20, 20};
    return build_net(read_net(o.out / "net.prototxt"), registry_, options);
  }

  const Registry registry_ = Registry::with_defaults();
};

TEST_F(FineTuning, FrozenLayersKeepTheirBitsAndTheOthersLearn) {
  TrainOptions o = from("small", 3);
  o.freeze = {"conv*"};
  const Weights before = weights_in(trained("small")), after = run(o);
  for (const char* name : {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"}) {
    EXPECT_EQ(after.at(name), before.at(name)) << name;
  }
  for (const char* name : {"fc3.weight", "score_5.weight", "score_5.bias"}) {
    EXPECT_NE(after.at(name), before.at(name)) << name;
  }
}

TEST_F(FineTuning, RunningStatisticsOfAFrozenBatchNormStay) {
  const Weights before = weights_in(trained("norm"));
  TrainOptions learning = from("norm", 2);
  EXPECT_NE(run(learning).at("norm1.mean"), before.at("norm1.mean"));
  TrainOptions o = from("norm", 2);
  o.freeze_batch_norm = true;
  const Weights after = run(o);
  for (const char* name : {"norm1.mean", "norm2.variance", "norm3.scale_factor"}) {
    EXPECT_EQ(after.at(name), before.at(name)) << name;
  }
  EXPECT_NE(after.at("conv1.weight"), before.at("conv1.weight"));
}

TEST_F(FineTuning, AResumedRunKeepsWhatIsFrozenAndHasTheSameBits) {
  TrainOptions o = from("norm", 6);
  o.freeze = {"conv1"};
  o.freeze_batch_norm = true;
  o.head_rate = 5;
  const Weights whole = run(o);
  TrainOptions first = from("norm", 4);
  first.freeze = o.freeze;
  first.freeze_batch_norm = true;
  first.head_rate = 5;
  (void)run(first);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 6;
  EXPECT_EQ(run(rest), whole);
}

TEST_F(FineTuning, TheHeadLearnsAtItsOwnRate) {
  const Weights before = weights_in(trained("mlp"));
  TrainOptions plain = from("mlp", 1), faster = from("mlp", 1);
  faster.head_rate = 4;
  const Weights a = run(plain), b = run(faster);
  EXPECT_EQ(a.at("fc1.weight"), b.at("fc1.weight"));
  for (size_t i = 0; i < 5; ++i) {
    const double start = before.at("score.bias")[i];
    EXPECT_NEAR(b.at("score.bias")[i] - start, 4 * (a.at("score.bias")[i] - start), 1e-6);
  }
}

// Epochs of 50 images that are so many steps of 12.
constexpr double two_steps = 0.48, four_steps = 0.96;

class StopAfter : public Observer {
 public:
  explicit StopAfter(int64_t step) : step_(step) {}
  void on_step(const StepReport& report) override { stop = stop || report.step == step_; }
  std::atomic<bool> stop = false;

 private:
  int64_t step_;
};

TEST_F(FineTuning, TheHeadLearnsAloneUntilAllLayersDo) {
  TrainOptions o = from("norm", 4);
  o.unfreeze_after = two_steps;
  o.snapshot = 2;
  const Weights before = weights_in(trained("norm")), after = run(o);
  const Weights between = weights_in(o.out / "norm_iter_2.safetensors");
  for (const auto& [name, values] : before) {
    const bool is_head = name.starts_with("score");
    EXPECT_EQ(between.at(name) == values, !is_head) << name;
    const bool learns = name.ends_with(".weight") || name.ends_with(".mean");
    if (learns) {
      EXPECT_NE(after.at(name), between.at(name)) << name;
    }
  }
}

TEST_F(FineTuning, ARunThatIsStoppedAroundTheUnfreezingHasTheSameBits) {
  for (const char* type : {"SGD", "Adam"}) {
    const auto begun = [&] {
      TrainOptions o = from("norm", 9);
      o.unfreeze_after = four_steps;
      o.average_decay = 0.9;
      o.test_interval = 3;
      o.solver_fields["type"] = type;
      return o;
    };
    const TrainOptions first = begun();
    const Weights whole = run(first), best = weights_in(first.out / "best.safetensors");
    for (const int64_t step : {1, 4, 5}) {
      TrainOptions o = begun();
      StopAfter stopper(step);
      o.stop = &stopper.stop;
      const TrainResult begin = train(o, stopper);
      EXPECT_TRUE(begin.stopped);
      EXPECT_TRUE(step == 4 ? begin.steps == 4 : (begin.steps < 4) == (step < 4)) << begin.steps;
      TrainOptions rest;
      rest.out = o.out;
      rest.resume = true;
      EXPECT_EQ(run(rest), whole) << type << " stopped after step " << step;
      EXPECT_EQ(weights_in(o.out / "best.safetensors"), best) << type << " after " << step;
    }
  }
}

TEST_F(FineTuning, TheHeadLearnsAloneWithEveryStrategyAndNumberOfDevicesAsOnOneDevice) {
  const auto tuned = [](const StrategyCase& c, int threads) {
    TrainOptions o = c.devices > 1 ? many(c, 6) : one_device(c, threads, 6);
    o.solver_fields["weights"] = trained("small").string();
    o.unfreeze_after = two_steps;
    return o;
  };
  const StrategyCase alone{"sequential", 1};
  const Weights start = weights_in(trained("small")), weights = run(tuned(alone, 1));
  double reordered = 0;
  for (const int threads : {2, 3, 4}) {
    reordered = std::max(reordered, max_difference(weights, run(tuned(alone, threads)), start));
  }
  ASSERT_TRUE(teams_are_one_thread || reordered > 0);
  const auto rest_of_stopped = [&](const StrategyCase& c) {
    TrainOptions o = tuned(c, 1), rest;
    StopAfter stopper(2);
    o.stop = &stopper.stop;
    EXPECT_TRUE(train(o, stopper).stopped) << c.name();
    rest.out = o.out;
    rest.resume = true;
    return rest;
  };
  const auto expect_near = [&](const Weights& other, const std::string& name) {
    if (teams_are_one_thread) return;
    EXPECT_LE(max_difference(weights, other, start), 10 * reordered) << name;
  };
  for (const Strategy& strategy : built_in_strategies()) {
    const StrategyCase c{strategy.name, 3, strategy.lossless_cases(3).front()};
    const Weights resumed = run(rest_of_stopped(c));
    EXPECT_EQ(resumed, run(tuned(c, 1))) << strategy.name;
    expect_near(resumed, strategy.name);
  }
  TrainOptions moved = rest_of_stopped({"two_phase", 3});
  moved.devices = "cpu:2";
  moved.strategy = "layerwise";
  expect_near(run(moved), "on other devices");
}

// Their means, which begin with 0 for layers that were frozen, are corrected from there on.
TEST_F(FineTuning, AdamsFirstStepOfUnfrozenLayersIsNoLongerThanItsRate) {
  TrainOptions o = from("small", 3);
  o.unfreeze_after = two_steps;
  o.solver_fields["type"] = "Adam";
  o.solver_fields["weight_decay"] = "0";
  const Weights before = weights_in(trained("small")), after = run(o);
  double longest = 0;
  for (size_t i = 0; i < before.at("conv2.weight").size(); ++i) {
    const double moved = after.at("conv2.weight")[i] - before.at("conv2.weight")[i];
    longest = std::max(longest, std::abs(moved));
  }
  EXPECT_NEAR(longest, *o.rate, 0.01 * *o.rate);
}

TEST_F(FineTuning, ATimeAfterWhichNothingChangesIsRefused) {
  TrainOptions o = from("small", 4);
  o.unfreeze_after = 5;
  EXPECT_THAT(failure_of(o), HasSubstr("--unfreeze-after 5: that is after step 21, and the run has "
                                       "4 steps: --freeze '*' trains the new layers alone"));
  o.unfreeze_after = -1;
  EXPECT_THAT(failure_of(o), HasSubstr("--unfreeze-after -1: a number of epochs"));
  o.unfreeze_after = two_steps;
  o.freeze = {"conv*", "fc3"};
  EXPECT_THAT(failure_of(o), HasSubstr("nothing to unfreeze, as score_5 alone learns"));
  o.freeze.clear();
  o.solver_fields.erase("weights");
  EXPECT_THAT(failure_of(o), HasSubstr("--unfreeze-after 0.48: until then only layers learn that"));
}

TEST_F(FineTuning, FrozenFirstLayersTakeNoBackwardTasksAndLessMemory) {
  TrainOptions all = from("small", 1), some = from("small", 1);
  some.freeze = {"conv*"};
  (void)run(all);
  (void)run(some);
  const Net whole = net_of(all), frozen = net_of(some);
  for (const Strategy& strategy : built_in_strategies()) {
    const CostTable costs(Roofline{});
    const auto plan_of = [&](const Net& net) {
      StrategyInputs inputs;
      inputs.net = &net;
      inputs.devices = 2;
      inputs.costs = &costs;
      inputs.options = strategy.lossless_cases(2).front();
      return build_plan(strategy.name, inputs);
    };
    const auto backward_tasks = [](const Plan& plan) {
      return std::count_if(plan.tasks.begin(), plan.tasks.end(), [](const Task& task) {
        return task.label.starts_with("backward") && task.label.find("conv") != std::string::npos;
      });
    };
    const Plan a = plan_of(whole), b = plan_of(frozen);
    EXPECT_GT(backward_tasks(a), 0) << strategy.name;
    EXPECT_EQ(backward_tasks(b), 0) << strategy.name;
    EXPECT_LT(plan_memory(b).transient_bytes[0], plan_memory(a).transient_bytes[0])
        << strategy.name;
  }
}

TEST_F(FineTuning, LayersThatNoFileHasAreNotFrozen) {
  TrainOptions o = from("small", 1);
  o.net_text = write_net(with_class_count(small_net(), 5));
  o.freeze = {"*"};
  EXPECT_THAT(failure_of(o), HasSubstr("leave out the last one, 'score_5'"));
  std::string text = o.net_text;
  for (size_t at = text.find("score_5"); at != std::string::npos; at = text.find("score_5")) {
    text.replace(at, 7, "new");
  }
  o.net_text = text;
  o.out += "_new";
  EXPECT_EQ(failure_of(o), "no error");
}

TEST_F(FineTuning, WithoutWeightsNothingIsFrozen) {
  TrainOptions o = one_device({"sequential", 1}, 1, 1);
  o.freeze = {"conv1"};
  EXPECT_THAT(failure_of(o), HasSubstr("--freeze conv1: frozen layers keep the weights of a file"));
  o.freeze.clear();
  o.freeze_batch_norm = true;
  EXPECT_THAT(failure_of(o), HasSubstr("--freeze-bn: frozen layers"));
}

TEST_F(FineTuning, WrongFactorsAndMissingBatchNormsAreRefused) {
  TrainOptions o = from("small", 1);
  o.head_rate = 0;
  EXPECT_THAT(failure_of(o), HasSubstr("--head-lr 0: a factor above 0"));
  o.head_rate = 1;
  o.freeze_batch_norm = true;
  EXPECT_THAT(failure_of(o), HasSubstr("net 'small' has no BatchNorm"));
}

}  // namespace
}  // namespace tandem::test
