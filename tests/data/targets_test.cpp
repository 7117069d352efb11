// Mixed samples and class weights: images and labels, whatever the threads and damaged neighbors
// are.
#include "core/data/targets.h"

#include <gmock/gmock.h>

#include <numeric>

#include "core/data/loader/loader.h"
#include "tests/data/batches.h"
#include "tests/data/data_sets.h"

namespace tandem {
namespace {

using test::message_of;
using test::scripted;
using testing::ElementsAre;
using testing::HasSubstr;

struct MixedContents {
  std::vector<float> labels, pixels, targets;
  bool operator==(const MixedContents&) const = default;
};

MixedContents take(const Dataset& data, const LoaderOptions& options, int count) {
  Loader loader(data, options, test::host_memory());
  const BatchLayout& layout = loader.layout();
  MixedContents all;
  for (int i = 0; i < count; ++i) {
    const Batch batch = loader.next();
    const auto append = [&](std::vector<float>& to, int64_t offset, int64_t elements) {
      const auto* from = reinterpret_cast<const float*>(batch.memory + offset);
      to.insert(to.end(), from, from + layout.rows * elements);
    };
    append(all.labels, layout.label_offset, 1);
    append(all.pixels, layout.data_offset, element_count(layout.sample));
    append(all.targets, layout.more_offsets.back(), element_count(layout.more.back()));
    loader.release(batch);
  }
  return all;
}

TargetOptions mixing(double mixup, double cutmix) {
  TargetOptions options;
  options.mixup = mixup;
  options.cutmix = cutmix;
  return options;
}
TargetOptions weighing(std::vector<float> weights) {
  TargetOptions options;
  options.class_weights = std::move(weights);
  return options;
}

LoaderOptions loading(int64_t batch, const TargetOptions& targets) {
  LoaderOptions options;
  options.batch = batch;
  options.targets = targets;
  options.targets.wanted = true;
  options.bad_share_limit = 1;
  return options;
}

TEST(Targets, AreTheSameForOneThreadAndForFour) {
  const Dataset data =
      scripted({{"size", "37"}, {"bad", "5,11"}, {"slow", "3,20"}, {"delay_ms", "3"}});
  LoaderOptions options = loading(10, mixing(0.4, 1));
  options.threads = 1;
  const MixedContents one = take(data, options, 8);
  options.threads = 4;
  EXPECT_EQ(take(data, options, 8), one);
}

TEST(Targets, AreTheClassWeightsAndZeroForARowWithoutASample) {
  const Dataset data = scripted({{"size", "3"}});
  LoaderOptions options = loading(4, weighing({0.5F, 2}));
  options.shuffle = options.wrap = false;
  EXPECT_THAT(take(data, options, 1).targets, ElementsAre(0.5F, 0, 0, 2, 0.5F, 0, 0, 0));
}

// Rows of random pixels of class 0 and 1, before and after mixing.
class MixedRows : public testing::Test {
 protected:
  void mix(const TargetOptions& options, uint64_t seed) {
    std::iota(a_.begin(), a_.end(), 1.0F);
    std::iota(b_.begin(), b_.end(), 1001.0F);
    target_a_ = {1, 0, 0};
    target_b_ = {0, 1, 0};
    label_a_ = 0;
    label_b_ = 1;
    mix_rows(options, shape_, 3, seed, {a_.data(), &label_a_, target_a_.data()},
             {b_.data(), &label_b_, target_b_.data()});
  }
  const Shape shape_{1, 2, 9, 11};
  std::vector<float> a_ = std::vector<float>(198), b_ = a_, target_a_, target_b_;
  float label_a_ = 0, label_b_ = 0;
};

TEST_F(MixedRows, BlendPixelsAndTargetsByOneShare) {
  double least = 1, most = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    mix(mixing(1, 0), seed);
    const float share = target_a_[0];
    EXPECT_FLOAT_EQ(target_a_[1], 1 - share);
    EXPECT_THAT(target_b_, ElementsAre(target_a_[1], target_a_[0], 0));
    for (size_t i = 0; i < a_.size(); ++i) {
      const auto first = static_cast<float>(i + 1), second = static_cast<float>(i + 1001);
      ASSERT_NEAR(a_[i], share * first + (1 - share) * second, 1e-2);
      ASSERT_NEAR(a_[i] + b_[i], first + second, 1e-2);
    }
    EXPECT_EQ(label_a_, share < 0.5 ? 1 : 0) << "the larger part's";
    EXPECT_EQ(label_b_, 1 - label_a_);
    least = std::min<double>(least, share);
    most = std::max<double>(most, share);
  }
  EXPECT_LT(least, 0.05) << "Beta(1, 1) is uniform";
  EXPECT_GT(most, 0.95);
}

TEST_F(MixedRows, WithASmallAlphaAreMostlyOneOfTheTwo) {
  int mixed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    mix(mixing(0.001, 0), seed);
    EXPECT_TRUE(target_a_[0] >= 0 && target_a_[0] <= 1);
    mixed += target_a_[0] > 0.01F && target_a_[0] < 0.99F ? 1 : 0;
  }
  EXPECT_LT(mixed, 10);
}

