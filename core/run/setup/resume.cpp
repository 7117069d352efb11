#include "core/run/setup/resume.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/data/dataset_source.h"
#include "core/model/net/net.h"
#include "core/run/setup/program_options.h"
#include "core/run/setup/setup_data.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {
namespace {

// Whether the user gives an option: as another value than the default, or, on a command line, with
// its name, also as the default.
template <class Value>
bool gives(const TrainOptions& options, Value TrainOptions::*field, const char* name) {
  return options.*field != TrainOptions{}.*field || options.given.contains(name);
}

bool has(const std::map<std::string, std::string>& values, const std::string& name,
         const std::string& value) {
  const auto found = values.find(name);
  return found != values.end() && found->second == value;
}

// What the run was begun with may be given again.
void refuse_changes(const TrainSetup& setup, const TrainOptions& options,
                    const std::filesystem::path& folder) {
  const TrainOptions& chosen = setup.record.options;
  const auto refuse = [&](bool differs, const std::string& option) {
    if (differs)
      throw error("{} cannot change when run '{}' is resumed: begin a new run for that", option,
                  folder.string());
  };
  const auto refuse_another = [&](auto TrainOptions::*field, const char* name) {
    refuse(gives(options, field, name) && options.*field != chosen.*field, name);
  };
  refuse(!options.net.empty() && options.net != chosen.net, "--net");
  refuse(!options.solver.empty() && options.solver != chosen.solver, "--solver");
  refuse(options.image_size != 0 && options.image_size != chosen.image_size, "--image-size");
  refuse(options.batch != 0 && options.batch != chosen.batch, "--batch");
  refuse(options.seed && options.seed != chosen.seed, "--seed");
  refuse(!options.solver_type.empty() && options.solver_type != chosen.solver_type,
         "--solver-type");
  refuse(options.from_scratch && !setup.record.first_weights.empty(), "--from-scratch");
  for (const auto& [name, value] : options.solver_fields) {
    refuse(!has(chosen.solver_fields, name, value),
           name == "weights" ? "--weights" : "the solver's " + name);
  }
  refuse(options.rate && *options.rate != setup.solver.base_rate, "--lr");
  for (const auto& [name, value] : options.data_parameters) {
    refuse(!has(chosen.data_parameters, name, value), "--data-option " + name);
  }
  refuse(!options.task.empty() && options.task != task_word(setup.record.task), "--task");
  refuse(!options.loss.empty() && options.loss != chosen.loss, "--loss");
  refuse(!options.pixels.empty() && options.pixels != "auto" && options.pixels != chosen.pixels,
         "--pixels");
  refuse((options.train_state && options.train_state != chosen.train_state) ||
             (options.test_state && options.test_state != chosen.test_state),
         "the stage or level");
  refuse(options.balance && !chosen.balance, "--balance");
  refuse_another(&TrainOptions::mixup, "--mixup");
  refuse_another(&TrainOptions::cutmix, "--cutmix");
  refuse(!options.class_weights.empty() && options.class_weights != chosen.class_weights,
         "--class-weights");
  refuse_another(&TrainOptions::label_smoothing, "--label-smoothing");
  refuse(!options.recipe.empty() && options.recipe != chosen.recipe, "--recipe");
  refuse(!options.augment.empty() && options.augment != chosen.augment, "--augment");
  refuse(!options.freeze.empty() && options.freeze != chosen.freeze, "--freeze");
  refuse(options.freeze_batch_norm && !chosen.freeze_batch_norm, "--freeze-bn");
  refuse_another(&TrainOptions::head_rate, "--head-lr");
  refuse_another(&TrainOptions::unfreeze_after, "--unfreeze-after");
  refuse_another(&TrainOptions::layer_decay, "--layer-decay");
  refuse_another(&TrainOptions::average_decay, "--ema");
}

// Where a module is missing, the passes over the net may build it of other layers, which have other
// bits.
void require_layer_types(const Registry& registry, const RunRecord& record,
                         const std::filesystem::path& run) {
  try {
    for (const std::string& type : record.layer_types) (void)registry.layer_type(type);
  } catch (const Error& failure) {
    throw error("run '{}' cannot go on as it was trained: {}", run.string(), failure.what());
  }
}

// What the strategy was given or has chosen stays, unless it is given anew. On other devices, or
// with another strategy, only what the user has given stays, as far as it fits. `auto` chooses
// anew.
void keep_strategy_options(TrainSetup& setup, const TrainOptions& options, bool same_devices,
                           bool by_auto) {
  const Strategies& known = *setup.strategies;
  TrainOptions& chosen = setup.record.options;
  std::set<std::string>& given_before = setup.record.given_options;
  // Of options given with `auto` each strategy takes its own.
  if (options.strategy != "auto") {
    known.require_options_of(chosen.strategy, options.strategy_options);
  }
  StrategyOptions given = known.options_of(chosen.strategy, options.strategy_options);
  StrategyOptions& kept = chosen.strategy_options;
  kept = by_auto ? StrategyOptions{} : known.options_of(chosen.strategy, kept);
  if (same_devices) {
    // To leave to the strategy what it has chosen before changes nothing.
    std::erase_if(given, [&](const auto& one) {
      const StrategyOption* option = known.find_option(one.first);
      return option != nullptr && one.second == option->standard &&
             !given_before.contains(one.first);
    });
  } else {
    std::erase_if(kept, [&](const auto& one) {
      return known.find_option(one.first)->fits_devices || !given_before.contains(one.first);
    });
  }
  known.overlay(given, given_before, kept);
  for (const auto& [key, value] : given) given_before.insert(key);
  std::erase_if(given_before, [&](const std::string& key) { return !kept.contains(key); });
}

// Whether devices and strategy are the run's.
bool choose_devices_and_strategy(TrainSetup& setup, const TrainOptions& options,
                                 bool other_devices) {
  TrainOptions& chosen = setup.record.options;
  const bool was_chosen = !setup.record.strategy.empty();  // by auto
  std::string strategy = options.strategy;
  if (was_chosen && other_devices && strategy.empty()) strategy = "auto";
  if (was_chosen && !other_devices && strategy == "auto") strategy = chosen.strategy;
  const bool same_devices = !other_devices && (strategy.empty() || strategy == chosen.strategy);
  if (!options.devices.empty()) chosen.devices = options.devices;
  chosen.ranks = options.ranks;
  if (!strategy.empty()) chosen.strategy = strategy;
  keep_strategy_options(setup, options, same_devices, strategy == "auto");
  if (chosen.strategy != setup.record.strategy) setup.record.strategy.clear();
  return same_devices;
}

void choose_machine(MachineOptions& chosen, const TrainOptions& options, bool other_devices,
                    bool same_devices) {
  const MachineOptions given = machine_options(options.machine);
  const bool gives_threads = given.threads > 0 || options.given.contains("--threads");
  const bool other_link = given.link.bandwidth > 0 || given.link.latency > 0;
  if (other_link) chosen.link = given.link;
  if (other_link || other_devices || given.topology != nullptr) chosen.topology = given.topology;
  if (gives_threads || !same_devices) chosen.threads = given.threads;
  chosen.delay_seed = given.delay_seed;
  chosen.delay_seconds = given.delay_seconds;
}

void choose_amounts(TrainOptions& chosen, const TrainOptions& options) {
  const auto take = [&](auto TrainOptions::*field, const char* name) {
    if (gives(options, field, name)) chosen.*field = options.*field;
  };
  take(&TrainOptions::decode_threads, "--decode-threads");
  take(&TrainOptions::prefetch, "--prefetch");
  take(&TrainOptions::bad_share_limit, "--bad-limit");  // --strict is another than the default
  if (options.steps > 0 || options.epochs > 0) {
    chosen.steps = options.steps;
    chosen.epochs = options.epochs;
  }
  take(&TrainOptions::patience, "--patience");
  take(&TrainOptions::test_interval, "--test-interval");
  take(&TrainOptions::snapshot, "--snapshot");
  take(&TrainOptions::display, "--display");
  if (options.tune) chosen.tune = true;
  if (options.recompute) chosen.recompute = options.recompute;  // the bits are the same
  chosen.stop = options.stop;
  chosen.timeline = options.timeline;
  chosen.graphs = options.graphs;
  chosen.watchdog_seconds = options.watchdog_seconds;
  chosen.check_plugins = options.check_plugins;
}

// Checkpoints are float32, so that a run can leave the GPU whose precision it had.
void choose_precision(TrainSetup& setup, const TrainOptions& options) {
  TrainOptions& chosen = setup.record.options;
  if (!options.precision.empty() && options.precision != chosen.precision) {
    setup.note("precision {} instead of {} from here on", options.precision, chosen.precision);
    chosen.precision = options.precision;
  }
  if (parse_precision(chosen.precision) != TANDEM_FLOAT16) chosen.loss_scale.reset();
  require_loss_scale_of(chosen.precision, options.loss_scale);
  if (!options.loss_scale) return;
  if (const double before = chosen.loss_scale.value_or(Net{}.loss_scale);
      *options.loss_scale != before) {
    setup.note("loss scale {} instead of {} from here on", *options.loss_scale, before);
  }
  chosen.loss_scale = options.loss_scale;
}

// Kernels of other processors add in another order.
void note_architecture(TrainSetup& setup) {
  std::string& trained_on = setup.record.architecture;
  if (trained_on == own_architecture) return;
  setup.note(
      "note: the run was trained on {} so far, and this processor is {}: the last bits of its "
      "numbers may differ from here on",
      trained_on, own_architecture);
  trained_on = own_architecture;
}

}  // namespace

