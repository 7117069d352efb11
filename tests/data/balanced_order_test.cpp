// The balanced order of samples: every class as often as the others.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/data/dataset_statistics.h"
#include "core/data/loader/sample_order.h"
#include "tests/data/data_sets.h"

namespace tandem {
namespace {

// 90 samples of class 0, 9 of class 1, 1 of class 2.
std::vector<int64_t> uneven() {
  std::vector<int64_t> labels(90, 0);
  labels.insert(labels.end(), 9, 1);
  labels.push_back(2);
  return labels;
}

TEST(BalancedOrder, EveryEpochHasEveryClassEquallyOften) {
  const std::vector<int64_t> labels = uneven();
  const SampleOrder order(100, 5, true, labels);
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    std::map<int64_t, int> seen;
    for (int64_t i = 0; i < 100; ++i) {
      ++seen[labels[static_cast<size_t>(order.index(100 * epoch + i))]];
    }
    for (const auto& [label, count] : seen) EXPECT_NEAR(count, 33.5, 0.5) << label;
    EXPECT_EQ(seen.size(), 3U);
  }
}

TEST(BalancedOrder, SamplesOfARareClassAreRepeatedEquallyOftenWithinOne) {
  const std::vector<int64_t> labels = uneven();
  const SampleOrder order(100, 5, true, labels);
  std::map<int64_t, int> seen;
  for (int64_t i = 0; i < 100; ++i) ++seen[order.index(i)];
  for (int64_t sample = 90; sample < 99; ++sample) EXPECT_NEAR(seen[sample], 3.5, 0.6) << sample;
  for (const auto& [sample, count] : seen) {
    if (sample < 90) {
      EXPECT_EQ(count, 1) << sample;
    }
  }
}

TEST(BalancedOrder, IsAFunctionOfTheSeedAndDiffersByEpoch) {
  const SampleOrder one(100, 5, true, uneven()), same(100, 5, true, uneven()),
      other(100, 6, true, uneven());
  int differs = 0, differs_by_epoch = 0;
  std::set<uint64_t> seeds;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(one.index(i), same.index(i));
    differs += one.index(i) != other.index(i) ? 1 : 0;
    differs_by_epoch += one.index(i) != one.index(100 + i) ? 1 : 0;
    seeds.insert(one.sample_seed(i));
  }
  EXPECT_GT(differs, 50);
  EXPECT_GT(differs_by_epoch, 50);
  EXPECT_EQ(seeds.size(), 100U);  // a sample that comes twice is not augmented twice alike
}

TEST(BalancedOrder, ADataSetThatCannotTellItsClassesIsRefused) {
  const Dataset data = test::scripted();
  EXPECT_THAT(test::message_of([&] { (void)class_labels(data); }),
              testing::HasSubstr("cannot tell the classes of its samples"));
}

}  // namespace
}  // namespace tandem
