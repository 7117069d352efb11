// Forecasts of strategies on `sim`: every one that the net and the devices allow, built and
// simulated with the given costs and links, beside one device alone. What `tandem plan --strategy
// all` prints and `auto` chooses by. The strategies are those of the session's options, whichever
// there are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/report/critical_path.h"
#include "core/session/measure.h"

namespace tandem {

struct Forecast;
struct ForecastOptions {
  int64_t available_bytes = 0;               // of one device; 0: not known, everything fits
  bool is_shared_memory = false;             // the devices share them
  int64_t batch_per_device = 0;              // what one device alone takes; 0: the whole batch
  std::optional<DeviceSpec> kernel_devices;  // else kernel_devices() of the session's
  int steps = 6;
  // Called with each forecast that can be, while it has all of its plan and its events.
  std::function<void(Forecast&)> inspect{};
};

// How many steps of a plan are simulated: `wanted` if it has few tasks or if steps `vary`. Else
// they are alike, so that fewer of a large plan say the same in less time.
struct SimulatedSteps {
  int warm_up = 3, measured = 6;
};
[[nodiscard]] SimulatedSteps simulated_steps(const Plan& plan, int wanted, bool vary);

struct Forecast {
  std::string name;  // "layerwise --reduce ring"
  std::string strategy;
  StrategyOptions options;
  std::string refusal;  // why it cannot be; then nothing below is set
  // In a list plans are without tasks, buffers and bindings, and measurements without events: those
  // of all strategies together would take much memory.
  Plan plan;
  Measurement measured;
  double alone_seconds = 0;  // the step with copies between devices left out
  double speed_up = 0;       // images a second over those of one device
  std::vector<int64_t> memory;
  bool fits = true;
  std::vector<PathPart> path;

  [[nodiscard]] double step_seconds() const { return measured.step_seconds; }
  [[nodiscard]] double exposed_seconds() const;
};

struct ForecastList {
  double one_device_seconds = 0;  // its step
  int64_t one_device_batch = 0;
  int devices = 1;
  int64_t batch = 0;
  std::vector<Forecast> forecasts;              // fastest first; what cannot be comes last
  int measured_costs = 0, estimated_costs = 0;  // tasks of the fastest plan
  std::string kernels_refusal;                  // memory_on()'s
  // Forecasts there would be: more than there are where the watch ended it.
  size_t wanted = 0;
  [[nodiscard]] bool is_stopped() const { return forecasts.size() < wanted; }
};

// The devices whose kernels a session of simulated devices stands for: `devices` themselves, or, if
// these are simulated, as many of the default kind. For a precision that only other kinds compute
// in, it is the first of them, without ordinals, as none may be at hand. Errors: parse_devices()'s.
[[nodiscard]] DeviceSpec kernel_devices(const Registry& registry, const std::string& devices,
                                        int32_t precision);
// The memory of a plan, with what its kernels keep beside tensors if there are devices to ask.
// Without it also where this computer's CPU cannot do what is planned, as bfloat16 takes AVX-512:
// `refusal` becomes the reason, else "". The plan is left as it was.
[[nodiscard]] MemoryPlan memory_on(Registry& registry, const DeviceSpec& devices, const Net& net,
                                   Plan& plan, std::string* refusal = nullptr);

// `options` are those of the session to be chosen for: its devices are replaced by as many
// simulated ones, its strategy by each there is. Errors of a strategy are its refusal.
[[nodiscard]] ForecastList forecast_strategies(Registry& registry, const NetDefinition& definition,
                                               const SessionOptions& options,
                                               const ForecastOptions& how);
// The fastest that fits. Error, with what each needs, if none does.
[[nodiscard]] const Forecast& fastest(const ForecastList& list);
[[nodiscard]] std::string forecast_table(const ForecastList& list);

// How many of the plan's tasks have a measured cost, and how many a roofline's.
struct CostSources {
  int measured = 0, estimated = 0;
};
[[nodiscard]] CostSources sources_of(const Net& net, const Plan& plan, const CostTable& costs);

}  // namespace tandem
