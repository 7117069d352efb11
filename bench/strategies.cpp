// Every strategy, paced, beside the simulator's prediction and the bound that no order of the work
// can pass: the larger of what the busiest device computes and what the busiest link carries.
//   bench_strategies COSTS [--net alexnet] [--batch-per-device 32] [--devices 2,4,8,16]
//                    [--links 0.5GB/s,1GB/s,4GB/s] [--latency 10us] [--steps 5] [--strategy NAME]
//                    [--real]
// --real runs the kernels instead, on devices that share the cores; COSTS must then be of as many
// threads as a device has.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>

#include "bench/paced_frame.h"

namespace {

using namespace tandem;

struct Arguments {
  std::string costs, net = "alexnet", latency = "10us", strategy;
  int64_t batch_per_device = 32;
  std::vector<int> devices{2, 4, 8, 16};
  std::vector<std::string> links{"0.5GB/s", "1GB/s", "4GB/s"};
  int steps = 5;
  bool real = false;
};

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : arguments_(arguments), net_(arguments.net, arguments.costs) {}

  void run() {
    fmt::print("net {}, batch {} a device, {} {} steps each (median); times in ms\n\n",
               arguments_.net, arguments_.batch_per_device, arguments_.steps,
               arguments_.real ? "real" : "paced");
    fmt::print(
        "| devices | link | strategy | {} | sim | off | compute | busiest link | over the "
        "larger | exposed | times sequential | load |\n|---|---|---|---|---|---|---|---|---|---|"
        "---|---|\n",
        arguments_.real ? "real" : "paced");
    for (const int devices : arguments_.devices) {
      for (const std::string& link : arguments_.links) rows(devices, link);
    }
  }

 private:
  void rows(int devices, const std::string& bandwidth) {
    const LinkSpec link{parse_bandwidth(bandwidth, "--links"),
                        parse_latency(arguments_.latency, "--latency")};
    std::map<std::string, StepBounds> bounds_by_name;
    ForecastList list =
        net_.forecasts(devices, arguments_.batch_per_device, link, [&](const Forecast& forecast) {
          bounds_by_name[forecast.name] = bounds_of(net_.net(arguments_.batch_per_device * devices),
                                                    forecast.plan, net_.costs(), link.bandwidth);
        });
    std::stable_partition(
        list.forecasts.begin(), list.forecasts.end(),
        [](const Forecast& forecast) { return forecast.strategy == "sequential"; });
    double sequential = 0;
    for (const Forecast& forecast : list.forecasts) {
      const bool wanted = arguments_.strategy.empty() || forecast.strategy == arguments_.strategy;
      if (!forecast.refusal.empty() || !(wanted || forecast.strategy == "sequential")) continue;
      const std::string load = bench::load();
      const double seconds = measured(forecast, link);
      if (forecast.strategy == "sequential") sequential = seconds;
      const StepBounds& bounds = bounds_by_name.at(forecast.name);
      fmt::print(
          "| {} | {} | {} | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} % | "
          "{:.2f} | {} |\n",
          devices, bandwidth, forecast.name, 1e3 * seconds, 1e3 * forecast.step_seconds(),
          100 * (forecast.step_seconds() / seconds - 1), 1e3 * bounds.compute, 1e3 * bounds.link,
          100 * (seconds / bounds.step() - 1), 100 * (1 - forecast.alone_seconds / seconds),
          seconds / sequential, load);
      std::fflush(stdout);
    }
  }

  double measured(const Forecast& forecast, const LinkSpec& link) {
    SessionOptions o = net_.options(fmt::format("cpu:{}", forecast.plan.devices),
                                    arguments_.batch_per_device * forecast.plan.devices, link);
    o.machine.paced = !arguments_.real;
    o.strategy = forecast.strategy;
    o.strategy_options = forecast.options;
    return net_.step(o, 3, arguments_.steps);
  }

  Arguments arguments_;
  bench::PacedNet net_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Every strategy, paced, beside sim and beside max(compute, busiest link)"};
  app.add_option("costs", arguments.costs, "What `tandem profile --costs` wrote")->required();
  app.add_option("--net", arguments.net)->capture_default_str();
  app.add_option("--batch-per-device", arguments.batch_per_device)->capture_default_str();
  app.add_option("--devices", arguments.devices)->delimiter(',')->capture_default_str();
  app.add_option("--links", arguments.links)->delimiter(',')->capture_default_str();
  app.add_option("--latency", arguments.latency)->capture_default_str();
  app.add_option("--steps", arguments.steps)->check(CLI::Range(3, 10000))->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "Only this one, and sequential");
  app.add_flag("--real", arguments.real, "Run the kernels instead of pacing");
  CLI11_PARSE(app, argc, argv);
  return bench::run("bench_strategies", [&] { Bench(arguments).run(); });
}
