// Training with statistics of the whole batch: BatchNorm, BatchNormScale, and a loss that counts
// its labels. On any number of devices, with any strategy, the weights and kept statistics of one
// device come out; the same bits each time, and after an interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/model/passes/build_net.h"
#include "core/schedule/strategies/strategies.h"
#include "include/tandem/net.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

// norm2 is a BatchNormScale.
NetDefinition normalised_net(const std::string& loss_parameters, const std::string& fields = "") {
  const std::string norm = "batch_norm_param { " + fields + " }";
  const std::string filler = "weight_filler { type: \"xavier\" }";
  return read_net_text(
      NetWriter("normalized")
          .data(20)
          .layer("conv1", "Convolution",
                 "convolution_param { num_output: 16 kernel_size: 5 pad: 2 bias_term: false " +
                     filler + " }")
          .layer("norm1", "BatchNorm", {"conv1"}, {"conv1"},
                 "param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 } " + norm)
          .layer("relu1", "ReLU", {"conv1"}, {"conv1"})
          .layer("pool1", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
          .layer("conv2", "Convolution",
                 "convolution_param { num_output: 13 kernel_size: 3 pad: 1 " + filler + " }")
          .layer("norm2", "BatchNorm", "batch_norm_param { scale_bias: true " + fields + " }")
          .layer("relu2", "ReLU", {"norm2"}, {"norm2"})
          .layer("fc3", "InnerProduct", "inner_product_param { num_output: 32 " + filler + " }")
          .layer("norm3", "BatchNorm", {"fc3"}, {"fc3"}, norm)
          .layer("relu3", "ReLU", {"fc3"}, {"fc3"})
          .layer("score", "InnerProduct", "inner_product_param { num_output: 3 " + filler + " }")
          .layer("loss", "SoftmaxWithLoss", {"score", "label"}, {"loss"}, loss_parameters)
          .text());
}

struct BatchNormCase {
  std::string strategy;
  int devices;
  bool hidden;
  bool ignores;  // a third of the labels
};

class BatchStatistics : public Runs, public testing::WithParamInterface<BatchNormCase> {
 protected:
  void SetUp() override { Runs::SetUp(); }
  static TrainOptions one_device(bool ignores, int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.net_text = write_net(normalised_net(ignores ? "loss_param { ignore_label: 1 }" : ""));
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const BatchNormCase& c, int64_t steps = 20) {
    TrainOptions o = one_device(c.ignores, c.devices, steps);
    o.devices = "cpu:" + std::to_string(c.devices);
    o.strategy = c.strategy;
    o.strategy_options["hidden_broadcast"] = c.hidden;
    o.strategy_options["split"] = "fc3";
    o.strategy_options = built_in_strategies().options_of(c.strategy, o.strategy_options);
    return o;
  }
  struct Reference {
    Weights start, weights;
    double reordered = 0;
  };
  static const Reference& reference(bool ignores) {
    static const Reference results[] = {measure(false), measure(true)};
    return results[ignores ? 1 : 0];
  }
  static Reference measure(bool ignores) {
    Reference r;
    TrainOptions still = one_device(ignores, 1, 1);
    still.rate = 0.0;
    r.start = run(still);
    for (auto& [name, values] : r.start) {
      const bool is_trained = name.ends_with(".weight") || name.ends_with(".bias");
      if (name.starts_with("norm") && !is_trained) std::fill(values.begin(), values.end(), 0.0F);
    }
    r.weights = run(one_device(ignores, 1));
    for (const int threads : {2, 3, 4}) {
      const Weights other = run(one_device(ignores, threads));
      r.reordered = std::max(r.reordered, max_difference(r.weights, other, r.start));
    }
    return r;
  }
};

TEST_P(BatchStatistics, GiveTheWeightsOfOneDevice) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const Reference& one = reference(GetParam().ignores);
  ASSERT_GT(one.reordered, 0);
  const Weights weights = run(many(GetParam()));
  const double difference = max_difference(one.weights, weights, one.start);
  EXPECT_LE(difference, 10 * one.reordered) << "reordered runs differ by " << one.reordered;
  EXPECT_GT(std::abs(weights.at("norm1.variance")[0]), 0);
  for (const char* name : {"norm1.scale_factor", "norm2.scale_factor"}) {
    EXPECT_FLOAT_EQ(weights.at(name)[0], static_cast<float>((1 - std::pow(0.999, 20)) / 0.001));
  }
  EXPECT_NE(weights.at("norm2.weight"), one.start.at("norm2.weight"));
  EXPECT_NE(weights.at("norm2.bias"), one.start.at("norm2.bias"));
}

