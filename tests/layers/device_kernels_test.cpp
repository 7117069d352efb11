// Kernels for GPUs compared with those for the cpu: every layer has one, and both agree for odd
// shapes that are large enough for sums in several parts. Run with TANDEM_TEST_KERNELS.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/plugin/layer_questions.h"
#include "tests/support/folders.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

TEST(KernelsForGpus, ExistForEveryLayerWithACpuKernel) {
  Registry registry = Registry::with_defaults();
  const std::filesystem::path on_host = test::build_folder() / "lib/tandem/cuda_on_host";
  // not if the program was copied elsewhere
  const bool is_in_its_build = std::filesystem::exists(on_host);
  registry.scan(on_host);
  int layers = 0;
  for (const std::string& type : registry.layer_types()) {
    ++layers;
    EXPECT_NO_THROW(static_cast<void>(registry.kernel(type, "cpu"))) << type;
    if (is_in_its_build) {
      EXPECT_NO_THROW(static_cast<void>(registry.kernel(type, "cuda_on_host"))) << type;
    }
#ifdef TANDEM_HAS_CUDA
    EXPECT_NO_THROW(static_cast<void>(registry.kernel(type, "cuda"))) << type;
#endif
  }
  EXPECT_GE(layers, 45);
}

// Normally distributed numbers would not be valid labels.
PlainTensor labels(const Shape& shape, int64_t classes) {
  PlainTensor result = random_tensor(shape, 31);
  for (size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] = static_cast<float>(static_cast<int64_t>(i * 7) % (classes + 1) - 1);
  }
  return result;
}

LayerSetup with_weights(LayerSetup setup, const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes) setup.weights.push_back(random_tensor(shape, 32, 0.2F));
  return setup;
}

