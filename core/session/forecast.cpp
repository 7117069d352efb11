#include "core/session/forecast.h"

#include <malloc.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

double Forecast::exposed_seconds() const {
  return std::max(0.0, step_seconds() - alone_seconds);
}

namespace {

// What the kernel of a binding depends on, other than its device and the position of its rows.
using KernelUse = std::tuple<int, int64_t, int64_t, int64_t, bool, int64_t, int64_t, bool, int32_t>;
KernelUse use_of(const PlanBinding& b) {
  return {b.layer,           b.rows.count(),   b.slice.begin,
          b.slice.end,       b.whole_outputs,  b.input_slice.begin,
          b.input_slice.end, b.adds_to_output, b.activation};
}

// Writes into the plan's buffers what its kernels keep, as one device finds it that has so many
// threads. Equal uses are asked for once.
void prepare_on_one_device(Registry& registry, const DeviceSpec& devices, int threads,
                           const Net& net, Plan& plan) {
  MachineOptions options;
  options.threads = threads;
  Machine machine(registry.backend(devices.kind), {devices.kind, {devices.ordinals.front()}},
                  options);
  Runtime runtime(machine);
  Plan distinct;
  std::map<KernelUse, size_t> index;  // in its bindings
  const auto place = [&](int buffer, int64_t bytes) {
    if (buffer < 0) return -1;
    distinct.buffers.push_back({"", 0, BufferKind::transient, bytes, 1, {}});
    return static_cast<int>(distinct.buffers.size()) - 1;
  };
  for (const PlanBinding& use : plan.bindings) {
    if (!index.try_emplace(use_of(use), distinct.bindings.size()).second) continue;
    PlanBinding& one = distinct.bindings.emplace_back(use);
    one.device = 0;
    for (int* buffer : {&one.saved, &one.scratch, &one.backward_scratch}) {
      *buffer = place(*buffer, 0);
    }
    const int64_t bytes = plan.bytes(use.forward_statistics);
    one.forward_statistics = {place(use.forward_statistics.buffer, bytes), 0, bytes};
  }
  const Kernels kernels(distinct, net, registry, runtime);
  for (const PlanBinding& use : plan.bindings) {
    const PlanBinding& one = distinct.bindings[index.at(use_of(use))];
    for (const auto& [to, from] : {std::pair{use.saved, one.saved},
                                   {use.scratch, one.scratch},
                                   {use.backward_scratch, one.backward_scratch}}) {
      if (to < 0) continue;
      int64_t& bytes = plan.buffers[size_t(to)].bytes;
      bytes = std::max(bytes, distinct.buffers[size_t(from)].bytes);
    }
  }
}

// The sizes of a plan's buffers, to be put back.
class BufferSizes {
 public:
  explicit BufferSizes(const Plan& plan) {
    bytes_.reserve(plan.buffers.size());
    for (const Buffer& buffer : plan.buffers) bytes_.push_back(buffer.bytes);
  }
  void restore(Plan& plan) const {
    for (size_t i = 0; i < bytes_.size(); ++i) plan.buffers[i].bytes = bytes_[i];
  }

 private:
  std::vector<int64_t> bytes_;
};

// Writes into the plan's buffers what its kernels keep. A CPU that cannot do what is planned is no
// reason not to plan it: then the buffers stay as they are, and the kernel's refusal is returned.
std::string prepare_kernels(Registry& registry, const DeviceSpec& devices, const Net& net,
                            Plan& plan) {
  if (devices.ordinals.empty()) return "";
  Machine machine(registry.backend(devices.kind), devices, MachineOptions{});
  const BufferSizes unwritten(plan);
  try {
    if (machine.is_host_addressable()) {
      prepare_on_one_device(registry, devices, machine.device_info(0).threads, net, plan);
    } else {
      Runtime runtime(machine);
      const Kernels kernels(plan, net, registry, runtime);
    }
  } catch (const Unsupported& refused) {
    if (!machine.is_host_addressable()) throw;
    unwritten.restore(plan);
    return refused.what();
  }
  // The threads of the devices have made the kernels, each in a heap of its own that keeps what is
  // free.
  (void)malloc_trim(0);
  return "";
}

// Bytes that kernels keep, by buffer name and rows of the batch: the same in every plan whose
// bindings are of whole layers.
class KernelMemory {
 public:
  KernelMemory(Registry& registry, DeviceSpec devices)
      : registry_(registry), devices_(std::move(devices)) {}

