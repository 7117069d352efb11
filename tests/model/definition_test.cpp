#include "core/model/file/definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/classes.h"
#include "core/model/adapted/models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using testing::HasSubstr;

NetDefinition parsed_net(const std::string& text) {
  return parse_net(parse_text_format(text, "net.prototxt"), "net.prototxt");
}
std::string failure_of_net(const std::string& text) {
  return message_of([&] { (void)parsed_net(text); });
}

TEST(Definition, ReadsALayersNameTypeBottomsAndTops) {
  const NetDefinition net = parsed_net(
      "name: 'n' layer {\n name: 'loss' type: 'SoftmaxWithLoss' bottom: 'a' bottom: 'label'\n"
      " top: 'loss' loss_weight: 0.3 propagate_down: true propagate_down: false }");
  ASSERT_EQ(net.layers.size(), 1u);
  const LayerDefinition& layer = net.layers[0];
  EXPECT_EQ(net.name, "n");
  EXPECT_EQ(layer.title(), "layer 'loss' (SoftmaxWithLoss)");
  EXPECT_THAT(layer.bottoms, testing::ElementsAre("a", "label"));
  EXPECT_THAT(layer.tops, testing::ElementsAre("loss"));
  EXPECT_THAT(layer.loss_weights, testing::ElementsAre(0.3));
  EXPECT_THAT(layer.propagate_down, testing::ElementsAre(true, false));
  EXPECT_EQ(to_string(layer.location), "net.prototxt:1");
}

TEST(Definition, ReadsWeightRulesInOrder) {
  const NetDefinition net = parsed_net(
      "layer { name: 'c' type: 'Convolution' param { lr_mult: 2 } "
      "param { decay_mult: 0 name: 'shared' } }");
  const auto& rules = net.layers[0].weight_rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].rate_multiplier(), 2);
  EXPECT_EQ(rules[0].decay_multiplier(), 1);
  EXPECT_EQ(rules[1].rate_multiplier(), 1);
  EXPECT_EQ(rules[1].decay_multiplier(), 0);
  EXPECT_EQ(rules[1].name, "shared");
}

TEST(Definition, IncludeAndExcludeDecideByPhase) {
  const auto layer = [](const std::string& rules) {
    return parsed_net("layer { name: 'a' type: 'ReLU' " + rules + " }").layers[0];
  };
  EXPECT_TRUE(layer("").in_phase(TANDEM_TRAIN));
  EXPECT_TRUE(layer("include { phase: TEST }").in_phase(TANDEM_TEST));
  EXPECT_FALSE(layer("include { phase: TEST }").in_phase(TANDEM_TRAIN));
  EXPECT_FALSE(layer("exclude { phase: TEST }").in_phase(TANDEM_TEST));
  EXPECT_TRUE(layer("include: { phase: TEST } include: { phase: TRAIN }").in_phase(TANDEM_TRAIN));
  EXPECT_FALSE(layer("include { phase: TEST stage: 'x' }").in_phase(TANDEM_TEST));
  EXPECT_TRUE(layer("include { phase: TEST not_stage: 'x' }").in_phase(TANDEM_TEST));
}

TEST(Definition, ReadsTheOldFormAsTheCurrentOne) {
  const NetDefinition net = parsed_net(
      "layers { name: 'data' type: DATA top: 'data' top: 'label'"
      "  data_param { batch_size: 9 crop_size: 5 mirror: true scale: 0.5 mean_file: 'm' } }\n"
      "layers { name: 'ip' type: INNER_PRODUCT bottom: 'data' top: 'ip' blobs_lr: 1 blobs_lr: 2"
      "  weight_decay: 1 weight_decay: 0 inner_product_param { num_output: 4 } }\n"
      "layers { name: 'loss' type: SOFTMAX_LOSS bottom: 'ip' bottom: 'label' }");
  ASSERT_EQ(net.layers.size(), 3u);
  EXPECT_EQ(net.layers[1].type, "InnerProduct");
  EXPECT_EQ(net.layers[2].type, "SoftmaxWithLoss");
  ASSERT_EQ(net.layers[1].weight_rules.size(), 2u);
  EXPECT_EQ(net.layers[1].weight_rules[1].rate_multiplier(), 2);
  EXPECT_EQ(net.layers[1].weight_rules[1].decay_multiplier(), 0);
  EXPECT_EQ(net.batch_size(TANDEM_TRAIN), 9);
  const TransformDefinition transform = net.transform(TANDEM_TRAIN).value();
  EXPECT_EQ(transform.crop_height, 5);
  EXPECT_TRUE(transform.mirror);
  EXPECT_EQ(transform.scale, 0.5);
  EXPECT_EQ(transform.mean_file, "m");
}

