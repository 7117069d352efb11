// The backend's arithmetic compared with the cpu backend's, on cpu devices (where it is the same)
// and on a GPU. The bits are equal unless a library function of the device is involved.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/numbers/random.h"
#include "core/base/numbers/shape.h"
#include "tests/cuda/machines.h"

namespace tandem::test {
namespace {

constexpr size_t odd_count = 100'003;

Floats random_values(size_t count, uint64_t stream) {
  Random random(1, stream);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

const tandem_backend& cpu() {
  return all_modules().backend("cpu");
}
constexpr tandem_call cpu_call{sizeof(tandem_call), 0, 2, nullptr, nullptr, nullptr};

class Arithmetic : public OnDevices {
 protected:
  // Runs `body` as a work on device 1 and waits for it.
  static void run(const Machine& machine, const Works::Body& body) {
    Works works;
    const Stream stream(machine, 1, 1, "compute");
    stream.submit(works.work("arithmetic", body));
    stream.synchronize();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Arithmetic, cpu_and_gpu(), device_name);

TEST_P(Arithmetic, FillSetsAllValuesAndNothingElse) {
  const Machine machine = open();
  for (const float value : {2.5F, 0.0F, -0.0F}) {
    const DeviceArray<> array(machine, 1, Floats(odd_count + 1, 5));
    run(machine, [&](const tandem_call& call) {
      return machine.backend().arithmetic->fill(&call, array.data(), value, odd_count);
    });
    Floats expected(odd_count, value);
    expected.push_back(5);
    EXPECT_EQ(array.values(), expected);
    EXPECT_EQ(std::signbit(array.values()[7]), std::signbit(value));
  }
}

TEST_P(Arithmetic, AddSupportsAnyNumberOfSourcesInOrder) {
  const Machine machine = open();
  for (const uint32_t count : {0U, 1U, 3U, 15U, 16U, 17U, 40U}) {
    std::vector<DeviceArray<>> sources;
    std::vector<const float*> addresses;
    Floats expected = random_values(1003, 99);
    const DeviceArray<> target(machine, 1, expected);
    for (uint32_t s = 0; s < count; ++s) {
      const Floats values = random_values(1003, s);
      sources.emplace_back(machine, 1, values);
      addresses.push_back(sources.back().data());
      for (size_t i = 0; i < values.size(); ++i) expected[i] += values[i];
    }
    run(machine, [&](const tandem_call& call) {
      return machine.backend().arithmetic->add(&call, target.data(), addresses.data(), count, 1003);
    });
    EXPECT_EQ(target.values(), expected) << count;
  }
}

// Planes that end within a word of four bytes, images that do, and arrays that begin within one.
TEST_P(Arithmetic, PixelsAreConvertedToTheSameBitsAsOnTheCpu) {
  const Machine machine = open();
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 1, 1}, Shape{3, 3, 5, 7},
                             Shape{2, 4, 8, 8}, Shape{5, 3, 227, 227}}) {
    const auto count = static_cast<size_t>(element_count(shape));
    for (const size_t skipped : {0U, 1U, 3U}) {
      std::vector<uint8_t> bytes(count + skipped);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 256);
      Floats expected(count + skipped + 1, -5);
      tandem_pixels pixels{sizeof(tandem_pixels),           shape,
                           bytes.data() + skipped,          expected.data() + skipped,
                           {104.25F, 117.5F, 123.7F, 0.3F}, 0.0173F};
      ASSERT_EQ(cpu().arithmetic->convert_pixels(&cpu_call, &pixels), TANDEM_OK);
      const DeviceArray<uint8_t> source(machine, 1, bytes);
      const DeviceArray<> target(machine, 1, Floats(count + skipped + 1, -5));
      pixels.pixels = source.data() + skipped;
      pixels.target = target.data() + skipped;
      run(machine, [&](const tandem_call& call) {
        return machine.backend().arithmetic->convert_pixels(&call, &pixels);
      });
      EXPECT_EQ(target.values(), expected) << to_string(shape) << ", skipped " << skipped;
    }
  }
}

