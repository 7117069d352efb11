#include "core/data/dataset.h"

#include <gmock/gmock.h>

#include <set>

#include "core/data/dataset_statistics.h"
#include "core/data/loader/loader.h"
#include "core/data/loader/sample_order.h"
#include "tests/data/data_sets.h"

namespace tandem {
namespace {

using test::data_registry;
using test::message_of;
using test::scripted;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Dataset, AnUnknownSourceNamesTheDataSetsAndTheNearOne) {
  DatasetOptions options;
  options.source = "synthetics";
  EXPECT_THAT(message_of([&] { Dataset(data_registry(), options); }),
              AllOf(HasSubstr("data 'synthetics'"), HasSubstr("scripted"),
                    HasSubstr("did you mean 'synthetic'?")));
}

TEST(Dataset, AnUndeclaredParameterIsRefusedWithTheNearName) {
  EXPECT_THAT(message_of([] {
                const Dataset data = scripted({{"sise", "4"}});
              }),
              AllOf(HasSubstr("data set 'scripted'"), HasSubstr("unknown parameter 'sise'"),
                    HasSubstr("did you mean 'size'?")));
}

TEST(Dataset, AParameterOutOfRangeNamesTheParameterAndTheValue) {
  EXPECT_THAT(message_of([] {
                const Dataset data = scripted({{"size", "-3"}});
              }),
              AllOf(HasSubstr("size"), HasSubstr("-3")));
}

TEST(Dataset, ARefusalOfThePluginIsTheMessage) {
  EXPECT_EQ(message_of([] {
              const Dataset data = scripted({{"size", "13"}});
            }),
            "data 'scripted': 13 samples bring bad luck");
}

TEST(Dataset, ADataSetWithoutSamplesIsRefused) {
  EXPECT_EQ(message_of([] {
              const Dataset data = scripted({{"size", "0"}});
            }),
            "data 'scripted': holds no sample");
}

TEST(Dataset, SamplesThatDoNotFitTheNetAreRefusedWithBothShapes) {
  DatasetOptions options = test::scripted_options({});
  options.shape = {1, 3, 32, 32};
  EXPECT_THAT(message_of([&] { Dataset(data_registry(), options); }),
              AllOf(HasSubstr("1x2x2"), HasSubstr("3x32x32")));
}

TEST(Dataset, ReportsTheValuesOfThePlugin) {
  const Dataset data = scripted({{"size", "5"}});
  EXPECT_EQ(data.size(), 5);
  EXPECT_EQ(data.class_names(), (std::vector<std::string>{"even", "odd"}));
  EXPECT_EQ(data.sample_name(3), "sample-3");
  EXPECT_EQ(data.notes(), "as given");
  EXPECT_TRUE(equal(data.shape(), {1, 1, 2, 2}));
}

TEST(Dataset, ADamagedSampleIsZerosWithLabelMinusOneAndAReason) {
  const Dataset data = scripted({{"bad", "2,4"}});
  std::vector<float> pixels(4, 5.0F);
  float label = 3;
  std::string reason;
  EXPECT_EQ(data.get(4, 1, pixels.data(), &label, &reason), SampleStatus::skipped);
  EXPECT_EQ(pixels, std::vector<float>(4, 0.0F));
  EXPECT_EQ(label, -1);
  EXPECT_EQ(reason, "is listed as damaged");
  EXPECT_EQ(data.get(3, 1, pixels.data(), &label, &reason), SampleStatus::good);
  EXPECT_EQ(label, 1);
}

TEST(Dataset, AFailureIsAnErrorThatNamesTheSample) {
  const Dataset data = scripted({{"failing", "6"}});
  std::vector<float> pixels(4);
  float label = 0;
  std::string reason;
  EXPECT_THAT(message_of([&] { data.get(6, 1, pixels.data(), &label, &reason); }),
              AllOf(StartsWith("sample 6 ('sample-6') of data set 'scripted' ("),
                    HasSubstr("): the disk is gone")));
}

TEST(Dataset, AClassThatDoesNotExistIsAnError) {
  const Dataset data = scripted({{"alien", "1"}});
  std::vector<float> pixels(4);
  float label = 0;
  std::string reason;
  EXPECT_THAT(message_of([&] { data.get(1, 1, pixels.data(), &label, &reason); }),
              AllOf(HasSubstr("sample-1"), HasSubstr("class 99")));
}

TEST(Dataset, ASampleThatDoesNotExistIsAnError) {
  const Dataset data = scripted();
  std::vector<float> pixels(4);
  float label = 0;
  std::string reason;
  EXPECT_THAT(message_of([&] { data.get(10, 1, pixels.data(), &label, &reason); }),
              HasSubstr("sample 10 does not exist"));
}

TEST(ChannelMeans, AreThoseOfTheGoodSamples) {
  // Pixel 0 is the index, pixel 1 the seed (0), pixels 2 and 3 are 7.
  const Dataset data = scripted({{"size", "4"}, {"bad", "3"}});
  EXPECT_THAT(channel_means(data, 100), testing::ElementsAre((0 + 1 + 2 + 3 * 14) / 12.0));
}

TEST(ChannelMeans, TakeEvenlySpacedSamples) {
  const Dataset data = scripted({{"size", "100"}});  // of which 0 and 50 are read
  EXPECT_THAT(channel_means(data, 2), testing::ElementsAre((0 + 50 + 2 * 14) / 8.0));
}

TEST(SampleOrder, EveryEpochHoldsEverySampleOnce) {
  const SampleOrder order(50, 7, true);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> met;
    for (int64_t i = 0; i < 50; ++i) met.insert(order.index(epoch * 50 + i));
    EXPECT_EQ(met.size(), 50U);
    EXPECT_EQ(*met.begin(), 0);
    EXPECT_EQ(*met.rbegin(), 49);
  }
}

std::vector<int64_t> indices(const SampleOrder& order, int64_t first, int64_t count) {
  std::vector<int64_t> result;
  for (int64_t i = first; i < first + count; ++i) result.push_back(order.index(i));
  return result;
}

TEST(SampleOrder, EpochsAndSeedsHaveDifferentOrders) {
  const SampleOrder order(50, 7, true), other(50, 8, true);
  EXPECT_NE(indices(order, 0, 50), indices(order, 50, 50));
  EXPECT_NE(indices(order, 0, 50), indices(other, 0, 50));
}

TEST(SampleOrder, ASampleDoesNotDependOnEarlierCalls) {
  const SampleOrder forward(20, 3, true), backward(20, 3, true);
  const std::vector<int64_t> expected = indices(forward, 0, 200);
  for (int64_t i = 199; i >= 0; --i) {
    EXPECT_EQ(backward.index(i), expected[static_cast<size_t>(i)]) << i;
  }
}

TEST(SampleOrder, WithoutShufflingTheOrderIsThatOfTheIndices) {
  const SampleOrder order(3, 7, false);
  EXPECT_EQ(indices(order, 0, 5), (std::vector<int64_t>{0, 1, 2, 0, 1}));
}

TEST(SampleOrder, TheSeedOfASampleChangesWithTheEpochAndTheSampleOnly) {
  const SampleOrder order(4, 7, false), again(4, 7, false);
  std::set<uint64_t> seeds;
  for (int64_t i = 0; i < 12; ++i) seeds.insert(order.sample_seed(i));
  EXPECT_EQ(seeds.size(), 12U);
  EXPECT_EQ(order.sample_seed(9), again.sample_seed(9));
}

}  // namespace
}  // namespace tandem
