// What the benchmarks of paced strategies share: a net with its measured costs, sessions on paced,
// real or simulated devices, and the bound that no order of the work can pass. Paced compute takes
// its time without being done; executor, streams and copies are real, and so is the clock.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "core/base/text/strings.h"
#include "core/model/adapted/models.h"
#include "core/model/passes/build_net.h"
#include "core/schedule/cost/bounds.h"
#include "core/session/forecast.h"

namespace tandem::bench {

class PacedNet {
 public:
  // `costs` is what `tandem profile --costs` wrote for that net.
  PacedNet(const std::string& net, const std::string& costs)
      : name_(net),
        registry_(Registry::with_defaults()),
        definition_(read_net(find_net(net))),
        costs_(CostTable::read(costs, Roofline{})) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const CostTable& costs() const { return costs_; }

  // `devices`: "cpu:4", paced; "sim:4".
  [[nodiscard]] SessionOptions options(const std::string& devices, int64_t batch,
                                       const LinkSpec& link) const {
    SessionOptions o;
    o.devices = devices;
    o.machine.link = link;
    o.machine.paced = !devices.starts_with("sim");
    o.batch = batch;
    o.data = definition_.input_shape();
    o.data.n = 1;
    o.testing = false;
    o.costs = costs_;
    return o;
  }

  [[nodiscard]] ForecastList forecasts(int devices, int64_t batch_per_device, const LinkSpec& link,
                                       std::function<void(Forecast&)> inspect = {}) {
    ForecastOptions how;
    how.inspect = std::move(inspect);
    how.batch_per_device = batch_per_device;
    how.kernel_devices = DeviceSpec{"cpu", {}};  // memory is not looked at
    return forecast_strategies(
        registry_, definition_,
        options(fmt::format("sim:{}", devices), batch_per_device * devices, link), how);
  }

  // Seconds of a step by the clock, on `sim` by its own; the median of `steps`.
  [[nodiscard]] double step(const SessionOptions& o, int warm_up, int steps) {
    Session session(registry_, definition_, o);
    const Measurement measured = measure(session, warm_up, steps);
    // Paced events tell model time; what is compared is what passed on the clock.
    return o.devices.starts_with("sim") ? measured.step_seconds : measured.wall_seconds;
  }
  // Of a forecast strategy, on paced devices.
  [[nodiscard]] double paced_step(const Forecast& forecast, int64_t batch, const LinkSpec& link,
                                  int steps) {
    SessionOptions o = options(fmt::format("cpu:{}", forecast.plan.devices), batch, link);
    o.strategy = forecast.strategy;
    o.strategy_options = forecast.options;
    return step(o, 3, steps);
  }

  [[nodiscard]] Session session(const SessionOptions& o) {
    return Session(registry_, definition_, o);
  }
  [[nodiscard]] Net net(int64_t batch) {
    NetOptions o;
    o.phase = TANDEM_TRAIN;
    o.batch = batch;
    o.data = definition_.input_shape();
    o.device_kind = "cpu";
    return build_net(definition_, registry_, o);
  }

 private:
  std::string name_;
  Registry registry_;
  NetDefinition definition_;
  CostTable costs_;
};

// Runnable processes, the last minute's mean: what a measurement beside them is worth.
inline std::string load() {
  std::ifstream file("/proc/loadavg");
  std::string one;
  file >> one;
  return one;
}

// 1 with the message if it throws.
template <class Body>
int run(const char* program, const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}: {}\n", program, failure.what());
    return 1;
  }
}

}  // namespace tandem::bench
