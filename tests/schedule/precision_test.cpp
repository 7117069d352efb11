// What a net's precision changes in updates: nothing but the loss scale of float16. That gradients
// begin with it is in strategies_test.cpp, the flag of TF32 in kernels_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"

namespace tandem::test {
namespace {

using testing::Each;

// The weights after an update by `gradient` with momentum, decay and clipping at a norm of 2.
std::vector<float> updated(float gradient, int32_t precision, double scale = 1024) {
  Maker maker(1);
  const Region weights = maker.constant("weights", 0, std::vector<float>(16, 1));
  const Region gradients = maker.constant("gradients", 0, std::vector<float>(16, gradient));
  const Region norms = maker.persistent("norms", 0, 4);
  const Region state = maker.persistent("state", 0, 16), step = maker.persistent("step", 0, 8),
               found_inf = maker.persistent("found_inf", 0, 1);
  UpdateWork update{{{0, weights, gradients, state, 64}}, step, found_inf};
  update.norms = norms;
  maker.task("norms", {compute(0)}, {weights, gradients}, {norms},
             NormWork{{{0, weights, gradients}}, norms});
  maker.task("update", {compute(0)}, {weights, gradients, state, step, found_inf, norms},
             {weights, state}, update);
  Net net;
  net.weight_floats = 16;
  net.weights.resize(1);
  net.weights[0].count = 16;
  net.layers.resize(1);
  net.layers[0].dtype = precision;
  net.loss_scale = scale;
  UpdateRule rule;
  rule.momentum = 0.9F;
  rule.weight_decay = 0.01F;
  rule.clip = 2;
  rule.micro_batches = 3;
  Rig rig(maker.derived(), cpu(), {}, {}, net, nullptr, rule);
  const tandem_step control{1, 0, 0.125F, 1, 0, 0};
  rig.runtime.write_persistent("step", 0, &control, sizeof control);
  rig.run(2);
  return rig.read("weights", 0, 16);
}

TEST(Precisions, OfFloat16ChangeNoBitOfAnUpdate) {
  for (const float gradient : {0.3F, 7.1F}) {  // norms of 1.2 and 28
    const std::vector<float> plain = updated(gradient, TANDEM_FLOAT32);
    EXPECT_THAT(plain, Each(testing::Lt(1)));
    EXPECT_EQ(updated(1024 * gradient, TANDEM_FLOAT16), plain);
    EXPECT_EQ(updated(64 * gradient, TANDEM_FLOAT16, 64), plain);
    EXPECT_EQ(updated(gradient, TANDEM_FLOAT32, 64), plain);
  }
}

}  // namespace
}  // namespace tandem::test