TEST(Definition, ATransformBelongsToItsPhase) {
  const NetDefinition net = parsed_net(
      "layer { name: 'd' type: 'Data' top: 'data' include { phase: TRAIN }"
      "  transform_param { mirror: true crop_size: 227 mean_value: 1 mean_value: 2 mean_value: 3 }"
      "  data_param { batch_size: 256 } }"
      "layer { name: 'd' type: 'Data' top: 'data' include { phase: TEST }"
      "  transform_param { crop_size: 227 } data_param { batch_size: 50 } }");
  EXPECT_TRUE(net.transform(TANDEM_TRAIN)->mirror);
  EXPECT_FALSE(net.transform(TANDEM_TEST)->mirror);
  EXPECT_THAT(net.transform(TANDEM_TRAIN)->mean_values, testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(net.batch_size(TANDEM_TRAIN), 256);
  EXPECT_EQ(net.batch_size(TANDEM_TEST), 50);
  EXPECT_EQ(to_string(net.input_shape()), "1x3x227x227");
}

TEST(Definition, KnowsTheInputShapeOfEveryKindOfInput) {
  const auto shape = [](const std::string& text) {
    return to_string(parsed_net(text).input_shape());
  };
  const std::string relu = " layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'r' }";
  EXPECT_EQ(shape("input: 'data' input_dim: 10 input_dim: 3 input_dim: 32 input_dim: 31" + relu),
            "1x3x32x31");
  EXPECT_EQ(shape("input: 'data' input_shape { dim: 10 dim: 3 dim: 32 dim: 31 }" + relu),
            "1x3x32x31");
  EXPECT_EQ(shape("layer { name: 'd' type: 'Input' top: 'data' input_param { shape: { dim: 10"
                  " dim: 1 dim: 28 dim: 28 } } }"),
            "1x1x28x28");
  EXPECT_EQ(shape("layer { name: 'd' type: 'MemoryData' top: 'data' memory_data_param {"
                  " batch_size: 4 channels: 3 height: 8 width: 9 } }"),
            "1x3x8x9");
  EXPECT_EQ(shape("layer { name: 'd' type: 'Data' top: 'data' data_param { batch_size: 4 } }"),
            "1x0x0x0");
}

TEST(Definition, RequiresFourInputDimsForEachInput) {
  EXPECT_EQ(
      failure_of_net("name: 'n' input: 'data' input_dim: 10 layer { name: 'r' type: 'ReLU' }"),
      "net 'n' has 1 input_dim for 1 inputs, but must have 4 for each (N, C, H, W) "
      "(net.prototxt:1:25)");
}

TEST(Definition, AnUnknownFieldOfTheNetSuggestsTheNearName) {
  EXPECT_THAT(failure_of_net("laier { name: 'a' }"),
              testing::AllOf(HasSubstr("net: unknown field 'laier' (did you mean 'layer'?)"),
                             HasSubstr("(net.prototxt:1:1)")));
}

TEST(Definition, RefusesFieldsThatALayerCannotHave) {
  EXPECT_EQ(failure_of_net("\nlayer { type: 'ReLU' }"), "layer without a name (net.prototxt:2)");
  EXPECT_EQ(failure_of_net("\nlayer { name: 'a' }"),
            "layer 'a' has no type, as type: \"Convolution\" (net.prototxt:2)");
  EXPECT_EQ(failure_of_net("layer { name: 'a' type: 'ReLU' blobs_lr: 2 }"),
            "layer 'a' (ReLU): 'blobs_lr' belongs to the old form ('layers'); write param { "
            "lr_mult: 2 } (net.prototxt:1:32)");
  EXPECT_EQ(failure_of_net("layer { name: 'a' type: 'ReLU' phase: TEST }"),
            "layer 'a' (ReLU): 'phase' on the layer itself is not supported; write include { "
            "phase: TEST } (net.prototxt:1:32)");
  EXPECT_EQ(failure_of_net("layer { name: 'a' type: 'ReLU' include { phase: TETS } }"),
            "layer 'a' (ReLU): phase is 'TETS', but must be TRAIN or TEST (net.prototxt:1:42)");
  EXPECT_EQ(failure_of_net("layer { name: 'a' type: 'ReLU' param { lr_mlt: 1 } }"),
            "layer 'a' (ReLU): unknown field of param 'lr_mlt' (did you mean 'lr_mult'?); known: "
            "lr_mult, decay_mult, name, share_mode (net.prototxt:1:40)");
  EXPECT_THAT(failure_of_net("layer { name: 'a' type: 'ReLU' include {} exclude {} }"),
              HasSubstr("both include and exclude"));
  EXPECT_THAT(failure_of_net("layers { name: 'a' type: RELUU }"),
              HasSubstr("unknown type 'RELUU' (did you mean 'RELU'?)"));
  EXPECT_THAT(failure_of_net("name: 'n'"), HasSubstr("net 'n' has no layers"));
}

TEST(Definition, ATypoInADataLayerIsFound) {
  const auto data = [](const std::string& text) {
    return failure_of_net("layer { name: 'd' type: 'Data' top: 'data'\n " + text + " }");
  };
  EXPECT_THAT(data("transform_param { crop_sise: 3 }"),
              testing::AllOf(HasSubstr("'crop_sise' (did you mean 'crop_size'?)"),
                             HasSubstr("net.prototxt:2:20")));
  EXPECT_THAT(data("transfrom_param { crop_size: 3 }"),
              HasSubstr("'transfrom_param' (did you mean 'transform_param'?)"));
  EXPECT_EQ(data("data_param { batch_size: 0 }"),
            "layer 'd' (Data): batch_size is '0', but must be at least 1 (net.prototxt:2:15)");
}

TEST(Definition, ADataLayerHasOneBatchSize) {
  EXPECT_EQ(failure_of_net("layer { name: 'd' type: 'Data' top: 'data'\n"
                           "data_param { batch_size: 4\n batch_size: 8 } }"),
            "layer 'd' (Data): batch_size is given twice, in lines 2 and 3, but has one value "
            "(net.prototxt:3:2)");
  EXPECT_EQ(failure_of_net("layer { name: 'd' type: 'Data' top: 'data'\n"
                           "data_param { batch_size: 4 }\n data_param { batch_size: 8 } }"),
            "layer 'd' (Data): batch_size is given twice, in lines 2 and 3, but has one value "
            "(net.prototxt:3:15)");
  EXPECT_EQ(failure_of_net("layer { name: 'd' type: 'Data' top: 'data'\n"
                           "transform_param { crop_size: 4 }\n transform_param { crop_size: 8 } }"),
            "layer 'd' (Data): crop_size is given twice, in lines 2 and 3, but has one value "
            "(net.prototxt:3:20)");
}

TEST(Definition, WrittenAndReadAgainItIsTheSame) {
  const std::string text =
      "name: 'n' input: 'data' input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\n"
      "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' param { lr_mult: 0.5 name: "
      "'w' "
      "} convolution_param { num_output: 4 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'l' type: 'acme.Loss' bottom: 'c' top: 'l' loss_weight: 0.25 "
      "propagate_down: false exclude { phase: TEST stage: 's' } acme_param { x: 'a \"b\"' } }\n";
  const std::string once = write_net(parsed_net(text));
  EXPECT_EQ(write_net(parsed_net(once)), once);
  const NetDefinition net = parsed_net(once);
  EXPECT_EQ(net.layers[0].weight_rules[0].rate_multiplier(), 0.5);
  EXPECT_EQ(net.layers[0].weight_rules[0].name, "w");
  EXPECT_EQ(net.layers[1].loss_weights.at(0), 0.25);
  EXPECT_EQ(net.layers[1].exclude.at(0).stages.at(0), "s");
  EXPECT_EQ(net.layers[1].body.find("acme_param")->message->find("x")->text, "a \"b\"");
  EXPECT_EQ(to_string(net.input_shapes.at(0)), "1x3x8x8");
}

TEST(Definition, WritesADefinitionMadeInCppWithoutABody) {
  NetDefinition net;
  net.name = "made";
  net.layers.emplace_back();
  net.layers[0].name = "relu";
  net.layers[0].type = "ReLU";
  net.layers[0].bottoms = {"data"};
  net.layers[0].tops = {"data"};
  EXPECT_EQ(parsed_net(write_net(net)).layers.at(0).title(), "layer 'relu' (ReLU)");
}

const char* const two_heads =
    "name: 'n'\n"
    "layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1' inner_product_param { "
    "num_output: 64 } }\n"
    "layer { name: 'aux' type: 'InnerProduct' bottom: 'ip1' top: 'aux' inner_product_param { "
    "num_output: 10 } }\n"
    "layer { name: 'auxloss' type: 'SoftmaxWithLoss' bottom: 'aux' bottom: 'label' top: 'l1' }\n"
    "layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip1' top: 'ip2' inner_product_param { "
    "num_output: 10 } }\n"
    "layer { name: 'drop' type: 'Dropout' bottom: 'ip2' top: 'ip2' }\n"
    "layer { name: 'top5' type: 'Accuracy' bottom: 'ip2' bottom: 'label' top: 'top5' "
    "accuracy_param { top_k: 5 } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label' top: 'loss' }\n";

TEST(ClassCount, IsTheNumOutputOfTheLayerTheLossReads) {
  EXPECT_EQ(class_count(parsed_net(two_heads)), 10);
}

TEST(ClassCount, AnAdaptedCopyHasNewNamesAndEveryHeadChanged) {
  const NetDefinition net = parsed_net(two_heads);
  const NetDefinition adapted = with_class_count(net, 7);
  EXPECT_EQ(class_count(adapted), 7);
  EXPECT_EQ(class_count(net), 10) << "the original must not change";
  std::vector<std::string> names;
  for (const LayerDefinition& layer : adapted.layers) names.push_back(layer.name);
  EXPECT_THAT(names,
              testing::ElementsAre("ip1", "aux_7", "auxloss", "ip2_7", "drop", "top5", "loss"));
  EXPECT_EQ(class_count(parsed_net(write_net(adapted))), 7);
  EXPECT_EQ(adapted.layers[0].body.find("inner_product_param")->message->find("num_output")->text,
            "64");
}

TEST(ClassCount, IsOfTheLastLayerWithOutputsOfItsOwnWhateverItsType) {
  const NetDefinition net = parsed_net(
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
      "inner_product_param { num_output: 64 } }\n"
      "layer { name: 'last' type: 'acme.Dense' bottom: 'ip' top: 'last' "
      "dense_param { bias: false num_output: 12 } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'last' bottom: 'label' }\n");
  EXPECT_EQ(class_count(net), 12);
  EXPECT_EQ(class_count(with_class_count(net, 5)), 5);
}

TEST(ClassCount, ATopFiveOfFiveClassesIsLeftOut) {
  EXPECT_EQ(with_class_count(parsed_net(two_heads), 6).layers.size(), 7u);
  EXPECT_EQ(with_class_count(parsed_net(two_heads), 5).layers.size(), 6u);
}

TEST(ClassCount, TheSameCountChangesNothing) {
  EXPECT_EQ(with_class_count(parsed_net(two_heads), 10).layers[3].name, "ip2");
}

TEST(ClassCount, ANetWithoutAClassifierSaysSo) {
  EXPECT_EQ(
      message_of(
          [] { (void)class_count(parsed_net("name: 'n' layer { name: 'a' type: 'ReLU' }")); }),
      "net 'n' has no layer with a num_output before its loss, so it has no number of classes "
      "(net.prototxt)");
}

class ModelPath : public testing::Test {
 protected:
  void SetUp() override { setenv("TANDEM_MODEL_PATH", folder_.string().c_str(), 1); }
  void TearDown() override { unsetenv("TANDEM_MODEL_PATH"); }
  test::TempFolder folder_;
};

TEST_F(ModelPath, ANameIsFoundBeforeAFile) {
  const auto file = folder_.write("mynet.prototxt", "");
  (void)folder_.write("mynet_solver.prototxt", "");
  EXPECT_EQ(find_net("mynet"), file);
  EXPECT_TRUE(is_model_name("mynet"));
  EXPECT_FALSE(is_model_name(file.string()));
  EXPECT_EQ(find_net(file.string()), file);
  EXPECT_THAT(model_names(), testing::Contains("mynet"));
  EXPECT_THAT(model_names(), testing::Not(testing::Contains("mynet_solver")));
}

TEST_F(ModelPath, AnUnknownNameSuggestsTheNearOne) {
  (void)folder_.write("mynet.prototxt", "");
  EXPECT_THAT(message_of([] { (void)find_net("mynte"); }),
              HasSubstr("net 'mynte' is neither a file nor a model's name (did you mean 'mynet'?); "
                        "models: "));
  EXPECT_THAT(message_of([] { (void)find_net("timm/resnet18.a1_in1k"); }),
              HasSubstr("'--weights timm/resnet18.a1_in1k'"));
}

TEST(Models, OfThisProjectAreFoundFromTheBuildTree) {
  EXPECT_THAT(model_names(), testing::IsSupersetOf({"alexnet", "cifar10_quick"}));
  const NetDefinition alexnet = read_net(find_net("alexnet"));
  EXPECT_EQ(class_count(alexnet), 1000);
  EXPECT_EQ(to_string(alexnet.input_shape()), "1x0x227x227");
  const NetDefinition quick = read_net(find_net("cifar10_quick"));
  EXPECT_EQ(class_count(quick), 10);
  EXPECT_EQ(to_string(quick.input_shape()), "1x3x32x32");
  EXPECT_EQ(quick.batch_size(TANDEM_TRAIN), 100);
}

}  // namespace
}  // namespace tandem
