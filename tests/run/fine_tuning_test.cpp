// Fine-tuning: frozen layers keep their bits, with every strategy; a net with frozen layers first
// takes less memory and fewer tasks. The moving average of the weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
