#include "core/run/trainer.h"
#include "include/tandem/net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "include/tandem/evaluate.h"
#include "include/tandem/predict.h"
#include "tests/support/mean_image_file.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class Training : public Runs {};

TEST_F(Training, TheNetLearnsTheClasses) {
  TrainOptions o = options(60);
  o.test_interval = 60;
  Observer quiet;
  const TrainResult result = train(o, quiet);
  EXPECT_EQ(result.last.samples, 15);
  EXPECT_GE(result.last.top1, 0.9);
  EXPECT_EQ(result.last.top5, 1.0);
}

TEST_F(Training, AFolderThatHoldsARunIsNotOverwritten) {
  const TrainOptions o = options(2);
  (void)run(o);
  EXPECT_THAT(failure_of(o), HasSubstr("already holds a run"));
}

TEST_F(Training, ALossThatIsNotFiniteNamesStepAndLayer) {
  TrainOptions o = options(50);
  o.rate = 1e30;
  const std::string message = failure_of(o);
  EXPECT_THAT(message, HasSubstr("the loss is not finite"));
  EXPECT_THAT(message, testing::ContainsRegex(
                           "step [0-9]+: .*the first value that is not: (layer '|the weights ')"));
}

TEST_F(Training, MoreDevicesThanRowsIsAnError) {
  TrainOptions o = options(2);
  o.batch = 2;
  o.devices = "cpu:3";
  EXPECT_THAT(failure_of(o), testing::AllOf(HasSubstr("batch 2"), HasSubstr("3 devices")));
}

