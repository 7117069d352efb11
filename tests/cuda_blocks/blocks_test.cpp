// The blocks of the CUDA backend with threads of the host: the results, and that ThreadSanitizer
// finds a race as soon as any of their barriers is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plugins/cuda/arithmetic.h"
#include "plugins/cuda/pixels.h"
#include "plugins/cuda/sources.h"
#include "plugins/cuda/sum_order.h"
#include "plugins/cuda/sums.h"
#include "plugins/cuda/updates.h"
#include "plugins/pixels.h"
#include "plugins/update_checks.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TANDEM_UNDER_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define TANDEM_UNDER_THREAD_SANITIZER
#endif

// All threads that write found_inf write the same value.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:check_finite_kernel\n";
}

namespace tandem::cuda {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;

int stream_object;
const tandem_call call{sizeof(tandem_call), 0, 0, &stream_object, nullptr, nullptr};

Floats random_values(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  Floats result(static_cast<size_t>(count));
  for (float& value : result) value = values(random);
  return result;
}

// Two sums, which use the same shared memory, and a maximum, one after another in the same block.
struct SeveralInOneBlock {
  template <class Team>
  void operator()(const Team& team, int64_t group) const {
    double sum = 0;
    float highest = 0;
    for (int64_t k = team.rank(); k < count; k += team.size()) {
      sum += values[group * count + k];
      highest = std::max(highest, values[group * count + k]);
    }
    const double first = team.sum(sum);
    const double second = team.sum(2 * sum);
    const float most = team.highest(highest);
    if (team.rank() == 0) results[group] = {first, second + most};
  }
  const float* values;
  Pair* results;
  int64_t count;
};

// 64, 256 and 512 threads, and teams of one.
TEST(Teams, CombineSeveralTimesInOneBlock) {
  for (const int64_t count : {7, 100, 1000, 5000}) {
    constexpr int64_t groups = 2;
    Floats values(static_cast<size_t>(groups * count));
    std::iota(values.begin(), values.end(), 1.0F);
    std::vector<Pair> results(groups);
    for_teams(sdk::Call(call), {groups, count},
              SeveralInOneBlock{values.data(), results.data(), count});
    for (int64_t group = 0; group < groups; ++group) {
      const auto begin = values.begin() + group * count, end = begin + count;
      const double sum = std::accumulate(begin, end, 0.0);
      EXPECT_EQ(results[static_cast<size_t>(group)].first, sum) << count;
      EXPECT_EQ(results[static_cast<size_t>(group)].second, 2 * sum + *(end - 1)) << count;
    }
  }
}

TEST(Teams, SumsOfGroupsAreThoseOfTheirTerms) {
  struct Term {
    double operator()(int64_t group, int64_t k) const { return static_cast<double>(group + k); }
  };
  struct Finish {
    void operator()(int64_t group, double sum) const { results[group] = sum; }
    double* results;
  };
  constexpr int64_t groups = 3, count = 4100;
  for (const bool side_by_side : {false, true}) {
    const GroupSums<> sums(groups, count, side_by_side);
    std::vector<double> scratch(static_cast<size_t>(sums.scratch_bytes()) / sizeof(double));
    std::vector<double> results(groups);
    sums.run(sdk::Call(call), Term(), scratch.data(), Finish{results.data()});
    for (int64_t group = 0; group < groups; ++group) {
      EXPECT_EQ(results[static_cast<size_t>(group)],
                static_cast<double>(group * count + count * (count - 1) / 2));
    }
  }
}

TEST(Teams, TheTotalIsThatOfAllTerms) {
  struct Term {
    double operator()(int64_t i) const { return static_cast<double>(i); }
  };
  struct Finish {
    void operator()(double sum) const { *result = sum; }
    double* result;
  };
  constexpr int64_t count = 9001;
  const Total total(count);
  std::vector<double> scratch(static_cast<size_t>(total.scratch_bytes()) / sizeof(double));
  double result = 0;
  total.run(sdk::Call(call), Term(), scratch.data(), Finish{&result});
  EXPECT_EQ(result, static_cast<double>(count * (count - 1) / 2));
}

TEST(Arithmetic, FillsAndAddsInOrder) {
  constexpr int64_t count = 1003;
  Floats target(count + 1, 9.0F);
  fill(call, target.data(), 2.5F, count);
  EXPECT_EQ(target.front(), 2.5F);
  EXPECT_EQ(target[count - 1], 2.5F);
  EXPECT_EQ(target[count], 9.0F);
  Floats expected = target;
  std::vector<Floats> sources;
  std::vector<const float*> addresses;
  for (unsigned s = 0; s < sources_at_once + 2; ++s) {
    sources.push_back(random_values(count, s));
    addresses.push_back(sources.back().data());
    for (size_t i = 0; i < count; ++i) expected[i] += sources.back()[i];
  }
  add(call, target.data(), addresses.data(), static_cast<uint32_t>(addresses.size()), count);
  EXPECT_EQ(target, expected);
  // From the second value on, where no vector begins.
  for (size_t i = 1; i < count; ++i) expected[i] += sources.front()[i];
  const float* const behind = sources.front().data() + 1;
  add(call, target.data() + 1, &behind, 1, count - 1);
  EXPECT_EQ(target, expected);
}

TEST(Arithmetic, FindsValuesThatAreNotFinite) {
  Floats values = random_values(777, 1);
  int32_t found = 0;
  check_finite(call, values.data(), 777, &found);
  EXPECT_EQ(found, 0);
  values[500] = -INFINITY;
  values[501] = NAN;
  check_finite(call, values.data(), 777, &found);
  EXPECT_EQ(found, 1);
}

// More than one block, so that both stages add.
TEST(Arithmetic, AddsSquaresInDouble) {
  const int64_t count = 2 * sum_threads * 16 + 5;
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17);
  double expected = 0;
  for (const float value : values) expected += static_cast<double>(value) * value;
  std::vector<double> partial(max_partial_sums);
  const Workspace workspace{&stream_object, partial.data()};
  const WorkspaceScope scope(workspace);
  double sum = -1;
  sum_of_squares(call, values.data(), count, &sum);
  EXPECT_EQ(sum, expected);
}