std::vector<LayerSetup> device_kernel_setups() {
  const PlainTensor image = random_tensor({5, 17, 23, 19}, 1),
                    wide = random_tensor({2, 3, 90, 91}, 2);
  const PlainTensor rows = random_tensor({1301, 11, 1, 1}, 3);
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  const Parameters pooling{{"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}};
  std::vector<LayerSetup> result;
  for (const PlainTensor& x : {image, wide, rows}) {
    const Shape channels{x.shape.c, 1, 1, 1};
    result.push_back(with_weights({.type = "Bias", .inputs = {x}}, {channels}));
    result.push_back(
        with_weights({.type = "Scale", .parameters = {{"bias_term", "true"}}, .inputs = {x}},
                     {channels, channels}));
    result.push_back(with_weights({.type = "PReLU", .inputs = {x}}, {channels}));
    result.push_back(
        with_weights({.type = "PReLU", .parameters = {{"channel_shared", "true"}}, .inputs = {x}},
                     {{1, 1, 1, 1}}));
    result.push_back(
        with_weights({.type = "BatchNorm", .inputs = {x}}, {channels, channels, {1, 1, 1, 1}}));
    result.push_back(with_weights({.type = "BatchNormScale", .inputs = {x}},
                                  {channels, channels, {1, 1, 1, 1}, channels, channels}));
    // The deviation of three values is often close to zero, and it is a divisor.
    if (x.shape.c > 3) {
      result.push_back(with_weights({.type = "LayerNorm", .inputs = {x}}, {channels, channels}));
    }
    result.push_back({.type = "MVN", .parameters = {{"across_channels", "true"}}, .inputs = {x}});
    result.push_back({.type = "Reduction", .parameters = {{"axis", "1"}}, .inputs = {x}});
    result.push_back(
        {.type = "EuclideanLoss", .inputs = {x, random_tensor(x.shape, 4)}, .normaliser = 7});
    result.push_back({.type = "HuberLoss",
                      .parameters = {{"delta", "0.5"}},
                      .inputs = {x, random_tensor(x.shape, 4)},
                      .normaliser = 7});
    result.push_back({.type = "SumLoss", .inputs = {x}});
    result.push_back({.type = "Dropout", .inputs = {x}});
    result.push_back({.type = "ReLU", .inputs = {x}});
    result.push_back({.type = "Softmax", .inputs = {x}});
  }
  for (const PlainTensor& x : {image, wide}) {
    result.push_back({.type = "Pooling", .parameters = pooling, .inputs = {x}});
    Parameters average = pooling;
    average.emplace_back("pool", "AVE");
    result.push_back({.type = "Pooling", .parameters = average, .inputs = {x}});
    for (const char* method : {"MAX", "AVE"}) {
      result.push_back({.type = "Pooling",
                        .parameters = {{"global_pooling", "true"}, {"pool", method}},
                        .inputs = {x}});
    }
    result.push_back({.type = "LRN", .inputs = {x}});
    result.push_back({.type = "LRN",
                      .parameters = {{"norm_region", "WITHIN_CHANNEL"}, {"local_size", "3"}},
                      .inputs = {x}});
    result.push_back({.type = "Crop",
                      .parameters = {{"offset", "2"}},
                      .inputs = {x, random_tensor({x.shape.n, x.shape.c, 11, 13}, 5)}});
    result.push_back({.type = "Pad",
                      .parameters = {{"bottom", "2"}, {"left", "1"}, {"mode", "REFLECT"}},
                      .inputs = {x}});
    result.push_back({.type = "Upsample", .inputs = {x}});
    result.push_back({.type = "Upsample",
                      .parameters = {{"mode", "BILINEAR"}, {"scale_h", "1.7"}},
                      .inputs = {x}});
    result.push_back({.type = "MatMul",
                      .parameters = {{"transpose_b", "true"}},
                      .inputs = {x, random_tensor(x.shape, 7)}});
    result.push_back({.type = "Softmax", .parameters = {{"axis", "3"}}, .inputs = {x}});
    result.push_back({.type = "Pooling",
                      .parameters = {{"pool", "AVE"},
                                     {"kernel_size", "3"},
                                     {"pad", "1"},
                                     {"count_padding", "false"}},
                      .inputs = {x}});
    result.push_back(
        {.type = "Permute",
         .parameters = {{"order", "0"}, {"order", "2"}, {"order", "3"}, {"order", "1"}},
         .inputs = {x}});
    result.push_back({.type = "Tile", .parameters = {{"tiles", "3"}}, .inputs = {x}});
    result.push_back({.type = "Concat", .inputs = {x, random_tensor(x.shape, 6)}});
    result.push_back({.type = "Slice",
                      .parameters = {{"axis", "3"}, {"slice_point", "4"}},
                      .inputs = {x},
                      .output_count = 2});
    result.push_back(
        {.type = "Slice", .parameters = {{"axis", "2"}, {"step", "-2"}}, .inputs = {x}});
    for (const char* operation : {"MIN", "DIV"}) {
      result.push_back({.type = "Eltwise",
                        .parameters = {{"operation", operation}},
                        .inputs = {x, random_tensor(x.shape, 8)}});
    }
    result.push_back({.type = "Split", .inputs = {x}, .output_count = 3});
    result.push_back({.type = "SoftmaxWithLoss",
                      .inputs = {x, labels({x.shape.n, 1, x.shape.h, x.shape.w}, x.shape.c)},
                      .normaliser = 3});
    result.push_back({.type = "HingeLoss",
                      .inputs = {x, labels({x.shape.n, 1, x.shape.h, x.shape.w}, x.shape.c)},
                      .normaliser = 3});
  }
  result.push_back({.type = "SoftmaxWithLoss",
                    .inputs = {rows, labels({1301, 1, 1, 1}, 11)},
                    .normaliser = 1100});
  result.push_back(
      {.type = "Accuracy", .inputs = {rows, labels({1301, 1, 1, 1}, 11)}, .normaliser = 1100});
  result.push_back({.type = "ArgMax", .parameters = {{"top_k", "4"}}, .inputs = {rows}});
  result.push_back(
      with_weights({.type = "InnerProduct", .parameters = {{"num_output", "13"}}, .inputs = {rows}},
                   {{13, 11, 1, 1}, {13, 1, 1, 1}}));
  result.push_back(with_weights(
      {.type = "Convolution",
       .parameters = {{"num_output", "6"}, {"kernel_size", "5"}, {"stride", "2"}, {"pad", "2"}},
       .inputs = {wide}},
      {{6, 3, 5, 5}, {6, 1, 1, 1}}));
  return result;
}

void expect_agreement(const std::vector<PlainTensor>& actual,
                      const std::vector<PlainTensor>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LE(relative_difference(actual[i].values, expected[i].values), 1e-5) << what << " " << i;
  }
}

TEST(KernelsForGpus, AgreeWithTheCpuOnLargeAndOddShapes) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "TANDEM_TEST_KERNELS names no kernels for GPUs";
  for (const LayerSetup& plain : device_kernel_setups()) {
    LayerSetup expected_setup = plain;
    expected_setup.on_a_cpu = true;
    LayerRun expected(expected_setup);
    const std::vector<PlainTensor> outputs = expected.forward();
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(setup.type + " " + to_string(setup.inputs[0].shape) + " " + layout_text(setup));
      LayerRun actual(setup);
      expect_agreement(actual.forward(), outputs, "output");
      if (!has_data_gradient(actual.type())) continue;
      std::vector<PlainTensor> gradients;
      for (const PlainTensor& output : outputs) gradients.push_back(random_tensor(output.shape, 9));
      expect_agreement(actual.backward_data(gradients), expected.backward_data(gradients),
                       "input gradient");
      if (setup.weights.empty() || setup.type.starts_with("BatchNorm")) continue;
      expect_agreement(actual.backward_weights(gradients), expected.backward_weights(gradients),
                       "weight gradient");
    }
  }
}

