// Solvers that need all gradients, and updates of several batches: the weights of one device and
// one batch, whatever the strategy and the number of devices.
#include <gtest/gtest.h>

#include "core/schedule/strategies/strategies.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

struct SolverCase {
  std::string name;
  std::map<std::string, std::string> fields;
  std::string strategy;
  int devices;
  bool hidden;
  int64_t batches = 1;
  std::string reduce{};
};

class SolverLossless : public Runs, public testing::WithParamInterface<SolverCase> {
 protected:
  static TrainOptions one_device(const std::map<std::string, std::string>& fields, int threads,
                                 int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.solver_fields = fields;
    if (fields.contains("type") && fields.at("type") == "LARS") o.rate = 1.0;
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const SolverCase& c) {
    TrainOptions o = one_device(c.fields, c.devices);
    o.devices = "cpu:" + std::to_string(c.devices);
    o.strategy = c.strategy;
    o.strategy_options["hidden_broadcast"] = c.hidden;
    o.strategy_options["split"] = "fc3";
    o.strategy_options["reduce"] = c.reduce;
    o.strategy_options["bucket"] = 2048;
    o.strategy_options = built_in_strategies().options_of(c.strategy, o.strategy_options);
    o.batch /= c.batches;
    if (c.batches > 1) o.solver_fields["iter_size"] = std::to_string(c.batches);
    return o;
  }
  struct Reference {
    Weights start, weights;
    double reordered = 0;
  };
  // What gives the tolerance: one device whose threads only sum the batch in other orders.
  static const Reference& reference(const std::map<std::string, std::string>& fields) {
    static std::map<std::map<std::string, std::string>, Reference> known;
    if (const auto found = known.find(fields); found != known.end()) return found->second;
    Reference& r = known[fields];
    TrainOptions still = one_device(fields, 1, 1);
    still.rate = 0.0;
    r.start = run(still);
    r.weights = run(one_device(fields, 1));
    for (const int threads : {2, 3, 4}) {
      r.reordered = std::max(r.reordered,
                             max_difference(r.weights, run(one_device(fields, threads)), r.start));
    }
    return r;
  }
};

TEST_P(SolverLossless, TheWeightsAreThoseOfOneDeviceAndOneBatch) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const Reference& one = reference(GetParam().fields);
  ASSERT_GT(one.reordered, 0) << "nothing to compare with";
  const double difference = max_difference(one.weights, run(many(GetParam())), one.start);
  EXPECT_LE(difference, 10 * one.reordered) << "reordered runs differ by " << one.reordered;
  RecordProperty("difference", std::to_string(difference));
}

std::vector<SolverCase> solver_cases() {
  std::vector<SolverCase> result;
  const std::map<std::string, std::string> clip{{"clip_gradients", "0.3"}};
  const std::map<std::string, std::string> lars{{"type", "LARS"}, {"trust_coefficient", "0.01"}};
  for (int devices = 1; devices <= 4; ++devices) {
    result.push_back({"clip", clip, "sequential", devices, false});
    result.push_back({"clip", clip, "two_phase", devices, devices != 2});
    result.push_back({"lars", lars, "sequential", devices, false});
    result.push_back({"lars", lars, "two_phase", devices, devices != 3});
  }
  for (const char* reduce : {"serial", "tree", "ring"}) {
    result.push_back({"clip", clip, "layerwise", 3, true, 1, reduce});
    result.push_back({"lars", lars, "layerwise", 4, true, 1, reduce});
    result.push_back({"plain", {}, "layerwise", 3, true, 2, reduce});
    result.push_back({"lars", lars, "layerwise", 2, true, 3, reduce});
  }
  result.push_back({"plain", {}, "sequential", 1, false, 2});
  result.push_back({"plain", {}, "two_phase", 2, false, 2});
  result.push_back({"plain", {}, "two_phase", 2, true, 2});
  result.push_back({"plain", {}, "two_phase", 3, true, 4});
  result.push_back({"lars", lars, "two_phase", 2, true, 3});
  result.push_back({"plain", {}, "mixed", 2, true, 3, "ring"});
  result.push_back({"lars", lars, "mixed", 4, true, 2, "ring"});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, SolverLossless, testing::ValuesIn(solver_cases()),
                         [](const testing::TestParamInfo<SolverCase>& info) {
                           const SolverCase& c = info.param;
                           return c.name + "_" + c.strategy + "_" + std::to_string(c.devices) +
                                  (c.hidden ? "_hidden" : "_plain") + c.reduce + "_batches_" +
                                  std::to_string(c.batches);
                         });

TEST_F(Runs, ClippingChangesTheWeightsAndAWideLimitDoesNot) {
  TrainOptions plain = options(3);
  const Weights weights = run(plain);
  TrainOptions clipped = options(3), wide = options(3);
  clipped.solver_fields["clip_gradients"] = "0.3";
  wide.solver_fields["clip_gradients"] = "1e6";
  EXPECT_NE(run(clipped), weights);
  EXPECT_EQ(run(wide), weights);
}

}  // namespace
}  // namespace tandem::test