// What one element becomes by the same rules, without a block.
void step_by_rule(int32_t rule, const rules::Terms& t, float& w, float g, float& first,
                  float& second) {
  switch (rule) {
    case TANDEM_UPDATE_NESTEROV:
      return rules::nesterov(t, w, g, first);
    case TANDEM_UPDATE_ADAGRAD:
      return rules::adagrad(t, w, g, first);
    case TANDEM_UPDATE_RMSPROP:
      return rules::rmsprop(t, w, g, first);
    case TANDEM_UPDATE_ADADELTA:
      return rules::adadelta(t, w, g, first, second);
    case TANDEM_UPDATE_ADAM:
      return rules::adam(t, w, g, first, second);
    case TANDEM_UPDATE_ADAMW:
      return rules::adamw(t, w, g, first, second);
    case TANDEM_UPDATE_AVERAGE:
      return rules::average(t, w, g, first);
    default:
      return rules::sgd(t, w, g, first);
  }
}

TEST(Updates, HaveTheBitsOfTheirRules) {
  constexpr int64_t count = 1500;  // two blocks
  for (size_t test = 0; test < 2 * std::size(rules::known_rules); ++test) {
    const rules::RuleEntry& rule = rules::known_rules[test / 2];
    const size_t begin = test % 2;  // vectors begin at the first value, not at the second
    Floats weights = random_values(count, 1), first(count, 0.25F), second(count, 0.5F);
    const Floats gradient = random_values(count, 2);
    float* const states[] = {first.data() + begin, second.data() + begin};
    const tandem_step step{1, 3, 0.1F, 1, 0, 0};
    const double squares[] = {2, 3};
    tandem_update update{};
    update.struct_size = sizeof update;
    update.rule = rule.id;
    update.count = count - 2;
    update.gradient = gradient.data() + begin;
    update.state = states;
    update.state_count = 2;
    update.momentum = 0.9F;
    update.momentum2 = 0.999;
    update.decay = 0.01F;
    update.delta = 1e-8;
    update.rate_multiplier = 1;
    update.gradient_scale = 0.5;
    update.clip = 1;
    update.trust_coefficient = 0.001;
    update.step = &step;
    update.gradient_squares = squares;
    update.gradient_square_count = 2;
    update.gradient_square = &squares[0];
    update.weight_square = &squares[1];
    Floats expected = weights, expected_first = first, expected_second = second;
    const rules::Terms terms = rules::terms_of(update);
    for (size_t i = begin; i < begin + count - 2; ++i) {
      step_by_rule(rule.id, terms, expected[i], gradient[i], expected_first[i], expected_second[i]);
    }
    update.weights = weights.data() + begin;
    cuda::update(call, update);
    EXPECT_EQ(weights, expected) << rule.name;
    EXPECT_EQ(first, expected_first) << rule.name;
    if (rule.states < 2) expected_second = second;
    EXPECT_EQ(second, expected_second) << rule.name;
  }
}

