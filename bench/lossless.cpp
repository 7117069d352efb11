// Compares every strategy, with every legal set of options, with one device: weights and momentum
// after some steps of a net at its full size. The largest difference (lossless_run.h) may be ten
// times that of one-device runs which only sum the batch in another order (lossless_tolerance.h).
//   check_lossless [--net alexnet] [--batch 8] [--devices 1,2,3,4] [--strategy NAME] [--steps 20]
//                  [--results FILE]
// Rows are written to FILE when they are done. Rows of the same build, net, batch and steps that
// FILE has are not run again, so that a stopped check can be continued. Exit codes: 0 all agree; 1
// one differs more, or something failed; 2 no verdict: one-device runs do not differ at all,
// although the learning rate was raised, or differ so much that everything would pass, or nothing
// was compared. Ways that the net or the devices refuse are listed, too.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <set>
#include <vector>

#include "bench/lossless_run.h"
#include "bench/lossless_tally.h"
#include "bench/lossless_tolerance.h"
#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/model/adapted/models.h"

namespace {

using namespace tandem;
using namespace tandem::bench;

struct Arguments {
  std::string net = "alexnet", strategy, results;
  int64_t batch = 8;
  std::vector<int> devices{1, 2, 3, 4};
  int steps = 20;
};

// Rows that are done, kept in a file with a line for each.
class Results {
 public:
  explicit Results(const std::string& path) : path_(path) {
    if (path.empty()) return;
    std::ifstream old(path);
    for (std::string line; std::getline(old, line);) {
      const size_t end = line.rfind(" | ok");
      const size_t begin = end == std::string::npos || end == 0 ? end : line.rfind(" | ", end - 1);
      if (begin != std::string::npos) done_.insert(line.substr(0, begin));
    }
    file_.open(path, std::ios::app);
    require_written();
  }

  [[nodiscard]] bool has(const std::string& key) const { return done_.contains(key); }
  void add(const std::string& key, double difference, bool is_good) {
    if (path_.empty()) return;
    file_ << fmt::format("{} | {:.3g} | {}\n", key, difference, is_good ? "ok" : "DIFFERS")
          << std::flush;
    require_written();
  }

 private:
  void require_written() const {
    if (!file_) throw error("--results {}: it cannot be written", path_);
  }

  std::string path_;
  std::ofstream file_;
  std::set<std::string> done_;  // keys
};

class Check {
 public:
  explicit Check(const Arguments& arguments)
      : arguments_(arguments),
        results_(arguments.results),
        registry_(Registry::with_defaults()),
        definition_(read_net(find_net(arguments.net))) {}

  int run() {
    build_ = build_id();
    fmt::print("net {}, batch {}, {} steps, build {}\n", arguments_.net, arguments_.batch,
               arguments_.steps, build_);
    if (!find_tolerance()) return no_verdict;
    fmt::print(
        "\n| devices | strategy | difference | in | nearest one-device run | by | |\n"
        "|---|---|---|---|---|---|---|\n");
    for (const int devices : arguments_.devices) {
      for (const Strategy& strategy : built_in_strategies()) {
        if (!arguments_.strategy.empty() && arguments_.strategy != strategy.name) continue;
        std::vector<StrategyOptions> cases = strategy.lossless_cases(devices);
        if (cases.empty()) cases.push_back({});  // so that the refusal is shown
        for (const StrategyOptions& options : cases) row(devices, strategy, options);
      }
    }
    fmt::print(
        "\n{} ran (largest difference {:.3g}), {} had run earlier, {} refused, {} differ "
        "too much, {} failed\n",
        tally_.ran, largest_, tally_.earlier, tally_.refused, tally_.differ, tally_.failed);
    if (tally_.exit_code() == no_verdict) fmt::print("no verdict: nothing was compared\n");
    return tally_.exit_code();
  }

