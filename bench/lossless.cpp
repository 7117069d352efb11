// Every strategy, in every legal way, against one device: the weights after 20 steps of a net at
// its full size. The largest difference relative to the largest change of its array may be ten
// times that of one-device runs which only sum the batch in another order (by the number of
// threads).
//   check_lossless [--net alexnet] [--batch 8] [--devices 1,2,3,4] [--strategy NAME] [--steps 20]
//                  [--results FILE]
// Rows are written to FILE as they are done; what it has of the same net, batch and steps is not
// run again, so that a run that was stopped goes on. Ends with 1 if a strategy differs more. What
// the net or the devices do not allow is listed, too.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/train/measure.h"

namespace {

using namespace tandem;

struct Arguments {
  std::string net = "alexnet", strategy, results;
  int64_t batch = 8;
  std::vector<int> devices{1, 2, 3, 4};
  int steps = 20;
};

struct Way {
  std::string strategy, label;
  StrategyOptions options;
};

std::vector<Way> ways_of(const std::string& strategy, int devices) {
  std::vector<Way> ways;
  const auto add = [&](const std::string& label, const auto& set) {
    ways.push_back({strategy, label, {}});
    set(ways.back().options);
  };
  if (strategy == "sequential") add("", [](StrategyOptions&) {});
  if (strategy == "two_phase") {
    for (const bool hidden : {true, false}) {
      add(hidden ? "" : "--plain-broadcast",
          [&](StrategyOptions& o) { o.hidden_broadcast = hidden; });
    }
  }
  if (strategy == "layerwise") {
    for (const char* reduce : {"serial", "tree", "ring"}) {
      for (const int64_t bucket : {int64_t{0}, int64_t{1} << 16}) {
        add(fmt::format("--reduce {}{}", reduce, bucket > 0 ? " --bucket 64KiB" : ""),
            [&](StrategyOptions& o) {
              o.reduce = reduce;
              o.bucket = bucket;
            });
      }
    }
  }
  for (int fc = 1; strategy == "hybrid" && 2 * fc <= devices; ++fc) {
    if ((devices - fc) % fc != 0) continue;
    for (const char* memory : {"", "extended"}) {
      add(fmt::format("{} conv, {} FC {}", devices - fc, fc, memory), [&](StrategyOptions& o) {
        o.roles.conv_devices = devices - fc;
        o.roles.fc_devices = fc;
        o.roles.fc_memory = memory;
      });
    }
  }
  for (int mask = 1; strategy == "asymmetric" && mask + 1 < 1 << devices; ++mask) {
    std::string errors, weights;
    for (int d = 0; d < devices; ++d) {
      std::string& group = (mask >> d & 1) != 0 ? errors : weights;
      group += fmt::format("{}{}", group.empty() ? "" : ",", d);
    }
    const std::string groups = fmt::format("E={}/W={}", errors, weights);
    add(groups, [&](StrategyOptions& o) { o.roles.groups = groups; });
  }
  for (int quota = 1; strategy == "fc_parallel" && quota <= devices; ++quota) {
    for (const bool eager : {false, true}) {
      if (eager && quota == devices) continue;
      add(fmt::format("--quota {}{}", quota, eager ? " --eager" : ""), [&](StrategyOptions& o) {
        o.roles.quota = quota;
        o.roles.eager = eager;
      });
    }
  }
  // One device, and what one device is refused for, is tried as it is.
  if (ways.empty()) add("", [](StrategyOptions&) {});
  return ways;
}

class Check {
 public:
  explicit Check(const Arguments& arguments)
      : arguments_(arguments),
        registry_(Registry::with_defaults()),
        definition_(read_net(find_net(arguments.net))) {}

  // How many differ too much.
  int run() {
    read_results();
    fmt::print("net {}, batch {}, {} steps\n", arguments_.net, arguments_.batch, arguments_.steps);
    reference_ = weights_of("cpu:1", {"sequential", "", {}}, 1);
    for (const int threads : {2, 3, 4}) {
      yardstick_ =
          std::max(yardstick_, difference(weights_of("cpu:1", {"sequential", "", {}}, threads)));
    }
    fmt::print("one device, other sums: {:.3g}; allowed: {:.3g}\n\n", yardstick_, 10 * yardstick_);
    fmt::print("| devices | strategy | difference | |\n|---|---|---|---|\n");
    for (const int devices : arguments_.devices) {
      for (const Strategy& strategy : strategies()) {
        if (!arguments_.strategy.empty() && arguments_.strategy != strategy.name) continue;
        for (const Way& way : ways_of(strategy.name, devices)) row(devices, way);
      }
    }
    fmt::print("\n{} ran, {} had run earlier, {} refused, {} differ too much\n", ran_, earlier_,
               refused_, bad_);
    return bad_;
  }

