// From a definition to layers: tensors, shapes, phases, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/numbers/random.h"
#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string small_net = data_layer + convolution("conv", "data", "conv", 8) +
                              layer("relu", "ReLU", "conv", "conv") +
                              inner_product_layer("ip", "conv", "ip") + loss_layer;

TEST(Resolve, AnInPlaceLayerMakesANewTensorOfTheSameName) {
  const Net net = build(small_net);
  const Layer& relu = layer_of(net, "relu");
  EXPECT_NE(relu.inputs[0], relu.outputs[0]);
  EXPECT_EQ(net.tensors[relu.inputs[0]].name, "conv");
  EXPECT_EQ(output_of(net, "relu").name, "conv");
  EXPECT_EQ(layer_of(net, "ip").inputs[0], relu.outputs[0]);
  EXPECT_EQ(output_of(net, "relu").producer, net.find_layer("relu"));
  EXPECT_THAT(output_of(net, "relu").consumers, ElementsAre(net.find_layer("ip")));
}

TEST(Resolve, ShapesAreOfTheGlobalBatch) {
  const Net net = build(small_net);
  EXPECT_EQ(to_string(net.tensors[net.data].shape), "2x3x8x8");
  EXPECT_EQ(to_string(net.tensors[net.label].shape), "2x1x1x1");
  EXPECT_EQ(to_string(output_of(net, "conv").shape), "2x8x8x8");
  EXPECT_EQ(to_string(output_of(net, "ip").shape), "2x4x1x1");
  EXPECT_EQ(to_string(output_of(net, "loss").shape), "1x1x1x1");
}

TEST(Resolve, ShapesForSomeRowsHaveTheseRows) {
  const Net net = build(small_net);
  const std::vector<Shape> shapes = net.shapes(1);
  EXPECT_EQ(to_string(shapes[layer_of(net, "conv").outputs[0]]), "1x8x8x8");
  EXPECT_EQ(to_string(shapes[net.label]), "1x1x1x1");
  EXPECT_EQ(shapes.size(), net.tensors.size());
  EXPECT_THAT(message_of([&] { (void)net.shapes(0); }), HasSubstr("a batch of 0 rows is empty"));
}

TEST(Resolve, CostGrowsWithTheRows) {
  const Net net = build(small_net);
  const int conv = net.find_layer("conv");
  EXPECT_EQ(net.cost(conv, 2).forward_flops, 2 * net.cost(conv, 1).forward_flops);
}

TEST(Resolve, OnlyLayersOfThePhaseAreInTheNet) {
  const std::string net = small_net + layer("test", "Accuracy", "ip", "accuracy",
                                            "bottom: 'label' include { phase: TEST }");
  EXPECT_EQ(build(net).find_layer("test"), -1);
  EXPECT_GE(build(net, TANDEM_TEST).find_layer("test"), 0);
}

TEST(Resolve, TheRandomIndexIsTheIndexInTheFileInBothPhases) {
  const std::string net =
      data_layer + layer("only", "ReLU", "data", "only", "include { phase: TRAIN }") +
      inner_product_layer("ip", "data", "ip") + layer("drop", "Dropout", "ip", "ip") + loss_layer;
  EXPECT_EQ(layer_of(build(net), "drop").random_index, 3u);
  EXPECT_EQ(layer_of(build(net, TANDEM_TEST), "drop").random_index, 3u);
}

TEST(Resolve, ALossHasWeightOneUnlessTheFileSaysOtherwise) {
  EXPECT_THAT(layer_of(build(small_net), "loss").loss_weights, ElementsAre(1));
  const std::string second = layer("half", "SoftmaxWithLoss", "ip", "half",
                                   "bottom: 'label' top: 'probabilities' loss_weight: 0.5");
  const Net net = build(small_net + second);
  EXPECT_THAT(layer_of(net, "half").loss_weights, ElementsAre(0.5, 0));
  EXPECT_THAT(layer_of(net, "ip").loss_weights, ElementsAre(0));
}

TEST(Resolve, ScalarsAreTheUnconsumedOutputsOfLossesAndMetrics) {
  const Net net = build(small_net + layer("top1", "Accuracy", "ip", "accuracy", "bottom: 'label'"));
  ASSERT_EQ(net.scalars.size(), 2u);
  EXPECT_EQ(net.scalars[0].name, "loss");
  EXPECT_EQ(net.scalars[0].loss_weight, 1);
  EXPECT_EQ(net.scalars[0].layer, net.find_layer("loss"));
  EXPECT_EQ(net.scalars[1].name, "accuracy");
  EXPECT_EQ(net.scalars[1].loss_weight, 0);
  EXPECT_EQ(net.scalars[1].tensor, layer_of(net, "top1").outputs[0]);
}

