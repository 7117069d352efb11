// What `auto` picks, beside what is fastest when every strategy is paced in its best variant.
//   bench_auto NET=COSTS... [--batch-per-device 32] [--devices 2,4] [--links 0.5GB/s,4GB/s]
//              [--latency 10us] [--steps 4]
// COSTS is what `tandem profile --costs` wrote for that net. The pick is from the simulator's
// forecasts alone, before anything is paced.
#include <CLI/CLI.hpp>
#include <set>

#include "bench/paced_frame.h"
#include "core/base/error.h"

namespace {

using namespace tandem;

struct Arguments {
  std::vector<std::string> nets;
  std::string latency = "10us";
  int64_t batch_per_device = 32;
  std::vector<int> devices{2, 4};
  std::vector<std::string> links{"0.5GB/s", "4GB/s"};
  int steps = 4;
};

class Bench {
 public:
  explicit Bench(const Arguments& arguments) : arguments_(arguments) {}

  void run() {
    fmt::print(
        "batch {} a device, {} paced steps each (median); ms\n\n| net | devices | link | auto "
        "picks | sim | paced | fastest paced | paced | pick over fastest |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        arguments_.batch_per_device, arguments_.steps);
    for (const std::string& text : arguments_.nets) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) throw error("'{}': write NET=COSTS", text);
      bench::PacedNet net(text.substr(0, equals), text.substr(equals + 1));
      for (const int devices : arguments_.devices) {
        for (const std::string& link : arguments_.links) row(net, devices, link);
      }
    }
    fmt::print("\n{} of {} cases within 3 %\n", good_, cases_);
  }

 private:
  void row(bench::PacedNet& net, int devices, const std::string& bandwidth) {
    const LinkSpec link{parse_bandwidth(bandwidth, "--links"),
                        parse_latency(arguments_.latency, "--latency")};
    const ForecastList list = net.forecasts(devices, arguments_.batch_per_device, link);
    const Forecast& pick = fastest(list);
    std::set<std::string> seen;
    const Forecast* best = nullptr;
    double best_seconds = 0, pick_seconds = 0;
    for (const Forecast& forecast :
         list.forecasts) {  // fastest first: each strategy's best comes first
      if (!forecast.refusal.empty() || !seen.insert(forecast.strategy).second) continue;
      const double seconds =
          net.paced_step(forecast, arguments_.batch_per_device * devices, link, arguments_.steps);
      if (&forecast == &pick) pick_seconds = seconds;
      if (best != nullptr && seconds >= best_seconds) continue;
      best = &forecast;
      best_seconds = seconds;
    }
    ++cases_;
    if (pick_seconds <= 1.03 * best_seconds) ++good_;
    fmt::print("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} | {:.1f} | {:+.1f} % |\n", net.name(),
               devices, bandwidth, pick.name, 1e3 * pick.step_seconds(), 1e3 * pick_seconds,
               best->name, 1e3 * best_seconds, 100 * (pick_seconds / best_seconds - 1));
    std::fflush(stdout);
  }

  Arguments arguments_;
  int cases_ = 0, good_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"What auto picks beside what is fastest paced"};
  app.add_option("nets", arguments.nets, "NET=COSTS, as `tandem profile --costs` wrote")
      ->required();
  app.add_option("--batch-per-device", arguments.batch_per_device)->capture_default_str();
  app.add_option("--devices", arguments.devices)->delimiter(',')->capture_default_str();
  app.add_option("--links", arguments.links)->delimiter(',')->capture_default_str();
  app.add_option("--latency", arguments.latency)->capture_default_str();
  app.add_option("--steps", arguments.steps)->check(CLI::Range(3, 10000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return bench::run("bench_auto", [&] { Bench(arguments).run(); });
}
