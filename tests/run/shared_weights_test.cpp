// Weights that several layers share: one array, whose gradient is the sum over its users, in every
// strategy, and written once.
#include <gtest/gtest.h>

#include "core/schedule/strategies/strategies.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

const std::string filler =
    "weight_filler { type: \"xavier\" } bias_filler { type: \"constant\" value: 0.1 }";

std::string product(const std::string& name, const std::string& bottom, int outputs,
                    const std::string& more = "") {
  return fmt::format(
      "layer {{ name: '{0}' type: 'InnerProduct' bottom: '{1}' top: '{0}' inner_product_param {{ "
      "num_output: {2} {3} }} {4} }}\n",
      name, bottom, outputs, filler, more);
}
// Not a ReLU: a value within rounding of its kink may fall on either side of it.
std::string tanh_on(const std::string& on) {
  return fmt::format("layer {{ name: 'tanh_{0}' type: 'TanH' bottom: '{0}' top: '{0}' }}\n", on);
}
std::string convolution(const std::string& name, const std::string& bottom,
                        const std::string& more) {
  return fmt::format(
      "layer {{ name: '{0}' type: 'Convolution' bottom: '{1}' top: '{0}' convolution_param {{ "
      "num_output: 16 kernel_size: 3 pad: 1 {2} }} {3} }}\n",
      name, bottom, filler, more);
}
std::string loss(const std::string& name, const std::string& bottom, double weight) {
  return fmt::format(
      "layer {{ name: '{}' type: 'SoftmaxWithLoss' bottom: '{}' bottom: 'label' top: '{}' "
      "loss_weight: {} }}\n",
      name, bottom, name, weight);
}
const std::string data =
    "name: 'shared' layer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { "
    "crop_size: 20 } }\n";

NetDefinition parsed(const std::string& text) {
  return parse_net(parse_text_format(text, "shared.prototxt"), "shared.prototxt");
}

// Two convolutions that share all they have, and three fully connected layers that share a weight
// but not their biases: one of them frozen out of the sharing would show.
NetDefinition sharing_net() {
  const std::string both = "param { name: 'w' } param { name: 'b' lr_mult: 2 }";
  const std::string one = "param { name: 'v' }";
  return parsed(data + convolution("conv1", "data", "") + tanh_on("conv1") +
                "layer { name: 'pool' type: 'Pooling' bottom: 'conv1' top: 'pool' pooling_param { "
                "pool: AVE kernel_size: 4 stride: 4 } }\n" +
                convolution("conv2", "pool", both) + tanh_on("conv2") +
                convolution("conv3", "conv2", both) + tanh_on("conv3") +
                product("fc4", "conv3", 24) + tanh_on("fc4") + product("fc5", "fc4", 24, one) +
                tanh_on("fc5") + product("fc6", "fc5", 24, one) + tanh_on("fc6") +
                product("fc7", "fc6", 24, one) + product("score", "fc7", 3) +
                loss("loss", "score", 1));
}

class SharedWeights : public Runs, public testing::WithParamInterface<std::pair<const char*, int>> {
 protected:
  static TrainOptions with(const NetDefinition& net, const std::string& strategy, int devices,
                           int threads, int64_t steps = 12) {
    TrainOptions o = options(steps);
    o.net_text = write_net(net);
    o.strategy = strategy;
    o.devices = "cpu:" + std::to_string(devices);
    o.machine.threads = threads;
    return o;
  }
};

TEST_P(SharedWeights, AreThoseOfOneDeviceInEveryStrategy) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const auto [strategy, devices] = GetParam();
  TrainOptions still = with(sharing_net(), "sequential", 1, 1, 1);
  still.rate = 0.0;
  const Weights start = run(still);
  const Weights one = run(with(sharing_net(), "sequential", 1, 1));
  double reordered = 0;
  for (const int threads : {2, 3}) {
    const Weights other = run(with(sharing_net(), "sequential", 1, threads));
    reordered = std::max(reordered, max_difference(one, other, start));
  }
  ASSERT_GT(reordered, 0) << "other orders of summation gave the same bits";
  for (const std::string split : {"auto", "fc6"}) {
    TrainOptions o = with(sharing_net(), strategy, devices, devices);
    o.strategy_options["split"] = split;
    o.strategy_options = built_in_strategies().options_of(strategy, o.strategy_options);
    EXPECT_LE(max_difference(one, run(o), start), 10 * reordered) << "split " << split;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, SharedWeights,
                         testing::Values(std::pair{"sequential", 3}, std::pair{"two_phase", 1},
                                         std::pair{"two_phase", 2}, std::pair{"two_phase", 4},
                                         std::pair{"layerwise", 1}, std::pair{"layerwise", 3}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.first, info.param.second);
                         });

using SharedWeightsOnce = SharedWeights;

// Two users with half of the loss each must learn what one user learns with the whole of it.
TEST_F(SharedWeightsOnce, LearnTheSumOfTheirUsersGradients) {
  for (const std::string shared :
       {"param { name: 'w' } param { name: 'b' }", "param { name: 'w' } param { lr_mult: 0 }"}) {
    const std::string alone = shared.find("lr_mult") == std::string::npos
                                  ? ""
                                  : "param { lr_mult: 1 } param { lr_mult: 0 }";
    const Weights once = run(with(
        parsed(data + product("a", "data", 3, alone) + loss("loss", "a", 1)), "sequential", 1, 1));
    const Weights twice =
        run(with(parsed(data + product("a", "data", 3, shared) + loss("loss_a", "a", 0.5) +
                        product("b", "data", 3, shared) + loss("loss_b", "b", 0.5)),
                 "two_phase", 1, 1));
    const std::vector<float>&x = once.at("a.weight"), &y = twice.at("a.weight");
    ASSERT_EQ(x.size(), y.size());
    double difference = 0, largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      difference = std::max<double>(difference, std::abs(x[i] - y[i]));
      largest = std::max<double>(largest, std::abs(x[i]));
    }
    EXPECT_LE(difference, 1e-5 * largest) << shared;
  }
}

TEST_F(SharedWeightsOnce, AreWrittenOnce) {
  const Weights weights = run(with(sharing_net(), "two_phase", 2, 2, 2));
  for (const char* name : {"conv2.weight", "conv2.bias", "fc5.weight", "fc5.bias", "fc6.bias"}) {
    EXPECT_EQ(weights.count(name), 1u) << name;
  }
  for (const char* name : {"conv3.weight", "conv3.bias", "fc6.weight", "fc7.weight"}) {
    EXPECT_EQ(weights.count(name), 0u) << name;
  }
}

TEST_F(SharedWeightsOnce, ContinueWhereTheyWereWhenResumed) {
  TrainOptions whole = with(sharing_net(), "two_phase", 2, 2, 8);
  const Weights straight = run(whole);
  TrainOptions half = with(sharing_net(), "two_phase", 2, 2, 4);
  (void)run(half);
  half.resume = true;
  half.net_text.clear();
  half.steps = 8;
  half.batch = 0;
  half.seed.reset();
  half.rate.reset();
  half.data_parameters.clear();
  EXPECT_EQ(run(half), straight);
}

}  // namespace
}  // namespace tandem::test
