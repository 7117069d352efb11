// Activations that kernels fuse give the same weights as separate activations, bit for bit,
// with every strategy.
#include <gtest/gtest.h>

#include "tests/train/rectified_net.h"
#include "tests/train/strategy_runs.h"

namespace tandem::test {
namespace {

class RectifiedRuns : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {
 protected:
  static Weights run_of(const StrategyCase& c, bool looked_at) {
    TrainOptions o = many(c, 8);
    o.net_text = write_net(rectified_net(looked_at));
    if (c.strategy == "two_phase") o.strategy_options["split"] = "fc4";
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, RectifiedRuns,
                         testing::Values(StrategyCase{"sequential", 1},
                                         StrategyCase{"sequential", 2},
                                         StrategyCase{"two_phase", 3}, StrategyCase{"layerwise", 2},
                                         StrategyCase{"hybrid", 3, conv_and_fc(2, 1)},
                                         StrategyCase{"asymmetric", 2, in_groups("E=0/W=1")},
                                         StrategyCase{"asymmetric", 3, in_groups("E=1/W=0,2")},
                                         StrategyCase{"fc_parallel", 2, with_quota(2)},
                                         StrategyCase{"fc_parallel", 3, eager(1)}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(RectifiedRuns, GiveTheBitsOfRunsWithReluLayers) {
  ASSERT_EQ(fusion_text(rectified_net(false), "cpu", TANDEM_TRAIN), 4) << "not after fc5";
  ASSERT_EQ(fusion_text(rectified_net(false), "cpu", TANDEM_TEST), 4);
  ASSERT_EQ(fusion_text(rectified_net(true), "cpu", TANDEM_TRAIN), 0);
  EXPECT_EQ(run_of(GetParam(), false), run_of(GetParam(), true));
}

}  // namespace
}  // namespace tandem::test