TEST_P(Arithmetic, PixelsOfFiveChannelsAreRefused) {
  const Machine machine = open();
  const tandem_pixels pixels{sizeof(tandem_pixels), {1, 5, 2, 2}, nullptr, nullptr, {}, 1};
  tandem_status status = TANDEM_OK;
  run(machine, [&](const tandem_call& call) {
    status = machine.backend().arithmetic->convert_pixels(&call, &pixels);
    return TANDEM_OK;
  });
  EXPECT_EQ(status, TANDEM_INVALID);
}

TEST_P(Arithmetic, CheckFiniteFindsOneBadValueAnywhereAndOtherwiseKeepsTheFlag) {
  const Machine machine = open();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto flag_after = [&](const Floats& values, int32_t before) {
    const DeviceArray<> array(machine, 1, values);
    const DeviceArray<int32_t> found_inf(machine, 1, {before});
    run(machine, [&](const tandem_call& call) {
      return machine.backend().arithmetic->check_finite(&call, array.data(), array.count(),
                                                        found_inf.data());
    });
    return found_inf.values()[0];
  };
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {size_t{0}, odd_count / 2, odd_count - 1}) {
      Floats values = random_values(odd_count, 4);
      values[at] = bad;
      EXPECT_EQ(flag_after(values, 0), 1) << bad << " at " << at;
    }
  }
  Floats good = random_values(odd_count, 4);
  good[0] = std::numeric_limits<float>::max();
  good[1] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(flag_after(good, 0), 0);
  EXPECT_EQ(flag_after(good, 1), 1);
  EXPECT_EQ(flag_after({infinity}, 0), 1);
}

TEST_P(Arithmetic, SumOfSquaresIsRightAndTheSameEachTime) {
  const Machine machine = open();
  for (const size_t count : {size_t{1}, size_t{255}, size_t{4097}, odd_count, size_t{3'000'001}}) {
    const Floats values = random_values(count, 5);
    long double sum = 0;
    for (const float value : values) sum += static_cast<long double>(value) * value;
    const auto expected = static_cast<double>(sum);
    const DeviceArray<> array(machine, 1, values);
    const DeviceArray<double> sums(machine, 1, {0, 0});
    run(machine, [&](const tandem_call& call) {
      for (int i = 0; i < 2; ++i) {
        const tandem_status status = machine.backend().arithmetic->sum_of_squares(
            &call, array.data(), array.count(), sums.data() + i);
        if (status != TANDEM_OK) return status;
      }
      return static_cast<tandem_status>(TANDEM_OK);
    });
    EXPECT_NEAR(sums.values()[0], expected, 1e-13 * expected) << count;
    EXPECT_EQ(sums.values()[0], sums.values()[1]) << count;
  }
}

struct Solved {
  Floats weights, first, second;
};

tandem_update constants_of(int32_t rule) {
  tandem_update update{};
  update.struct_size = sizeof update;
  update.rule = rule;
  update.count = odd_count;
  update.state_count = 2;
  update.momentum = 0.9F;
  update.decay = 0.0005F;
  update.rate_multiplier = 2;
  update.momentum2 = 0.99;
  update.delta = 1e-8;
  update.clip = 50;
  update.gradient_scale = 0.25;
  update.trust_coefficient = 0.02;
  update.l1_decay = 1e-4F;
  update.gradient_square_count = 2;
  return update;
}

const Floats& start() {
  static const Floats values = random_values(odd_count, 1);
  return values;
}
const Floats& gradient() {
  static const Floats values = random_values(odd_count, 2);
  return values;
}
// of the gradients; the second is also that of the weights
const std::vector<double> squares{3e5, 1e4};
constexpr int steps = 3;
tandem_step step_of(int step) {
  return {1, static_cast<uint64_t>(step), 0.01F, 1, 0, 0};
}

