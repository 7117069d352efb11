// Every strategy, paced, beside the simulator's prediction and the bound that no order of the work
// can pass: the larger of what the busiest device computes and what the busiest link carries.
//   bench_strategies COSTS [--net alexnet] [--batch-per-device 32] [--devices 2,4,8,16]
//                    [--links 1GB/s,4GB/s,12GB/s] [--latency 10us] [--steps 6] [--strategy NAME]
// COSTS is what `tandem profile --costs` wrote for that net. Paced compute takes its time without
// being done; executor, streams and copies are real, and so is the clock.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/train/price.h"

namespace {

using namespace tandem;

struct Arguments {
  std::string costs, net = "alexnet", latency = "10us", strategy;
  int64_t batch_per_device = 32;
  std::vector<int> devices{2, 4, 8, 16};
  std::vector<std::string> links{"1GB/s", "4GB/s", "12GB/s"};
  int steps = 6;
};

// Seconds of the busiest device's compute, and of the busiest end of a link in one direction.
struct Bounds {
  double compute = 0, link = 0;
  [[nodiscard]] double step() const { return std::max(compute, link); }
};

Bounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs, const LinkSpec& link) {
  std::map<int, double> computes;
  std::map<std::pair<int, bool>, double> carries;  // device, sends
  for (const Task& task : plan.tasks) {
    if (std::holds_alternative<LayerWork>(task.work)) {
      computes[task.streams[0].device] += costs.seconds(net, plan, task);
    }
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.streams.size() < 2) continue;
    for (const CopySegment& segment : copy->segments) {
      const double seconds =
          link.latency + static_cast<double>(plan.bytes(segment.source)) / link.bandwidth;
      carries[{plan.buffers[size_t(segment.source.buffer)].device, true}] += seconds;
      carries[{plan.buffers[size_t(segment.target.buffer)].device, false}] += seconds;
    }
  }
  Bounds bounds;
  for (const auto& [device, seconds] : computes) bounds.compute = std::max(bounds.compute, seconds);
  for (const auto& [end, seconds] : carries) bounds.link = std::max(bounds.link, seconds);
  return bounds;
}

std::string load() {
  std::ifstream file("/proc/loadavg");
  std::string one;
  file >> one;
  return one;
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : arguments_(arguments),
        registry_(Registry::with_defaults()),
        definition_(read_net(find_net(arguments.net))),
        costs_(CostTable::read(arguments.costs, Roofline{})) {}

  void run() {
    fmt::print("net {}, batch {} a device, {} paced steps each (median); times in ms\n\n",
               arguments_.net, arguments_.batch_per_device, arguments_.steps);
    fmt::print(
        "| devices | link | strategy | paced | sim | off | compute | busiest link | paced over "
        "the larger | exposed | load |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const int devices : arguments_.devices) {
      for (const std::string& link : arguments_.links) rows(devices, link);
    }
  }

 private:
  void rows(int devices, const std::string& bandwidth) {
    SessionOptions o;
    o.devices = fmt::format("sim:{}", devices);
    o.machine.link = {parse_bandwidth(bandwidth, "--links"),
                      parse_latency(arguments_.latency, "--latency")};
    o.batch = arguments_.batch_per_device * devices;
    o.data = definition_.input_shape();
    o.data.n = 1;
    o.testing = false;
    o.costs = costs_;
    PriceOptions how;
    how.batch_per_device = arguments_.batch_per_device;
    how.kernel_memory = false;
    const PriceList list = price_strategies(registry_, definition_, o, how);
    for (const Price& price : list.prices) {
      const bool wanted = arguments_.strategy.empty() || price.strategy == arguments_.strategy;
      if (price.refusal.empty() && wanted) row(o, bandwidth, price);
    }
  }

  void row(SessionOptions o, const std::string& bandwidth, const Price& price) {
    const int devices = price.plan.devices;
    o.devices = fmt::format("cpu:{}", devices);
    o.machine.paced = true;
    o.strategy = price.strategy;
    o.strategy_options = price.options;
    const std::string before = load();
    Session session(registry_, definition_, o);
    const Measurement paced = measure(session, 3, arguments_.steps);
    const Bounds bounds = bounds_of(session.training().net, price.plan, costs_, o.machine.link);
    const double seconds = paced.wall_seconds;
    fmt::print(
        "| {} | {} | {} | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} | {:.1f} | {:+.1f} % | {:.1f} % | "
        "{} |\n",
        devices, bandwidth, price.name, 1e3 * seconds, 1e3 * price.step_seconds(),
        100 * (price.step_seconds() / seconds - 1), 1e3 * bounds.compute, 1e3 * bounds.link,
        100 * (seconds / bounds.step() - 1), 100 * (1 - price.alone_seconds / seconds), before);
    std::fflush(stdout);
  }

  Arguments arguments_;
  Registry registry_;
  NetDefinition definition_;
  CostTable costs_;
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
  app.add_option("--steps", arguments.steps)->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "Only this one");
  CLI11_PARSE(app, argc, argv);
  try {
    Bench(arguments).run();
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_strategies: {}\n", failure.what());
    return 1;
  }
}
