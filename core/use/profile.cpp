#include "include/tandem/profile.h"

#include <limits>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/safetensors.h"
#include "core/model/passes/build_net.h"
#include "core/ranks/ranks.h"
#include "core/run/setup/program_options.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/cost/costs_of_net.h"
#include "core/schedule/report/report.h"
#include "core/schedule/report/svg.h"
#include "core/session/forecast.h"
#include "core/session/measure.h"
#include "core/session/measuring_ranks.h"

namespace tandem {
namespace {

// The tasks of each stage of each step on each device, in order of steps.
std::vector<StageSpan> spans_of(const Plan& plan, const std::vector<TraceEvent>& events) {
  std::map<std::tuple<int64_t, Stage, int>, StageSpan> spans;
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[size_t(event.task)];
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

constexpr double watchdog_seconds = 600;  // for other ranks

struct Profile::Details {
  SessionOptions options;
  Plan plan;  // of all ranks
  Measurement measured;
  Plan own;  // this rank's part
  bool writes = true;
  CostTable costs;
  std::vector<std::string> measured_on;  // the head of a cost file
};

void Profile::write_timeline(const std::filesystem::path& file) const {
  if (!details_->writes) return;
  const Measurement& measured = details_->measured;
  write_text_file(file, to_chrome_trace(measured.shown_plan(details_->own), measured.shown_events(),
                                        {}, measured.shown_ranks()));
}

void Profile::write_picture(const std::filesystem::path& file) const {
  if (!details_->writes) return;
  const Measurement& measured = details_->measured;
  write_text_file(file, to_svg(measured.shown_plan(details_->own), measured.shown_events()));
}

void Profile::write_costs(const std::filesystem::path& file) const {
  if (details_->writes) details_->costs.write(file, details_->measured_on);
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
    if (!given.paced.empty()) {
      options.machine.paced = true;
      options.costs = CostTable::read(given.paced, Roofline{}, given.precision);
      take_costs_of(net_name(), net, built(), given.paced, *options.costs);
    }
    options.strategy = "sequential";
    ranks = open_measuring_ranks(registry, watchdog_seconds, inputs(), options);
    if (ranks != nullptr) devices *= ranks->size();
  }

  [[nodiscard]] const std::string& net_name() const {
    return given.net_text.empty() ? given.net : net.name;
  }

  // Under the names that programs give these options.
  [[nodiscard]] GivenOptions inputs() const {
    return {{"--net", given.net_text.empty() ? given.net : text_summary(given.net_text)},
            {"--batch", std::to_string(given.batch)},
            {"--classes", std::to_string(given.classes)},
            {"--image-size", std::to_string(given.size)},
            {"--devices", given.devices},
            {"--precision", given.precision},
            {"--paced", given.paced},
            {"--warm-up", std::to_string(given.warm_up)},
            {"--steps", std::to_string(given.steps)}};
  }

  Profile measure(const std::string& strategy, const StrategyOptions& strategy_options);

  // The net for the kernels of the devices.
  [[nodiscard]] Net built() const {
    const std::string kind = kernel_devices(registry, options.devices, options.precision).kind;
    return build_net(net, registry,
                     {TANDEM_TRAIN, options.batch, options.data, kind, options.precision});
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
  SessionOptions options;  // the strategy aside; its costs are those of the first one measured
  int devices = 1;
  std::unique_ptr<Communicator> ranks;  // null: this process alone
};

Profiler::Profiler(const ProfileOptions& options) : state_(new State(options)) {}
Profiler::~Profiler() = default;

int Profiler::rank() const {
  return state_->ranks == nullptr ? 0 : state_->ranks->rank();
}

int Profiler::rank_count() const {
  return state_->ranks == nullptr ? 1 : state_->ranks->size();
}

int Profiler::device_count() const {
  return state_->devices;
}

void Profiler::watch(std::function<void(const std::string&)> note, const std::atomic<bool>* stop) {
  state_->options.watch = tell_work(std::move(note), stop);
}

// The plan is made for it, with costs that were not measured.
void Profiler::require(const std::string& strategy, const StrategyOptions& strategy_options) const {
  const SessionOptions& options = state_->options;
  if (strategy == "all") return;
  options.strategies->require_options_of(strategy, strategy_options);
  const Net net = state_->built();
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
  // What no rank can do all refuse before they wait for each other.
  if (state_->ranks != nullptr) require(strategy, strategy_options);
  return as_rank(state_->ranks.get(), [&] { return state_->measure(strategy, strategy_options); });
}

Profile Profiler::State::measure(const std::string& strategy,
                                 const StrategyOptions& strategy_options) {
  const auto details = std::make_shared<Profile::Details>();
  details->options = of(strategy, strategy_options);
  Session session(registry, net, details->options);
  const Plan &whole = session.training().whole_plan(), &own = session.training().plan;
  const Measurement measured = tandem::measure(session, given.warm_up, given.steps,
                                               fmt::format("measuring steps of {}", strategy));
  details->options.strategy_options = session.options().strategy_options;
  details->plan = whole;
  details->own = own;
  details->measured = measured;
  details->writes = ranks == nullptr || ranks->rank() == 0;
  details->costs = costs_of(session, session.net(), own, measured.events);
  const tandem_device_info info = session.machine().device_info(0);
  details->measured_on = {
      fmt::format("net {} batch {} devices {} strategy {} precision {}", net_name(),
                  details->options.batch, details->options.devices, strategy, given.precision),
      fmt::format("{}, {} cores a device", info.name, info.threads)};
  if (!options.costs) options.costs = details->costs;

  Profile profile;
  profile.strategy = strategy;
  profile.split = whole.split_layer;
  profile.notes = whole.notes;
  profile.memory = session.memory_forecast();
  profile.message_path = session.message_path();
  profile.step_seconds = measured.step_seconds;
  profile.fastest = measured.fastest;
  profile.slowest = measured.slowest;
  profile.images_per_second = measured.images_per_second;
  const double link = details->options.machine.link.bandwidth;
  // What messages could do at best is not known from how long they were waited for.
  const double bandwidth = ranks != nullptr ? std::numeric_limits<double>::infinity()
                           : link > 0       ? link
                                            : link_of(own, measured.events).bandwidth;
  profile.bound_seconds = bounds_of(session.net(), whole, *options.costs, bandwidth).step();
  profile.parts = measured.parts;
  profile.stage_table = stage_table(measured.stages);
  profile.stages = spans_of(measured.shown_plan(own), measured.shown_events());
  profile.details_ = details;
  return profile;
}

double Profiler::seconds_without_communication(const Profile& profile) const {
  return as_rank(state_->ranks.get(), [&] {
    return step_seconds_without_communication(state_->registry, state_->net,
                                              profile.details_->options, profile.details_->plan,
                                              state_->given.warm_up, state_->given.steps);
  });
}

}  // namespace tandem