TEST(Resolve, ALossWithoutATopIsNamedAfterItsLayer) {
  const std::string net =
      data_layer + inner_product_layer("ip", "data", "ip") +
      "layer { name: 'cost' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' }";
  EXPECT_EQ(build(net).scalars.at(0).name, "cost");
}

TEST(Resolve, ThePredictionIsWhatTheLastLossReads) {
  EXPECT_EQ(build(small_net).prediction, layer_of(build(small_net), "ip").outputs[0]);
  const std::string aux = inner_product_layer("aux", "conv", "aux") +
                          layer("auxloss", "SoftmaxWithLoss", "aux", "l1", "bottom: 'label'");
  const Net net = build(data_layer + convolution("conv", "data", "conv", 8) + aux +
                        inner_product_layer("ip", "conv", "ip") + loss_layer);
  EXPECT_EQ(net.prediction, layer_of(net, "ip").outputs[0]);
}

const std::string deploy_net =
    "name: 'deploy' input: 'data' input_dim: 9 input_dim: 3 input_dim: 8"
    " input_dim: 8\n" +
    inner_product_layer("ip", "data", "ip") + layer("prob", "Softmax", "ip", "prob");

TEST(Resolve, ADeployNetIsTestedAndPredictsWithItsLastLayer) {
  const Net net = build(deploy_net, TANDEM_TEST);
  EXPECT_EQ(net.label, -1);
  EXPECT_EQ(net.prediction, layer_of(net, "prob").outputs[0]);
  EXPECT_TRUE(net.scalars.empty());
}

TEST(Resolve, ADeployNetCannotBeTrained) {
  EXPECT_EQ(build_failure(deploy_net),
            "net 'deploy' has no loss in the TRAIN phase, so it can be tested but not trained: add "
            "a SoftmaxWithLoss layer (net.prototxt)");
}

TEST(Resolve, TheInputSizeComesFromTheFileIfTheDataHaveNone) {
  NetOptions options = small_options();
  options.data = {1, 0, 0, 0};
  const Net net = build(
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
      "transform_param { crop_size: 12 } }" +
          inner_product_layer("ip", "data", "ip") + loss_layer,
      options);
  EXPECT_EQ(to_string(net.tensors[net.data].shape), "2x3x12x12");
  EXPECT_THAT(message_of([&] { (void)build(small_net, options); }),
              HasSubstr("the size of its input is not known"));
}

TEST(Refusal, AnUnknownTypeSuggestsTheNearOne) {
  EXPECT_EQ(build_failure("\n" + layer("c", "Convolutoin", "data", "c") + data_layer),
            "layer 'c': unknown layer type 'Convolutoin' (did you mean 'Convolution'?); 'tandem "
            "layers' lists the known ones (net.prototxt:2)");
}

TEST(Refusal, AnUnknownBottomSuggestsTheNearOne) {
  EXPECT_EQ(build_failure(data_layer + layer("r", "ReLU", "dta", "r")),
            "layer 'r' (ReLU): no layer above it makes its input 'dta' (did you mean 'data'?) "
            "(net.prototxt:2)");
}

TEST(Refusal, AShapeThatDoesNotFitIsReportedByTheType) {
  EXPECT_EQ(build_failure(data_layer + layer("c", "Convolution", "data", "c",
                                             "convolution_param { num_output: 4 kernel_size: 11 "
                                             "}")),
            "layer 'c' (Convolution): kernel 11 exceeds the padded input 8x8 (net.prototxt:2)");
}

TEST(Refusal, TwoLayersOfOneNameWithWeightsAreReportedWithBothLocations) {
  EXPECT_EQ(build_failure(data_layer + inner_product_layer("ip", "data", "a") +
                          inner_product_layer("ip", "a", "ip") + loss_layer),
            "layer 'ip' (InnerProduct): another layer has this name (net.prototxt:2); names of "
            "layers with weights must differ (net.prototxt:3)");
}

TEST(Resolve, LayersOfOneNameWithoutWeightsGetANumber) {
  const Net net =
      build(data_layer + layer("r", "ReLU", "data", "a") + layer("r", "ReLU", "a", "b") +
            inner_product_layer("ip", "b", "ip") + loss_layer);
  EXPECT_THAT(layer_names(net), ElementsAre("r", "r_2", "ip", "loss"));
}

