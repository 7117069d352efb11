// The models of examples/models and Caffe's own files, with the real layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/model/adapted/classes.h"
#include "core/model/adapted/models.h"
#include "core/model/file/learning_rate.h"
#include "core/model/file/net_phases.h"
#include "core/model/file/solver_definition.h"
#include "core/model/net/initial_weights.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using testing::ElementsAre;

class RealNets : public testing::Test {
 protected:
  void SetUp() override {
    registry_.scan(test::plugin_folder());
    for (const char* type : {"Convolution", "InnerProduct", "LRN", "Pooling", "ReLU", "Dropout",
                             "SoftmaxWithLoss", "Accuracy", "Split", "Reorder"}) {
      if (registry_.find_layer_type(type) == nullptr) {
        GTEST_SKIP() << "the layer type " << type << " is not in " << test::plugin_folder();
      }
    }
  }

  Net build(const NetDefinition& definition, int32_t phase, int64_t size) {
    NetOptions options;
    options.phase = phase;
    options.batch = 8;
    options.data = {1, 3, size, size};
    return build_net(definition, registry_, options);
  }

  // Behind the data: on CPUs without AVX2 convolutions are trained in NHWC, and data becomes that.
  static std::vector<std::string> reorders(const Net& net) {
    std::vector<std::string> names;
    for (const Layer& layer : net.layers) {
      if (layer.name == "data_reorder_NHWC") continue;
      if (std::string(layer.type->name) == "Reorder") names.push_back(layer.name);
    }
    return names;
  }

  void expect_alexnet(const NetDefinition& definition) {
    const Net net = build(definition, TANDEM_TRAIN, 227);
    EXPECT_THAT(reorders(net), ElementsAre("pool5_reorder_NCHW"));
    EXPECT_EQ(net.find_layer("pool5_reorder_NCHW") + 1, net.find_layer("fc6"));
    EXPECT_EQ(net.weight_floats, 60965232);
    EXPECT_EQ(net.weights.size(), 16u);
    const Net test = build(definition, TANDEM_TEST, 227);
    EXPECT_EQ(reorders(test).size(), 1u);
    EXPECT_EQ(test.scalars.size(), 2u);
    EXPECT_EQ(test.weight_floats, net.weight_floats);
  }

  // The folder of Caffe's sources, or "" and the test is skipped.
  static std::filesystem::path caffe() {
    const char* folder = std::getenv("TANDEM_CAFFE_MODELS");
    return folder == nullptr ? "" : folder;
  }

  Registry registry_;
};

TEST_F(RealNets, AlexNetKeepsOneLayoutUpToFc6) {
  expect_alexnet(read_net(find_net("alexnet")));
}

TEST_F(RealNets, TheModelsBuildForAnyNumberOfClasses) {
  for (const auto& [name, size] : {std::pair{"cifar10_quick", 32}, std::pair{"shapes_quick", 57}}) {
    const NetDefinition definition = with_class_count(read_net(find_net(name)), 4);
    const Net net = build(definition, TANDEM_TRAIN, size);
    EXPECT_EQ(net.tensors[static_cast<size_t>(net.prediction)].shape.c, 4) << name;
    EXPECT_EQ(reorders(net).size(), 1u) << name;
    EXPECT_EQ(build(definition, TANDEM_TEST, size).weight_floats, net.weight_floats) << name;
  }
}

TEST_F(RealNets, ReluIsInPlaceAndDropoutAfterItIsNot) {
  const Net net = build(read_net(find_net("alexnet")), TANDEM_TRAIN, 227);
  for (const Layer& layer : net.layers) {
    const std::string type = layer.type->name;
    if (type != "ReLU" && type != "Dropout") continue;
    EXPECT_EQ(layer.runs_in_place, type == "ReLU") << layer.name;
  }
}

// Caffe's default is 0.999: validation after a run of some hundred steps would use statistics of
// weights that are long gone.
TEST_F(RealNets, TheModelsAverageTheirStatisticsOverAFewStepsOnly) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : model_names()) files.push_back(find_net(name));
  for (const std::string& name : pretrained_net_names()) files.push_back(find_pretrained_net(name));
  int layers = 0;
  for (const std::filesystem::path& file : files) {
    for (const LayerDefinition& layer : read_net(file).layers) {
      if (!layer.type.starts_with("BatchNorm")) continue;
      const Field* block = layer.body.find("batch_norm_param");
      const Field* kept =
          block == nullptr ? nullptr : block->message->find("moving_average_fraction");
      ASSERT_NE(kept, nullptr) << file << " " << layer.name;
      EXPECT_LE(std::stod(kept->text), 0.99) << file << " " << layer.name;
      ++layers;
    }
  }
  EXPECT_GT(layers, 100);
}

