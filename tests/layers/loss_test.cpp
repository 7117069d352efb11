// Losses and accuracy: formulas compared with float64, finite differences, normalization on any
// number of devices, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

void expect_loss_reference(const std::string& file, const std::string& type) {
  for (const ReferenceCase& reference : read_reference(file)) {
    const LayerSetup plain{.type = type,
                           .parameters = reference.parameters,
                           .inputs = reference.all("input"),
                           .flags = TANDEM_WANTS_BACKWARD_DATA,
                           .normaliser = static_cast<float>(reference.normaliser)};
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(type + " " + reference.name + ", " + layout_text(setup));
      LayerRun run(setup);
      const auto near = [&](const PlainTensor& actual, const std::string& name) {
        if (!reference.has(name)) return;
        const double error = relative_difference(actual.values, reference.tensors.at(name).values);
        record_error(type + " " + name.substr(0, name.size() - 1), error);
        EXPECT_LE(error, 2e-6) << name;
      };
      near(run.forward()[0], "output0");
      const auto gradients = run.backward_data(reference.all("output_gradient"));
      for (size_t i = 0; i < gradients.size(); ++i) {
        near(gradients[i], "input_gradient" + std::to_string(i));
      }
    }
  }
}

TEST(SoftmaxWithLoss, AgreesWithTheReferenceAtEveryPositionAndNormalisation) {
  expect_loss_reference("softmax_with_loss_places", "SoftmaxWithLoss");
}
TEST(SoftmaxWithLoss, AgreesWithTheReferenceForTargetsOfEachClass) {
  expect_loss_reference("softmax_with_loss_targets", "SoftmaxWithLoss");
}
TEST(SigmoidCrossEntropyLoss, AgreesWithTheReference) {
  expect_loss_reference("sigmoid_cross_entropy_loss", "SigmoidCrossEntropyLoss");
}
TEST(EuclideanLoss, AgreesWithTheReferenceInBothInputs) {
  expect_loss_reference("euclidean_loss", "EuclideanLoss");
}
TEST(HuberLoss, AgreesWithTheReferenceOnBothSidesOfDelta) {
  expect_loss_reference("huber_loss", "HuberLoss");
}
TEST(SumLoss, AgreesWithTheReference) {
  expect_loss_reference("sum_loss", "SumLoss");
}
TEST(HingeLoss, AgreesWithTheReference) {
  expect_loss_reference("hinge_loss", "HingeLoss");
}
TEST(ContrastiveLoss, AgreesWithTheReferenceInBothFeatures) {
  expect_loss_reference("contrastive_loss", "ContrastiveLoss");
}
TEST(MultinomialLogisticLoss, AgreesWithTheReference) {
  expect_loss_reference("multinomial_logistic_loss", "MultinomialLogisticLoss");
}

PlainTensor labels(const Shape& shape, const std::vector<float>& values) {
  return {shape, values};
}

// The check uses one factor for a loss, and labels have no derivative.
void check_loss(const LayerSetup& setup, const std::vector<size_t>& inputs) {
  for (const LayerSetup& one : in_every_layout(setup)) {
    LayerRun run(one);
    (void)run.forward();
    const std::vector<PlainTensor> factors{{{1, 1, 1, 1}, {0.7F}}};
    const std::vector<PlainTensor> gradients = run.backward_data(factors);
    for (const size_t i : inputs) {
      const auto expected = finite_differences(
          one, factors, 1e-2, [i](LayerSetup& s) -> PlainTensor& { return s.inputs[i]; });
      EXPECT_LE(relative_difference(gradients[i].values, expected), 2e-3)
          << one.type << " input " << i << ", " << layout_text(one);
    }
  }
}

TEST(Losses, MatchFiniteDifferences) {
  const Shape shape{3, 8, 2, 1};
  const PlainTensor a = random_tensor(shape, 1), b = random_tensor(shape, 2);
  PlainTensor probabilities = a, away = a;
  for (float& p : probabilities.values) p = 0.2F + 0.05F * std::abs(p);
  for (float& s : away.values) s = std::abs(std::abs(s) - 1) < 0.05F ? 0.5F : s;
  const PlainTensor classes = labels({3, 1, 2, 1}, {0, 3, 7, 2, 2, 5});
  check_loss({.type = "SoftmaxWithLoss",
              .parameters = {{"ignore_label", "2"}},
              .inputs = {a, classes},
              .normaliser = 3},
             {0});
  check_loss({.type = "SoftmaxWithLoss", .inputs = {a, probabilities}, .normaliser = 3}, {0});
  check_loss({.type = "SigmoidCrossEntropyLoss", .inputs = {a, probabilities}, .normaliser = 3},
             {0});
  check_loss({.type = "EuclideanLoss", .inputs = {a, b}, .normaliser = 3}, {0, 1});
  check_loss(
      {.type = "HuberLoss", .parameters = {{"delta", "0.5"}}, .inputs = {a, b}, .normaliser = 3},
      {0});
  for (const char* normalization : {"NONE", "BATCH_SIZE"}) {
    check_loss({.type = "SumLoss",
                .parameters = {{"normalization", normalization}},
                .inputs = {a},
                .normaliser = 3},
               {0});
  }
  for (const char* norm : {"L1", "L2"}) {
    check_loss({.type = "HingeLoss",
                .parameters = {{"norm", norm}},
                .inputs = {away, classes},
                .normaliser = 3},
               {0});
  }
  check_loss(
      {.type = "MultinomialLogisticLoss", .inputs = {probabilities, classes}, .normaliser = 3},
      {0});
  for (const char* legacy : {"false", "true"}) {
    check_loss({.type = "ContrastiveLoss",
                .parameters = {{"margin", "40"}, {"legacy_version", legacy}},
                .inputs = {a, b, labels({3, 1, 1, 1}, {1, 0, 0})},
                .normaliser = 3},
               {0, 1});
  }
}