TrainSetup resolve_resumed(Registry& registry, const TrainOptions& options, const RunFolder& folder,
                           const Strategies& strategies) {
  TrainSetup setup;
  setup.record = folder.record();
  setup.net = folder.net();
  setup.solver = folder.solver();
  setup.steps_before = setup.solver.max_steps;
  TrainOptions& chosen = setup.record.options;
  setup.strategies = &strategies;
  if (is_imported(setup.record)) {
    throw error(
        "run '{0}' was imported and has not been trained, so there is nothing to resume; train a "
        "new run from its weights: tandem train --weights {0} --data FOLDER",
        folder.path().string());
  }
  refuse_changes(setup, options, folder.path());
  require_layer_types(registry, setup.record, folder.path());
  const bool other_devices = std::max(1, options.ranks) != std::max(1, chosen.ranks) ||
                             (!options.devices.empty() && options.devices != chosen.devices);
  const bool same_devices = choose_devices_and_strategy(setup, options, other_devices);
  if (!options.data.empty()) {
    // The folder of the record is where the run began.
    const bool is_name = is_dataset(registry, options.data);
    chosen.data = is_name ? options.data : absolute_path(options.data).string();
    const std::string note = leave_out_undeclared(registry, options.data, setup.record);
    if (!note.empty()) setup.messages.push_back(note);
  }
  note_architecture(setup);
  choose_precision(setup, options);
  choose_machine(setup.record.machine, options, other_devices, same_devices);
  setup.finds_links = other_devices;
  choose_amounts(chosen, options);
  chosen.out = folder.path();
  open_datasets(registry, setup);
  const bool same_classes = setup.training_data->class_names() == setup.record.class_names;
  if (setup.training_data->size() != setup.record.training_samples || !same_classes) {
    throw error(
        "the data in '{}' have changed since run '{}' began: {} training images then, {} now{}; a "
        "resumed run needs the same",
        chosen.data, folder.path().string(), setup.record.training_samples,
        setup.training_data->size(), same_classes ? "" : ", and other classes");
  }
  resolve_amount(registry, setup, options);
  resolve_pixels(registry, setup, options);
  return setup;
}

}  // namespace tandem
