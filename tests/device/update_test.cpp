// Every solver rule against float64 (tests/reference/solvers.txt), step by step, and the same bits
// on any number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "core/plugin/host.h"
#include "core/plugin/module.h"
#include "tests/device/backends.h"
#include "tests/support/reference.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;

int32_t rule_named(const std::string& name) {
  static const std::map<std::string, int32_t> rules{
      {"SGD", TANDEM_UPDATE_SGD},           {"Nesterov", TANDEM_UPDATE_NESTEROV},
      {"AdaGrad", TANDEM_UPDATE_ADAGRAD},   {"RMSProp", TANDEM_UPDATE_RMSPROP},
      {"AdaDelta", TANDEM_UPDATE_ADADELTA}, {"Adam", TANDEM_UPDATE_ADAM},
      {"AdamW", TANDEM_UPDATE_ADAMW},       {"LARS", TANDEM_UPDATE_LARS}};
  return rules.at(name);
}

// One weight array under one rule.
class Solver {
 public:
  Solver(int32_t rule, Floats weights) : weights(std::move(weights)) {
    update_.struct_size = sizeof update_;
    update_.rule = rule;
    update_.rate_multiplier = 1;
    update_.gradient_scale = 1;
    for (Floats& state : states) state.assign(this->weights.size(), 0.0F);
  }
  [[nodiscard]] tandem_update& constants() { return update_; }

  tandem_status step(const Floats& gradient, float rate, int threads = 2) {
    const tandem_call call{sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
    const auto count = static_cast<int64_t>(weights.size());
    double squares[2] = {};
    EXPECT_EQ(
        test::backend("cpu").arithmetic->sum_of_squares(&call, gradient.data(), count, &squares[0]),
        TANDEM_OK);
    EXPECT_EQ(
        test::backend("cpu").arithmetic->sum_of_squares(&call, weights.data(), count, &squares[1]),
        TANDEM_OK);
    const tandem_step step{1, steps_++, rate, 1, 0, 0};
    float* addresses[]{states[0].data(), states[1].data()};
    update_.count = count;
    update_.weights = weights.data();
    update_.gradient = gradient.data();
    update_.state = addresses;
    update_.state_count = 2;
    update_.step = &step;
    update_.gradient_squares = &squares[0];
    update_.gradient_square_count = 1;
    update_.gradient_square = &squares[0];
    update_.weight_square = &squares[1];
    return test::backend("cpu").arithmetic->update(&call, &update_);
  }

  Floats weights;
  Floats states[2];

 private:
  tandem_update update_{};
  uint64_t steps_ = 0;
};

Solver solver_of(const test::ReferenceCase& one) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : one.parameters) values[name] = value;
  const auto number = [&](const char* name) { return std::stod(values.at(name)); };
  Solver solver(rule_named(values.at("rule")), one.plain("initial").values);
  tandem_update& constants = solver.constants();
  constants.momentum = static_cast<float>(number("momentum"));
  constants.decay = static_cast<float>(number("decay"));
  constants.momentum2 = number("momentum2");
  constants.delta = number("delta");
  constants.clip = number("clip");
  constants.gradient_scale = 1 / number("batches");
  constants.trust_coefficient = number("trust_coefficient");
  constants.l1_decay = static_cast<float>(number("l1_decay"));
  return solver;
}

TEST(Update, FollowsTheFloat64ReferenceOverTwelveSteps) {
  for (const test::ReferenceCase& one : test::read_reference("solvers")) {
    Solver solver = solver_of(one);
    const Floats rates = one.plain("rates").values, gradients = one.plain("gradients").values;
    const std::vector<double>& expected = one.tensors.at("weights").values;
    const Floats initial = solver.weights;
    const size_t count = initial.size();
    double moved = 0, error = 0;
    for (size_t step = 0; step < rates.size(); ++step) {
      const auto begin = gradients.begin() + static_cast<int64_t>(step * count);
      ASSERT_EQ(solver.step({begin, begin + static_cast<int64_t>(count)}, rates[step]), TANDEM_OK);
      for (size_t i = 0; i < count; ++i) {
        const double right = expected[step * count + i];
        moved = std::max(moved, std::abs(right - static_cast<double>(initial[i])));
        error = std::max(error, std::abs(right - static_cast<double>(solver.weights[i])));
      }
    }
    // Weights of about 2 in float32 are rounded by 1.2e-7 a step.
    EXPECT_LE(error, 12 * 1.2e-7 + 2e-6 * moved) << one.name;
    EXPECT_GT(moved, 1e-3) << one.name;
    RecordProperty(one.name, std::to_string(error / moved));
  }
}

