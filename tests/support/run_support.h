// Short training runs for tests: a small net with everything that could make a difference between
// devices (groups, LRN, pooling, dropout, random crops and mirroring, momentum, decay), on a small
// folder of images.
#pragma once

#include <algorithm>
#include <cmath>

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/model/adapted/classes.h"
#include "core/model/file/definition.h"
#include "core/plugin/registry.h"
#include "core/run/trainer.h"
#include "include/tandem/net.h"
#include "tests/support/image_folders.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/temp_folder.h"

namespace tandem::test {

// In ThreadSanitizer builds a device's team is one thread (plugins/cpu/team.h), so that there is no
// other order of summation that could give a tolerance.
#if defined(__SANITIZE_THREAD__)
constexpr bool teams_are_one_thread = true;
#else
constexpr bool teams_are_one_thread = false;
#endif

inline NetDefinition small_net() {
  const std::string filler =
      "weight_filler { type: \"xavier\" } bias_filler { type: \"constant\" value: 0.1 }";
  return read_net_text(
      NetWriter("small")
          .data(20)
          .layer("conv1", "Convolution",
                 "param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } convolution_param { "
                 "num_output: 16 kernel_size: 5 "
                 "stride: 1 pad: 2 " +
                     filler + " }")
          .layer("relu1", "ReLU", {"conv1"}, {"conv1"})
          .layer("norm1", "LRN", "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")
          .layer("pool1", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
          .layer(
              "conv2", "Convolution",
              "convolution_param { num_output: 16 kernel_size: 3 pad: 1 group: 2 " + filler + " }")
          .layer("relu2", "ReLU", {"conv2"}, {"conv2"})
          .layer("pool2", "Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }")
          .layer("fc3", "InnerProduct", "inner_product_param { num_output: 32 " + filler + " }")
          .layer("relu3", "ReLU", {"fc3"}, {"fc3"})
          .layer("drop3", "Dropout", {"fc3"}, {"fc3"}, "dropout_param { dropout_ratio: 0.5 }")
          .layer("score", "InnerProduct", "inner_product_param { num_output: 3 " + filler + " }")
          .loss()
          .text());
}

using Weights = std::map<std::string, std::vector<float>>;

inline Weights weights_in(const std::filesystem::path& file) {
  Weights weights;
  for (auto& [name, array] : read_safetensors(file).arrays) weights[name] = std::move(array.values);
  return weights;
}

// 12 images a step at a rate of 0.01, not evaluated in between, into a new folder in `folder`. What
// is learnt from the caller says.
inline TrainOptions short_run(const TempFolder& folder, int64_t steps) {
  TrainOptions o;
  o.batch = 12;
  o.steps = steps;
  o.rate = 0.01;
  o.seed = 5;
  o.test_interval = 1000;
  static int number = 0;
  o.out = folder.path() / ("run" + std::to_string(++number));
  return o;
}

// small_net() on made-up images of five classes.
inline TrainOptions synthetic_run(const TempFolder& folder, int64_t steps) {
  TrainOptions o = short_run(folder, steps);
  o.data = "synthetic";
  o.data_parameters = {{"class_count", "5"}, {"size", "60"}, {"val_size", "15"}, {"scale", "0.02"}};
  o.net_text = write_net(with_class_count(small_net(), 5));
  return o;
}

// What a run ends with.
inline Weights run(const TrainOptions& o, const Strategies& known = built_in_strategies()) {
  Observer quiet;
  return weights_in(train(o, quiet, known).run / "last.safetensors");
}

class Runs : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    make_image_folder(folder_->path() / "data", "train", 3, 16);
    make_image_folder(folder_->path() / "data", "val", 3, 5);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  void SetUp() override {
    Registry registry = Registry::with_defaults();
    const auto names = registry.datasets();
    if (std::find(names.begin(), names.end(), "image_folder") == names.end()) {
      GTEST_SKIP() << "the image_folder data set is not built (no OpenCV)";
    }
  }

  static TrainOptions options(int64_t steps = 20) {
    TrainOptions o = short_run(*folder_, steps);
    o.data = (folder_->path() / "data").string();
    o.net_text = write_net(small_net());
    o.data_parameters = {{"mirror", "true"}, {"resize", "22"}, {"scale", "0.02"}, {"mean", "80"}};
    return o;
  }
  // What the run is refused with, or fails with.
  static std::string failure_of(const TrainOptions& o) {
    try {
      (void)run(o);
    } catch (const Error& failure) {
      return failure.what();
    }
    return "no error";
  }

  static TempFolder* folder_;
};
inline TempFolder* Runs::folder_ = nullptr;

// The largest |a - b| of any array relative to how far `a` has moved from `start`. Infinite where
// something is no number, or an array differs that has not moved.
inline double max_difference(const Weights& a, const Weights& b, const Weights& start) {
  double largest = 0;
  for (const auto& [name, values] : a) {
    double moved = 0, difference = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      moved = std::max(moved, std::abs(static_cast<double>(values[i]) - start.at(name)[i]));
      const double apart = std::abs(static_cast<double>(values[i]) - b.at(name)[i]);
      if (!(apart <= difference)) difference = apart;
      if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    }
    if (difference > 0) largest = std::max(largest, difference / moved);
  }
  return largest;
}

}  // namespace tandem::test