  MemoryPlan plan(const Net& net, Plan& plan) {
    const BufferSizes unwritten(plan);
    const bool is_known = fill(plan);
    MemoryPlan memory = is_known ? plan_memory(plan) : MemoryPlan{};
    unwritten.restore(plan);
    return is_known ? memory : memory_on(registry_, devices_, net, plan);
  }
  // Prepares the kernels of a plan once for all that use them alike. What prepare_kernels()
  // returns.
  std::string learn(const Net& net, Plan& plan) {
    const BufferSizes unwritten(plan);
    std::string refusal = prepare_kernels(registry_, devices_, net, plan);
    for (const PlanBinding& use : plan.bindings) {
      const auto bytes = [&](int buffer) { return plan.buffers[size_t(buffer)].bytes; };
      known_[key(use)] = {bytes(use.saved), bytes(use.scratch)};
    }
    unwritten.restore(plan);
    return refusal;
  }

 private:
  using Key = std::tuple<int, int64_t, int64_t>;  // layer, rows
  static Key key(const PlanBinding& use) { return {use.layer, use.rows.begin, use.rows.end}; }

  bool fill(Plan& plan) const {
    for (const PlanBinding& use : plan.bindings) {
      const auto found = known_.find(key(use));
      if (found == known_.end() || use.slice.end >= 0) return false;
      const auto& [saved, scratch] = found->second;
      plan.buffers[size_t(use.saved)].bytes = saved;
      plan.buffers[size_t(use.scratch)].bytes = scratch;
      plan.buffers[size_t(use.backward_scratch)].bytes = scratch;
    }
    return true;
  }

  Registry& registry_;
  DeviceSpec devices_;
  std::map<Key, std::pair<int64_t, int64_t>> known_;  // saved, scratch
};

class Forecaster {
 public:
  Forecaster(Registry& registry, const NetDefinition& definition, const SessionOptions& options,
             const ForecastOptions& how)
      : registry_(registry),
        definition_(definition),
        options_(options),
        how_(how),
        kernel_devices_(how.kernel_devices.value_or(
            kernel_devices(registry, options.devices, options.precision))),
        kernels_(registry, kernel_devices_) {
    list_.devices = parse_devices(options.devices, registry).count();
    list_.batch = options.batch;
    options_.devices = simulated_devices(list_.devices);
    options_.kernels = kernel_devices_.kind;
    options_.testing = false;
    options_.models_large_plans = true;
    options_.machine.paced = false;
    options_.machine.delay_seed = 0;
    options_.executor.trace = true;
    options_.executor.graphs = GraphUse::off;
    options_.rule.micro_batches = 1;  // so that every step has an update
  }

  ForecastList list() {
    forecast_one_device();
    const Strategies& known = *options_.strategies;
    std::vector<std::pair<std::string, StrategyVariant>> all;
    for (const Strategy& strategy : known) {
      StrategyInputs inputs;
      inputs.devices = list_.devices;
      inputs.link = options_.machine.link;
      inputs.topology = options_.machine.topology.get();
      inputs.options = known.options_of(strategy.name, options_.strategy_options);
      std::vector<StrategyVariant> variants{{"", inputs.options}};
      if (strategy.variants) variants = strategy.variants(inputs);
      for (const StrategyVariant& variant : variants) all.emplace_back(strategy.name, variant);
    }
    list_.wanted = all.size();
    for (const auto& [strategy, variant] : all) {
      add(strategy, variant);
      const auto done = int64_t(list_.forecasts.size());
      if (!goes_on(options_.watch, {"forecasting strategies", done, int64_t(all.size())})) break;
    }
    std::stable_sort(list_.forecasts.begin(), list_.forecasts.end(),
                     [](const Forecast& a, const Forecast& b) {
                       if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
                       return a.refusal.empty() && a.step_seconds() < b.step_seconds();
                     });
    return std::move(list_);
  }

