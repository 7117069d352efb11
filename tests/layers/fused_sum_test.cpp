// A sum with another layer's output that is fused into a kernel (TANDEM_FUSED_SUM of
// tandem_binding) gives the bits of a separate Eltwise layer, and of a ReLU after it, also for NaN
// and for values that round to -0. It does not change the backward passes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layers/fused_relu.h"
#include "tests/support/computable.h"

namespace tandem::test {
namespace {

const Shape block_output{3, 16, 5, 7};

std::vector<LayerSetup> setups_that_add() {
  const Shape channels{16, 1, 1, 1};
  const std::vector<PlainTensor> weights{random_tensor(channels, 3),
                                         {channels, std::vector<float>(16, 2.0F)},
                                         {{1, 1, 1, 1}, {1.0F}},
                                         random_tensor(channels, 5),
                                         random_tensor(channels, 6)};
  LayerSetup norm{
      .type = "BatchNormScale", .inputs = {random_tensor(block_output, 12)}, .weights = weights};
  norm.addend = strange_tensor(block_output, 13);
  LayerSetup kept = norm, per_device = norm, tested = norm, flat = norm;
  kept.parameters = {{"use_global_stats", "true"}};
  kept.inputs = {strange_tensor(block_output, 14)};
  per_device.parameters = {{"per_device", "true"}};
  tested.phase = TANDEM_TEST;
  tested.flags = 0;
  flat.inputs = {random_tensor({9, 16, 1, 1}, 15)};
  flat.addend = strange_tensor({9, 16, 1, 1}, 16);
  return {norm, kept, per_device, tested, flat};
}

class FusedSum : public testing::TestWithParam<int32_t> {
 protected:
  // The setups in the dtype, in all layouts, with and without a fused ReLU.
  static std::vector<LayerSetup> offered() {
    std::vector<LayerSetup> result;
    if (!not_computable(GetParam()).empty()) return result;
    for (LayerSetup setup : setups_that_add()) {
      const tandem_kernel& kernel = kernel_of(setup);
      if (!knows(kernel, GetParam()) || kernel.fuses_sum != 1) continue;
      setup.input_dtype = setup.output_dtype = GetParam();
      for (const LayerSetup& one : in_every_layout(setup)) {
        result.push_back(one);
        if (can_fuse(one)) result.push_back(with_relu(one));
      }
    }
    return result;
  }
  static std::string text_of(const LayerSetup& setup) {
    return testing::PrintToString(setup.parameters) + " " + layout_text(setup) +
           (setup.activation == TANDEM_ACTIVATION_RELU ? ", with a ReLU" : "");
  }
  static LayerSetup without_sum(LayerSetup setup) {
    setup.addend = {};
    setup.activation = TANDEM_ACTIVATION_NONE;
    return setup;
  }
  static PlainTensor separately(const LayerSetup& setup) {
    LayerSetup sum{.type = "Eltwise"};
    sum.inputs = {LayerRun(without_sum(setup)).forward()[0], setup.addend};
    sum.input_layout = sum.output_layout = setup.output_layout;
    sum.input_dtype = sum.output_dtype = setup.output_dtype;
    const PlainTensor result = LayerRun(sum).forward()[0];
    return setup.activation == TANDEM_ACTIVATION_RELU ? through_relu(result, setup) : result;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, FusedSum,
                         testing::Values(TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16),
                         [](const testing::TestParamInfo<int32_t>& info) {
                           return std::string(dtype_name(info.param));
                         });

TEST_P(FusedSum, OutputsEqualThoseOfASeparateSum) {
  const std::vector<LayerSetup> setups = offered();
  if (setups.empty()) GTEST_SKIP() << "no kernel of this device that adds knows the dtype";
  for (const LayerSetup& setup : setups) {
    SCOPED_TRACE(text_of(setup));
    EXPECT_EQ(bits(LayerRun(setup).forward()[0]), bits(separately(setup)));
  }
}

TEST_P(FusedSum, OutputsInPlaceEqualThoseOfASeparateSum) {
  const std::vector<LayerSetup> setups = offered();
  if (setups.empty()) GTEST_SKIP() << "no kernel of this device that adds knows the dtype";
  for (LayerSetup setup : setups) {
    if (setup.phase == TANDEM_TRAIN) continue;  // the backward pass reads the input
    SCOPED_TRACE(text_of(setup));
    const PlainTensor expected = separately(setup);
    setup.flags |= TANDEM_RUNS_IN_PLACE;
    EXPECT_EQ(bits(LayerRun(setup).forward()[0]), bits(expected));
  }
}

TEST_P(FusedSum, BackwardPassesAreThoseWithoutIt) {
  const std::vector<LayerSetup> setups = offered();
  if (setups.empty()) GTEST_SKIP() << "no kernel of this device that adds knows the dtype";
  for (const LayerSetup& setup : setups) {
    if (setup.flags == 0) continue;
    SCOPED_TRACE(text_of(setup));
    LayerRun plain(without_sum(setup)), fused(setup);
    const PlainTensor gradient = random_tensor(plain.output_shapes()[0], 11);
    plain.forward();
    fused.forward();
    EXPECT_EQ(bits(fused.backward_data({gradient})[0]), bits(plain.backward_data({gradient})[0]));
    const auto actual = fused.backward_weights({gradient});
    const auto expected = plain.backward_weights({gradient});
    for (size_t i = 3; i < actual.size(); ++i) EXPECT_EQ(bits(actual[i]), bits(expected[i])) << i;
  }
}

}  // namespace
}  // namespace tandem::test