TEST(Pixels, HaveTheMeanAndScaleOfTheirChannel) {
  for (const size_t offset : {0U, 1U}) {  // read by words, and byte by byte
    constexpr size_t count = size_t{2} * 3 * 5 * 7;
    std::vector<uint8_t> bytes(count + 4);
    std::iota(bytes.begin(), bytes.end(), uint8_t{3});
    alignas(16) std::array<float, count> target{};
    tandem_pixels pixels{};
    pixels.struct_size = sizeof pixels;
    pixels.shape = {2, 3, 5, 7};
    pixels.pixels = bytes.data() + offset;
    pixels.target = target.data();
    pixels.means[0] = 1;
    pixels.means[1] = 2;
    pixels.means[2] = 3;
    pixels.scale = 0.1F;
    convert_pixels(call, pixels);
    for (size_t i = 0; i < count; ++i) {
      const float mean = pixels.means[i / 35 % 3];
      EXPECT_EQ(target[i], pixels::value_of(bytes[offset + i], mean, 0.1F)) << i;
    }
  }
}

// file:line of every barrier in the sources.
std::vector<std::string> barriers() {
  std::vector<std::string> places;
  for (const auto& entry : fs::directory_iterator(TANDEM_CUDA_SOURCES)) {
    std::ifstream file(entry.path());
    std::string name = entry.path().filename().string(), line;
    if (entry.path().extension() == ".cu") name = entry.path().stem().string() + ".cpp";
    for (int number = 1; std::getline(file, line); ++number) {
      const bool is_code = line.find("__syncthreads()") < line.find("//");
      if (is_code) places.push_back(name + ":" + std::to_string(number));
    }
  }
  return places;
}

// Runs the tests of the barrier's file (teams.h: Teams) in a new process and returns what they
// print.
std::string output_without(const std::string& barrier, int* status) {
  std::string suite = barrier.substr(0, barrier.find('.'));
  suite[0] = static_cast<char>(std::toupper(suite[0]));
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const std::string command = "TANDEM_WITHOUT_BARRIER='" + barrier +
                              "' TSAN_OPTIONS=halt_on_error=1 '" + self +
                              "' --gtest_filter=" + suite + ".* 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> part{};
  while (pipe != nullptr && std::fgets(part.data(), part.size(), pipe) != nullptr) {
    output += part.data();
  }
  *status = pipe == nullptr ? -1 : pclose(pipe);
  return output;
}

TEST(Barriers, AreAllNeededAndAllTested) {
#ifndef TANDEM_UNDER_THREAD_SANITIZER
  GTEST_SKIP() << "this build has no ThreadSanitizer, which finds the races";
#endif
  const std::vector<std::string> places = barriers();
  EXPECT_GE(places.size(), 6U);
  for (const std::string& place : places) {
    int status = 0;
    EXPECT_THAT(output_without(place, &status), testing::HasSubstr("data race")) << place;
    EXPECT_NE(status, 0) << place;
  }
}

}  // namespace
}  // namespace tandem::cuda
