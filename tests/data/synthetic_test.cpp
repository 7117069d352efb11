#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/data_sets.h"

namespace tandem {
namespace {

using test::data_registry;
using test::message_of;
using testing::AllOf;
using testing::HasSubstr;

Dataset make_synthetic(const test::Parameters& parameters, const Shape& shape = {1, 3, 16, 12},
                       const std::string& split = "train") {
  DatasetOptions options;
  options.source = "synthetic";
  options.shape = shape;
  options.parameters = parameters;
  options.split = split;
  return {data_registry(), options};
}

std::vector<float> synthetic_pixels(const Dataset& data, int64_t index, uint64_t seed = 1) {
  std::vector<float> pixels(static_cast<size_t>(element_count(data.shape())));
  float label = -5;
  std::string reason;
  EXPECT_EQ(data.get(index, seed, pixels.data(), &label, &reason), SampleStatus::good);
  EXPECT_EQ(label, static_cast<float>(index % data.class_count()));
  return pixels;
}

TEST(Synthetic, HasTheShapeOfTheNetOrItsDefault) {
  EXPECT_TRUE(equal(make_synthetic({}).shape(), {1, 3, 16, 12}));
  EXPECT_TRUE(equal(make_synthetic({}, {1, 0, 0, 0}).shape(), {1, 3, 32, 32}));
  EXPECT_TRUE(equal(make_synthetic({{"height", "9"}}, {1, 1, 0, 8}).shape(), {1, 1, 9, 8}));
  EXPECT_THAT(message_of([] {
                (void)make_synthetic({{"height", "9"}});
              }),
              AllOf(HasSubstr("'height' is 9"), HasSubstr("expects 16")));
}

TEST(Synthetic, ASampleIsAFunctionOfItsIndexAlone) {
  const Dataset data = make_synthetic({}), again = make_synthetic({{"size", "90"}});
  EXPECT_EQ(synthetic_pixels(data, 37), synthetic_pixels(again, 37));
  EXPECT_EQ(synthetic_pixels(data, 37, 1), synthetic_pixels(data, 37, 2));
  EXPECT_NE(synthetic_pixels(data, 37), synthetic_pixels(data, 47))
      << "another sample of the same class";
}

TEST(Synthetic, SplitsShareTheClassesButNoSample) {
  const Dataset train = make_synthetic({{"noise", "0"}});
  const Dataset val = make_synthetic({{"noise", "0"}}, {1, 3, 16, 12}, "val");
  EXPECT_EQ(synthetic_pixels(train, 3), synthetic_pixels(val, 3))
      << "without noise there is only the class";
  const Dataset noisy = make_synthetic({});
  const Dataset noisy_val = make_synthetic({}, {1, 3, 16, 12}, "val");
  EXPECT_NE(synthetic_pixels(noisy, 3), synthetic_pixels(noisy_val, 3));
}

TEST(Synthetic, TheNearestClassPatternIsNearlyAlwaysTheRightOne) {
  const Dataset patterns = make_synthetic({{"noise", "0"}});
  const Dataset noisy = make_synthetic({});
  int right = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const std::vector<float> sample = synthetic_pixels(noisy, i);
    double nearest = INFINITY;
    int64_t guess = -1;
    for (int64_t c = 0; c < 10; ++c) {
      const std::vector<float> pattern = synthetic_pixels(patterns, c);
      double distance = 0;
      for (size_t k = 0; k < sample.size(); ++k) distance += std::pow(sample[k] - pattern[k], 2);
      if (distance < nearest) {
        nearest = distance;
        guess = c;
      }
    }
    if (guess == i % 10) ++right;
  }
  EXPECT_GE(right, 195);
}

TEST(Synthetic, HasTheClassesOfAModel) {
  DatasetOptions options;
  options.source = "synthetic";
  options.class_names = {"a", "b", "c"};
  EXPECT_EQ(Dataset(data_registry(), options).class_names(), options.class_names);
  options.parameters = {{"class_count", "4"}};
  EXPECT_THAT(message_of([&] { Dataset(data_registry(), options); }),
              AllOf(HasSubstr("'class_count' is 4"), HasSubstr("3 classes")));
}

TEST(Synthetic, ScaleMultipliesEveryPixel) {
  const std::vector<float> plain = synthetic_pixels(make_synthetic({}), 5);
  const std::vector<float> halved = synthetic_pixels(make_synthetic({{"scale", "0.5"}}), 5);
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(halved[i], plain[i] / 2, 1e-4);
}

}  // namespace
}  // namespace tandem