 private:
  void row(int devices, const Way& way) {
    const std::string name = way.label.empty() ? way.strategy : way.strategy + " " + way.label;
    const std::string key = key_of(devices, name);
    if (done_.contains(key)) {
      ++earlier_;
      return;
    }
    std::vector<float> weights;
    try {
      weights = weights_of(fmt::format("cpu:{}", devices), way, devices);
    } catch (const Error& refusal) {
      ++refused_;
      fmt::print("| {} | {} | | refused: {} |\n", devices, name, refusal.what());
      return;
    }
    ++ran_;
    const double most = difference(weights);
    const bool is_good = most <= 10 * yardstick_;
    if (!is_good) ++bad_;
    fmt::print("| {} | {} | {:.3g} | {} |\n", devices, name, most,
               is_good ? "ok" : "DIFFERS TOO MUCH");
    std::fflush(stdout);
    if (!arguments_.results.empty() && is_good) {
      std::ofstream(arguments_.results, std::ios::app)
          << key << fmt::format(" | {:.3g} | ok\n", most);
    }
  }

  [[nodiscard]] std::string key_of(int devices, const std::string& name) const {
    return fmt::format("{}, batch {}, {} steps | {} | {}", arguments_.net, arguments_.batch,
                       arguments_.steps, devices, name);
  }
  // The last two columns are the difference and its verdict.
  void read_results() {
    std::ifstream file(arguments_.results);
    for (std::string line; std::getline(file, line);) {
      const size_t verdict = line.rfind(" | ok");
      if (verdict == std::string::npos || verdict == 0) continue;
      const size_t difference = line.rfind(" | ", verdict - 1);
      if (difference != std::string::npos) done_.insert(line.substr(0, difference));
    }
  }

  // After so many steps on one standing batch, with dropout of its own in each.
  std::vector<float> weights_of(const std::string& devices, const Way& way, int threads) {
    SessionOptions o;
    o.devices = devices;
    o.strategy = way.strategy;
    o.strategy_options = way.options;
    o.machine.threads = threads;
    o.batch = arguments_.batch;
    o.data = definition_.input_shape();
    o.data.n = 1;
    o.testing = false;
    Session session(registry_, definition_, o);
    (void)measure(session, 1, arguments_.steps - 1);
    arrays_ = session.net().weights;
    if (start_.empty()) start_ = initial_weights(session.net(), 1);
    return session.weights();
  }

  [[nodiscard]] double difference(const std::vector<float>& weights) const {
    double largest = 0;
    for (const WeightArray& array : arrays_) {
      double moved = 0, apart = 0;
      for (int64_t i = array.offset; i < array.offset + array.count; ++i) {
        const double one = reference_[size_t(i)];
        moved = std::max(moved, std::abs(one - start_[size_t(i)]));
        const double here = std::abs(one - weights[size_t(i)]);
        if (!(here <= apart)) apart = here;
        if (!std::isfinite(apart)) return INFINITY;
      }
      if (apart > 0) largest = std::max(largest, apart / moved);
    }
    return largest;
  }

  Arguments arguments_;
  Registry registry_;
  NetDefinition definition_;
  std::vector<WeightArray> arrays_;
  std::vector<float> start_, reference_;
  double yardstick_ = 0;
  std::set<std::string> done_;  // keys
  int ran_ = 0, earlier_ = 0, refused_ = 0, bad_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Every strategy at full size against one device"};
  app.add_option("--net", arguments.net)->capture_default_str();
  app.add_option("--batch", arguments.batch)->capture_default_str();
  app.add_option("--devices", arguments.devices)->delimiter(',')->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "Only this one");
  app.add_option("--steps", arguments.steps)->check(CLI::Range(2, 10000))->capture_default_str();
  app.add_option("--results", arguments.results, "Keep what has run here, and go on from there");
  CLI11_PARSE(app, argc, argv);
  try {
    return Check(arguments).run() == 0 ? 0 : 1;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "check_lossless: {}\n", failure.what());
    return 1;
  }
}
