// The step of two_phase, paced, beside its formula, the simulator's prediction and `sequential`,
// for links that make the FC gradients' way shorter than, about as long as, and longer than
// backward through the conv part.
//   bench_paced COSTS [--net alexnet] [--batch 128] [--devices 2,4] [--steps 4]
// COSTS is what `tandem profile --costs` wrote for that net.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "bench/paced_frame.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"

namespace {

using namespace tandem;

struct Arguments {
  std::string costs, net = "alexnet";
  int64_t batch = 128;
  std::vector<int> devices{2, 4};
  int steps = 4;
};

// The parts of a plan's step from costs and links alone: nothing is run.
StepParts predicted_parts(const Net& net, const Plan& plan, const CostTable& costs,
                          const LinkSpec& link) {
  std::map<std::pair<Stage, int>, double> sums;
  for (const Task& task : plan.tasks) {
    double seconds = costs.seconds(net, plan, task);
    if (const auto* copy = std::get_if<CopyWork>(&task.work);
        copy != nullptr && task.streams.size() > 1) {
      for (const CopySegment& segment : copy->segments) {
        seconds += link.latency + static_cast<double>(plan.bytes(segment.source)) / link.bandwidth;
      }
    }
    for (const StreamId& id : task.streams) sums[{task.stage, id.device}] += seconds;
  }
  const auto longest = [&](Stage stage) {
    double most = 0;
    for (int d = 0; d < plan.devices; ++d) most = std::max(most, sums[{stage, d}]);
    return most;
  };
  StepParts parts;
  parts.forward = longest(Stage::forward);
  parts.backward_fc = longest(stages::backward_fc);
  parts.backward_conv = longest(stages::backward_conv);
  parts.fc_gradients = longest(stages::send_fc_gradients) + longest(stages::update_fc);
  parts.conv_gradients = longest(stages::send_conv_gradients) + longest(stages::update_conv);
  parts.broadcast = longest(stages::broadcast);
  return parts;
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : arguments_(arguments), net_(arguments.net, arguments.costs) {}

  void run() {
    fmt::print("net {}, batch {} in all, {} paced steps each; times in ms\n\n", arguments_.net,
               arguments_.batch, arguments_.steps);
    fmt::print(
        "| devices | link MB/s | m/c | a+b+max(c,m)+n+broadcast | two_phase paced | off | sim | "
        "sim off paced | "
        "sequential paced | hidden broadcast paced | sim | off "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const int devices : arguments_.devices) {
      for (const double ratio : {0.5, 1.0, 1.6}) row(devices, ratio);
    }
  }

 private:
  SessionOptions options(const std::string& kind, int devices, const std::string& strategy,
                         bool hidden, const LinkSpec& link) const {
    SessionOptions o = net_.options(fmt::format("{}:{}", kind, devices), arguments_.batch, link);
    o.strategy = strategy;
    TwoPhaseOptions two_phase;
    two_phase.hidden_broadcast = hidden;
    two_phase.split = split_;
    o.strategy_options =
        built_in_strategies().options_of(strategy, two_phase_options().write(two_phase));
    return o;
  }

  double step(const std::string& kind, int devices, const std::string& strategy, bool hidden,
              const LinkSpec& link) {
    return net_.step(options(kind, devices, strategy, hidden, link), 2, arguments_.steps);
  }

  StepParts parts(int devices, const LinkSpec& link) {
    Session session = net_.session(options("sim", devices, "two_phase", false, link));
    split_ = session.training().plan.split_layer;
    return predicted_parts(session.training().net, session.training().plan, net_.costs(), link);
  }

  void row(int devices, double ratio) {
    // The bandwidth at which m = ratio * c: transfers shrink with it, additions and updates stay.
    LinkSpec link{1e9, 10e-6};
    split_ = "auto";
    const StepParts slow = parts(devices, link);
    const StepParts fast = parts(devices, {1e15, 10e-6});
    const double transfer = slow.fc_gradients - fast.fc_gradients;
    const double wanted =
        std::max(0.05 * slow.backward_conv, ratio * slow.backward_conv - fast.fc_gradients);
    link.bandwidth = 1e9 * transfer / wanted;
    const StepParts p = parts(devices, link);
    const double formula = p.two_phase(false);
    const double paced = step("cpu", devices, "two_phase", false, link);
    const double sim = step("sim", devices, "two_phase", false, link);
    const double sequential = step("cpu", devices, "sequential", false, link);
    const double hidden = step("cpu", devices, "two_phase", true, link);
    const double hidden_sim = step("sim", devices, "two_phase", true, link);
    const auto percent = [](double a, double b) { return 100 * (a - b) / b; };
    fmt::print(
        "| {} | {:.0f} | {:.2f} | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} | {:+.1f} % | {:.1f} | "
        "{:.1f} | {:.1f} | {:+.1f} % |\n",
        devices, link.bandwidth / 1e6, p.fc_gradients / p.backward_conv, 1e3 * formula, 1e3 * paced,
        percent(paced, formula), 1e3 * sim, percent(sim, paced), 1e3 * sequential, 1e3 * hidden,
        1e3 * hidden_sim, percent(hidden_sim, hidden));
    std::fflush(stdout);
  }

  Arguments arguments_;
  bench::PacedNet net_;
  std::string split_ = "auto";
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"two_phase, paced, beside its formula, the simulator and sequential"};
  app.add_option("costs", arguments.costs, "What `tandem profile --costs` wrote")->required();
  app.add_option("--net", arguments.net)->capture_default_str();
  app.add_option("--batch", arguments.batch)->capture_default_str();
  app.add_option("--devices", arguments.devices)->delimiter(',')->capture_default_str();
  app.add_option("--steps", arguments.steps)->check(CLI::Range(3, 10000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return bench::run("bench_paced", [&] { Bench(arguments).run(); });
}