TEST(Update, GivesTheSameBitsOnAnyNumberOfThreadsAndWhereverTheValuesLie) {
  constexpr size_t count = 70001;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Floats initial(count), gradient(count);
  for (float& value : initial) value = normal(random);
  for (float& value : gradient) value = normal(random);
  for (int32_t rule = TANDEM_UPDATE_SGD; rule < TANDEM_UPDATE_LARS; ++rule) {
    const auto after = [&](const Floats& start, const Floats& slope, int threads) {
      Solver solver(rule, start);
      solver.constants().momentum = 0.9F;
      solver.constants().momentum2 = 0.99;
      solver.constants().delta = 1e-8;
      solver.constants().decay = 0.01F;
      EXPECT_EQ(solver.step(slope, 0.1F, threads), TANDEM_OK);
      EXPECT_EQ(solver.step(slope, 0.1F, threads), TANDEM_OK);
      return solver.weights;
    };
    const Floats one = after(initial, gradient, 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(after(initial, gradient, threads), one) << rule;
    for (size_t i = 0; i < 100; ++i) {  // one value takes the scalar path
      EXPECT_EQ(after({initial[i]}, {gradient[i]}, 1)[0], one[i]) << rule << " at " << i;
    }
  }
}

TEST(Update, OfLarsMovesAnArrayOfZerosByThePlainRate) {
  Solver solver(TANDEM_UPDATE_LARS, Floats(4, 0.0F));
  solver.constants().trust_coefficient = 0.001;
  ASSERT_EQ(solver.step(Floats(4, 1.0F), 0.5F), TANDEM_OK);
  EXPECT_EQ(solver.weights, Floats(4, -0.5F));
}

TEST(Update, TakesWhatACallerOfAnOlderAbiGives) {
  Solver solver(TANDEM_UPDATE_SGD, Floats(4, 1.0F));
  tandem_update& constants = solver.constants();
  constants.struct_size = offsetof(tandem_update, momentum2);
  constants.gradient_scale = constants.clip = 1e9;  // beyond the end: not looked at
  ASSERT_EQ(solver.step(Floats(4, 1.0F), 0.5F), TANDEM_OK);
  EXPECT_EQ(solver.weights, Floats(4, 0.5F));
}

TEST(Update, WithoutTheStateOrTheNormsOfItsRuleIsRefused) {
  const tandem_call call{sizeof(tandem_call), 0, 1, nullptr, nullptr, nullptr};
  float value = 1;
  float* const states[]{&value};
  const tandem_step step{1, 0, 0.1F, 1, 0, 0};
  tandem_update update{};
  update.struct_size = sizeof update;
  update.count = 1;
  update.weights = &value;
  update.gradient = &value;
  update.state = states;
  update.state_count = 1;
  update.step = &step;
  const auto reason = [&] {
    EXPECT_EQ(test::backend("cpu").arithmetic->update(&call, &update), TANDEM_INVALID);
    return take_reason();
  };
  update.rule = TANDEM_UPDATE_ADAM;
  EXPECT_THAT(reason(), testing::HasSubstr("Adam needs 2 state arrays, not 1"));
  update.rule = TANDEM_UPDATE_LARS;
  EXPECT_THAT(reason(), testing::HasSubstr("LARS needs the norms"));
  update.rule = TANDEM_UPDATE_SGD;
  update.clip = 1;
  EXPECT_THAT(reason(), testing::HasSubstr("clipping needs the norm"));
}

TEST(SumOfSquares, IsExactInFloat64AndTheSameOnAnyNumberOfThreads) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{1000}, size_t{200003}}) {
    Floats values(count);
    double expected = 0;
    for (float& value : values) {
      value = normal(random);
      expected += static_cast<double>(value) * static_cast<double>(value);
    }
    double first = -1;
    for (const int threads : {1, 2, 5}) {
      const tandem_call call{sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
      double sum = -1;
      ASSERT_EQ(test::backend("cpu").arithmetic->sum_of_squares(&call, values.data(),
                                                                static_cast<int64_t>(count), &sum),
                TANDEM_OK);
      if (threads == 1) first = sum;
      EXPECT_NEAR(sum, expected, 1e-12 * expected) << count;
      EXPECT_EQ(sum, first) << count << " on " << threads;
    }
  }
}

}  // namespace
}  // namespace tandem
