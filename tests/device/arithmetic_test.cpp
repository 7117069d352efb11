#include <gmock/gmock.h>

#include <cmath>
#include <ctime>
#include <limits>
#include <thread>
#include <vector>

#include "core/base/numbers/random.h"
#include "core/plugin/host.h"
#include "tests/device/backends.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;

tandem_call call_with(int threads) {
  return {sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
}

Floats random_values(size_t count, uint64_t stream) {
  Random random(1, stream);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// Not a multiple of any vector's width, and large enough for several threads.
constexpr size_t odd_count = 100'003;

TEST(CpuArithmetic, FillSetsEveryValueAndNoOther) {
  const tandem_call call = call_with(2);
  Floats values(odd_count + 1, 5);
  ASSERT_EQ(test::backend("cpu").arithmetic->fill(&call, values.data(), 2.5F, odd_count),
            TANDEM_OK);
  EXPECT_EQ(std::count(values.begin(), values.end(), 2.5F), static_cast<long>(odd_count));
  EXPECT_EQ(values.back(), 5);
}

TEST(CpuArithmetic, AddTakesItsSourcesOneAfterTheOther) {
  const tandem_call call = call_with(2);
  // 1 + 1e8 loses the 1, so that every other order gives another sum.
  const std::vector<Floats> sources{{1e8F}, {-1e8F}, {3}};
  const float* const addresses[]{sources[0].data(), sources[1].data(), sources[2].data()};
  Floats target{1};
  ASSERT_EQ(test::backend("cpu").arithmetic->add(&call, target.data(), addresses, 3, 1), TANDEM_OK);
  EXPECT_EQ(target[0], 3);
}

TEST(CpuArithmetic, AddIsTheSumForAnyNumberOfSources) {
  const tandem_call call = call_with(2);
  for (uint32_t count = 0; count <= 5; ++count) {
    std::vector<Floats> sources;
    std::vector<const float*> addresses;
    for (uint32_t s = 0; s < count; ++s) {
      sources.push_back(random_values(odd_count, s));
      addresses.push_back(sources.back().data());
    }
    Floats target = random_values(odd_count, 99), expected = target;
    for (const Floats& source : sources) {
      for (size_t i = 0; i < odd_count; ++i) expected[i] += source[i];
    }
    ASSERT_EQ(test::backend("cpu").arithmetic->add(&call, target.data(), addresses.data(), count,
                                                   odd_count),
              TANDEM_OK);
    EXPECT_EQ(target, expected) << count;
  }
}

class SgdUpdate : public testing::Test {
 protected:
  tandem_status run(int threads = 2) {
    const tandem_call call = call_with(threads);
    float* const states[]{history_.data()};
    tandem_update update{};
    update.struct_size = sizeof update;
    update.rule = rule_;
    update.count = static_cast<int64_t>(weights_.size());
    update.weights = weights_.data();
    update.gradient = gradient_.data();
    update.state = states;
    update.state_count = 1;
    update.momentum = 0.9F;
    update.decay = 0.0005F;
    update.rate_multiplier = 2;
    update.gradient_scale = 1;
    update.step = &step_;
    update.found_inf = &found_inf_;
    return test::backend("cpu").arithmetic->update(&call, &update);
  }

  int32_t rule_ = TANDEM_UPDATE_SGD;
  Floats weights_ = random_values(odd_count, 1);
  Floats gradient_ = random_values(odd_count, 2);
  Floats history_ = random_values(odd_count, 3);
  tandem_step step_{1, 0, 0.01F, 1, 0, 0};
  int32_t found_inf_ = 0;
};

TEST_F(SgdUpdate, FollowsTheFormula) {
  const Floats weights = weights_, history = history_;
  ASSERT_EQ(run(), TANDEM_OK);
  for (size_t i = 0; i < odd_count; ++i) {
    const double h = 0.9 * history[i] + 0.02 * (gradient_[i] + 0.0005 * weights[i]);
    ASSERT_NEAR(history_[i], h, 1e-6) << i;
    ASSERT_NEAR(weights_[i], weights[i] - h, 1e-6) << i;
  }
}

TEST_F(SgdUpdate, ChangesNothingWhenItIsToSkip) {
  const Floats weights = weights_, history = history_;
  found_inf_ = 1;
  ASSERT_EQ(run(), TANDEM_OK);
  EXPECT_EQ(weights_, weights);
  EXPECT_EQ(history_, history);
}

TEST_F(SgdUpdate, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Floats weights = weights_, history = history_;
  ASSERT_EQ(run(1), TANDEM_OK);
  const Floats weights_of_one = weights_, history_of_one = history_;
  for (const int threads : {2, 3, 7}) {
    weights_ = weights;
    history_ = history;
    ASSERT_EQ(run(threads), TANDEM_OK);
    EXPECT_EQ(weights_, weights_of_one) << threads;
    EXPECT_EQ(history_, history_of_one) << threads;
  }
}

TEST_F(SgdUpdate, DoesNotDependOnWhereTheValuesLie) {
  // One value at a time takes the scalar path, all at once the vector path.
  const Floats weights = weights_, history = history_;
  ASSERT_EQ(run(1), TANDEM_OK);
  const Floats together = weights_;
  const Floats gradient = gradient_;
  for (size_t i = 0; i < 1000; ++i) {
    weights_ = {weights[i]};
    history_ = {history[i]};
    gradient_ = {gradient[i]};
    ASSERT_EQ(run(1), TANDEM_OK);
    ASSERT_EQ(weights_[0], together[i]) << i;
  }
}

TEST_F(SgdUpdate, OfAnUnknownRuleIsRefused) {
  rule_ = 77;
  EXPECT_EQ(run(), TANDEM_UNSUPPORTED);
  EXPECT_THAT(take_reason(), testing::HasSubstr("update rule 77"));
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(CpuArithmetic, ATeamThatHasNothingToDoSleeps) {
  MachineOptions options;
  options.threads = 2;
  const Machine machine = test::open_machine("cpu", options);
  test::Works works;
  Floats values(odd_count);
  const Stream stream(machine, 0, 0, "compute");
  const tandem_work fill = works.work("fill", [&](const tandem_call& call) {
    return test::backend("cpu").arithmetic->fill(&call, values.data(), 1, odd_count);
  });
  stream.submit(fill);
  stream.synchronize();
  const double before = processor_seconds();
  for (int i = 0; i < 20; ++i) {
    stream.submit(fill);
    stream.synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(processor_seconds() - before, 0.05);  // spinning takes most of the 200 ms
}

TEST(CpuArithmetic, CheckFiniteFindsOneBadValueAnywhere) {
  const tandem_call call = call_with(2);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {size_t{0}, odd_count / 2, odd_count - 1}) {
      Floats values = random_values(odd_count, 4);
      values[at] = bad;
      int32_t found_inf = 0;
      ASSERT_EQ(test::backend("cpu").arithmetic->check_finite(&call, values.data(), odd_count,
                                                              &found_inf),
                TANDEM_OK);
      EXPECT_EQ(found_inf, 1) << bad << " at " << at;
    }
  }
}

TEST(CpuArithmetic, CheckFiniteLeavesTheFlagAsItWas) {
  const tandem_call call = call_with(2);
  Floats values = random_values(odd_count, 4);
  values[0] = std::numeric_limits<float>::max();
  values[1] = std::numeric_limits<float>::denorm_min();
  for (const int32_t before : {0, 1}) {
    int32_t found_inf = before;
    ASSERT_EQ(
        test::backend("cpu").arithmetic->check_finite(&call, values.data(), odd_count, &found_inf),
        TANDEM_OK);
    EXPECT_EQ(found_inf, before);
  }
}

}  // namespace
}  // namespace tandem
