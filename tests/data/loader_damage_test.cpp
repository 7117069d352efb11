// Damaged samples: their rows, their limits and their list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/loader/loader.h"
#include "tests/data/batches.h"
#include "tests/data/data_sets.h"

namespace tandem {
namespace {

using test::Contents;
using test::evaluation;
using test::host_memory;
using test::in_file_order;
using test::message_of;
using test::scripted;
using test::take;
using test::take_all;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Loader, ADamagedSampleCostsItsRowAndIsListedOnce) {
  const Dataset data = scripted({{"size", "4"}, {"bad", "2"}});
  LoaderOptions options = in_file_order(4);
  options.bad_share_limit = 0.5;
  Loader loader(data, options, host_memory());
  for (int i = 0; i < 3; ++i) {
    const Contents contents = take(loader);
    EXPECT_THAT(contents.labels, ElementsAre(0, 1, -1, 1));
    EXPECT_EQ(contents.samples, 3);
    EXPECT_EQ(contents.pixels[8], 0.0F);
  }
  ASSERT_EQ(loader.bad_samples().size(), 1U);
  EXPECT_EQ(loader.bad_samples()[0].name, "sample-2");
  EXPECT_EQ(loader.bad_samples()[0].reason, "is listed as damaged");
}

TEST(Loader, DamagedSamplesAreListedInTheOrderOfDelivery) {
  const Dataset data =
      scripted({{"size", "40"}, {"bad", "31,2,17,18"}, {"slow", "2"}, {"delay_ms", "30"}});
  LoaderOptions options = in_file_order(20);
  options.threads = 4;
  options.bad_share_limit = 1;
  Loader loader(data, options, host_memory());
  (void)take(loader);
  (void)take(loader);
  std::vector<std::string> names;
  for (const BadSample& one : loader.bad_samples()) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("sample-2", "sample-17", "sample-18", "sample-31"));
}

TEST(Loader, TheLimitHoldsForSmallSetsButOneDamagedSampleNeverEndsARun) {
  LoaderOptions options = in_file_order(4);
  options.bad_share_limit = 0.05;
  const Dataset one = scripted({{"size", "8"}, {"bad", "2"}});
  Loader fine(one, options, host_memory());
  for (int i = 0; i < 60; ++i) (void)take(fine);  // 240 samples
  EXPECT_EQ(fine.bad_samples().size(), 1U);
  const Dataset two = scripted({{"size", "8"}, {"bad", "2,5"}});
  Loader loader(two, options, host_memory());
  (void)take(loader);
  EXPECT_THAT(
      message_of([&] { (void)loader.next(); }),
      AllOf(HasSubstr("2 of the 8 images, or more, cannot be used (25.0 %, the limit is 5.0 %"),
            HasSubstr("sample-2: is listed as damaged; sample-5")));
}

TEST(Loader, ABatchWithoutAGoodSampleIsAnErrorThatNamesTheFirstFiles) {
  const Dataset data = scripted({{"size", "16"}, {"bad", "8,9,10,11,12,13,14,15"}});
  Loader loader(data, in_file_order(8), host_memory());
  (void)take(loader);
  const std::string message = message_of([&] { (void)loader.next(); });
  EXPECT_THAT(message, AllOf(HasSubstr("all 8 images of batch 1 cannot be used"),
                             HasSubstr("sample-8: is listed as damaged; sample-9"),
                             HasSubstr("and 3 more")));
  EXPECT_EQ(message_of([&] { (void)loader.next(); }), message)
      << "it is said again, not waited for";
}

TEST(Loader, AnEvaluationSurvivesABatchWithoutAGoodSample) {
  const Dataset data = scripted({{"size", "6"}, {"bad", "0,1,2"}});
  const auto batches = take_all(data, evaluation(3), 2);
  EXPECT_EQ(batches[0].samples, 0);
  EXPECT_EQ(batches[1].samples, 3);
}

TEST(Loader, TooManyDamagedSamplesAreAnErrorAfterTwoHundredSamples) {
  const Dataset data = scripted({{"size", "400"}, {"bad", "0,10,20,30,40,50,60,70,80,90,100,110"}});
  Loader loader(data, in_file_order(50), host_memory());
  for (int i = 0; i < 3; ++i) (void)take(loader);
  EXPECT_THAT(message_of([&] { (void)loader.next(); }),
              AllOf(HasSubstr("12 of 200 images"), HasSubstr("6.0 %"), HasSubstr("limit is 5.0 %"),
                    HasSubstr("sample-0: is listed")));
}

TEST(Loader, AnErrorOfADecoderThreadIsThrownWithItsBatch) {
  const Dataset data = scripted({{"size", "12"}, {"failing", "7"}});
  LoaderOptions options = in_file_order(4);
  options.threads = 4;
  Loader loader(data, options, host_memory());
  EXPECT_THAT(take(loader).labels, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(message_of([&] { (void)loader.next(); }),
              AllOf(StartsWith("sample 7 ('sample-7') of data set 'scripted' ("),
                    HasSubstr("): the disk is gone")));
}

}  // namespace
}  // namespace tandem