TEST_P(BatchStatistics, GiveTheSameBitsWithRandomStreamDelays) {
  const Weights plain = run(many(GetParam(), 6));
  TrainOptions delayed = many(GetParam(), 6);
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

std::vector<BatchNormCase> batch_norm_cases() {
  std::vector<BatchNormCase> result;
  for (int devices = 1; devices <= 4; ++devices) {
    result.push_back({"sequential", devices, true, false});
    result.push_back({"two_phase", devices, true, false});
    result.push_back({"two_phase", devices, false, true});
    result.push_back({"layerwise", devices, true, devices % 2 == 0});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, BatchStatistics, testing::ValuesIn(batch_norm_cases()),
                         [](const testing::TestParamInfo<BatchNormCase>& info) {
                           return info.param.strategy + "_" + std::to_string(info.param.devices) +
                                  (info.param.hidden ? "_hidden" : "_plain") +
                                  (info.param.ignores ? "_ignoring" : "");
                         });

class BatchNormRuns : public Runs {
 protected:
  static TrainOptions two_devices(int64_t steps, const std::string& norm = "") {
    TrainOptions o = options(steps);
    o.net_text = write_net(normalised_net("", norm));
    o.devices = "cpu:2";
    o.machine.threads = 2;
    return o;
  }
};

class StopAtOnce : public Observer {
 public:
  explicit StopAtOnce(std::atomic<bool>& stop) : stop_(stop) {}
  void on_step(const StepReport&) override { stop_ = true; }

 private:
  std::atomic<bool>& stop_;
};

TEST_F(BatchNormRuns, ContinueBitForBit) {
  const Weights whole = run(two_devices(10));
  TrainOptions first = two_devices(10);
  std::atomic<bool> stop{false};
  first.stop = &stop;
  StopAtOnce observer(stop);
  const TrainResult half = train(first, observer);
  EXPECT_TRUE(half.stopped);
  EXPECT_LT(half.steps, 10);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  EXPECT_EQ(run(rest), whole);
}

TEST_F(BatchNormRuns, KeepTheirStatisticsWhileTesting) {
  const Weights plain = run(two_devices(6));
  TrainOptions tested = two_devices(6);
  tested.test_interval = 2;
  EXPECT_EQ(run(tested), plain);
}

TEST_F(BatchNormRuns, PerDeviceDifferFromThoseOfTheWholeBatch) {
  const std::string per_device = "per_device: true";
  const Weights own = run(two_devices(4, per_device));
  EXPECT_EQ(run(two_devices(4, per_device)), own);
  EXPECT_NE(run(two_devices(4)), own);
}

// ---- BatchNorm and Scale as one layer

// A net whose layer "x" is normalized, scaled and rectified by `layers`.
std::string scaled_net(const std::string& layers) {
  return "name: 'scaled' layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
         "transform_param { crop_size: 20 } } layer { name: 'conv' type: 'Convolution' bottom: "
         "'data' top: 'x' convolution_param { num_output: 16 kernel_size: 5 bias_term: false "
         "weight_filler { type: 'xavier' } } } " +
         layers +
         " layer { name: 'score' type: 'InnerProduct' bottom: 'x' top: 'score' "
         "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } } layer { name: "
         "'loss' type: 'SoftmaxWithLoss' bottom: 'score' bottom: 'label' top: 'loss' }";
}
const char* const relu = "layer { name: 'relu' type: 'ReLU' bottom: 'x' top: 'x' }";
const char* const norm_alone = "layer { name: 'norm' type: 'BatchNorm' bottom: 'x' top: 'x' } ";
const std::string two_layers =
    std::string(norm_alone) +
    "layer { name: 'scale' type: 'Scale' bottom: 'x' top: 'x' param { lr_mult: 2 } param { "
    "lr_mult: 3 decay_mult: 0 } scale_param { bias_term: true } } " +
    relu;
// A Scale without a bias is not joined with the BatchNorm before it.
const std::string three_layers =
    std::string(norm_alone) +
    "layer { name: 'factor' type: 'Scale' bottom: 'x' top: 'x' param { lr_mult: 2 } } "
    "layer { name: 'shift' type: 'Bias' bottom: 'x' top: 'x' param { lr_mult: 3 decay_mult: 0 } "
    "} " +
    relu;
const std::string one_layer =
    std::string(
        "layer { name: 'both' type: 'BatchNorm' bottom: 'x' top: 'x' param { lr_mult: 0 } "
        "param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 2 } param { lr_mult: 3 "
        "decay_mult: 0 } batch_norm_param { scale_bias: true } } ") +
    relu;

class ScaledBatchNorm : public Runs {
 protected:
  static TrainOptions net_of(const std::string& layers, int64_t steps) {
    TrainOptions o = options(steps);
    o.net_text = scaled_net(layers);
    o.devices = "cpu:2";
    return o;
  }
};

using Names = std::map<std::string, std::string>;  // of one form of the net: in another

// Both forms learn from the same weights; the factors and biases begin with 1 and 0.
void expect_to_train_alike(const TrainOptions& form, const TrainOptions& other, const Names& names,
                           const std::filesystem::path& first_weights, const Weights& begin) {
  TrainOptions here = form, there = other;
  for (TrainOptions* o : {&here, &there}) o->solver_fields["weights"] = first_weights.string();
  const Weights actual = run(here), expected = run(there);
  Weights start, renamed;
  for (const auto& [own, name] : names) {
    start[own] = begin.at(name);
    renamed[own] = expected.at(name);
  }
  EXPECT_LE(max_difference(renamed, actual, start), 1e-3);
}

const Names of_two = {{"conv.weight", "conv.weight"},
                      {"score.weight", "score.weight"},
                      {"scale.weight", "factor.weight"},
                      {"scale.bias", "shift.bias"}};

bool has_joined_scale(const std::string& layers) {
  NetOptions options;
  options.data = {1, 3, 20, 20};
  const Net net = build_net(read_net_text(scaled_net(layers)), Registry::with_defaults(), options);
  return std::any_of(net.layers.begin(), net.layers.end(),
                     [](const Layer& layer) { return !layer.joined_scale.empty(); });
}

TEST_F(ScaledBatchNorm, TrainsAsSeparateLayersDo) {
  EXPECT_TRUE(has_joined_scale(two_layers));
  EXPECT_FALSE(has_joined_scale(three_layers));
  TrainOptions still = net_of(three_layers, 1);
  still.rate = 0.0;
  const Weights begin = run(still);
  const std::filesystem::path file = still.out / "last.safetensors";
  expect_to_train_alike(net_of(one_layer, 6), net_of(three_layers, 6),
                        {{"conv.weight", "conv.weight"},
                         {"score.weight", "score.weight"},
                         {"both.weight", "factor.weight"},
                         {"both.bias", "shift.bias"}},
                        file, begin);
  expect_to_train_alike(net_of(two_layers, 6), net_of(three_layers, 6), of_two, file, begin);
}

TEST_F(ScaledBatchNorm, WithRunningStatisticsTrainsAsSeparateLayersDo) {
  const auto with_running_statistics = [](std::string layers) {
    const std::string type = "type: 'BatchNorm'";
    return layers.replace(layers.find(type), type.size(),
                          type + " batch_norm_param { use_global_stats: true }");
  };
  TrainOptions some = net_of(three_layers, 4);  // for statistics other than 0
  some.rate = 0.0;
  const Weights begin = run(some);
  expect_to_train_alike(net_of(with_running_statistics(two_layers), 6),
                        net_of(with_running_statistics(three_layers), 6), of_two,
                        some.out / "last.safetensors", begin);
}

TEST_F(ScaledBatchNorm, FusesAReluInTrainingToo) {
  const Registry registry = Registry::with_defaults();
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    NetOptions o;
    o.phase = phase;
    o.batch = 4;
    o.data = {1, 3, 20, 20};
    const Net net = build_net(read_net_text(scaled_net(one_layer)), registry, o);
    const Layer& layer = net.layer(net.find_layer("both"));
    EXPECT_STREQ(layer.type->name, "BatchNormScale");
    EXPECT_EQ(layer.activation, TANDEM_ACTIVATION_RELU);
    EXPECT_EQ(layer.runs_in_place, phase == TANDEM_TEST);  // the backward pass reads x
    EXPECT_EQ(net.layer(net.find_layer("relu")).fused_into, net.find_layer("both"));
  }
}

TEST_F(ScaledBatchNorm, LeavesTheReluWithoutABackwardPassOnTheCpu) {
  const Registry registry = Registry::with_defaults();
  NetOptions o;
  o.batch = 4;
  o.data = {1, 3, 20, 20};
  const Net net = build_net(read_net_text(scaled_net(one_layer)), registry, o);
  const int relu = net.find_layer("relu");
  EXPECT_EQ(net.layer(relu).gradient_fused_into, net.layer(relu).fused_into);
  EXPECT_EQ(CostTable().pass_seconds(net, relu, LayerPass::backward_data, 4), 0);
  EXPECT_GT(CostTable().pass_seconds(net, net.find_layer("both"), LayerPass::backward_data, 4), 0);
  StrategyInputs inputs;
  inputs.net = &net;
  inputs.devices = 2;
  const Plan plan = build_plan("layerwise", inputs);
  int of_norm = 0;
  for (const Task& task : plan.tasks) {
    EXPECT_FALSE(task.label.starts_with("backward_data relu")) << task.label;
    of_norm += task.label.starts_with("backward_data both") ? 1 : 0;
  }
  EXPECT_EQ(of_norm, 2);
}

TEST_F(ScaledBatchNorm, IsFrozenWithItsFactorsAndRunningStatistics) {
  TrainOptions first = net_of(one_layer, 2);
  const Weights before = run(first);
  TrainOptions o = net_of(one_layer, 2);
  o.solver_fields["weights"] = (first.out / "last.safetensors").string();
  o.freeze_batch_norm = true;
  const Weights after = run(o);
  for (const char* part : {"mean", "variance", "scale_factor", "weight", "bias"}) {
    const std::string name = std::string("both.") + part;
    EXPECT_EQ(after.at(name), before.at(name)) << name;
  }
  EXPECT_NE(after.at("conv.weight"), before.at("conv.weight"));
}

}  // namespace
}  // namespace tandem::test
