// What is found in nets that cannot learn, before their first step; and nothing in those that can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/models.h"
#include "core/model/net/frozen.h"
#include "core/model/net/initial_weights.h"
#include "core/model/net/learning.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "tests/model/net_test.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::layer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string filler = "weight_filler { type: 'xavier' } ";
std::string conv(const std::string& name, const std::string& bottom, const std::string& more = "") {
  return layer(name, "Convolution", bottom, name,
               "convolution_param { num_output: 4 kernel_size: 3 pad: 1 " + filler + "} " + more);
}
std::string scores(const std::string& bottom, int outputs = 3) {
  return layer("ip", "InnerProduct", bottom, "ip",
               fmt::format("inner_product_param {{ num_output: {} {} }}", outputs, filler));
}

class Learning : public testing::Test {
 protected:
  static const Registry& registry() {
    static const Registry known = [] {
      Registry scanned;
      scanned.scan(test::plugin_folder());
      return scanned;
    }();
    return known;
  }
  static Net net_of(const NetDefinition& definition, int64_t batch) {
    NetOptions options = test::small_options();
    options.batch = batch;
    const Shape shape = definition.input_shape();
    if (shape.h > 0) options.data = shape;
    return build_net(definition, registry(), options);
  }
  static std::vector<LearningProblem> found(const std::string& layers, int64_t batch = 8,
                                            int64_t devices = 1) {
    const NetDefinition definition = test::parse_definition(test::data_layer + layers);
    return find_learning_problems(definition, net_of(definition, batch), {}, devices);
  }
  // The only problem; "never: " before those that keep everything from learning.
  static std::string only(const std::string& layers, int64_t batch = 8, int64_t devices = 1) {
    const std::vector<LearningProblem> all = found(layers, batch, devices);
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? "" : (all[0].learns_never ? "never: " : "note: ") + all[0].text;
  }
  static std::string built(const std::string& layers) {
    return test::message_of(
        [&] { (void)net_of(test::parse_definition(test::data_layer + layers), 8); });
  }
};

TEST_F(Learning, NothingIsFoundInTheBuiltInModels) {
  for (const std::string& model : model_names()) {
    const NetDefinition definition = read_net(find_net(model));
    const auto all = find_learning_problems(
        definition, net_of(definition, definition.batch_size(TANDEM_TRAIN).value_or(32)), {});
    EXPECT_THAT(all, IsEmpty()) << model << ": " << all[0].text;
  }
}

TEST_F(Learning, ABatchNormOverOneValueIsFoundWhateverMadeItOne) {
  const std::string norm = layer("bn", "BatchNorm", "data", "bn");
  const std::string pooled =
      layer("pool", "Pooling", "data", "pool", "pooling_param { pool: AVE global_pooling: true }") +
      layer("bn", "BatchNorm", "pool", "bn");
  EXPECT_THAT(only(pooled + scores("bn") + test::loss_layer, 1),
              AllOf(HasSubstr("never: layer 'bn' (BatchNorm): normalizes each value by itself"),
                    HasSubstr("(batch 1, maps of 1x1)"), HasSubstr("--batch")));
  // The scores of an InnerProduct have no maps.
  EXPECT_THAT(only(scores("data") + layer("bn", "BatchNorm", "ip", "bn2") +
                       layer("more", "InnerProduct", "bn2", "more",
                             "inner_product_param { num_output: 3 " + filler + "}") +
                       "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'more' bottom: "
                       "'label' top: 'loss' }",
                   1),
              HasSubstr("never: layer 'bn' (BatchNorm): normalizes each value by itself"));
  // A factor and a bias change nothing.
  EXPECT_THAT(
      only(layer("pool", "Pooling", "data", "pool",
                 "pooling_param { pool: AVE global_pooling: true }") +
               layer("bn", "BatchNorm", "pool", "bn", "batch_norm_param { scale_bias: true }") +
               scores("bn") + test::loss_layer,
           1),
      HasSubstr("never: layer 'bn' (BatchNormScale)"));
  // Each of two devices has one row.
  EXPECT_THAT(
      only(layer("pool", "Pooling", "data", "pool",
                 "pooling_param { pool: AVE global_pooling: true }") +
               layer("bn", "BatchNorm", "pool", "bn", "batch_norm_param { per_device: true }") +
               scores("bn") + test::loss_layer,
           2, 2),
      HasSubstr("never: layer 'bn' (BatchNorm)"));
  EXPECT_THAT(only(pooled + scores("bn") + test::loss_layer, 2),
              HasSubstr("note: layer 'bn' (BatchNorm): normalizes over only 2 values"));
  EXPECT_THAT(found(pooled + scores("bn") + test::loss_layer, 8), IsEmpty());
  EXPECT_THAT(found(norm + scores("bn") + test::loss_layer, 1), IsEmpty());
}