Solved on_cpu(tandem_update update) {
  Solved s{start(), Floats(odd_count), Floats(odd_count)};
  float* states[]{s.first.data(), s.second.data()};
  update.weights = s.weights.data();
  update.gradient = gradient().data();
  update.state = states;
  update.gradient_squares = update.gradient_square = squares.data();
  update.weight_square = squares.data() + 1;
  for (int i = 0; i < steps; ++i) {
    const tandem_step step = step_of(i);
    update.step = &step;
    EXPECT_EQ(cpu().arithmetic->update(&cpu_call, &update), TANDEM_OK);
  }
  return s;
}

class Updates : public Arithmetic {
 protected:
  static Solved on_device(tandem_update update, int32_t found_inf = 0) {
    const Machine machine = open();
    const DeviceArray<> weights(machine, 1, start()), slope(machine, 1, gradient()),
        first(machine, 1, Floats(odd_count)), second(machine, 1, Floats(odd_count));
    const DeviceArray<double> norms(machine, 1, squares);
    const DeviceArray<int32_t> flag(machine, 1, {found_inf});
    float* states[]{first.data(), second.data()};
    update.weights = weights.data();
    update.gradient = slope.data();
    update.state = states;
    update.gradient_squares = update.gradient_square = norms.data();
    update.weight_square = norms.data() + 1;
    update.found_inf = flag.data();
    for (int i = 0; i < steps; ++i) {
      const DeviceArray<tandem_step> step(machine, 1, {step_of(i)});
      update.step = step.data();
      run(machine, [&](const tandem_call& call) {
        return machine.backend().arithmetic->update(&call, &update);
      });
    }
    return {weights.values(), first.values(), second.values()};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Updates, cpu_and_gpu(), device_name);

TEST_P(Updates, HaveTheSameBitsAsOnTheCpu) {
  for (const int32_t rule : {TANDEM_UPDATE_SGD, TANDEM_UPDATE_NESTEROV, TANDEM_UPDATE_ADAGRAD,
                             TANDEM_UPDATE_RMSPROP, TANDEM_UPDATE_ADADELTA, TANDEM_UPDATE_LARS}) {
    const Solved expected = on_cpu(constants_of(rule)), found = on_device(constants_of(rule));
    EXPECT_NE(expected.weights, start()) << rule;
    EXPECT_EQ(found.weights, expected.weights) << rule;
    EXPECT_EQ(found.first, expected.first) << rule;
    EXPECT_EQ(found.second, expected.second) << rule;
  }
}

// Their rate contains a power, which devices round differently, by one bit at most.
TEST_P(Updates, OfAdamAndAdamWDifferFromTheCpuOnlyByARoundedPower) {
  for (const int32_t rule : {TANDEM_UPDATE_ADAM, TANDEM_UPDATE_ADAMW}) {
    const Solved expected = on_cpu(constants_of(rule)), found = on_device(constants_of(rule));
    double moved = 0, difference = 0;
    for (size_t i = 0; i < odd_count; ++i) {
      moved = std::max<double>(moved, std::abs(expected.weights[i] - start()[i]));
      difference = std::max<double>(difference, std::abs(expected.weights[i] - found.weights[i]));
    }
    EXPECT_GT(moved, 1e-3) << rule;
    EXPECT_LE(difference, 1e-6) << rule;
    EXPECT_EQ(found.second, expected.second) << rule;
  }
}

TEST_P(Updates, ChangeNothingIfFoundInfIsSet) {
  for (int32_t rule = TANDEM_UPDATE_SGD; rule <= TANDEM_UPDATE_LARS; ++rule) {
    const Solved found = on_device(constants_of(rule), 1);
    EXPECT_EQ(found.weights, start()) << rule;
    EXPECT_EQ(found.first, Floats(odd_count)) << rule;
  }
}

TEST_P(Updates, OfAnUnknownRuleAreRefused) {
  const Machine machine = open();
  tandem_update update = constants_of(77);
  const std::string message = message_of([&] {
    run(machine, [&](const tandem_call& call) {
      return machine.backend().arithmetic->update(&call, &update);
    });
  });
  EXPECT_THAT(message, testing::HasSubstr("update rule 77; this backend knows 1 (SGD) to 9"));
}

}  // namespace
}  // namespace tandem::test