 private:
  // If one-device runs do not differ at all, weights hardly move, and the learning rate is raised.
  bool find_tolerance() {
    for (const float rate : {1e-4F, 1e-3F, 1e-2F}) {
      rate_ = rate;
      run_reordered();
      if (reordered_ > 0) break;
    }
    if (gives_verdict(reordered_)) {
      fmt::print("allowed: {:.3g}\n", tolerance_of(reordered_));
      return true;
    }
    fmt::print("no verdict: {}\n",
               reordered_ > 0
                   ? fmt::format("one-device runs differ so much in {} that everything would pass; "
                                 "use fewer --steps, if its gradient is more than rounding",
                                 reordered_in_)
                   : "one-device runs do not differ; use a larger --batch or more --steps");
    return false;
  }
  void run_reordered() {
    fmt::print("learning rate {:g}\n\n| one device | difference | in |\n|---|---|---|\n", rate_);
    LosslessRun run;
    reference_ = after(run);
    one_device_ = {};
    run.batch = arguments_.batch;
    for (const ReorderedRun& other : reordered_runs(run, reference_, arguments_.devices)) {
      LosslessWeights weights = after(other.run);
      const Difference found = difference(reference_, weights);
      if (found.most > reordered_) {
        reordered_ = found.most;
        reordered_in_ = found.where;
      }
      fmt::print("| {} | {:.3g} | {} |\n", other.name, found.most, found.where);
      std::fflush(stdout);
      one_device_.add(other.name, std::move(weights));
    }
    fmt::print("\n");
  }
  LosslessWeights after(LosslessRun run) {
    run.batch = arguments_.batch;
    run.steps = arguments_.steps;
    run.rate = rate_;
    return run_lossless(registry_, definition_, run);
  }

  void row(int devices, const Strategy& strategy, const StrategyOptions& options) {
    const std::string given = to_text(strategy, options);
    const std::string name = given.empty() ? strategy.name : strategy.name + " " + given;
    const std::string key = fmt::format(
        "{}, batch {}, {} steps, rate {:g}, allowed {:.3g}, build {} | {} | {}", arguments_.net,
        arguments_.batch, arguments_.steps, rate_, tolerance_of(reordered_), build_, devices, name);
    if (results_.has(key)) {
      ++tally_.earlier;
      return;
    }
    LosslessWeights weights;
    try {
      LosslessRun run;
      run.devices = fmt::format("cpu:{}", devices);
      run.strategy = strategy.name;
      run.options = options;
      run.threads = devices;
      weights = after(run);
    } catch (const Refused& refusal) {
      ++tally_.refused;
      fmt::print("| {} | {} | | | | | refused: {} |\n", devices, name, refusal.what());
      return;
    } catch (const std::exception& failure) {
      ++tally_.failed;
      fmt::print("| {} | {} | | | | | FAILED: {} |\n", devices, name, failure.what());
      return;
    }
    ++tally_.ran;
    const auto [most, where] = difference(reference_, weights);
    const bool is_good = most <= tolerance_of(reordered_);
    if (!is_good) ++tally_.differ;
    largest_ = std::max(largest_, most);
    const auto [nearest, by] =
        one_device_.nearest(weights, {"1 thread", difference(weights, reference_).most});
    fmt::print("| {} | {} | {:.3g} | {} | {} | {:.3g} | {} |\n", devices, name, most, where,
               nearest, by, is_good ? "ok" : "DIFFERS TOO MUCH");
    std::fflush(stdout);
    results_.add(key, most, is_good);
  }

  Arguments arguments_;
  Results results_;
  Registry registry_;
  NetDefinition definition_;
  std::string build_;
  float rate_ = 0;
  LosslessWeights reference_;
  OneDeviceRuns one_device_;
  double reordered_ = 0;  // the largest difference of a reordered run
  double largest_ = 0;
  std::string reordered_in_;  // the array that differs by it
  LosslessTally tally_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Every strategy at full size against one device"};
  app.add_option("--net", arguments.net)->capture_default_str();
  app.add_option("--batch", arguments.batch)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--devices", arguments.devices)
      ->delimiter(',')
      ->check(CLI::Range(1, max_devices))
      ->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "Only this one");
  app.add_option("--steps", arguments.steps)->check(CLI::Range(2, 10000))->capture_default_str();
  app.add_option("--results", arguments.results, "Keep what has run here, and go on from there");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!arguments.strategy.empty()) (void)built_in_strategies().at(arguments.strategy);
    return Check(arguments).run();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "check_lossless: {}\n", failure.what());
    return bad;
  }
}