TEST_F(Learning, OtherNormalizationsOfOneValueAreFound) {
  const std::string pool =
      layer("pool", "Pooling", "data", "pool", "pooling_param { pool: AVE global_pooling: true }");
  EXPECT_THAT(only(pool + layer("mvn", "MVN", "pool", "mvn") + scores("mvn") + test::loss_layer),
              HasSubstr("never: layer 'mvn' (MVN): normalizes each value by itself (its input is "
                        "3x1x1)"));
  EXPECT_THAT(
      found(pool + layer("mvn", "MVN", "pool", "mvn", "mvn_param { across_channels: true }") +
            scores("mvn") + test::loss_layer),
      IsEmpty());
  const std::string one = layer("one", "Convolution", "data", "one",
                                "convolution_param { num_output: 1 kernel_size: 1 " + filler + "}");
  EXPECT_THAT(only(one + layer("ln", "LayerNorm", "one", "ln") + scores("ln") + test::loss_layer),
              HasSubstr("never: layer 'ln' (LayerNorm): normalizes each value by itself"));
}

TEST_F(Learning, KeptStatisticsNeedWeightsThatHaveThem) {
  const std::string kept = "batch_norm_param { use_global_stats: true }";
  const std::string text = conv("c1", "data") + layer("bn1", "BatchNorm", "c1", "c1", kept) +
                           conv("c2", "c1") + layer("bn2", "BatchNorm", "c2", "c2", kept) +
                           scores("c2") + test::loss_layer;
  EXPECT_THAT(only(text), AllOf(HasSubstr("never: layer 'bn1' (BatchNorm) and 1 more of this kind"),
                                HasSubstr("use_global_stats"), HasSubstr("--weights")));
  const NetDefinition definition = test::parse_definition(test::data_layer + text);
  const Net net = net_of(definition, 8);
  std::vector<float> weights = initial_weights(net, 1);
  EXPECT_THAT(find_learning_problems(definition, net, weights), SizeIs(1));
  for (const WeightArray& array : net.weights) {
    if (array.name.ends_with(".scale_factor")) weights[size_t(array.offset)] = 1;
  }
  EXPECT_THAT(find_learning_problems(definition, net, weights), IsEmpty());
}

TEST_F(Learning, WhatComesRightBeforeALossIsLookedAt) {
  const std::string loss = "layer { name: 'loss' bottom: 'last' bottom: 'label' top: 'loss' type: ";
  struct Case {
    const char *before, *loss, *text;
  };
  for (const Case& one : {
           Case{"ReLU", "'SoftmaxWithLoss' }", "its scores come from layer 'last' (ReLU)"},
           Case{"Softmax", "'SoftmaxWithLoss' }", "have been through a Softmax already"},
           Case{"Sigmoid", "'SoftmaxWithLoss' }", "which limits them"},
           Case{"TanH", "'SoftmaxWithLoss' }", "which limits them"},
           Case{"Dropout", "'SoftmaxWithLoss' }", "sets some of them to 0 at random"},
           Case{"ReLU", "'HingeLoss' }", "makes none below 0"},
       }) {
    EXPECT_THAT(only(scores("data") + layer("last", one.before, "ip", "last") + loss + one.loss),
                AllOf(HasSubstr("note: layer 'loss'"), HasSubstr(one.text)))
        << one.before;
  }
  EXPECT_THAT(only(scores("data") +
                   "layer { name: 'loss' type: 'MultinomialLogisticLoss' bottom: 'ip' bottom: "
                   "'label' top: 'loss' }"),
              HasSubstr("it reads probabilities, and layer 'ip' (InnerProduct) makes scores"));
  // In place, and through layers that only change the form.
  EXPECT_THAT(only(scores("data") + layer("relu", "ReLU", "ip", "ip") +
                   layer("flat", "Flatten", "ip", "last") + loss + "'SoftmaxWithLoss' }"),
              HasSubstr("its scores come from layer 'relu' (ReLU)"));
  EXPECT_THAT(found(scores("data") +
                    layer("last", "ReLU", "ip", "last", "relu_param { negative_slope: 0.1 }") +
                    loss + "'SoftmaxWithLoss' }"),
              IsEmpty());
}

TEST_F(Learning, WeightsThatAFillerDrawsAllAlikeAreFound) {
  for (const char* drawn : {"'gaussian' std: 0 mean: 1", "'uniform' min: 1 max: 1"}) {
    const std::string text =
        layer("fc", "InnerProduct", "data", "fc",
              fmt::format("inner_product_param {{ num_output: 4 weight_filler {{ type: {} }} }}",
                          drawn)) +
        scores("fc") + test::loss_layer;
    EXPECT_THAT(only(text), HasSubstr("all its weights begin at 1")) << drawn;
  }
}

TEST_F(Learning, WhatMakesALossLargerOrAConstantIsNoted) {
  EXPECT_THAT(
      only(layer("ip", "InnerProduct", "data", "ip",
                 "param { lr_mult: -1 } inner_product_param { num_output: 3 " + filler + " }") +
           test::loss_layer),
      HasSubstr("an lr_mult of it is below 0"));
  const std::string loss = test::loss_layer;
  EXPECT_THAT(only(scores("data") + loss.substr(0, loss.rfind('}')) + " loss_weight: -1 }"),
              HasSubstr("its loss_weight is below 0"));
  EXPECT_THAT(
      only(scores("data") + layer("p", "Power", "ip", "ip", "power_param { scale: 0 }") + loss),
      HasSubstr("its output is one number for every image"));
  EXPECT_THAT(found(layer("p", "Power", "data", "p", "power_param { scale: 0 }") +
                    layer("b", "Bias", "p", "b") + scores("b") + loss),
              IsEmpty());
}