 private:
  void forecast_one_device() {
    SessionOptions alone = options_;
    alone.devices = simulated_devices(1);
    alone.strategy = "layerwise";  // every update as soon as it can be
    alone.strategy_options = {};
    alone.strategies = &built_in_strategies();
    alone.machine.topology = nullptr;
    alone.batch = how_.batch_per_device > 0 ? how_.batch_per_device : options_.batch;
    Session session(registry_, definition_, alone);
    options_.strategies->check_options(session.training().net, options_.strategy_options);
    const SimulatedSteps amount = steps_of(session.training().plan);
    list_.one_device_seconds = measure(session, amount.warm_up, amount.measured).step_seconds;
    list_.one_device_batch = alone.batch;
  }

  void add(const std::string& strategy, const StrategyVariant& variant) {
    Forecast forecast;
    forecast.strategy = strategy;
    forecast.options = variant.options;
    forecast.name = strategy + (variant.label.empty() ? "" : " " + variant.label);
    try {
      simulate(forecast);
    } catch (const Error& refused) {
      forecast.refusal = refused.what();
    }
    if (how_.inspect && forecast.refusal.empty()) how_.inspect(forecast);
    Plan& plan = forecast.plan;
    plan.tasks = {};
    plan.buffers = {};
    plan.bindings = {};
    forecast.measured.events = forecast.measured.median_step = {};
    list_.forecasts.push_back(std::move(forecast));
  }

  void simulate(Forecast& forecast) {
    SessionOptions options = options_;
    options.strategy = forecast.strategy;
    options.strategy_options = forecast.options;
    {
      Session session(registry_, definition_, options);
      const SimulatedSteps amount = steps_of(session.training().plan);
      forecast.measured = measure(session, amount.warm_up, amount.measured);
      Phase& phase = session.training();
      const std::vector<TraceEvent>& events = forecast.measured.events;
      forecast.path = phase.model == nullptr
                          ? critical_path(phase.plan, events)
                          : critical_path(phase.plan, events, phase.model->before());
      phase.executor.reset();  // these two use the plan
      phase.model.reset();
      forecast.plan = std::move(phase.plan);
      set_memory(forecast, phase.net);
      const CostSources sources = sources_of(phase.net, forecast.plan, *options_.costs);
      list_.measured_costs = std::max(list_.measured_costs, sources.measured);
      list_.estimated_costs = std::max(list_.estimated_costs, sources.estimated);
    }
    forecast.alone_seconds =
        forecast.measured.without_communication_seconds.value_or(forecast.step_seconds());
    if (list_.devices > 1 && !forecast.measured.without_communication_seconds) {
      const SimulatedSteps amount = steps_of(forecast.plan);
      forecast.alone_seconds = step_seconds_without_communication(
          registry_, definition_, options, forecast.plan, amount.warm_up, amount.measured);
    }
    forecast.speed_up = forecast.measured.images_per_second /
                        (static_cast<double>(list_.one_device_batch) / list_.one_device_seconds);
  }

  [[nodiscard]] SimulatedSteps steps_of(const Plan& plan) const {
    return simulated_steps(plan, how_.steps, options_.executor.varies());
  }

  void set_memory(Forecast& forecast, const Net& net) {
    if (!learnt_) list_.kernels_refusal = kernels_.learn(net, forecast.plan);
    learnt_ = true;
    const MemoryPlan memory = kernels_.plan(net, forecast.plan);
    int64_t sum = 0, most = 0;
    for (size_t d = 0; d < memory.persistent_bytes.size(); ++d) {
      forecast.memory.push_back(memory.persistent_bytes[d] + memory.transient_bytes[d]);
      sum += forecast.memory.back();
      most = std::max(most, forecast.memory.back());
    }
    const int64_t needed = how_.is_shared_memory ? sum + memory.prefetched_bytes : most;
    forecast.fits = how_.available_bytes == 0 || needed <= how_.available_bytes;
  }

  Registry& registry_;
  const NetDefinition& definition_;
  SessionOptions options_;
  ForecastOptions how_;
  DeviceSpec kernel_devices_;
  KernelMemory kernels_;
  bool learnt_ = false;
  ForecastList list_;
};

int64_t max_memory(const Forecast& forecast) {
  return forecast.memory.empty()
             ? 0
             : *std::max_element(forecast.memory.begin(), forecast.memory.end());
}

}  // namespace