TEST_F(RealNets, CaffesAlexNetLoadsUnmodified) {
  if (caffe().empty()) GTEST_SKIP() << "TANDEM_CAFFE_MODELS does not name Caffe's folder";
  const NetDefinition net = read_net(caffe() / "models/bvlc_alexnet/train_val.prototxt");
  expect_alexnet(net);
  EXPECT_EQ(net.batch_size(TANDEM_TRAIN), 256);
  EXPECT_NE(net.transform(TANDEM_TRAIN)->mean_file, "");
  EXPECT_EQ(net.transform(TANDEM_TEST)->crop_height, 227);
  const SolverDefinition solver = read_solver(caffe() / "models/bvlc_alexnet/solver.prototxt");
  EXPECT_EQ(solver.rate_policy, "step");
  EXPECT_EQ(learning_rate(solver, 100000), 0.01 * 0.1);
}

TEST_F(RealNets, CaffesCifar10QuickLoadsUnmodified) {
  if (caffe().empty()) GTEST_SKIP() << "TANDEM_CAFFE_MODELS does not name Caffe's folder";
  const auto folder = caffe() / "examples/cifar10";
  const Net theirs =
      build(read_net(folder / "cifar10_quick_train_test.prototxt"), TANDEM_TRAIN, 32);
  const Net ours = build(read_net(find_net("cifar10_quick")), TANDEM_TRAIN, 32);
  EXPECT_EQ(initial_weights(theirs, 1), initial_weights(ours, 1));
  EXPECT_EQ(read_solver(folder / "cifar10_quick_solver.prototxt").max_steps, 4000);
  EXPECT_EQ(read_solver(folder / "cifar10_quick_solver_lr1.prototxt").base_rate, 0.0001);
}

// Nets of Caffe that are not supported or not nets to train.
bool says_why_not(const std::string& message) {
  for (const char* known : {"(WindowData): windows", "(Python): Python",
                            "can be tested but not "
                            "trained",
                            "has no data layer in the TEST phase"}) {
    if (message.find(known) != std::string::npos) return true;
  }
  return false;
}

// The stages that some layer of the phase needs to be in the net.
NetState first_stage(const NetDefinition& net, int32_t phase) {
  for (const LayerDefinition& layer : net.layers) {
    for (const StateRule& rule : layer.include) {
      if (rule.phase.value_or(phase) == phase && !rule.stages.empty()) return {0, rule.stages};
    }
  }
  return {};
}

// The shape of a sample: the net's own, or a possible one if the net leaves it to the data.
std::string failure_to_build(const NetDefinition& net, const Registry& registry, int32_t phase) {
  std::string first;
  for (const Shape& shape :
       {Shape{1, 3, 0, 0}, Shape{1, 3, 32, 32}, Shape{1, 1, 28, 28}, Shape{1, 2, 28, 28}}) {
    NetOptions options;
    options.phase = phase;
    options.batch = 2;
    options.data = shape;
    if (shape.h == 0) options.data.c = 0;
    try {
      (void)build_net(net, registry, options);
      return "";
    } catch (const Error& failure) {
      if (first.empty() || first.find("is not known") != std::string::npos) first = failure.what();
    }
  }
  return first;
}

TEST_F(RealNets, EveryNetOfCaffesLoadsUnmodified) {
  if (caffe().empty()) GTEST_SKIP() << "TANDEM_CAFFE_MODELS does not name Caffe's folder";
  int nets = 0, solvers = 0;
  for (const char* part : {"models", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(caffe() / part)) {
      if (entry.path().extension() != ".prototxt") continue;
      NetDefinition net;
      const Message message = read_text_format(entry.path());
      if (message.find("base_lr") != nullptr) {
        ++solvers;
        const SolverDefinition solver = read_solver(entry.path());
        if (!solver.net_definition) continue;
        net = *solver.net_definition;
      } else {
        net = read_net(entry.path());
      }
      ++nets;
      net = in_states(net, first_stage(net, TANDEM_TRAIN), first_stage(net, TANDEM_TEST));
      for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
        const std::string failure = failure_to_build(net, registry_, phase);
        EXPECT_TRUE(failure.empty() || says_why_not(failure)) << entry.path() << ": " << failure;
      }
    }
  }
  EXPECT_GE(nets, 25);
  EXPECT_GE(solvers, 20);
}

}  // namespace
}  // namespace tandem
