// Runs in a precision that only GPUs have: strategies priced for it, and going on without the GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/precision.h"
#include "core/train/choose_strategy.h"
#include "core/train/run_folder.h"
#include "tests/cuda/machines.h"
#include "tests/train/run_support.h"

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
    TrainOptions o;
    o.data = "synthetic";
    o.data_parameters = {{"class_count", "5"}, {"size", "60"}, {"scale", "0.02"}};
    o.net_definition = with_class_count(small_net(), 5);
    o.devices = devices;
    o.strategy = strategy;
    o.precision = "tf32";
    o.batch = 12;
    o.steps = steps;
    o.rate = 0.01;
    o.out = folder_.path() / fmt::format("run{}", ++runs_);
    return o;
  }
  static Weights run(const TrainOptions& o) {
    Observer quiet;
    return weights_in(train(o, quiet).run / "last.safetensors");
  }
  TempFolder folder_;
  int runs_ = 0;
};

// What was measured on the GPU is what the prices on sim are made of.
TEST_F(TrainingInTf32, ByAutoPricesEveryStrategyForTheGpusKernels) {
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
  // But for what sequential, which was measured, does not do at all.
  EXPECT_THAT(text, ContainsRegex("by [0-9]{2,} measured and [0-9] estimated costs"));
  EXPECT_NO_THROW((void)run(options("cuda:0,0", "auto", 3)));
}

TEST_F(TrainingInTf32, GoesOnWithoutTheGpuInAnotherPrecision) {
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

// Which needs no GPU: a net is made for kernels, and prepares none.
TEST(NetsInTf32, AllowItWhereProductsAreAddedUpAndNowhereElse) {
  Registry registry = Registry::with_defaults();
  NetOptions options;
  options.batch = 4;
  options.device_kind = "cuda";
  options.precision = tf32_precision;
  const NetDefinition definition =
      NetWriter("mixed")
          .data(12)
          .layer("conv1", "Convolution", "convolution_param { num_output: 8 kernel_size: 3 }")
          .layer("norm1", "BatchNorm", "")
          .layer("scale1", "Scale", "scale_param { bias_term: true }")
          .layer("relu1", "PReLU", "")
          .layer("score", "InnerProduct", "inner_product_param { num_output: 3 }")
          .loss()
          .definition();
  const Net net = build_net(definition, registry, options);
  const auto allows = [&](const char* layer) {
    return net.layers[static_cast<size_t>(net.find_layer(layer))].allows_tf32;
  };
  EXPECT_TRUE(allows("conv1"));
  EXPECT_TRUE(allows("score"));
  for (const char* layer : {"norm1", "scale1", "relu1"}) EXPECT_FALSE(allows(layer)) << layer;
}

}  // namespace
}  // namespace tandem::test
