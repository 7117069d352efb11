// Runs in a precision that only GPUs have: strategies simulated for it, and continuing without the
// GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/numbers/shape.h"
#include "core/model/adapted/classes.h"
#include "core/model/adapted/models.h"
#include "core/model/passes/build_net.h"
#include "core/run/folder/run_folder.h"
#include "core/session/choose_strategy.h"
#include "core/session/session.h"
#include "include/tandem/net.h"
#include "tests/cuda/machines.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class TrainingInTf32 : public testing::Test {
 protected:
  void SetUp() override {
    need_gpu();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string reason = message_of([&] { (void)run(options("cuda:0", "sequential", 1)); });
    if (reason.find("needs 8.0 (Ampere)") != std::string::npos) GTEST_SKIP() << reason;
    ASSERT_EQ(reason, "");
  }
  TrainOptions options(const std::string& devices, const std::string& strategy, int64_t steps) {
    TrainOptions o = synthetic_run(folder_, steps);
    o.devices = devices;
    o.strategy = strategy;
    o.precision = "tf32";
    return o;
  }
  TempFolder folder_;
};

// The forecasts on sim come from measurements on the GPU.
TEST_F(TrainingInTf32, ByAutoSimulatesEveryStrategyForTheGpusKernels) {
  Registry registry = Registry::with_defaults();
  SessionOptions session;
  session.devices = "cuda:0,0";
  session.strategy = "auto";
  session.precision = parse_precision("tf32");
  session.batch = 12;
  session.data = {1, 3, 20, 20};
  session.testing = false;
  const NetDefinition net = with_class_count(small_net(), 5);
  const std::string text = choose_strategy(registry, net, session);
  EXPECT_THAT(text, HasSubstr("chosen: "));
  // Except for tasks that sequential, which was measured, does not have.
  EXPECT_THAT(text, ContainsRegex("with [0-9]{2,} measured and [0-9] estimated costs"));
  EXPECT_NO_THROW((void)run(options("cuda:0,0", "auto", 3)));
}

TEST_F(TrainingInTf32, ContinuesWithoutTheGpuInAnotherPrecision) {
  const TrainOptions first = options("cuda:0", "sequential", 2);
  (void)run(first);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 4;
  rest.devices = "cpu";
  EXPECT_THAT(message_of([&] { (void)run(rest); }),
              HasSubstr("use --precision float32 or bfloat16 here"));
  rest.precision = "float32";
  EXPECT_NO_THROW((void)run(rest));
  EXPECT_EQ(RunFolder::open(first.out).record().options.precision, "float32");
}

// This needs no GPU: a net is built for kernels, but does not prepare them.
Net net_for_gpus(const NetDefinition& definition, const std::string& precision,
                 const Shape& data = {}) {
  static const Registry registry = Registry::with_defaults();
  NetOptions options;
  options.batch = 4;
  if (data.c > 0) options.data = data;
  options.device_kind = "cuda";
  options.precision = parse_precision(precision);
  return build_net(definition, registry, options);
}

TEST(NetsInTf32, AllowItOnlyForSumsOfProducts) {
  const NetDefinition definition = read_net_text(
      NetWriter("mixed")
          .data(12)
          .layer("conv1", "Convolution", "convolution_param { num_output: 8 kernel_size: 3 }")
          .layer("norm1", "BatchNorm", "")
          .layer("scale1", "Scale", "scale_param { bias_term: true }")
          .layer("relu1", "PReLU", "")
          .layer("score", "InnerProduct", "inner_product_param { num_output: 3 }")
          .loss()
          .text());
  const Net net = net_for_gpus(definition, "tf32");
  const auto allows = [&](const char* layer) {
    return net.layers[static_cast<size_t>(net.find_layer(layer))].allows_tf32;
  };
  EXPECT_TRUE(allows("conv1"));
  EXPECT_TRUE(allows("score"));
  for (const char* layer : {"norm1", "scale1", "relu1"}) EXPECT_FALSE(allows(layer)) << layer;
}

std::vector<std::string> reorders(const Net& net) {
  std::vector<std::string> names;
  for (const Layer& layer : net.layers) {
    if (std::string(layer.type->name) == "Reorder") names.push_back(layer.name);
  }
  return names;
}

// Layers between two convolutions have the same layout as these. Only the data are converted to it,
// and the input that an InnerProduct reads as a row is converted back.
TEST(NetsInTf32, HaveChannelsLastUpToTheFirstInnerProduct) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> nets{
      {"alexnet", {"data_reorder_NHWC", "pool5_reorder_NCHW"}},
      {"googlenet", {"data_reorder_NHWC", "loss1/conv_reorder_NCHW", "loss2/conv_reorder_NCHW"}},
      {"resnet18", {"data_reorder_NHWC"}},
      {"resnet50", {"data_reorder_NHWC"}},
      {"mobilenet", {"data_reorder_NHWC"}}};
  for (const auto& [name, expected] : nets) {
    const NetDefinition definition = with_class_count(read_net(find_net(name)), 10);
    const int64_t size = name == "alexnet" ? 227 : 224;
    const Net net = net_for_gpus(definition, "tf32", {1, 3, size, size});
    EXPECT_EQ(reorders(net), expected) << name;
    for (const Layer& layer : net.layers) {
      if (std::string(layer.type->name) != "Convolution") continue;
      const Tensor& output = net.tensors[static_cast<size_t>(layer.outputs[0])];
      const bool is_image = output.shape.h * output.shape.w > 1;
      EXPECT_EQ(output.layout, is_image ? TANDEM_NHWC : TANDEM_NCHW) << layer.name;
      EXPECT_EQ(output.dtype, TANDEM_FLOAT32) << layer.name;
    }
    EXPECT_TRUE(reorders(net_for_gpus(definition, "float32", {1, 3, size, size})).empty()) << name;
  }
}

TEST(NetsInTf32, HaveTheSameLayoutsOnSimulatedGpus) {
  Registry registry = Registry::with_defaults();
  SessionOptions options;
  options.devices = "sim:2";
  options.kernels = "cuda";
  options.precision = tf32_precision;
  options.strategy = "layerwise";
  options.batch = 12;
  options.data = {1, 3, 20, 20};
  options.testing = false;
  Session session(registry, small_net(), options);
  EXPECT_EQ(reorders(session.training().net),
            (std::vector<std::string>{"data_reorder_NHWC", "pool2_reorder_NCHW"}));
}

}  // namespace
}  // namespace tandem::test
