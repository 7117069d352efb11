// The batch that the memory of the devices allows.
#include "core/run/setup/recipe.h"
#include "core/run/setup/setup.h"

#include <gtest/gtest.h>

#include <set>

#include "core/device/machine.h"
#include "core/run/setup/setup.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

class BatchMemory : public Runs {
 protected:
  BatchMemory() : setup_(resolve(registry_, options(1))) {}
  [[nodiscard]] int64_t batch_with(int64_t available) {
    return batch_in_memory(registry_, setup_, 64, 4, available);
  }

  Registry registry_ = Registry::with_defaults();
  TrainSetup setup_;
};

TEST_F(BatchMemory, IsThatOfTheDevices) {
  const tandem_backend& cpu = registry_.backend("cpu");
  tandem_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(cpu.describe(0, &info), TANDEM_OK);
  const int64_t available = available_memory(registry_, setup_);
  EXPECT_GT(available, info.memory_bytes / 100);
  EXPECT_LE(available, info.memory_bytes);
}

TEST_F(BatchMemory, HalvesTheBatchUntilAStepFits) {
  EXPECT_EQ(batch_with(0), 64);  // not known
  EXPECT_EQ(batch_with(int64_t{1} << 40), 64);
  EXPECT_EQ(batch_with(1), 4);  // the least
  int64_t before = 4;
  std::set<int64_t> chosen;
  for (int64_t available = 1 << 12; available < 1 << 28; available += available / 2) {
    const int64_t batch = batch_with(available);
    EXPECT_GE(batch, before) << available;
    chosen.insert(before = batch);
  }
  EXPECT_EQ(chosen, (std::set<int64_t>{4, 8, 16, 32, 64}));
}

TEST_F(BatchMemory, IsLargerWhereActivationsAreComputedAgain) {
  NetWriter net("norms");
  net.data(20);
  for (const char* number : {"1", "2", "3", "4"}) {
    net.layer(std::string("conv") + number, "Convolution",
              "convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "
              "\"msra\" "
              "} }")
        .layer(std::string("norm") + number, "BatchNorm", "batch_norm_param { scale_bias: true }");
  }
  net.layer("score", "InnerProduct", "inner_product_param { num_output: 3 }").loss();
  TrainOptions norms = options(1);
  norms.net_text = net.text();
  const auto min_for_all = [&](bool recompute) {
    norms.recompute = recompute;
    setup_ = resolve(registry_, norms);
    int64_t available = 1 << 20;
    while (batch_with(available) < 64) available += available / 16;
    return available;
  };
  EXPECT_LT(min_for_all(true), min_for_all(false));
}

TEST_F(BatchMemory, IsDividedAmongItsDevices) {
  // Weights are on each device, so two of them need more in all.
  const auto min_for_all = [this](const char* devices) {
    setup_.record.options.devices = devices;
    int64_t available = 1 << 12;
    while (batch_with(available) < 64) available += available / 16;
    return available;
  };
  EXPECT_LT(min_for_all("cpu:1"), min_for_all("cpu:2"));
}

}  // namespace
}  // namespace tandem::test
