// Which constants of an ONNX file are trained: its parameters, however the file writes them, and no
// others; what keeps its values is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/formats/onnx/export.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/adapted/classes.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/run/weights/pretrained.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/use/onnx_bytes.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using namespace onnx_bytes;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

class OnnxTrained : public testing::Test {
 protected:
  void read(const std::string& constants, const std::string& nodes, uint64_t opset = 18) {
    const std::string graph = image("x") + constants + nodes +
                              node("Flatten", {"y"}, "row", integer("axis", 1)) + output("row");
    read_file(folder_.write("a.onnx", model(graph, opset)));
  }
  void read_file(const fs::path& file) {
    onnx_ = import_onnx(file, no_std);
    net_ = built(onnx_.net);
    trained_.clear();
    for (const WeightArray& weight : net_.weights) {
      if (weight.name != "std.weight") trained_[weight.name] = weight.trained();
    }
  }
  [[nodiscard]] Net built(const NetDefinition& definition) const {
    NetOptions options;
    options.phase = TANDEM_TRAIN;
    options.data = definition.input_shape();
    options.device_kind = "";
    return build_net(definition, registry_, options);
  }
  // The net as this program writes it, read again.
  void read_again() {
    NetOptions options;
    options.phase = TANDEM_TEST;
    options.data = onnx_.net.input_shape();
    options.device_kind = "";
    const Net net = build_net(onnx_.net, registry_, options);
    std::vector<float> weights = initial_weights(net, 1);
    EXPECT_THAT(copy_arrays(onnx_.arrays, "a.onnx", net, &weights).missing, IsEmpty());
    read_file(folder_.write("again.onnx", make_onnx(net, weights, {}, {}).bytes));
  }

  const TempFolder folder_;
  const Registry registry_ = Registry::with_defaults();
  OnnxImport onnx_;
  Net net_;
  std::map<std::string, bool> trained_;
};

const std::vector<float> nine = {1, 2, 3, 4, 5, 6, 7, 8, 9}, three = {1, 2, 3};

TEST_F(OnnxTrained, AMatrixAndASumAfterItAreOneLayerOfBoth) {
  const std::string matrix = values("fc.weight", {48, 2}, std::vector<float>(96, 1));
  const std::string row = node("Flatten", {"x"}, "a") + node("MatMul", {"a", "fc.weight"}, "b");
  for (const auto& sum : {std::vector<std::string>{"b", "fc.bias"}, {"fc.bias", "b"}}) {
    read(matrix + floats("fc.bias", {3, 4}), row + node("Add", sum, "y"));
    EXPECT_THAT(trained_, ElementsAre(Pair("fc.bias", true), Pair("fc.weight", true)));
    EXPECT_THAT(onnx_.arrays.arrays.at("fc.bias").values, ElementsAre(3, 4));
    read_again();
    EXPECT_THAT(trained_, ElementsAre(Pair("fc.bias", true), Pair("fc.weight", true)));
  }
}

TEST_F(OnnxTrained, AProductThatIsReadTwiceKeepsItsOwnLayer) {
  const std::string row = node("Flatten", {"x"}, "a") + node("MatMul", {"a", "fc.weight"}, "b");
  read(values("fc.weight", {48, 2}, std::vector<float>(96, 1)) + floats("end.bias", {3, 4}),
       row + node("Add", {"b", "end.bias"}, "c") + node("Mul", {"b", "c"}, "y"));
  EXPECT_THAT(trained_, ElementsAre(Pair("end.bias", true), Pair("fc.weight", true)));
}

TEST_F(OnnxTrained, ANetWithAMatrixAndASumGetsAnotherNumberOfClasses) {
  read_file(source_folder() / "tests/reference/onnx/channels_last.onnx");
  const Net net = built(with_class_count(onnx_.net, 2));
  std::vector<float> weights = initial_weights(net, 1);
  const Pretrained report = copy_arrays(onnx_.arrays, "a.onnx", net, &weights);
  EXPECT_THAT(report.missing, ElementsAre("dense/BiasAdd_2"));
}

TEST_F(OnnxTrained, WeightsThatAFileWritesAsConstantNodesAreTrained) {
  read("", constant_node("conv_w", {3, 3, 1, 1}, nine) +
               constant_node("conv_b", {1, 3, 1, 1}, three) +
               constant_node("scales", {1, 3, 1, 1}, three) + constant_node("half", {}, {0.5F}) +
               constant_node("positions", {1, 1, 4, 4}, std::vector<float>(16, 2)) +
               node("Conv", {"x", "conv_w"}, "a") + node("Add", {"a", "conv_b"}, "b") +
               node("Mul", {"b", "scales"}, "c") + node("Mul", {"c", "half"}, "d") +
               node("Concat", {"d", "positions"}, "y", integer("axis", 1)));
  EXPECT_THAT(trained_, ElementsAre(Pair("a.weight", true), Pair("b.bias", true),
                                    Pair("c.weight", true), Pair("y_3.bias", true)));
  EXPECT_THAT(onnx_.notes, Contains(HasSubstr("has no initializers")));
}

