#include "include/tandem/profile.h"

#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/report/report.h"
#include "core/schedule/report/svg.h"
#include "core/train/device_options.h"
#include "core/train/forecast.h"
#include "core/train/measure.h"
#include "core/train/net_choice.h"
#include "core/train/safetensors.h"

namespace tandem {
namespace {

// The tasks of each stage of each step on each device, in order of steps.
std::vector<StageSpan> spans_of(const Plan& plan, const std::vector<TraceEvent>& events) {
  std::map<std::tuple<int64_t, Stage, int>, StageSpan> spans;
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[static_cast<size_t>(event.task)];
    const int device = task.streams.front().device;
    StageSpan& span = spans
                          .try_emplace({event.micro_batch, task.stage, device},
                                       StageSpan{event.micro_batch, to_string(task.stage), device,
                                                 event.start, event.end})
                          .first->second;
    span.start = std::min(span.start, event.start);
    span.end = std::max(span.end, event.end);
  }
  std::vector<StageSpan> result;
  for (auto& [key, span] : spans) result.push_back(std::move(span));
  return result;
}

}  // namespace

struct Profile::Details {
  SessionOptions options;
  Plan plan;
  std::vector<TraceEvent> events;
  CostTable costs;
  std::vector<std::string> measured_on;  // the head of a cost file
};

void Profile::write_timeline(const std::filesystem::path& file) const {
  write_text_file(file, to_chrome_trace(details_->plan, details_->events));
}

void Profile::write_picture(const std::filesystem::path& file) const {
  write_text_file(file, to_svg(details_->plan, details_->events));
}

void Profile::write_costs(const std::filesystem::path& file) const {
  details_->costs.write(file, details_->measured_on);
}

struct Profiler::State {
  explicit State(const ProfileOptions& chosen) : given(chosen) {
    NetChoice choice{given.net, given.net_text, given.batch, given.classes, given.size, {}};
    net = choice.definition();
    options.devices = given.devices;
    options.precision = parse_precision(given.precision);
    options.machine = machine_options(given.machine);
    options.batch = choice.batch_of(net);
    options.data = choice.data(net);
    options.testing = false;
    options.rule.momentum = 0.9F;
    options.rule.weight_decay = 0.0005F;
    devices = parse_devices(given.devices, registry).count();
    if (given.paced.empty()) return;
    options.machine.paced = true;
    options.costs = CostTable::read(given.paced, Roofline{}, given.precision);
  }

  [[nodiscard]] SessionOptions of(const std::string& strategy,
                                  const StrategyOptions& strategy_options) const {
    SessionOptions o = options;
    o.strategy = strategy;
    o.strategy_options = o.strategies->options_of(strategy, strategy_options);
    return o;
  }

  ProfileOptions given;
  mutable Registry registry = Registry::with_defaults();
  NetDefinition net;
  SessionOptions options;  // without a strategy; its costs are those of the first one measured
  int devices = 1;
};

Profiler::Profiler(const ProfileOptions& options) : state_(new State(options)) {}
Profiler::~Profiler() = default;

int Profiler::device_count() const {
  return state_->devices;
}

// The plan is made for it, with costs that were not measured.
void Profiler::require(const std::string& strategy, const StrategyOptions& strategy_options) const {
  const SessionOptions& options = state_->options;
  if (strategy == "all") return;
  options.strategies->require_options_of(strategy, strategy_options);
  NetOptions how;
  how.batch = options.batch;
  how.data = options.data;
  how.precision = options.precision;
  how.device_kind = kernel_devices(state_->registry, options.devices, options.precision).kind;
  const Net net = build_net(state_->net, state_->registry, how);
  const CostTable costs = options.costs.value_or(CostTable());
  StrategyInputs inputs;
  inputs.net = &net;
  inputs.devices = state_->devices;
  inputs.costs = &costs;
  inputs.link = options.machine.link;
  inputs.topology = options.machine.topology.get();
  inputs.options = strategy_options;
  (void)build_plan(strategy, inputs);
}

Profile Profiler::measure(const std::string& strategy, const StrategyOptions& strategy_options) {
  const auto details = std::make_shared<Profile::Details>();
  details->options = state_->of(strategy, strategy_options);
  Session session(state_->registry, state_->net, details->options);
  const Plan& plan = session.training().plan;
  const Measurement measured = tandem::measure(session, state_->given.warm_up, state_->given.steps);
  details->options.strategy_options = session.options().strategy_options;
  details->plan = plan;
  details->events = measured.events;
  details->costs = costs_of(session, session.net(), plan, measured.events);
  const tandem_device_info info = session.machine().device_info(0);
  details->measured_on = {fmt::format("net {} batch {} devices {} strategy {} precision {}",
                                      state_->given.net, details->options.batch,
                                      details->options.devices, strategy, state_->given.precision),
                          fmt::format("{}, {} cores a device", info.name, info.threads)};
  if (!state_->options.costs) state_->options.costs = details->costs;

  Profile profile;
  profile.strategy = strategy;
  profile.split = plan.split_layer;
  profile.notes = plan.notes;
  profile.memory = session.memory_forecast();
  profile.step_seconds = measured.step_seconds;
  profile.fastest = measured.fastest;
  profile.slowest = measured.slowest;
  profile.images_per_second = measured.images_per_second;
  const double given = details->options.machine.link.bandwidth;
  const double bandwidth = given > 0 ? given : link_of(plan, measured.events).bandwidth;
  profile.bound_seconds = bounds_of(session.net(), plan, *state_->options.costs, bandwidth).step();
  profile.parts = measured.parts;
  profile.stage_table = stage_table(measured.stages);
  profile.stages = spans_of(plan, measured.events);
  profile.details_ = details;
  return profile;
}

double Profiler::seconds_without_communication(const Profile& profile) const {
  return step_seconds_without_communication(state_->registry, state_->net,
                                            profile.details_->options, profile.details_->plan,
                                            state_->given.warm_up, state_->given.steps);
}

}  // namespace tandem
