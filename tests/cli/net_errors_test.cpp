#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using test::replaced;
using test::tiny_net;
using testing::AllOf;
using testing::HasSubstr;

// What is said of a net.prototxt with this text.
std::string refusal_of_net(const std::string& net, const std::string& options = "") {
  const Desk desk;
  desk.write("net.prototxt", net);
  return desk.refusal("train --net net.prototxt --data synthetic --steps 2 --out run " + options);
}

// Predictions take the class with the largest output, which such a net does not learn.
TEST(NetErrors, ALossThatReadsClassesAsNumbersIsRefusedWithTheWayOut) {
  const std::string net = replaced(tiny_net(), "num_output: 2", "num_output: 1");
  for (const char* loss : {"EuclideanLoss", "HuberLoss", "SigmoidCrossEntropyLoss"}) {
    const bool are_labels = loss[0] == 'S';
    EXPECT_THAT(
        refusal_of_net(replaced(net, "SoftmaxWithLoss", loss), "--data-option class_count=3"),
        AllOf(HasSubstr(std::string("layer 'loss' (") + loss), HasSubstr("num_output: 3"),
              HasSubstr("use SoftmaxWithLoss"),
              HasSubstr(are_labels ? "--task multilabel" : "--task regression")));
  }
}

TEST(NetErrors, AnIgnoredLabelThatIsAClassIsSaid) {
  const auto net = [](int outputs, int ignored) {
    return replaced(replaced(tiny_net(), "num_output: 2", fmt::format("num_output: {}", outputs)),
                    "top: \"loss\" }",
                    fmt::format("top: \"loss\" loss_param {{ ignore_label: {} }} }}", ignored));
  };
  EXPECT_THAT(
      refusal_of_net(net(2, 1)),
      HasSubstr("ignore_label 1 is the class 'class_1', so that the other would be the answer"));
  const Desk desk;
  for (const int ignored : {1, 255}) {
    desk.write("net.prototxt", net(3, ignored));
    const Outcome outcome = desk.tandem(
        "train --net net.prototxt --data synthetic --steps 2 --out run" + std::to_string(ignored));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(
        outcome.output.find("ignore_label 1 is the class 'class_1': nothing is learned from its "
                            "images") != std::string::npos,
        ignored == 1)
        << outcome.output;
  }
}

TEST(NetErrors, AnUnknownNetGivesTheNearName) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("train --data synthetic --net alexnt"),
              AllOf(HasSubstr("'alexnt'"), HasSubstr("did you mean 'alexnet'?")));
}

TEST(NetErrors, AnUnknownLayerTypeGivesTheNearName) {
  EXPECT_THAT(refusal_of_net(replaced(tiny_net(), "\"Convolution\"", "\"Convolutoin\"")),
              AllOf(HasSubstr("'Convolutoin'"), HasSubstr("did you mean 'Convolution'?"),
                    HasSubstr("conv1"), HasSubstr("net.prototxt:7")));
}

TEST(NetErrors, AnUnknownParameterGivesTheNearNameAndPlace) {
  EXPECT_THAT(refusal_of_net(replaced(tiny_net(), "kernel_size: 3", "kernel_siz: 3")),
              AllOf(HasSubstr("layer 'conv1' (Convolution)"), HasSubstr("'kernel_siz'"),
                    HasSubstr("did you mean 'kernel_size'?"), HasSubstr("net.prototxt:9")));
}

TEST(NetErrors, OfABatchNormNameTheFieldsThatNvidiasCaffeHas) {
  const auto refusal = [](const std::string& fields) {
    return refusal_of_net(tiny_net() +
                          "layer { name: \"bn\" type: \"BatchNorm\" bottom: \"score\" top: \"bn\" "
                          "batch_norm_param { " +
                          fields + " } }");
  };
  EXPECT_THAT(refusal("scale_bais: true"),
              AllOf(HasSubstr("did you mean 'scale_bias'?"), HasSubstr("known: use_global_stats, "),
                    HasSubstr("scale_bias, engine")));
  EXPECT_THAT(refusal("eps: 0.1 scale_bias: true eps: 0.2"),
              HasSubstr("layer 'bn' (BatchNormScale): eps is '0.1, 0.2'"));
  EXPECT_THAT(refusal("relu: true"), HasSubstr("write a ReLU layer after it"));
}

TEST(NetErrors, AValueOutOfRangeGivesTheRange) {
  EXPECT_THAT(refusal_of_net(replaced(tiny_net(), "num_output: 4", "num_output: 0")),
              AllOf(HasSubstr("layer 'conv1' (Convolution)"), HasSubstr("num_output"),
                    HasSubstr("'0'"), HasSubstr("from 1"), HasSubstr("net.prototxt:9")));
}