TEST(Refusal, AnInputOfALaterLayerIsACycleOrAWrongOrder) {
  EXPECT_EQ(
      build_failure(data_layer + layer("a", "test.Add", "data", "x", "bottom: 'y'") +
                    layer("b", "ReLU", "x", "y") + inner_product_layer("ip", "y", "ip") +
                    loss_layer),
      "layer 'a' (test.Add): its input 'y' is made only below it, by layer 'b' (ReLU) "
      "(net.prototxt:3): a layer must be below those whose outputs it reads, and there can be "
      "no cycle (net.prototxt:2)");
  EXPECT_THAT(build_failure(data_layer + layer("a", "test.Add", "data", "x", "bottom: 'x'")),
              HasSubstr("its input 'x' is made by itself"));
}

TEST(Refusal, PropagateDownIsGivenForEachInput) {
  EXPECT_EQ(build_failure(data_layer + layer("r", "ReLU", "data", "a",
                                             "propagate_down: true propagate_down: true")),
            "layer 'r' (ReLU): has 2 propagate_down for 1 inputs (net.prototxt:2)");
}

TEST(Refusal, PythonAndWindowDataLayersAreRefusedWithAFix) {
  EXPECT_EQ(build_failure(data_layer + layer("p", "Python", "data", "p",
                                             "python_param { module: 'm' layer: 'L' }")),
            "layer 'p' (Python): Python layers are not run; write it in C++, which "
            "docs/guide/write_a_layer.md shows, or take a layer that exists ('tandem layers') "
            "(net.prototxt:2)");
  EXPECT_EQ(build_failure("layer { name: 'w' type: 'WindowData' top: 'data' top: 'label' }" +
                          inner_product_layer("ip", "data", "ip") + loss_layer),
            "layer 'w' (WindowData): windows cut from images for detection are not read here; cut "
            "them into images of their own, and replace this layer by a Data layer "
            "(net.prototxt:1)");
}

TEST(Refusal, TwoLayersWithOneOutputAreBothNamed) {
  EXPECT_EQ(
      build_failure(data_layer + layer("r", "ReLU", "data", "a") + layer("s", "ReLU", "data", "a")),
      "layer 's' (ReLU): its output 'a' is made already, by layer 'r' (ReLU) "
      "(net.prototxt:2) (net.prototxt:3)");
}

TEST(Refusal, TheNumberOfInputsAndOutputsMustFit) {
  EXPECT_EQ(build_failure(data_layer + layer("r", "ReLU", "data", "a", "bottom: 'label'")),
            "layer 'r' (ReLU): takes 1 input(s) (bottom), but 2 are named (net.prototxt:2)");
  EXPECT_EQ(build_failure(data_layer + layer("s", "test.Add", "data", "a")),
            "layer 's' (test.Add): takes at least 2 input(s) (bottom), but 1 is named "
            "(net.prototxt:2)");
  EXPECT_EQ(build_failure(data_layer + layer("r", "ReLU", "data", "a", "top: 'b'")),
            "layer 'r' (ReLU): makes 1 output(s) (top), but 2 are named (net.prototxt:2)");
}

TEST(Refusal, AThirdOutputOfADataLayerIsNamed) {
  EXPECT_EQ(build_failure("layer { name: 'd' type: 'Data' top: 'data' top: 'label' top: 'sim' }" +
                          layer("r", "ReLU", "data", "a")),
            "layer 'd' (Data): a data layer gives data and labels, but 'sim' is a third output; an "
            "Input layer can have more, because it says the shape of each (net.prototxt:1)");
}

TEST(Refusal, APhaseWithoutDataIsRefusedWithAFix) {
  const std::string training_only =
      "name: 'n' layer { name: 'd' type: 'Data' top: 'data' include { phase: TRAIN } }" +
      layer("r", "ReLU", "data", "a");
  EXPECT_THAT(build_failure(training_only, TANDEM_TEST),
              HasSubstr("net 'n' has no data layer in the TEST phase: add one"));
  EXPECT_THAT(
      build_failure("name: 'n' layer { name: 'd' type: 'Data' top: 'data' include { stage: "
                    "'far' } }" +
                    layer("r", "ReLU", "data", "a")),
      HasSubstr("; layer 'd' (Data) is for the stage 'far', which is not set (--stage far)"));
}

TEST(Refusal, ANetWithoutTrainedWeightsIsRefused) {
  EXPECT_THAT(build_failure(data_layer +
                            inner_product_layer("ip", "data", "ip",
                                                "param { lr_mult: 0 } param { lr_mult: 0 }") +
                            loss_layer),
              HasSubstr("has no weights to train"));
}