// A GPU cannot report the label: the update is skipped, and the run searches for the layer.
TEST(KernelsForGpus, ReturnNanForAnInvalidLabel) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "TANDEM_TEST_KERNELS names no kernels for GPUs";
  for (const std::string type :
       {"SoftmaxWithLoss", "HingeLoss", "MultinomialLogisticLoss", "Accuracy"}) {
    for (const float label : {5.0F, 1.5F, 1e20F, NAN}) {
      LayerSetup setup{.type = type,
                       .inputs = {random_tensor({3, 5, 1, 1}, 1), {{3, 1, 1, 1}, {0, 4, -1}}},
                       .flags = type == "Accuracy" ? 0U : uint32_t{TANDEM_WANTS_BACKWARD_DATA}};
      for (float& score : setup.inputs[0].values) score = std::abs(score);
      EXPECT_TRUE(std::isfinite(LayerRun(setup).forward()[0].values[0])) << type;
      setup.inputs[1].values[1] = label;
      EXPECT_TRUE(std::isnan(LayerRun(setup).forward()[0].values[0])) << type << " " << label;
    }
  }
}

TEST(KernelsForGpus, ReturnNanForAnInvalidIndex) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "TANDEM_TEST_KERNELS names no kernels for GPUs";
  const LayerSetup setup{
      .type = "Embed",
      .parameters = {{"num_output", "2"}, {"input_dim", "3"}, {"bias_term", "false"}},
      .inputs = {{{4, 1, 1, 1}, {1, 3, 0.5F, -1}}},
      .weights = {random_tensor({3, 2, 1, 1}, 1)}};
  const std::vector<float> values = LayerRun(setup).forward()[0].values;
  EXPECT_EQ(values[0], setup.weights[0].values[2]);
  for (const size_t i : {2, 3, 4, 5}) EXPECT_TRUE(std::isnan(values[i])) << i;
  EXPECT_EQ(values[6], 0);
}

}  // namespace
}  // namespace tandem::test