TEST(NetErrors, AShapeThatDoesNotFitNamesLayerAndSizes) {
  EXPECT_THAT(refusal_of_net(replaced(tiny_net(), "kernel_size: 3", "kernel_size: 11")),
              AllOf(HasSubstr("layer 'conv1' (Convolution)"), HasSubstr("11"), HasSubstr("8x8"),
                    HasSubstr("net.prototxt:7")));
}

TEST(NetErrors, AnInputThatNoLayerMakesIsNamed) {
  EXPECT_THAT(
      refusal_of_net(replaced(tiny_net(), "bottom: \"score\" bottom: \"label\" top: \"loss\"",
                              "bottom: \"scores\" bottom: \"label\" top: \"loss\"")),
      AllOf(HasSubstr("layer 'loss' (SoftmaxWithLoss)"), HasSubstr("'scores'"),
            HasSubstr("net.prototxt:21")));
}

TEST(NetErrors, ASyntaxErrorNamesFileLineAndColumn) {
  EXPECT_THAT(refusal_of_net(replaced(tiny_net(), "num_output: 4", "num_output; 4")),
              AllOf(HasSubstr("net.prototxt:9:"), HasSubstr(";")));
}

TEST(NetErrors, AnUnclosedBlockNamesItsBegin) {
  const std::string net = tiny_net();
  EXPECT_THAT(refusal_of_net(net.substr(0, net.find("layer { name: \"relu1\"") - 2)),
              AllOf(HasSubstr("net.prototxt:"), HasSubstr("}")));
}

TEST(NetErrors, AnUnknownSolverFieldGivesTheNearName) {
  const Desk desk;
  desk.write("solver.prototxt", "base_lr: 0.01\nmomentom: 0.9\nmax_iter: 2\n");
  EXPECT_THAT(
      desk.refusal("train --net tiny.prototxt --solver solver.prototxt --data synthetic --out run"),
      AllOf(HasSubstr("solver.prototxt:2"), HasSubstr("'momentom'"),
            HasSubstr("did you mean 'momentum'?")));
}

TEST(NetErrors, ASolverInsteadOfANetIsRecognized) {
  const Desk desk;
  desk.write("solver.prototxt", "net: 'tiny.prototxt'\nbase_lr: 0.01\nmax_iter: 2\n");
  EXPECT_THAT(desk.refusal("net solver.prototxt"),
              AllOf(HasSubstr("'solver.prototxt' is a solver"), HasSubstr("--solver")));
}

TEST(NetErrors, WeightsThatAreNoFileAreNamed) {
  const Desk desk;
  desk.make_folder("weights");
  const std::string train = "train --net tiny.prototxt --data synthetic --out run --weights ";
  EXPECT_THAT(desk.refusal(train + "weights"),
              HasSubstr("weights 'weights' is a folder without config.json"));
  const std::string part = "weights/model-00001-of-00002.safetensors";
  desk.write(part, "x");
  for (const std::string& command : {train + "weights", std::string("import weights --out run")}) {
    EXPECT_THAT(desk.refusal(command),
                AllOf(HasSubstr("without config.json and model.safetensors.index.json"),
                      HasSubstr("'model-00001-of-00002.safetensors' and others are parts of one")));
  }
  desk.write("weights/model.safetensors.index.json", "{}");
  EXPECT_THAT(desk.refusal(train + "weights"),
              AllOf(HasSubstr("is a folder without config.json: "),
                    HasSubstr("else give the file 'weights/model.safetensors.index.json', with the "
                              "name of the net (--net NAME)")));
  EXPECT_THAT(desk.refusal(train + "w.caffemodel"),
              HasSubstr("--weights 'w.caffemodel' does not exist"));
}

TEST(NetErrors, ANetThatCannotBeTrainedIsShownForTesting) {
  const Desk desk;
  desk.write("deploy.prototxt",
             "name: 'deploy' input: 'data' input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\n"
             "layer { name: 'relu' type: 'ReLU' bottom: 'data' top: 'relu' }\n");
  const Outcome shown = desk.tandem("net deploy.prototxt");
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_THAT(shown.output,
              AllOf(HasSubstr("shown for testing: net 'deploy' has no"), HasSubstr("3x8x8")));
  EXPECT_THAT(desk.refusal("net deploy.prototxt --phase train"), HasSubstr("net 'deploy' has no"));
}

TEST(NetErrors, SizesOfANetAreAtLeastOne) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("net lenet --batch 0"),
              HasSubstr("--batch: '0' is not a whole number from 1 to 1000000000"));
  for (const char* option : {"--classes 0", "--size 0"}) {
    EXPECT_THAT(desk.refusal("net lenet " + std::string(option)),
                HasSubstr("'0' is not a whole number of at least 1"))
        << option;
  }
  EXPECT_THAT(desk.refusal("net lenet --size x"), HasSubstr("'x' is not a whole number"));
}

}  // namespace
}  // namespace tandem
