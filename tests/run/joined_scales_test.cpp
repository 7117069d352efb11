// A BatchNorm and the Scale after it as one layer of the net that runs, whose weights keep their
// names and places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "tests/model/net_test.h"

namespace tandem::test {
namespace {

using testing::Contains;
using testing::Not;

const Registry& own_registry() {
  static const Registry registry = Registry::with_defaults();
  return registry;
}

struct Pair {
  std::string norm = {}, between = {}, scale = "scale_param { bias_term: true }", after = {};
};

std::string net_with(const Pair& pair) {
  return data_layer + layer("norm", "BatchNorm", "data", "n", pair.norm) + pair.between +
         layer("scale", "Scale", "n", "s", pair.scale) + pair.after +
         layer("relu", "ReLU", "s", "r") + inner_product_layer("ip", "r", "ip") + loss_layer;
}

Net built_for(const std::string& device_kind, const Pair& pair, int32_t phase = TANDEM_TRAIN,
              const Shape& data = {1, 3, 8, 8}) {
  NetOptions options = small_options(phase);
  options.data = data;
  options.device_kind = device_kind;
  return build_net(parse_definition(net_with(pair)), own_registry(), options);
}

std::vector<int64_t> offsets(const Net& net) {
  std::vector<int64_t> result;
  for (const WeightArray& weight : net.weights) result.push_back(weight.offset);
  return result;
}

TEST(JoinedScales, AreOneLayerWithTheirBatchNormInBothPhases) {
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    const Net net = built_for("cpu", {}, phase);
    EXPECT_THAT(layer_names(net), Not(Contains("scale")));
    EXPECT_EQ(net.find_layer("scale"), net.find_layer("norm"));
    const Layer& norm = layer_of(net, "norm");
    EXPECT_STREQ(norm.type->name, "BatchNormScale");
    EXPECT_EQ(norm.joined_scale, "scale");
    EXPECT_EQ(norm.title(), "layer 'norm' (BatchNorm, with 'scale')");
    EXPECT_EQ(norm.weights.size(), 5U);
    EXPECT_EQ(output_of(net, "norm").name, "s");
    EXPECT_EQ(net.tensor(norm.outputs[0]).consumers[0], net.find_layer("relu"));
    EXPECT_EQ(layer_of(net, "relu").fused_into, net.find_layer("norm"));
  }
}

TEST(JoinedScales, KeepTheirParametersAndTheNamesAndPlacesOfTheirWeights) {
  const Pair pair{
      "batch_norm_param { eps: 0.25 moving_average_fraction: 0.5 }", "",
      "param { lr_mult: 2 } param { lr_mult: 3 decay_mult: 0 } scale_param { bias_term: "
      "true filler { type: 'uniform' } }"};
  const Net joined = built_for("cpu", pair), apart = built_for("", pair);
  EXPECT_EQ(layer_of(joined, "norm").attributes->number("eps"), 0.25);
  EXPECT_EQ(layer_of(joined, "norm").attributes->number("moving_average_fraction"), 0.5);
  EXPECT_STREQ(layer_of(apart, "scale").type->name, "Scale");
  EXPECT_EQ(weight_names(joined), weight_names(apart));
  EXPECT_EQ(offsets(joined), offsets(apart));
  EXPECT_EQ(initial_weights(joined, 5), initial_weights(apart, 5));
  for (size_t i = 0; i < apart.weights.size(); ++i) {
    EXPECT_EQ(joined.weights[i].kind, apart.weights[i].kind);
    if (apart.weights[i].kind != TANDEM_TRAINED) continue;  // a running sum
    EXPECT_EQ(joined.weights[i].rate_multiplier, apart.weights[i].rate_multiplier);
    EXPECT_EQ(joined.weights[i].decay_multiplier, apart.weights[i].decay_multiplier);
  }
}

void expect_apart(const Pair& pair, const std::string& device_kind = "cpu") {
  const Net net = built_for(device_kind, pair);
  EXPECT_THAT(layer_names(net), Contains("scale")) << net_with(pair);
  EXPECT_STREQ(layer_of(net, "norm").type->name, "BatchNorm") << net_with(pair);
}

TEST(JoinedScales, HaveAFactorAndABiasForEachChannel) {
  expect_apart({.scale = ""});
  expect_apart({.scale = "scale_param { bias_term: true axis: 1 num_axes: -1 }"});
  expect_apart({.scale = "scale_param { bias_term: true axis: 2 num_axes: 1 }"});
  expect_apart(
      {.between = layer("second", "Pooling", "data", "p", "pooling_param { global_pooling: true }"),
       .scale = "bottom: 'p' scale_param { axis: 0 }"});
}

TEST(JoinedScales, AreOfChannelsWhereRowsAndColumnsAreAsMany) {
  for (const int axis : {2, 3, -1, -2}) {
    const std::string scale =
        fmt::format("scale_param {{ bias_term: true axis: {} num_axes: 1 }}", axis);
    const Net net = built_for("cpu", {.scale = scale}, TANDEM_TRAIN, {1, 8, 8, 8});
    EXPECT_THAT(layer_names(net), Contains("scale")) << axis;
  }
}

TEST(JoinedScales, AloneReadTheOutputOfTheBatchNorm) {
  expect_apart({.after = "layer { name: 'look' type: 'Silence' bottom: 'n' }"});
}

TEST(JoinedScales, ShareNoWeights) {
  const std::string shared = "param { name: 'a' } param { name: 'b' }";
  const std::string terms = " scale_param { bias_term: true }";
  expect_apart(
      {.scale = shared + terms, .after = layer("again", "Scale", "s", "s", shared + terms)});
}

TEST(JoinedScales, FollowABatchNormThatIsNoPartOfTheLoss) {
  expect_apart({.norm = "loss_weight: 0.1"});
}

TEST(JoinedScales, PassTheGradientOn) {
  expect_apart({.scale = "scale_param { bias_term: true } propagate_down: false"});
}

TEST(JoinedScales, FollowTheirBatchNormInTheFile) {
  expect_apart({.between = layer("other", "ReLU", "data", "o")});
  expect_apart({.between = layer("other", "InnerProduct", "data", "o",
                                 "inner_product_param { num_output: 2 }")});
}

TEST(JoinedScales, StayLayersWithoutADeviceKind) {
  expect_apart({}, "");
}

}  // namespace
}  // namespace tandem::test
