// Training without oneDNN's kernels, as on a CPU for which it has only reference code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/emulation.h"
#include "tests/support/safetensors_file.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::HasSubstr;
using testing::Not;

class OwnKernelsOfCpus : public testing::Test {
 protected:
  using Weights = std::map<std::string, std::vector<float>>;

  std::string output(const std::string& arguments, const std::string& before) const {
    const Outcome outcome = desk_.tandem(arguments, before);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return outcome.output;
  }
  // The weights and the solver's history that a step ends with. The history is the rate times the
  // gradients, beside which weights are large.
  Weights trained(const std::string& run, const std::string& options,
                  const std::string& before) const {
    output("train --net cifar10_quick --data synthetic --batch 8 --steps 1 --seed 3 --out " + run +
               " " + options,
           before);
    Weights weights;
    for (const std::string file : {"last.safetensors", "last.state.safetensors"}) {
      for (auto& [name, array] : test::read_safetensors(desk_ / run / file).arrays) {
        weights[file + " " + name] = std::move(array.values);
      }
    }
    return weights;
  }
  // Of the histories. Rounding may change which of two values is the maximum of a window.
  static void expect_near(const Weights& actual, const Weights& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    size_t compared = 0;
    for (const auto& [name, values] : expected) {
      if (!name.starts_with("last.state")) continue;
      ++compared;
      const std::vector<float>& others = actual.at(name);
      ASSERT_EQ(others.size(), values.size());
      float most = 0, difference = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        most = std::max(most, std::abs(values[i]));
        difference = std::max(difference, std::abs(values[i] - others[i]));
      }
      EXPECT_GT(most, 0) << name;
      EXPECT_LE(difference, 1e-2F * most) << name;
    }
    EXPECT_GE(compared, 10U);  // weights and biases of five layers
  }

  const std::string own_ = "TANDEM_CPU_KERNELS=own";
  Desk desk_;
};

// oneDNN's names of kernels have colons, such as "ref:any".
TEST_F(OwnKernelsOfCpus, ComputeEveryLayerOfTheBuiltInNets) {
  TANDEM_SKIP_IF_EMULATED("a hundred billion operations");
  // caffenet and vgg16 have no other kinds of layers, and take as long as the rest.
  for (const char* net :
       {"alexnet", "cifar10_full", "cifar10_quick", "googlenet", "lenet", "mobilenet", "resnet18",
        "resnet50", "shapes_quick", "speech_dnn", "squeezenet"}) {
    SCOPED_TRACE(net);
    const std::string text =
        output(std::string("profile --batch 1 --steps 1 --warm-up 1 --json --net ") + net, own_);
    const nlohmann::json layers = nlohmann::json::parse(text)["layers"];
    EXPECT_GT(layers.size(), 5U);
    for (const nlohmann::json& layer : layers) {
      const auto algorithm = layer["algorithm"].get<std::string>();
      EXPECT_TRUE(layer["type"] != "Convolution" || !algorithm.empty()) << layer["name"];
      EXPECT_THAT(algorithm, testing::AllOf(Not(HasSubstr(":")), Not(HasSubstr("sgemm"))))
          << layer["name"] << ", a " << layer["type"];
    }
  }
}

TEST_F(OwnKernelsOfCpus, LearnWhatOneDnnsDo) {
  expect_near(trained("own", "", own_), trained("library", "", ""));
}

TEST_F(OwnKernelsOfCpus, TrainToTheSameBitsOnAnyNumberOfThreads) {
  EXPECT_EQ(trained("two", "--threads 2", own_), trained("one", "--threads 1", own_));
}

TEST_F(OwnKernelsOfCpus, LearnTheSameOnTwoDevices) {
  expect_near(trained("two", "--devices cpu:2", own_), trained("one", "", own_));
}

}  // namespace
}  // namespace tandem
