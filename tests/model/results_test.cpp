// The results of a net. The loss_weight of layers that are not losses: a SumLoss is inserted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/passes/build_net.h"
#include "core/model/passes/results.h"
#include "tests/model/net_test.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Net build_real(const std::string& text) {
  static const Registry registry = Registry::with_defaults();
  NetOptions options = small_options();
  options.device_kind = "cpu";
  return build_net(parse_definition(text), registry, options);
}

const std::string absolute_values =
    data_layer + inner_product_layer("ip", "data", "ip") + layer("abs", "AbsVal", "ip", "abs");

TEST(LossSum, OfALayerThatIsNotALossIsAResultWithItsWeight) {
  const Net net = build_real(data_layer + inner_product_layer("ip", "data", "ip") +
                             layer("abs", "AbsVal", "ip", "abs", "loss_weight: 0.25"));
  ASSERT_EQ(net.scalars.size(), 1U);
  EXPECT_EQ(net.scalars[0].name, "abs_sum");
  EXPECT_EQ(net.scalars[0].loss_weight, 0.25);
  EXPECT_STREQ(layer_of(net, "abs_sum").type->name, "SumLoss");
  EXPECT_TRUE(layer_of(net, "ip").wants_backward_weights);
}

TEST(LossSum, OfAReductionOverTheBatchReducesEachSampleFirst) {
  const std::string sum = absolute_values + layer("l1", "Reduction", "abs", "l1", "loss_weight: 1");
  const Net summed = build_real(sum);
  EXPECT_EQ(layer_of(summed, "l1").attributes->integer("axis"), 1);
  EXPECT_EQ(to_string(output_of(summed, "l1").shape), "2x1x1x1");
  EXPECT_EQ(layer_of(summed, "l1_sum").attributes->text("normalization"), "NONE");

  const Net mean = build_real(absolute_values +
                              layer("l1", "Reduction", "abs", "l1",
                                    "loss_weight: 1 reduction_param { operation: MEAN axis: 0 }"));
  EXPECT_EQ(layer_of(mean, "l1_sum").attributes->text("normalization"), "BATCH_SIZE");
}

TEST(LossSum, OfAReductionOverTheValuesOfASampleLeavesItAsItIs) {
  const Net net = build_real(absolute_values +
                             layer("l1", "Reduction", "abs", "l1",
                                   "loss_weight: 1 reduction_param { operation: MEAN axis: 1 }"));
  EXPECT_EQ(layer_of(net, "l1_sum").attributes->text("normalization"), "NONE");
}

TEST(LossSum, OfAReductionOverTheBatchIsReadByNoLayer) {
  const std::string message = message_of([&] {
    (void)build_real(absolute_values + layer("l1", "Reduction", "abs", "l1", "loss_weight: 1") +
                     layer("after", "ReLU", "l1", "after"));
  });
  EXPECT_THAT(message, AllOf(HasSubstr("layer 'l1' (Reduction)"), HasSubstr("write axis: 1"),
                             HasSubstr("layer 'after' (ReLU) cannot read it")));
}

TEST(LossSum, WithoutALossWeightAReductionOverTheBatchIsRefused) {
  EXPECT_THAT(message_of([&] {
                (void)build_real(absolute_values + layer("l1", "Reduction", "abs", "l1"));
              }),
              AllOf(HasSubstr("layer 'l1' (Reduction): axis 0 is the batch"),
                    HasSubstr("only axes 1 to 3")));
}

TEST(LossSum, OfAMetricIsRefused) {
  EXPECT_THAT(build_failure(data_layer + inner_product_layer("ip", "data", "ip") + loss_layer +
                            layer("top1", "Accuracy", "ip", "a", "bottom: 'label' loss_weight: 2")),
              HasSubstr("layer 'top1' (Accuracy): loss_weight is 2, but a metric has no gradient"));
}

// Of labels 0, 1, 2 and a row without a sample.
int64_t rows_of(const std::string& type, const std::string& parameters) {
  const std::string more = "bottom: 'label' " + parameters;
  const Net net = build_real(data_layer + inner_product_layer("ip", "data", "ip") +
                             layer("result", type, "ip", "result", more) + loss_layer);
  const std::vector<float> labels{0, 1, 2, -1};
  return rows_of_mean(net, net.scalars.at(0), labels);
}

TEST(RowsOfAMean, AreThoseThatItsDivisorCounts) {
  EXPECT_EQ(rows_of("Accuracy", ""), 3);
  EXPECT_EQ(rows_of("Accuracy", "accuracy_param { ignore_label: 1 }"), 2);
  EXPECT_EQ(rows_of("Accuracy", "accuracy_param { ignore_label: 7 }"), 3);
  EXPECT_EQ(rows_of("SoftmaxWithLoss", ""), 3);
  EXPECT_EQ(rows_of("SoftmaxWithLoss", "loss_param { ignore_label: 1 }"), 2);
  EXPECT_EQ(rows_of("SoftmaxWithLoss", "loss_param { ignore_label: 1 normalization: BATCH_SIZE }"),
            3);
}

}  // namespace
}  // namespace tandem::test