TEST(SoftmaxWithLoss, TreatsATargetOfOneLikeALabel) {
  const PlainTensor scores = random_tensor({3, 4, 1, 1}, 5);
  LayerRun with_labels(
      {.type = "SoftmaxWithLoss", .inputs = {scores, labels({3, 1, 1, 1}, {2, 0, 3})}});
  LayerRun with_targets({.type = "SoftmaxWithLoss",
                         .inputs = {scores, {{3, 4, 1, 1}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1}}}});
  EXPECT_FLOAT_EQ(with_targets.forward()[0].values[0], with_labels.forward()[0].values[0]);
  const PlainTensor one{{1, 1, 1, 1}, {1}};
  EXPECT_EQ(with_targets.backward_data({one})[0].values,
            with_labels.backward_data({one})[0].values);
}

// Two devices with different numbers of labels that count: their sums give the loss of one device.
TEST(SoftmaxWithLoss, DividesByTheLabelsThatCountOnAllDevices) {
  const PlainTensor scores = random_tensor({4, 5, 1, 1}, 3);
  const LayerSetup whole{.type = "SoftmaxWithLoss",
                         .parameters = {{"ignore_label", "1"}},
                         .inputs = {scores, labels({4, 1, 1, 1}, {1, 1, 0, 4})},
                         .normaliser = 4};
  LayerSetup first = whole, second = whole;
  first.inputs = {{{3, 5, 1, 1}, {scores.values.begin(), scores.values.begin() + 15}},
                  labels({3, 1, 1, 1}, {1, 1, 0})};
  second.inputs = {{{1, 5, 1, 1}, {scores.values.begin() + 15, scores.values.end()}},
                   labels({1, 1, 1, 1}, {4})};
  LayerRun one(whole), a(first), b(second);
  EXPECT_THAT(a.forward_statistics(), testing::ElementsAre(1));
  const float loss = one.forward()[0].values[0];
  const float sum = a.forward({b.forward_statistics()})[0].values[0] +
                    b.forward({a.forward_statistics()})[0].values[0];
  EXPECT_NEAR(sum, loss, 1e-6);
  std::vector<float> gradient = a.backward_data({{{1, 1, 1, 1}, {1}}})[0].values;
  const std::vector<float> rest = b.backward_data({{{1, 1, 1, 1}, {1}}})[0].values;
  gradient.insert(gradient.end(), rest.begin(), rest.end());
  EXPECT_LE(relative_difference(gradient, one.backward_data({{{1, 1, 1, 1}, {1}}})[0].values),
            1e-6);
}

TEST(Losses, CountLabelsOnlyIfTheCountIsUsed) {
  const auto floats = [](const std::vector<std::pair<std::string, std::string>>& parameters) {
    return LayerRun({.type = "SoftmaxWithLoss",
                     .parameters = parameters,
                     .inputs = {random_tensor({2, 3, 1, 1}, 1), labels({2, 1, 1, 1}, {0, 1})}})
        .report()
        .statistics;
  };
  EXPECT_EQ(floats({}), 0);
  EXPECT_EQ(floats({{"ignore_label", "1"}}), 1);
  EXPECT_EQ(floats({{"ignore_label", "1"}, {"normalization", "FULL"}}), 0);
  EXPECT_EQ(floats({{"ignore_label", "1"}, {"normalize", "false"}}), 0);
  EXPECT_EQ(floats({{"ignore_label", "1"}, {"normalize", "true"}}), 1);
}

