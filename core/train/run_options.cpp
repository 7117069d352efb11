#include "core/train/run_options.h"

#include "core/train/choose_strategy.h"

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
  options.batch = chosen.batch;
  options.data = setup.record.data;
  options.testing = setup.validation_data != nullptr;
  choose_pixels(setup, options);
  return options;
}

// Whether the strategy chooses by costs, between several devices.
bool wants_measured_costs(const Registry& registry, const SessionOptions& options) {
  const Strategy& strategy = options.strategies->at(options.strategy);
  return strategy.wants_measured_costs && strategy.wants_measured_costs(options.strategy_options) &&
         parse_devices(options.devices, registry).count() >= 2;
}

}  // namespace

SessionOptions session_options(Registry& registry, TrainSetup& setup, const Communicator* ranks) {
  SessionOptions options = plain_options(setup);
  options.ranks = ranks;
  if (ranks != nullptr) {
    options.finds_links = false;  // between its own devices
    options.tuning.measures = false;
    return options;
  }
  if (is_auto(options)) {
    setup.messages.push_back(choose_strategy(registry, setup.net, options));
    setup.record.strategy = options.strategy;
    setup.record.options.strategy = options.strategy;
    setup.record.options.strategy_options = options.strategy_options;
    return options;
  }
  if (wants_measured_costs(registry, options)) {
    measure_costs(registry, setup.net, options, 2, options);
  }
  return options;
}

}  // namespace tandem