TEST_F(Learning, ValuesThatALayerLimitsAreNoted) {
  const auto net_with = [](const char* before, const char* loss, const char* target) {
    return fmt::format(
        "layer {{ name: '{2}' type: 'Input' top: '{2}' input_param {{ shape {{ dim: 8 dim: 3 }} }} "
        "}} {0} {1} layer {{ name: 'loss' type: '{3}' bottom: 'last' bottom: '{2}' top: 'loss' }}",
        scores("data"), layer("last", before, "ip", "last"), target, loss);
  };
  for (const char* loss : {"EuclideanLoss", "HuberLoss"}) {
    EXPECT_THAT(only(net_with("ReLU", loss, "class_targets")), HasSubstr("makes none below 0"));
    EXPECT_THAT(only(net_with("Sigmoid", loss, "class_targets")), HasSubstr("which limits them"));
    // As of an autoencoder.
    EXPECT_THAT(found(net_with("Sigmoid", loss, "pixels")), IsEmpty());
  }
}

TEST_F(Learning, ALossThatCountsNothingIsNotedOrRefused) {
  const std::string off =
      "layer { name: 'off' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: "
      "'label' top: 'off' loss_weight: 0 }";
  EXPECT_THAT(only(scores("data") + off + test::loss_layer),
              HasSubstr("note: layer 'off' (SoftmaxWithLoss): its loss_weight is 0"));
  EXPECT_THAT(built("" + scores("data") + off),
              HasSubstr("has no loss whose loss_weight is not 0 in the TRAIN phase, so it can be "
                        "tested but not trained: remove loss_weight: 0"));
  EXPECT_THAT(only(scores("data", 1) + test::loss_layer),
              HasSubstr("never: layer 'loss' (SoftmaxWithLoss): it has one score"));
}

TEST_F(Learning, WeightsThatNoGradientReachesAreFound) {
  const std::string silence = "layer { name: 'quiet' type: 'Silence' bottom: 'c1' }";
  EXPECT_THAT(only(conv("c1", "data") + silence + scores("data") + test::loss_layer),
              HasSubstr("note: layer 'c1' (Convolution): its weights stay as they are"));
  EXPECT_THAT(only(conv("c1", "data") + layer("step", "Threshold", "c1", "step") + scores("step") +
                   test::loss_layer),
              HasSubstr("layer 'c1' (Convolution): its weights stay as they are"));
  EXPECT_THAT(only(conv("c1", "data") + conv("c2", "c1", "propagate_down: false") + scores("c2") +
                   test::loss_layer),
              HasSubstr("layer 'c1' (Convolution): its weights stay as they are"));
  // Meant.
  const std::string fixed = "param { lr_mult: 0 } param { lr_mult: 0 }";
  EXPECT_THAT(found(conv("c1", "data", fixed) + scores("c1") + test::loss_layer), IsEmpty());
  EXPECT_THAT(built(scores("data") + layer("step", "Threshold", "ip", "step") +
                    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'step' bottom: 'label' "
                    "top: 'loss' }"),
              AllOf(HasSubstr("layer 'ip' (InnerProduct): no gradient reaches its weights"),
                    HasSubstr("has no weights to train")));
}

TEST_F(Learning, WeightsThatBeginAtOneValueAreFound) {
  const auto with = [](const std::string& first, const std::string& second) {
    return layer("c1", "Convolution", "data", "c1",
                 "convolution_param { num_output: 4 kernel_size: 3 " + first + " }") +
           layer("ip", "InnerProduct", "c1", "ip",
                 "inner_product_param { num_output: 3 " + second + " }") +
           test::loss_layer;
  };
  EXPECT_THAT(only(with("", "")), AllOf(HasSubstr("never: layer 'c1' (Convolution): its weights "
                                                  "begin at 0, as Caffe's do without a filler"),
                                        HasSubstr("weight_filler { type: \"msra\" }")));
  EXPECT_THAT(only(with("", filler)), HasSubstr("note: layer 'c1' (Convolution): its weights "
                                                "begin at 0"));
  EXPECT_THAT(only(with("weight_filler { type: 'constant' value: 0.1 }", filler)),
              HasSubstr("note: layer 'c1' (Convolution): all its weights begin at 0.1"));
  EXPECT_THAT(found(with(filler, "")), IsEmpty());  // the scores' own may
  const NetDefinition definition = test::parse_definition(test::data_layer + with("", ""));
  const Net net = net_of(definition, 8);
  std::vector<float> given(size_t(net.weight_floats));
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i % 7);
  EXPECT_THAT(find_learning_problems(definition, net, given), IsEmpty());
}

}  // namespace
}  // namespace tandem
