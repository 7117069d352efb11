#include "core/run/setup/session_options.h"

#include "core/base/error.h"
#include "core/ranks/rank_links.h"
#include "core/ranks/ranks.h"
#include "core/session/choose_strategy.h"

namespace tandem {
namespace {

// Chooses the form of the pixels in the batches of both phases.
void choose_pixels(const TrainSetup& setup, SessionOptions& options) {
  const std::string& pixels = setup.record.options.pixels;
  options.training_pixels = pixel_form(pixels, *setup.training_data);
  options.pixel_scale = setup.training_data->pixel_scale();
  if (options.training_pixels == PixelForm::bytes && target_options(setup).mixes()) {
    options.training_pixels = PixelForm::rounded;
  }
  if (setup.validation_data == nullptr) return;
  options.testing_pixels = pixel_form(pixels, *setup.validation_data);
  const bool differs = setup.validation_data->pixel_scale() != options.pixel_scale;
  if (options.testing_pixels == PixelForm::bytes && differs) {
    options.testing_pixels = PixelForm::rounded;
  }
}

SessionOptions plain_options(const TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  SessionOptions options;
  options.devices = chosen.devices;
  options.precision = parse_precision(chosen.precision);
  options.loss_scale = chosen.loss_scale.value_or(0);
  options.strategy = chosen.strategy;
  options.strategy_options = chosen.strategy_options;
  options.strategies = setup.strategies;
  options.machine = setup.record.machine;
  options.executor.trace = chosen.timeline;
  options.executor.graphs = chosen.graphs;
  options.executor.watchdog_seconds = chosen.watchdog_seconds;
  options.rule = make_update_rule(setup.solver);
  if (chosen.average_decay > 0) options.rule.keep_average(chosen.average_decay);
  options.finds_links = setup.finds_links;
  options.tuning = {chosen.tune, setup.record.algorithms};
  options.recomputes = chosen.recompute.value_or(false);
  options.prefetch = chosen.prefetch;
  options.batch = chosen.batch;
  options.data = setup.record.data;
  options.watch = setup.watch;
  options.testing = setup.validation_data != nullptr;
  choose_pixels(setup, options);
  return options;
}

// Whether the strategy chooses by costs, between several devices.
bool wants_measured_costs(const Registry& registry, const SessionOptions& options) {
  const Strategy& strategy = options.strategies->at(options.strategy);
  const int ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  return strategy.wants_measured_costs && strategy.wants_measured_costs(options.strategy_options) &&
         ranks * parse_devices(options.devices, registry).count() >= 2;
}

// A given topology is of the devices of all ranks. Else what connects them is measured.
std::shared_ptr<const Topology> rank_topology(const Registry& registry,
                                              const SessionOptions& options, bool measures) {
  const Communicator& ranks = *options.ranks;
  const DeviceSpec spec = parse_devices(options.devices, registry);
  const int devices = spec.count();
  if (const auto& given = options.machine.topology; given != nullptr) {
    if (given->device_count() == ranks.size() * devices) return given;
    throw error(
        "{} has {} devices, but {} ranks of {} have {}: it describes the devices of all ranks",
        source_text(*given), given->device_count(), ranks.size(), options.devices,
        ranks.size() * devices);
  }
  return measures ? measured_topology(ranks, registry, spec, options.machine.threads) : nullptr;
}

// Costs of this rank's devices, each with as many rows of the batch as in the whole job, and the
// algorithms that their kernels have.
void measure_costs_alone(Registry& registry, const TrainSetup& setup, SessionOptions& options) {
  SessionOptions alone = options;
  const int64_t ranks = options.ranks->size();
  alone.ranks = nullptr;
  alone.strategy = "sequential";
  alone.strategy_options = {};
  alone.batch = (options.batch + ranks - 1) / ranks;
  SessionOptions measured = alone;
  measure_costs(registry, setup.net, alone, 3, measured);
  options.costs = measured.costs;
  options.tuning = measured.tuning;
}

// Writes what `auto` chooses into the options and the record.
void choose(Registry& registry, TrainSetup& setup, SessionOptions& options,
            const std::string& own_devices = "") {
  setup.messages.push_back(
      choose_strategy(registry, setup.net, options, own_devices,
                      setup.forecasts_strategy ? ChoiceBy::forecast : ChoiceBy::measurement));
  setup.record.strategy = setup.record.options.strategy = options.strategy;
  setup.record.options.strategy_options = options.strategy_options;
}

void choose_strategy_of_ranks(Registry& registry, TrainSetup& setup, SessionOptions& options) {
  const DeviceSpec mine = parse_devices(options.devices, registry);
  DeviceSpec all = mine;
  for (int rank = 1; rank < options.ranks->size(); ++rank) {
    all.ordinals.insert(all.ordinals.end(), mine.ordinals.begin(), mine.ordinals.end());
  }
  SessionOptions whole = options;
  whole.ranks = nullptr;
  whole.devices = to_string(all);
  whole.machine.topology = options.rank_topology;
  choose(registry, setup, whole, options.devices);
}

// Rank 0 measures and chooses what the plan of several ranks is made by, and tells the others.
void choose_for_ranks(Registry& registry, TrainSetup& setup, SessionOptions& options) {
  const Communicator& ranks = *options.ranks;
  options.finds_links = false;  // between its own devices
  const bool chooses = is_auto(options);
  const bool measures = chooses || wants_measured_costs(registry, options);
  options.rank_topology = rank_topology(registry, options, measures);
  options.machine.topology = nullptr;
  if (!measures) return;
  if (ranks.rank() == 0) {
    if (!setup.forecasts_strategy) measure_costs_alone(registry, setup, options);
    if (chooses) choose_strategy_of_ranks(registry, setup, options);
  }
  const std::string record = ranks.broadcast_text(ranks.rank() == 0 ? to_json(setup.record) : "",
                                                  "the strategy that it chooses");
  const TrainOptions chosen = run_record_from_json(record, "of rank 0").options;
  setup.record.options.strategy = options.strategy = chosen.strategy;
  setup.record.options.strategy_options = options.strategy_options = chosen.strategy_options;
}

}  // namespace

SessionOptions session_options(Registry& registry, TrainSetup& setup, const Communicator* ranks) {
  SessionOptions options = plain_options(setup);
  options.ranks = ranks;
  const int ranks_count = ranks == nullptr ? 1 : ranks->size();
  if (is_auto(options) && ranks_count * parse_devices(options.devices, registry).count() == 1) {
    TrainOptions& chosen = setup.record.options;  // there is nothing to choose
    options.strategy = chosen.strategy = "two_phase";
    options.strategy_options = chosen.strategy_options =
        setup.strategies->options_of(chosen.strategy, chosen.strategy_options);
  }
  if (ranks != nullptr) {
    choose_for_ranks(registry, setup, options);
    return options;
  }
  if (is_auto(options)) {
    choose(registry, setup, options);
  } else if (wants_measured_costs(registry, options)) {
    measure_costs(registry, setup.net, options, 2, options);
  }
  return options;
}

}  // namespace tandem
