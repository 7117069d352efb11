// Runs of strategies whose devices play different roles, and the one-device runs that they are held
// against.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/train/run_support.h"

namespace tandem::test {

struct SplitCase {
  std::string strategy;
  int devices = 2;
  RoleOptions roles = {};
  std::string net = "small";                       // of split_net()
  std::map<std::string, std::string> fields = {};  // of the solver
  int64_t batches = 1;                             // iter_size

  [[nodiscard]] std::string name() const {
    std::string text = fmt::format("{}_{}_{}", strategy, net, devices);
    if (roles.conv_devices > 0)
      text += fmt::format("_{}_and_{}", roles.conv_devices, roles.fc_devices);
    for (const auto& [field, value] : fields) text += "_" + field;
    if (batches > 1) text += fmt::format("_batches_{}", batches);
    return text;
  }
};

inline NetDefinition split_net(const std::string&) {
  return small_net();
}

class SplitRuns : public Runs {
 protected:
  static TrainOptions one_device(const SplitCase& c, int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.net_definition = split_net(c.net);
    o.solver_fields = c.fields;
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const SplitCase& c, int64_t steps = 20) {
    TrainOptions o = one_device(c, c.devices, steps);
    o.devices = fmt::format("cpu:{}", c.devices);
    o.strategy = c.strategy;
    o.strategy_options.roles = c.roles;
    o.batch /= c.batches;
    if (c.batches > 1) o.solver_fields["iter_size"] = std::to_string(c.batches);
    return o;
  }
  // The yardstick: one device whose threads only sum the batch in other orders.
  struct Reference {
    Weights start, weights;
    double yardstick = 0;
  };
  static const Reference& reference(const SplitCase& c) {
    static std::map<std::pair<std::string, std::map<std::string, std::string>>, Reference> known;
    const std::pair key(c.net, c.fields);
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Reference& r = known[key];
    TrainOptions still = one_device(c, 1, 1);
    still.rate = 0.0;
    r.start = run(still);
    r.weights = run(one_device(c, 1));
    for (const int threads : {2, 3, 4}) {
      r.yardstick = std::max(r.yardstick,
                             largest_difference(r.weights, run(one_device(c, threads)), r.start));
    }
    return r;
  }
};

inline std::vector<SplitCase> split_cases() {
  std::vector<SplitCase> cases;
  for (const auto& [conv, fc] : {std::pair{1, 1}, {2, 1}, {3, 1}, {2, 2}}) {
    cases.push_back({"hybrid", conv + fc, {conv, fc}});
  }
  cases.push_back({"hybrid", 3, {2, 1}, "small", {{"clip_gradients", "0.3"}}});
  cases.push_back({"hybrid", 4, {2, 2}, "small", {}, 2});
  return cases;
}

inline std::vector<SplitCase> resume_cases() {
  return {{"hybrid", 3, {2, 1}}};
}

}  // namespace tandem::test
