// Means over batches where a layer ignores a label: each batch counts as many rows as its mean has.
#include <gtest/gtest.h>

#include "include/tandem/evaluate.h"
#include "include/tandem/net.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

// One product, whose accuracy and loss do not count class 2.
TrainOptions ignoring_run(const TempFolder& folder, int64_t batch, int64_t steps) {
  TrainOptions o = synthetic_run(folder, steps);
  o.batch = batch;
  o.net_text =
      NetWriter("ignoring")
          .data(20)
          .layer("score", "InnerProduct",
                 "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } }")
          .layer("accuracy", "Accuracy", {"score", "label"}, {"accuracy"},
                 "accuracy_param { ignore_label: 2 }")
          .layer("loss", "SoftmaxWithLoss", {"score", "label"}, {"loss"},
                 "loss_param { ignore_label: 2 }")
          .text();
  return o;
}

TEST(IgnoredLabels, CountInNoMeanOfATestWhateverItsBatches) {
  const TempFolder folder;
  Observer quiet;
  TestOptions test;
  test.run = train(ignoring_run(folder, 12, 3), quiet).run;
  test.batch = 15;  // all samples
  const Evaluation whole = test_run(test, quiet).evaluation;
  ASSERT_EQ(whole.samples, 15);
  ASSERT_EQ(whole.scalars.size(), 2U);
  for (const int64_t batch : {2, 4, 12}) {  // with other shares of ignored rows
    test.batch = batch;
    const Evaluation parts = test_run(test, quiet).evaluation;
    EXPECT_NEAR(parts.loss, whole.loss, 1e-5 * whole.loss) << batch;
    for (size_t i = 0; i < whole.scalars.size(); ++i) {
      EXPECT_NEAR(parts.scalars[i].second, whole.scalars[i].second, 1e-5 * whole.scalars[i].second)
          << whole.scalars[i].first << " in batches of " << batch;
    }
  }
}

struct Epochs : Observer {
  std::vector<EpochReport> reports;
  void on_epoch(const EpochReport& report) override { reports.push_back(report); }
};

TEST(IgnoredLabels, CountInNoAccuracyOfAnEpochWhateverItsBatches) {
  const TempFolder folder;
  double expected = 0;
  for (const int64_t batch : {60, 12, 4}) {
    TrainOptions o = ignoring_run(folder, batch, 60 / batch);
    o.rate = 0;  // the same weights in every step
    Epochs epochs;
    (void)train(o, epochs);
    ASSERT_EQ(epochs.reports.size(), 1U);
    ASSERT_TRUE(epochs.reports[0].has_accuracy);
    if (batch == 60) expected = epochs.reports[0].top1;
    EXPECT_NEAR(epochs.reports[0].top1, expected, 1e-6) << batch;
  }
}

}  // namespace
}  // namespace tandem::test
