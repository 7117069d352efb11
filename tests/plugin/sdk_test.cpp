// The tables that plugins/sdk.h makes of an author's classes, as the host sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/plugin/attributes.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"
#include "plugins/sdk.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

std::filesystem::path sample(const std::string& name) {
  return test::sample_plugin_folder() / ("tandem_sample_" + name + ".so");
}

// A layer with one input and one output, bound to a "cpu" device that it does not use.
struct Bound {
  Registry registry;
  Attributes attributes;
  tandem_tensor tensor{};
  std::vector<Shape> weight_shapes;
  const tandem_kernel* kernel = nullptr;
  tandem_call call{};
  tandem_binding binding{};
  tandem_kernel_report report{};
  void* handle = nullptr;

  Bound(const std::string& module, const std::string& type, const Shape& shape) {
    const ModuleReport& loaded = registry.load(sample(module));
    if (!loaded.loaded) throw error("{}", loaded.reason);
    const tandem_layer_type& layer = registry.layer_type(type);
    for (uint32_t i = 0; i < layer.parameter_count; ++i) {
      attributes.set(layer.parameters[i]->name, default_attribute(*layer.parameters[i], type));
    }
    kernel = &registry.kernel(type, "cpu");
    tensor = {shape, TANDEM_FLOAT32, TANDEM_NCHW};
    call.struct_size = sizeof call;
    call.threads = 1;
    report.struct_size = sizeof report;
    binding.struct_size = sizeof binding;
    binding.layer_name = "under test";
    binding.inputs = &tensor;
    binding.input_count = 1;
    binding.tensor_size = sizeof tensor;
    binding.outputs = &tensor;
    binding.output_count = 1;
    binding.batch_size = shape.n;
  }
  ~Bound() {
    if (handle != nullptr) kernel->release(handle);
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  tandem_status prepare() {
    binding.attributes = attributes.handle();
    binding.weights = weight_shapes.data();
    binding.weight_count = static_cast<uint32_t>(weight_shapes.size());
    return kernel->prepare(&binding, &call, &handle, &report);
  }
};

// A tandem_tensor of a later minor version.
struct LargerTensor {
  tandem_tensor known;
  double later[3];
};

TEST(Sdk, ABindingOfANewerHostHasItsTensorsFartherApart) {
  const LargerTensor tensors[]{{{{1, 2, 3, 4}, TANDEM_FLOAT32, TANDEM_NCHW}, {}},
                               {{{5, 6, 7, 8}, TANDEM_BFLOAT16, TANDEM_NHWC}, {}}};
  tandem_binding binding{};
  binding.struct_size = sizeof binding;
  binding.inputs = &tensors[0].known;
  binding.input_count = 2;
  binding.tensor_size = sizeof(LargerTensor);
  EXPECT_EQ(sdk::Binding(binding).input(1).shape.w, 8);
  EXPECT_EQ(sdk::Binding(binding).input(1).dtype, TANDEM_BFLOAT16);
}

TEST(Sdk, OptionsAreWrittenAsFarApartAsTheHostSays) {
  struct LargerOption {
    tandem_layout_option known;
    double later;
  };
  Bound elu("elu", "sample.ELU", {1, 8, 2, 2});
  LargerOption options[3];
  for (LargerOption& option : options) option.later = 7;
  uint32_t count = 0;
  ASSERT_EQ(elu.kernel->layouts(&elu.binding, &options[0].known, sizeof options[0], 3, &count),
            TANDEM_OK);
  ASSERT_EQ(count, 3u);
  EXPECT_EQ(options[1].known.input, TANDEM_NHWC);
  EXPECT_EQ(options[2].known.input, TANDEM_NCHW8C);
  for (const LargerOption& option : options) EXPECT_EQ(option.later, 7);
}

TEST(Sdk, AnInputReadAsElementsOfAnotherSizeIsRefused) {
  Bound elu("elu", "sample.ELU", {1, 1, 1, 2});
  elu.tensor.dtype = TANDEM_BFLOAT16;
  ASSERT_EQ(elu.prepare(), TANDEM_OK);
  std::vector<uint16_t> x(2), y(2);
  void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  tandem_pass pass{};
  pass.struct_size = sizeof pass;
  pass.inputs = inputs;
  pass.outputs = outputs;
  EXPECT_EQ(elu.kernel->forward(elu.handle, &elu.call, &pass), TANDEM_FAILED);
  EXPECT_EQ(take_reason(),
            "the kernel reads input 0 as elements of 4 bytes, but it has elements of 2");
}

TEST(Sdk, RowsOfATensorAreSpans) {
  float values[6]{0, 1, 2, 3, 4, 5};
  const sdk::TensorView<float> view(values, 2, 6);
  const std::span<float> all = view;
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(view.rows(), 2);
  EXPECT_THAT(view.row(1), ElementsAre(3, 4, 5));
  EXPECT_EQ(sdk::TensorView<float>(nullptr, 2, 6).size(), 0u);
}

// What lies on a device cannot be read here by accident.
template <class Pointer>
concept IsReadable = requires(Pointer p) {
  *p;
}
|| requires(Pointer p) {
  p[0];
};
static_assert(IsReadable<sdk::TensorView<float>>);
static_assert(!IsReadable<sdk::DevicePointer<float>>);
static_assert(!std::is_convertible_v<sdk::DevicePointer<float>, const float*>);

TEST(Sdk, AKernelThatDeclaresNoActivationsSupportsNone) {
  EXPECT_EQ(Bound("elu", "sample.ELU", {2, 3, 4, 5}).kernel->fused_activations, 0u);
}

TEST(Sdk, ALayerTypeDeclaresItsParametersTraitsAndShapes) {
  Registry registry;
  registry.load(sample("elu"));
  const tandem_layer_type& type = registry.layer_type("sample.ELU");
  ASSERT_EQ(type.parameter_count, 1u);
  EXPECT_STREQ(type.parameters[0]->block, "sample_elu_param");
  EXPECT_STREQ(type.parameters[0]->default_value, "1");
  EXPECT_EQ(type.traits,
            uint64_t{TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS});
  const Shape input{2, 3, 4, 5};
  tandem_layer_query query{};
  query.struct_size = sizeof query;
  query.inputs = &input;
  query.input_count = query.output_count = 1;
  Shape output{};
  ASSERT_EQ(type.shapes(&query, &output), TANDEM_OK);
  EXPECT_TRUE(equal(output, input));
  EXPECT_EQ(type.weights, nullptr);
  EXPECT_EQ(type.cost, nullptr);
  tandem_layer_cost cost{};
  ASSERT_EQ(ask_cost(type, query, cost), TANDEM_OK);
  EXPECT_EQ(cost.forward_bytes, 8 * 120);
  EXPECT_EQ(cost.backward_data_flops, 120);
}

TEST(Sdk, AKernelWithoutAPassHasNullThere) {
  Registry registry;
  registry.load(sample("elu"));
  const tandem_kernel& kernel = registry.kernel("sample.ELU", "cpu");
  EXPECT_NE(kernel.forward, nullptr);
  EXPECT_NE(kernel.backward_data, nullptr);
  EXPECT_EQ(kernel.backward_weights, nullptr);
  EXPECT_EQ(kernel.backward, nullptr);
  EXPECT_EQ(kernel.forward_statistics, nullptr);
}

TEST(Sdk, AnElementWiseKernelSupportsEveryLayoutItsChannelsAllow) {
  Bound elu("elu", "sample.ELU", {1, 24, 1, 1});
  tandem_layout_option options[8];
  uint32_t count = 0;
  elu.binding.attributes = elu.attributes.handle();
  ASSERT_EQ(elu.kernel->layouts(&elu.binding, options, sizeof options[0], 8, &count), TANDEM_OK);
  ASSERT_EQ(count, 3u);  // 24 channels: no blocks of 16
  EXPECT_EQ(options[2].input, TANDEM_NCHW8C);
  ASSERT_EQ(elu.kernel->layouts(&elu.binding, options, sizeof options[0], 1, &count), TANDEM_OK);
  EXPECT_EQ(count, 1u);
}

TEST(Sdk, PassesReachTheAuthorsClass) {
  Bound elu("elu", "sample.ELU", {1, 1, 1, 3});
  elu.attributes.set("alpha", {.value = 2.0, .is_set = true, .location = {}});
  ASSERT_EQ(elu.prepare(), TANDEM_OK);
  const std::vector<float> x{-1, 0.5f, 3};
  std::vector<float> y(3), dx(3);
  const std::vector<float> dy{1, 10, 100};
  void* inputs[] = {const_cast<float*>(x.data())};
  void* outputs[] = {y.data()};
  const void* output_gradients[] = {dy.data()};
  void* input_gradients[] = {dx.data()};
  tandem_pass pass{};
  pass.struct_size = sizeof pass;
  pass.inputs = inputs;
  pass.outputs = outputs;
  pass.output_gradients = output_gradients;
  pass.input_gradients = input_gradients;
  ASSERT_EQ(elu.kernel->forward(elu.handle, &elu.call, &pass), TANDEM_OK);
  const float e = 2 * std::expm1(-1.0f);
  EXPECT_THAT(y, Pointwise(testing::FloatEq(), {e, 0.5f, 3.0f}));
  ASSERT_EQ(elu.kernel->backward_data(elu.handle, &elu.call, &pass), TANDEM_OK);
  EXPECT_THAT(dx, Pointwise(FloatNear(1e-6f), {2 * std::exp(-1.0f), 10.0f, 100.0f}));
}

TEST(Sdk, AnExceptionOfAClassBecomesAStatusAndAReason) {
  Bound elu("elu", "sample.ELU", {1, 1, 1, 3});
  elu.attributes = {};
  EXPECT_EQ(elu.prepare(), TANDEM_INVALID);
  EXPECT_EQ(elu.handle, nullptr);
  EXPECT_EQ(take_reason(), "parameter 'alpha' was not declared");
}

TEST(Sdk, WeightsAreCountedBeyondTheCapacityGiven) {
  Registry registry;
  registry.load(sample("channel_scale"));
  Attributes attributes;
  attributes.set("filler", {.value = Filler{}, .is_set = false, .location = {}});
  const Shape input{2, 3, 4, 5};
  tandem_layer_query query{};
  query.struct_size = sizeof query;
  query.attributes = attributes.handle();
  query.inputs = &input;
  query.input_count = query.output_count = 1;
  const tandem_layer_type& type = registry.layer_type("sample.ChannelScale");
  uint32_t count = 0;
  ASSERT_EQ(type.weights(&query, nullptr, sizeof(tandem_weight), 0, &count), TANDEM_OK);
  EXPECT_EQ(count, 1u);
  tandem_weight weight{};
  ASSERT_EQ(type.weights(&query, &weight, sizeof weight, 1, &count), TANDEM_OK);
  EXPECT_STREQ(weight.name, "scale");
  EXPECT_TRUE(equal(weight.shape, {3, 1, 1, 1}));
  EXPECT_EQ(weight.filler, nullptr);
  EXPECT_EQ(weight.initial, 1);
}

TEST(Sdk, WeightGradientsAccumulateOnlyOnRequest) {
  Bound scale("channel_scale", "sample.ChannelScale", {2, 2, 1, 2});
  scale.weight_shapes = {{2, 1, 1, 1}};
  ASSERT_EQ(scale.prepare(), TANDEM_OK);
  std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> factors{2, 3};
  std::vector<float> gradient{100, 100};
  const std::vector<float> dy{1, 1, 1, 1, 2, 2, 2, 2};
  void* inputs[] = {x.data()};
  void* weights[] = {factors.data()};
  void* weight_gradients[] = {gradient.data()};
  const void* output_gradients[] = {dy.data()};
  tandem_pass pass{};
  pass.struct_size = sizeof pass;
  pass.inputs = inputs;
  pass.weights = weights;
  pass.weight_gradients = weight_gradients;
  pass.output_gradients = output_gradients;
  ASSERT_EQ(scale.kernel->backward_weights(scale.handle, &scale.call, &pass), TANDEM_OK);
  EXPECT_THAT(gradient, ElementsAre(25, 37));
  pass.flags = TANDEM_ACCUMULATE;
  ASSERT_EQ(scale.kernel->backward_weights(scale.handle, &scale.call, &pass), TANDEM_OK);
  EXPECT_THAT(gradient, ElementsAre(50, 74));
}

TEST(Sdk, AModuleOpenedTwiceOffersTheSame) {
  Registry first;
  const std::vector<std::string> offers = first.load(sample("channel_scale")).offers;
  Registry second;
  EXPECT_EQ(second.load(sample("channel_scale")).offers, offers);
  EXPECT_EQ(second.layer_type("sample.ChannelScale").parameter_count, 1u);
}

// The struct of a host of an older minor version ends earlier; what lies behind it is not ours.
TEST(Sdk, WritesNoFieldThatTheStructOfTheHostDoesNotCover) {
  tandem_layer_cost cost{};
  cost.struct_size = offsetof(tandem_layer_cost, forward_bytes);
  cost.forward_bytes = -1;
  sdk::give({sizeof(tandem_layer_cost), 1, 2, 3, 4, 5, 6}, &cost);
  EXPECT_EQ(cost.struct_size, offsetof(tandem_layer_cost, forward_bytes)) << "it is the host's";
  EXPECT_EQ(cost.backward_weights_flops, 3);
  EXPECT_EQ(cost.forward_bytes, -1);
  const tandem_layer_cost copy = sdk::covered(cost);
  EXPECT_EQ(copy.forward_flops, 1);
  EXPECT_EQ(copy.forward_bytes, 0);
}

TEST(Sdk, RefusesFlagsThatChangeWhatAKernelComputes) {
  EXPECT_NO_THROW(sdk::require_known_flags(1U << 15U | TANDEM_ADD_TO_OUTPUT));
  try {
    sdk::require_known_flags(1U << 16U);
    ADD_FAILURE() << "it is ignored";
  } catch (const sdk::Refusal& refusal) {
    EXPECT_EQ(refusal.status(), TANDEM_UNSUPPORTED);
    EXPECT_THAT(refusal.what(), testing::HasSubstr("does not know the flags 65536"));
  }
}

}  // namespace
}  // namespace tandem