TEST_F(Training, TheRunFolderHoldsItsFiles) {
  TrainOptions o = options(12);
  o.test_interval = 6;
  o.display = 3;
  (void)run(o);
  for (const char* name :
       {"run.json", "net.prototxt", "solver.prototxt", "classes.txt", "metrics.csv", "log.txt",
        "timeline.json", "plan.txt", "last.safetensors", "last.state.safetensors",
        "best.safetensors", "best.state.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(o.out / name)) << name;
  }
  std::ifstream metrics(o.out / "metrics.csv");
  std::string line;
  int training_rows = 0, validation_rows = 0;
  while (std::getline(metrics, line)) {
    training_rows += line.find(",train,") != std::string::npos ? 1 : 0;
    validation_rows += line.find(",val,") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(training_rows, 7);  // steps 1, 3, 6, 9, 12, and 4 and 8, which end epochs
  EXPECT_EQ(validation_rows, 2);
}

TEST_F(Training, AStopBeforeTheFirstStepLeavesNothing) {
  const std::atomic<bool> stop{true};
  TrainOptions o = options(12);
  o.stop = &stop;
  Observer quiet;
  const TrainResult result = train(o, quiet);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.steps, 0);
  EXPECT_EQ(result.run, "");
  EXPECT_FALSE(std::filesystem::exists(o.out));
}

// The mean image is copied to the folder before.
TEST_F(Training, ARunWithAMeanImageCanBeginAgainAfterAStopBeforeTheFirstStep) {
  std::atomic<bool> stop{true};
  TrainOptions o = options(1);
  const auto mean = folder_->path() / "mean.binaryproto";
  std::ofstream(mean) << mean_image_file(3, 20, 20, std::vector<float>(1200, 80));
  o.data_parameters.erase("mean");
  o.data_parameters["mean_image"] = mean.string();
  o.stop = &stop;
  Observer quiet;
  (void)train(o, quiet);
  EXPECT_FALSE(std::filesystem::exists(o.out));
  stop = false;
  EXPECT_EQ(failure_of(o), "no error");
}

TEST_F(Training, TestingIsExactWithAPartialBatchOnAnyDevices) {
  const TrainOptions o = options(30);
  (void)run(o);
  Observer quiet;
  TestOptions how;
  how.run = o.out;
  how.data = o.data;
  how.split = "val";
  how.devices = "cpu:1";
  how.weights = "last";
  how.batch = 15;
  const Evaluation whole = test_run(how, quiet).evaluation;
  for (const int64_t batch : {1, 4, 7}) {
    how.batch = batch;
    how.devices = batch >= 4 ? "cpu:3" : "cpu:1";
    const Evaluation parts = test_run(how, quiet).evaluation;
    EXPECT_EQ(parts.samples, 15);
    EXPECT_EQ(parts.top1, whole.top1) << batch;
    EXPECT_EQ(parts.confusion, whole.confusion) << batch;
    EXPECT_NEAR(parts.loss, whole.loss, 1e-5) << batch;
  }
}

TEST_F(Training, ADamagedImageIsLeftOutCountedAndListed) {
  TrainOptions o = options(12);
  TempFolder own;
  make_image_folder(own.path(), "train", 3, 16);
  make_image_folder(own.path(), "val", 3, 3);
  std::ofstream(own.path() / "train" / "a" / "broken.ppm") << "P6\n24 24\n255\nmuch too short";
  o.data = own.path().string();
  (void)run(o);
  std::ifstream skipped(o.out / "skipped.txt");
  std::string line;
  ASSERT_TRUE(std::getline(skipped, line));
  EXPECT_THAT(line, HasSubstr("broken.ppm: "));
}

TEST_F(Training, PredictionsHaveTheRunsClassNames) {
  const TrainOptions o = options(60);
  (void)run(o);
  Predictor predictor(o.out);
  const auto image = std::filesystem::path(o.data) / "val" / "b" / "val1_0.ppm";
  const std::vector<Prediction> predictions = predictor.predict({image}, 3);
  ASSERT_EQ(predictions.size(), 1U);
  ASSERT_EQ(predictions[0].scores.size(), 3U);
  EXPECT_EQ(predictions[0].scores[0].name, "b");
  double sum = 0;
  for (const auto& score : predictions[0].scores) sum += score.value;
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST_F(Training, AnUnusableImageIsAPredictionWithItsReason) {
  const TrainOptions o = options(2);
  (void)run(o);
  TempFolder own;
  std::ofstream(own.path() / "x.jpg") << "no image";
  Predictor predictor(o.out);
  const std::vector<Prediction> predictions = predictor.predict({own.path() / "x.jpg"});
  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_FALSE(predictions[0].error.empty());
}

TEST_F(Training, AFrozenBiasStaysAndTheRestTrains) {
  TrainOptions o = options(8);
  o.net_text =
      NetWriter("frozen")
          .data(20)
          .layer(
              "conv1", "Convolution",
              "param { lr_mult: 1 } param { lr_mult: 0 } convolution_param { num_output: 8 "
              "kernel_size: 5 "
              "weight_filler { type: \"xavier\" } bias_filler { type: \"constant\" value: 0.25 } }")
          .layer("score", "InnerProduct",
                 "param { lr_mult: 0 } param { lr_mult: 1 } inner_product_param { num_output: 3 "
                 "weight_filler { type: \"xavier\" } }")
          .loss()
          .text();
  const Weights after = run(o);
  EXPECT_EQ(after.at("conv1.bias"), std::vector<float>(8, 0.25F));
  EXPECT_NE(after.at("score.bias"), std::vector<float>(3, 0.0F));
}

TEST_F(Training, ValidationImagesAreResizedToTheNet) {
  TempFolder own;
  make_image_folder(own.path(), "train", 3, 8, 20);
  make_image_folder(own.path(), "val", 3, 4, 31);
  TrainOptions o = options(30);
  o.data = own.path().string();
  o.data_parameters = {{"scale", "0.02"}, {"mean", "80"}};
  o.net_text =
      NetWriter("any_size")
          .data()
          .layer("conv1", "Convolution",
                 "convolution_param { num_output: 8 kernel_size: 5 weight_filler { type: "
                 "\"xavier\" } }")
          .layer("relu1", "ReLU")
          .layer("score", "InnerProduct",
                 "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } }")
          .loss()
          .text();
  Observer quiet;
  const TrainResult result = train(o, quiet);
  TestOptions how;
  how.run = o.out;
  how.data = o.data;
  how.split = "val";
  how.weights = "last";
  const Evaluation again = test_run(how, quiet).evaluation;
  EXPECT_EQ(result.last.samples, 12);
  EXPECT_NEAR(result.last.loss, again.loss, 1e-5);
  EXPECT_EQ(result.last.confusion, again.confusion);
}

TEST_F(Training, WeightsThatAreNotFiniteAreNeverSaved) {
  TrainOptions o = options(6);
  o.test_interval = 1;
  o.rate = 3e37;
  const std::string message = failure_of(o);
  EXPECT_THAT(message, HasSubstr("not finite"));
  if (!std::filesystem::exists(o.out / "last.safetensors")) return;
  for (const auto& [name, values] : weights_in(o.out / "last.safetensors")) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_F(Training, AFolderWithOtherFilesIsRefused) {
  TrainOptions o = options(2);
  std::filesystem::create_directories(o.out);
  std::ofstream(o.out / "net.prototxt") << "the user's own";
  EXPECT_THAT(failure_of(o), HasSubstr("holds files that are not a run's"));
  EXPECT_EQ(read_text(o.out / "net.prototxt"), "the user's own");
}

// Moves the run folder when all is saved: the list of damaged images is the last thing written.
struct Mover : Observer {
  explicit Mover(std::filesystem::path run) : run(std::move(run)) {}
  void on_message(const std::string& text) override {
    if (text.find("left out, listed in") != std::string::npos) {
      std::filesystem::rename(run, run.string() + "-moved");
    }
    last = text;
  }
  std::filesystem::path run;
  std::string last;
};

TEST_F(Training, ARunFolderThatIsMovedAtTheEndIsNotSaidToHoldTheRun) {
  TempFolder own;
  make_image_folder(own.path(), "train", 3, 12);
  std::ofstream(own.path() / "train" / "a" / "x.ppm") << "P6\n24 24\n255\nshort";
  TrainOptions o = options(4);
  o.data = own.path().string();
  Mover mover(o.out);
  EXPECT_EQ(train(o, mover).run, "");
  EXPECT_THAT(mover.last, HasSubstr("was moved, replaced or removed after step 4: the run is"));
}

TEST_F(Training, ValidationImagesThatAreAllDamagedAreAnError) {
  TempFolder own;
  make_image_folder(own.path(), "train", 2, 12);
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(own.path() / "val" / name);
    std::ofstream(own.path() / "val" / name / "x.ppm") << "P6\n24 24\n255\nshort";
  }
  TrainOptions o = options(4);
  o.data = own.path().string();
  o.adapt_classes = true;
  EXPECT_THAT(failure_of(o), HasSubstr("all 2 images cannot be used"));
  EXPECT_TRUE(std::filesystem::exists(o.out / "last.safetensors")) << "the steps done are kept";
}

}  // namespace
}  // namespace tandem::test
