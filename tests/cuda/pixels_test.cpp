// Training from bytes. On GPUs it is the default; there and on the cpu it gives the weights of
// training from floats, bit for bit, if pixels are only moved. On cpu devices the same tests show
// that they are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/classes.h"
#include "core/run/folder/run_folder.h"
#include "include/tandem/evaluate.h"
#include "include/tandem/predict.h"
#include "tests/cuda/machines.h"
#include "tests/support/cifar_files.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

// Parameter: the kind of the devices.
class TrainingOnBytes : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    make_cifar(folder_->path() / "cifar", 60, 20);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override {
    if (is_gpu(GetParam())) need_gpu();
  }
  static std::string devices(int count) {
    if (!is_gpu(GetParam())) return fmt::format("cpu:{}", count);
    std::string text = "cuda:0";
    for (int i = 1; i < count; ++i) text += ",0";
    return text;
  }
  static TrainOptions options(const std::string& on, const std::string& pixels,
                              const std::string& strategy = "layerwise", int64_t steps = 6) {
    TrainOptions o = short_run(*folder_, steps);
    o.data = (folder_->path() / "cifar").string();
    o.data_parameters = {{"mirror", "true"},      {"pad", "4"},
                         {"resize", "32"},        {"scale", "0.02"},
                         {"val_fraction", "0.2"}, {"mean", "104,117,123"}};
    o.net_text = write_net(with_class_count(small_net(), 10));
    o.devices = on;
    o.strategy = strategy;
    if (strategy == "two_phase") o.strategy_options["split"] = "fc3";
    o.pixels = pixels;
    return o;
  }
  static TempFolder* folder_;
};
TempFolder* TrainingOnBytes::folder_ = nullptr;
INSTANTIATE_TEST_SUITE_P(Devices, TrainingOnBytes, testing::Values("cpu", "cuda"),
                         [](const auto& info) { return info.param; });

TEST_P(TrainingOnBytes, GivesTheWeightsOfTrainingOnFloatsWithEveryStrategy) {
  for (const char* strategy :
       {"sequential", "two_phase", "layerwise", "hybrid", "asymmetric", "fc_parallel", "mixed"}) {
    const Weights floats = run(options(devices(2), "floats", strategy));
    EXPECT_TRUE(run(options(devices(2), "bytes", strategy)) == floats) << strategy;
  }
  EXPECT_EQ(run(options(devices(1), "bytes")), run(options(devices(1), "floats")));
}

TEST_P(TrainingOnBytes, IsTheDefaultOnGpusOnly) {
  const TrainOptions plain = options(devices(2), "auto", "layerwise", 2);
  TrainOptions mixed = options(devices(2), "", "layerwise", 2);
  mixed.mixup = 0.3;
  TrainOptions made_up = options(devices(1), "", "layerwise", 2);
  made_up.data = "synthetic";
  made_up.data_parameters = {{"class_count", "10"}, {"size", "60"}, {"val_size", "15"}};
  for (const TrainOptions& o : {plain, mixed, made_up}) run(o);
  const auto chosen = [](const TrainOptions& o) {
    return RunFolder::open(o.out).record().options.pixels;
  };
  EXPECT_EQ(chosen(plain), is_gpu(GetParam()) ? "bytes" : "floats");
  EXPECT_EQ(chosen(mixed), "floats");
  EXPECT_EQ(chosen(made_up), "floats");
}

TEST_P(TrainingOnBytes, GivesTheSameBitsUnderRandomStreamDelays) {
  const Weights plain = run(options(devices(2), "bytes", "two_phase"));
  TrainOptions delayed = options(devices(2), "bytes", "two_phase");
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

// The pixels are the same whichever device converts them to floats.
TEST_P(TrainingOnBytes, ContinuesOnTheCpuWithBytes) {
  TrainOptions half = options(devices(2), "bytes", "layerwise", 3);
  half.data_parameters["crop_area"] = "0.4,1";
  half.data_parameters.erase("pad");
  run(half);
  TrainOptions rest;
  rest.out = half.out;
  rest.resume = true;
  rest.steps = 6;
  rest.devices = "cpu:2";
  run(rest);
  EXPECT_EQ(RunFolder::open(half.out).record().options.pixels, "bytes");
  Observer quiet;
  TestOptions testing;
  testing.run = half.out;
  testing.split = "val";
  testing.devices = devices(1);
  const TestResult there = test_run(testing, quiet);
  EXPECT_EQ(there.pixels, "bytes");
  testing.devices = "cpu:1";
  const TestResult here = test_run(testing, quiet);
  EXPECT_NEAR(there.evaluation.loss, here.evaluation.loss, 1e-4);
}

}  // namespace
}  // namespace tandem::test