TEST(Refusal, ABatchMustHaveASampleAndNotTooMany) {
  NetOptions options = small_options();
  options.batch = 0;
  EXPECT_EQ(message_of([&] { (void)build(small_net, options); }),
            "batch 0: a batch has at least 1 sample");
  options.batch = int64_t{1} << 40;
  EXPECT_THAT(message_of([&] { (void)build(small_net, options); }),
              HasSubstr("at most 2147483647"));
  options.batch = 2000000000;
  options.data = {1, 3, 1000000, 8};
  EXPECT_THAT(message_of([&] { (void)build(small_net, options); }),
              HasSubstr("more than any memory holds"));
}

// Every damaged file must give a net or an Error; anything else would end the test program.
TEST(Refusal, NoDamagedFileEndsTheProgram) {
  const std::string text = write_net(parse_definition(
      small_net + layer("pool", "Pooling", "conv", "pool", "pooling_param { stride: 2 }")));
  const std::string alphabet = "0123456789{}:'\"-.aeinorst_";
  Random random(3, stream_of("damaged nets"));
  int built = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (uint64_t i = 0; i <= random.below(3); ++i) {
      damaged[random.below(damaged.size())] = alphabet[random.below(alphabet.size())];
    }
    try {
      (void)build(damaged, random.below(2) == 0 ? TANDEM_TRAIN : TANDEM_TEST);
      ++built;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(built, 50);
  EXPECT_GT(refused, 500);
}

TEST(Resolve, AFieldOfOneValueThatIsGivenTwiceIsRefusedWithItsLines) {
  EXPECT_THAT(build_failure(data_layer + "layer { name: \"a\"\n type: \"ReLU\"\n name: \"b\" "
                                         "bottom: \"data\" top: \"a\" }"),
              HasSubstr("name is given twice, in lines 2 and 4"));
  EXPECT_THAT(build_failure(data_layer + layer("ip", "InnerProduct", "data", "ip",
                                               "param { lr_mult: 1 lr_mult: 2 } "
                                               "inner_product_param { num_output: 2 }")),
              AllOf(HasSubstr("layer 'ip' (InnerProduct): lr_mult is given twice"),
                    HasSubstr("has one value (net.prototxt:2")));
  EXPECT_THAT(
      build_failure(data_layer + layer("a", "Convolution", "data", "a",
                                       "convolution_param { num_output: 2 kernel_size: 1\n"
                                       "weight_filler { type: 'xavier' }\n weight_filler { } }")),
      AllOf(HasSubstr("layer 'a' (Convolution): weight_filler is given twice"),
            HasSubstr("but has one value")));
}

TEST(Resolve, FieldsOfSeveralValuesMayBeGivenAgain) {
  EXPECT_NO_THROW((void)build(
      data_layer + layer("a", "ReLU", "data", "a", "include { stage: \"x\" stage: \"y\" }") +
      inner_product_layer("ip", "data", "ip") + loss_layer));
}

TEST(Resolve, ANetWithMoreLayersThanIsReadIsRefusedWithTheLine) {
  std::string text = data_layer;
  for (int i = 0; i < 100000; ++i) text += "layer{name:\"r\"type:\"ReLU\"}\n";
  EXPECT_THAT(build_failure(text), HasSubstr("is block 100001, but at most 100000 are read"));
}

TEST(Resolve, LayersOfOneNameAreNumberedInTheirOrder) {
  std::string text = data_layer;
  for (int i = 0; i < 4; ++i) {
    text +=
        layer("r", "ReLU", i == 0 ? "data" : "t" + std::to_string(i), "t" + std::to_string(i + 1));
  }
  text += layer("r_2", "ReLU", "t4", "end");
  const Net net = build(text + inner_product_layer("ip", "end", "ip") + loss_layer);
  std::vector<std::string> names;
  for (const Layer& one : net.layers) names.push_back(one.name);
  EXPECT_THAT(names, testing::ElementsAre("r", "r_2", "r_3", "r_4", "r_2_2", "ip", "loss"));
}

TEST(Resolve, ALossThatAnotherLayerReadsIsRefusedWithBothLayers) {
  EXPECT_THAT(build_failure(data_layer + inner_product_layer("ip", "data", "ip") + loss_layer +
                            layer("after", "ReLU", "loss", "after")),
              AllOf(HasSubstr("layer 'loss' (SoftmaxWithLoss): its loss 'loss' is read by layer "
                              "'after' (ReLU)"),
                    HasSubstr("(net.prototxt:3)")));
}

}  // namespace
}  // namespace tandem