// If the labels of the net's data mark a row as empty, no loss reads it.
TEST(Losses, IgnoreRowsWithoutASample) {
  const PlainTensor a = random_tensor({2, 4, 1, 1}, 1), b = random_tensor({2, 4, 1, 1}, 2);
  const PlainTensor classes = labels({2, 1, 1, 1}, {1, 0});
  const PlainTensor targets{{2, 4, 1, 1}, {0, 0.5F, 0.25F, 0, 1, 0, 0, 2}};
  const std::vector<LayerSetup> setups{{.type = "EuclideanLoss", .inputs = {a, b}},
                                       {.type = "SigmoidCrossEntropyLoss", .inputs = {a, b}},
                                       {.type = "HuberLoss", .inputs = {a, b}},
                                       {.type = "HingeLoss", .inputs = {a, classes}},
                                       {.type = "SoftmaxWithLoss", .inputs = {a, classes}},
                                       {.type = "SoftmaxWithLoss", .inputs = {a, targets}},
                                       {.type = "ContrastiveLoss", .inputs = {a, b, classes}}};
  for (LayerSetup setup : setups) {
    LayerSetup alone = setup;
    for (PlainTensor& input : alone.inputs) {
      const int64_t row = element_count(input.shape) / 2;
      input.values.resize(static_cast<size_t>(row));
      input.shape.n = 1;
    }
    setup.row_labels = {3, -1};
    LayerRun both(setup), one(alone);
    EXPECT_EQ(both.forward()[0].values, one.forward()[0].values) << setup.type;
    const std::vector<float> gradient = both.backward_data({{{1, 1, 1, 1}, {1}}})[0].values;
    const std::vector<float> expected = one.backward_data({{{1, 1, 1, 1}, {1}}})[0].values;
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_EQ(gradient[i], i < expected.size() ? expected[i] : 0) << setup.type;
    }
  }
}

TEST(Accuracy, IgnoresIgnoredLabelsAndReportsEachClass) {
  const PlainTensor scores{{2, 3, 1, 2}, {9, 0, 0, 9, 1, 1, 0, 9, 5, 0, 0, 1}};
  // Highest scores: row 0 class 0, 1; row 1 class 1, 0.
  LayerSetup setup{.type = "Accuracy",
                   .parameters = {{"ignore_label", "2"}},
                   .inputs = {scores, labels({2, 1, 1, 2}, {0, 0, 2, 0})},
                   .output_count = 2,
                   .flags = 0,
                   .normaliser = 2};
  const std::vector<PlainTensor> outputs = LayerRun(setup).forward();
  EXPECT_FLOAT_EQ(outputs[0].values[0], 2.0F / 3);
  EXPECT_THAT(outputs[1].values, testing::ElementsAre(testing::FloatEq(2.0F / 3), 0, 0));
  setup.output_count = 1;
  EXPECT_FLOAT_EQ(LayerRun(setup).forward()[0].values[0], 2.0F / 3);
  setup.parameters.clear();
  EXPECT_FLOAT_EQ(LayerRun(setup).forward()[0].values[0], 2.0F / 4);
}

TEST(Losses, RefuseInputsThatDoNotMatch) {
  const PlainTensor a = random_tensor({2, 4, 1, 1}, 1), b = random_tensor({2, 3, 1, 1}, 2);
  EXPECT_EQ(
      refusal_of({.type = "EuclideanLoss", .inputs = {a, b}}),
      "EuclideanLoss: needs one value for each of the 2x4x1x1 values, but its second input is "
      "2x3x1x1");
  EXPECT_EQ(refusal_of({.type = "SigmoidCrossEntropyLoss", .inputs = {a, b}}),
            "SigmoidCrossEntropyLoss: needs one target for each of the 2x4x1x1 values, but its "
            "second input is 2x3x1x1");
  EXPECT_EQ(refusal_of({.type = "ContrastiveLoss", .inputs = {a, b, labels({2, 1, 1, 1}, {0, 1})}}),
            "ContrastiveLoss: compares features of one shape, but has 2x4x1x1 and 2x3x1x1");
  EXPECT_EQ(refusal_of({.type = "ContrastiveLoss", .inputs = {a, a, labels({1, 1, 1, 1}, {0})}}),
            "ContrastiveLoss: needs one label per row (1: similar, 0: not), but has labels 1x1x1x1 "
            "for 2 rows");
  EXPECT_THAT(refusal_of({.type = "HingeLoss", .inputs = {a, labels({1, 1, 1, 1}, {0})}}),
              HasSubstr("needs one label per row"));
  EXPECT_THAT(refusal_of({.type = "SoftmaxWithLoss",
                          .parameters = {{"normalization", "SOME"}},
                          .inputs = {a, labels({2, 1, 1, 1}, {0, 1})}}),
              HasSubstr("normalization is 'SOME'"));
  EXPECT_THAT(refusal_of({.type = "SoftmaxWithLoss",
                          .parameters = {{"axis", "0"}},
                          .inputs = {a, labels({2, 1, 1, 1}, {0, 1})}}),
              HasSubstr("axis is '0'"));
  EXPECT_THAT(
      refusal_of(
          {.type = "SoftmaxWithLoss", .parameters = {{"ignore_label", "1"}}, .inputs = {a, a}}),
      HasSubstr("has an ignore_label, but a target for each class, 2x4x1x1"));
}

}  // namespace
}  // namespace tandem::test