TEST_F(MixedRows, ExchangeABoxWithTheShareOfTheirTargets) {
  double sum = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    mix(mixing(0, 1), seed);
    int64_t kept = 0;
    for (size_t i = 0; i < a_.size(); ++i) {
      const auto own = static_cast<float>(i + 1), other = static_cast<float>(i + 1001);
      kept += a_[i] == own ? 1 : 0;
      ASSERT_TRUE((a_[i] == own && b_[i] == other) || (a_[i] == other && b_[i] == own));
      ASSERT_EQ(a_[i] == own, a_[i % 99] == static_cast<float>(i % 99 + 1)) << "in every channel";
    }
    EXPECT_NEAR(target_a_[0], static_cast<double>(kept) / 198, 1e-6);
    sum += static_cast<double>(target_a_[0]);
  }
  // A box with a uniform share keeps 0.32 of its area in the mean after clipping, and less after
  // rounding to pixels.
  EXPECT_NEAR(sum / 200, 0.69, 0.06);
}

TEST(Targets, ADamagedSampleIsNotMixed) {
  const Dataset data = scripted({{"size", "4"}, {"bad", "1"}});
  LoaderOptions options = loading(4, mixing(1, 0));
  options.shuffle = false;
  const MixedContents batch = take(data, options, 1);
  EXPECT_EQ(batch.pixels[0], 0) << "the first sample, as it is";
  EXPECT_THAT(std::vector<float>(batch.targets.begin(), batch.targets.begin() + 4),
              ElementsAre(1, 0, 0, 0));
  EXPECT_NE(batch.targets[4], 1);
  EXPECT_FLOAT_EQ(batch.targets[4] + batch.targets[5], 1);
}

TEST(Targets, RefuseInvalidOptions) {
  const auto refusal = [](TargetOptions options, bool wanted = true) {
    options.wanted = wanted;
    return message_of([&] { check_targets(options, 3); });
  };
  EXPECT_THAT(refusal(mixing(-1, 0)), HasSubstr("--mixup -1: shares are drawn from Beta(x, x)"));
  EXPECT_THAT(refusal(mixing(0, 1e6)), HasSubstr("--cutmix 1000000"));
  EXPECT_THAT(refusal(weighing({1, 2})), HasSubstr("2 class weights for 3 classes"));
  EXPECT_THAT(refusal(weighing({1, -2, 1})), HasSubstr("class weight -2"));
  EXPECT_THAT(refusal(weighing({0, 0, 0})), HasSubstr("all class weights are 0"));
  EXPECT_THAT(refusal(mixing(1, 0), false), HasSubstr("need a net that reads a weight"));
  EXPECT_EQ(refusal(weighing({0, 1, 2})), "");
}

}  // namespace
}  // namespace tandem
