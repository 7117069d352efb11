// The promises of strategies, on logical devices of one GPU, and on two GPUs: one device's weights
// on any number of them, the same bits each time, and the cpu's weights within rounding. On cpu
// devices the same tests show that they are right.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/machines.h"
#include "tests/support/rectified_net.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

struct Case {
  std::string kind, strategy;
  int devices;
  std::string reduce{};

  // two_gpus: every other device is on the second GPU.
  [[nodiscard]] std::string text() const {
    if (kind == "cpu") return fmt::format("cpu:{}", devices);
    std::string text = "cuda:0";
    for (int i = 1; i < devices; ++i) text += kind == "two_gpus" && i % 2 == 1 ? ",1" : ",0";
    return text;
  }
};

class TrainingOnDevices : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { folder_ = new TempFolder; }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override {
    if (GetParam().kind == "cpu") return;
    need_gpu();
    if (GetParam().kind == "two_gpus" && no_gpu().empty()) need_two_gpus();
  }
  static TrainOptions options(const std::string& devices, const std::string& strategy) {
    TrainOptions o = synthetic_run(*folder_, 20);
    o.devices = devices;
    o.strategy = strategy;
    return o;
  }
  static TrainOptions many() {
    const Case& c = GetParam();
    TrainOptions o = options(c.text(), c.strategy);
    if (c.strategy == "two_phase") o.strategy_options["split"] = "fc3";
    if (!c.reduce.empty()) o.strategy_options["reduce"] = c.reduce;
    return o;
  }
  // The result on one cpu device, and its difference from that with another order of summation.
  struct Reference {
    Weights start, weights;
    double yardstick = 0;
  };
  static const Reference& reference() {
    static const Reference result = [] {
      const auto on_threads = [](int threads, int64_t steps, double rate) {
        TrainOptions o = options("cpu:1", "sequential");
        o.machine.threads = threads;
        o.steps = steps;
        o.rate = rate;
        return run(o);
      };
      Reference r{on_threads(1, 1, 0.0), on_threads(1, 20, 0.01), 0};
      for (const int threads : {2, 3, 4}) {
        r.yardstick = std::max(r.yardstick,
                               max_difference(r.weights, on_threads(threads, 20, 0.01), r.start));
      }
      return r;
    }();
    return result;
  }

  static TempFolder* folder_;
};
TempFolder* TrainingOnDevices::folder_ = nullptr;

TEST_P(TrainingOnDevices, GivesTheWeightsOfOneCpu) {
  const Reference& one = reference();
  ASSERT_GT(one.yardstick, 0) << "other orders of summation gave the same bits";
  const double difference = max_difference(one.weights, run(many()), one.start);
  EXPECT_LE(difference, 10 * one.yardstick) << "yardstick " << one.yardstick;
  RecordProperty("difference", std::to_string(difference));
}

TEST_P(TrainingOnDevices, GivesTheSameBitsEachTimeAndUnderRandomStreamDelays) {
  const Weights plain = run(many());
  EXPECT_EQ(run(many()), plain);
  TrainOptions delayed = many();
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

TEST_P(TrainingOnDevices, GivesTheSameBitsWithSeparateReluLayers) {
  const std::string kind = GetParam().kind == "cpu" ? "cpu" : "cuda";
  const bool normalizes = GetParam().strategy != "asymmetric";  // which needs separate samples
  const auto run_of = [&](bool looked_at) {
    TrainOptions o = many();
    o.net_text = write_net(rectified_net(looked_at, normalizes));
    if (GetParam().strategy == "two_phase") o.strategy_options["split"] = "fc4";
    o.steps = 8;
    return run(o);
  };
  ASSERT_EQ(fusion_text(rectified_net(false, normalizes), kind, TANDEM_TRAIN),
            kind == "cpu" ? 5 : 6);
  ASSERT_EQ(fusion_text(rectified_net(true, normalizes), kind, TANDEM_TRAIN),
            kind == "cpu" ? 0 : 1);
  EXPECT_EQ(run_of(false), run_of(true));
}

TEST_P(TrainingOnDevices, ResumesWithTheSameBits) {
  const Weights whole = run(many());
  TrainOptions half = many();
  half.steps = 10;
  run(half);
  TrainOptions rest;
  rest.out = half.out;
  rest.resume = true;
  rest.steps = 20;
  EXPECT_EQ(run(rest), whole);
}

// The number of launches that the stand-in has seen; -1: a GPU does not report it.
int launches() {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "tandem_fake_graph_launches"));
  return count == nullptr ? -1 : count();
}

TEST_P(TrainingOnDevices, GivesTheSameBitsWithGraphsOfWholeSteps) {
  TrainOptions o = many();
  o.graphs = GraphUse::on;
  if (GetParam().kind == "cpu") {
    EXPECT_THAT(message_of([&] { run(o); }),
                testing::HasSubstr("backend 'cpu' captures no graphs"));
    return;
  }
  const int before = launches();
  const Weights graphs = run(o);
  // Of 20 steps, two run before and four are traced.
  if (before >= 0) {
    EXPECT_EQ(launches() - before, 14);
  }
  o = many();
  o.graphs = GraphUse::off;
  EXPECT_EQ(run(o), graphs);
}

TEST_P(TrainingOnDevices, GivesTheSameBitsWithGraphsThatAccumulateGradients) {
  if (GetParam().kind == "cpu") return;
  const auto summed = [](GraphUse use) {
    TrainOptions o = many();
    o.solver_fields = {{"iter_size", "3"}, {"clip_gradients", "0.5"}, {"momentum", "0.8"}};
    o.steps = 8;
    o.graphs = use;
    o.timeline = false;
    o.machine.delay_seed = 7;
    o.machine.delay_seconds = 0.0005;
    return run(o);
  };
  const int before = launches();
  const Weights graphs = summed(GraphUse::on);
  if (before >= 0) {
    EXPECT_EQ(launches() - before, 8 * 3 - 6) << "a round has 6 steps";
  }
  EXPECT_EQ(summed(GraphUse::off), graphs);
}

std::vector<Case> cases() {
  std::vector<Case> result{
      {"cpu", "two_phase", 2}, {"cpu", "layerwise", 2, "ring"}, {"cpu", "hybrid", 2}};
  for (const int devices : {1, 2, 4}) {
    result.push_back({"cuda", "sequential", devices});
    result.push_back({"cuda", "two_phase", devices});
    for (const char* reduce : {"serial", "tree", "ring"}) {
      result.push_back({"cuda", "layerwise", devices, reduce});
    }
    for (const char* strategy : {"hybrid", "asymmetric", "fc_parallel", "mixed"}) {
      if (devices > 1) result.push_back({"cuda", strategy, devices});
    }
  }
  for (const char* strategy :
       {"sequential", "two_phase", "layerwise", "hybrid", "asymmetric", "fc_parallel", "mixed"}) {
    result.push_back({"two_gpus", strategy, 2});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, TrainingOnDevices, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           const Case& c = info.param;
                           return fmt::format("{}_{}_{}{}{}", c.kind, c.strategy, c.devices,
                                              c.reduce.empty() ? "" : "_", c.reduce);
                         });

}  // namespace
}  // namespace tandem::test