DeviceSpec kernel_devices(const Registry& registry, const std::string& devices, int32_t precision) {
  DeviceSpec spec = parse_devices(devices, registry);
  if (!has_virtual_time(registry.backend(spec.kind))) return spec;
  spec.kind = default_kind;
  if (precision != tf32_precision && precision != TANDEM_FLOAT16) return spec;
  const auto computes = [precision](const tandem_backend& backend) {
    return precision == tf32_precision ? computes_tf32(backend) : computes_in(backend, precision);
  };
  if (const std::vector<std::string> able = registry.backends_with(computes); !able.empty()) {
    spec.kind = able.front();
    spec.ordinals.clear();
  }
  return spec;
}

SimulatedSteps simulated_steps(const Plan& plan, int wanted, bool vary) {
  if (vary || plan.tasks.size() < large_plan) return {3, wanted};
  return {2, std::min(2, wanted)};
}

MemoryPlan memory_on(Registry& registry, const DeviceSpec& devices, const Net& net, Plan& plan,
                     std::string* refusal) {
  const BufferSizes unwritten(plan);
  const std::string reason = prepare_kernels(registry, devices, net, plan);
  if (refusal != nullptr) *refusal = reason;
  MemoryPlan memory = plan_memory(plan);
  unwritten.restore(plan);
  return memory;
}

ForecastList forecast_strategies(Registry& registry, const NetDefinition& definition,
                                 const SessionOptions& options, const ForecastOptions& how) {
  return Forecaster(registry, definition, options, how).list();
}

const Forecast& fastest(const ForecastList& list) {
  std::string needs;
  for (const Forecast& forecast : list.forecasts) {
    if (forecast.refusal.empty() && forecast.fits) return forecast;
    // It takes what any strategy takes: what it refuses is no matter of the strategy.
    if (forecast.strategy == "sequential" && !forecast.refusal.empty()) {
      throw Error(forecast.refusal);
    }
    needs +=
        fmt::format("; {}: {}", forecast.name,
                    forecast.refusal.empty() ? human_bytes(max_memory(forecast)) + " on a device"
                                             : forecast.refusal);
  }
  throw error("--strategy auto: no strategy fits{}", needs);
}

std::string forecast_table(const ForecastList& list) {
  std::string text =
      fmt::format("{:<26} {:>11} {:>9} {:>8} {:>22} {:>22}  {}\n", "strategy", "step", "images/s",
                  "speed-up", "exposed communication", "memory of a device", "bounded by");
  for (const Forecast& forecast : list.forecasts) {
    if (!forecast.refusal.empty()) {
      text += fmt::format("{:<26} cannot be: {}\n", forecast.name, forecast.refusal);
      continue;
    }
    const auto [least, most] = std::minmax_element(forecast.memory.begin(), forecast.memory.end());
    const std::string memory = human_bytes(*most) == human_bytes(*least)
                                   ? human_bytes(*most)
                                   : human_bytes(*least) + " to " + human_bytes(*most);
    const std::string bound =
        forecast.path.empty() ? ""
                              : fmt::format("{} {:.0f} %", to_string(forecast.path.front().stage),
                                            100 * forecast.path.front().share);
    text += fmt::format("{:<26} {:>11} {:>9.1f} {:>8.2f} {:>12} ({:>4.1f} %) {:>22}  {}{}\n",
                        forecast.name, human_seconds(forecast.step_seconds()),
                        forecast.measured.images_per_second, forecast.speed_up,
                        human_seconds(forecast.exposed_seconds()),
                        100 * forecast.exposed_seconds() / forecast.step_seconds(), memory, bound,
                        forecast.fits ? "" : ", does not fit");
  }
  text += fmt::format("one device alone: {} for a batch of {}\n",
                      human_seconds(list.one_device_seconds), list.one_device_batch);
  if (list.is_stopped()) {
    text += fmt::format("stopped after {} of {} strategies\n", list.forecasts.size(), list.wanted);
  }
  return text;
}

CostSources sources_of(const Net& net, const Plan& plan, const CostTable& costs) {
  CostSources sources;
  for (const Task& task : plan.tasks) {
    if (cost_key(net, plan, task).empty()) continue;
    ++(costs.is_measured(net, plan, task) ? sources.measured : sources.estimated);
  }
  return sources;
}

}  // namespace tandem