TEST_F(OnnxTrained, ConstantsBesideInitializersKeepTheirValuesInEveryLayerAndAreNamed) {
  read(values("conv.weight", {3, 3, 1, 1}, nine),
       constant_node("w", {3, 3, 1, 1}, nine) + constant_node("v", {3}, three) +
           node("Conv", {"x", "conv.weight"}, "a") + node("Conv", {"a", "w"}, "b") +
           node("BatchNormalization", {"b", "v", "v", "v", "v"}, "c") +
           node("InstanceNormalization", {"c", "v", "v"}, "d") + node("PRelu", {"d", "s"}, "y") +
           constant_node("s", {3, 1, 1}, three));
  for (const auto& [name, is_trained] : trained_) {
    EXPECT_EQ(is_trained, name == "conv.weight") << name;
  }
  EXPECT_THAT(onnx_.notes, Contains(HasSubstr("keep their values, which the file has as constants, "
                                              "not as parameters: b.weight, c.weight")));
}

TEST_F(OnnxTrained, ALayerNormalizationWithoutBiasGetsNoTrainedOne) {
  read(floats("norm.weight", {1, 2, 3, 4}), node("LayerNormalization", {"x", "norm.weight"}, "y"));
  EXPECT_THAT(trained_, ElementsAre(Pair("norm.bias", false), Pair("norm.weight", true)));
}

TEST_F(OnnxTrained, ANormalizationThatBeginsWithOnesAndZerosIsTrained) {
  read(floats("norm.weight", {1, 1, 1}) + floats("norm.bias", {0, 0, 0}),
       node("InstanceNormalization", {"x", "norm.weight", "norm.bias"}, "y"));
  EXPECT_THAT(trained_, ElementsAre(Pair("norm.bias", true), Pair("norm.weight", true)));
}

TEST_F(OnnxTrained, ANumberThatIsAParameterOfAModuleIsTrained) {
  const auto of = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    read(values(name, shape, {0}) + values("conv.weight", {3, 3, 1, 1}, nine),
         node("Conv", {"x", "conv.weight"}, "a") + node("Mul", {"a", name}, "y"));
  };
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{}, {1}, {1, 1, 1}}) {
    of("stages.0.0.skipinit_gain", shape);
    EXPECT_THAT(trained_, Contains(Pair("stages.0.0.weight", true)));
    EXPECT_THAT(onnx_.arrays.arrays.at("stages.0.0.weight").values, ElementsAre(0));
    read_again();
    EXPECT_THAT(trained_, Contains(Pair("stages.0.0.weight", true)));
  }
  // Exporters write the numbers of a function as initializers, too.
  for (const char* name : {"val_12", "onnx::Mul_12", "/stages/stages.0/Constant_output_0"}) {
    of(name, {});
    EXPECT_THAT(trained_, ElementsAre(Pair("conv.weight", true))) << name;
  }
}

TEST_F(OnnxTrained, ANumberOfSwishIsTrainedAndAnExponentIsSaidToStay) {
  const std::string constants = values("act.beta", {1}, {0.5F}) + values("pool.p", {1}, {3}) +
                                values("conv.weight", {3, 3, 1, 1}, nine);
  read(constants, node("Conv", {"x", "conv.weight"}, "a") + node("Mul", {"a", "act.beta"}, "b") +
                      node("Sigmoid", {"b"}, "c") + node("Mul", {"a", "c"}, "d") +
                      node("Pow", {"d", "pool.p"}, "y"));
  EXPECT_THAT(trained_, ElementsAre(Pair("act.weight", true), Pair("conv.weight", true)));
  EXPECT_THAT(onnx_.notes, Contains(HasSubstr("node 'y' (Pow): its parameter 'pool.p'")));
}

TEST_F(OnnxTrained, NumbersThatPrepareImagesStay) {
  read(values("norm.mean", {}, {0.5F}) + values("conv.weight", {3, 3, 1, 1}, nine),
       node("Sub", {"x", "norm.mean"}, "a") + node("Conv", {"a", "conv.weight"}, "y"));
  EXPECT_THAT(trained_, ElementsAre(Pair("conv.weight", true)));
}

}  // namespace
}  // namespace tandem::test
