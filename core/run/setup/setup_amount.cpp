// How much a run trains: batch, steps, epochs, precision, and what follows from them.
#include "core/base/error.h"
#include "core/device/parse.h"
#include "core/model/net/loss_scale.h"
#include "core/run/setup/recipe.h"
#include "core/run/setup/setup.h"
#include "core/run/setup/setup_data.h"
#include "core/run/setup/setup_solver.h"

namespace tandem {
namespace {

constexpr int64_t default_batch = 64, default_display = 20;
constexpr int64_t max_epochs = 1'000'000;

void require_amounts(const TrainOptions& options) {
  if (!options.precision.empty()) (void)parse_precision(options.precision);
  if (options.batch < 0) {
    throw error("--batch {}: the batch must have at least 1 image", options.batch);
  }
  if (options.batch > max_batch_images) {
    throw error("--batch {}: too large; at most {}", options.batch, max_batch_images);
  }
  if (!(options.bad_share_limit >= 0 && options.bad_share_limit <= 1)) {
    throw error("a share of {} of images that cannot be used: it must be from 0 to 1",
                options.bad_share_limit);
  }
  if (options.steps < 0) throw error("--steps {}: there must be at least 1 step", options.steps);
  if (options.epochs < 0) {
    throw error("--epochs {}: there must be at least 1 epoch", options.epochs);
  }
  if (options.epochs > max_epochs) {
    throw error("--epochs {}: too many; at most {}", options.epochs, max_epochs);
  }
}

// The choices that a solver file of the user's would name.
void note_recipe(const TrainOptions& options, TrainSetup& setup) {
  if (!options.solver.empty() || options.resume || options.data == "synthetic") return;
  const SolverDefinition& solver = setup.solver;
  const bool has_momentum = solver.type == "SGD" || solver.type == "Nesterov";
  setup.note(
      "recipe {} (--recipe): {} (--solver-type), rate {:.4g} (--lr), lr_policy {}{}, "
      "weight_decay {:.4g} (--solver-option), batch {} (--batch)",
      setup.record.options.recipe, solver.type, solver.base_rate, solver.rate_policy,
      has_momentum ? fmt::format(", momentum {:.4g}", solver.momentum) : "", solver.weight_decay,
      setup.record.options.batch);
}

// What changes the targets, or how often an image comes.
void note_mixing(const TrainOptions& options, TrainSetup& setup) {
  if (options.resume) return;
  const TrainOptions& chosen = setup.record.options;
  std::vector<std::string> parts;
  const auto add = [&](double value, const char* what, const char* option) {
    if (value != 0) parts.push_back(fmt::format("{} {} ({})", what, value, option));
  };
  add(chosen.mixup, "mixup", "--mixup");
  add(chosen.cutmix, "cutmix", "--cutmix");
  add(chosen.label_smoothing, "label smoothing", "--label-smoothing");
  if (chosen.balance) parts.emplace_back("every class equally often (--balance)");
  if (!parts.empty()) setup.note("training with {}", fmt::join(parts, ", "));
}

}  // namespace

void require_loss_scale_of(const std::string& precision, std::optional<double> loss_scale) {
  if (!loss_scale) return;
  require_loss_scale(*loss_scale);
  if (parse_precision(precision) == TANDEM_FLOAT16) return;
  throw error("--loss-scale {} applies to --precision float16 only, not to {}", *loss_scale,
              precision);
}

void resolve_amount(Registry& registry, TrainSetup& setup, const TrainOptions& options) {
  TrainOptions& chosen = setup.record.options;
  require_amounts(options);
  const bool tunes = chosen.recipe == "finetune";
  const bool is_photos = (chosen.recipe == "photos" || tunes) && !options.resume;
  const bool is_of_run = setup.published && setup.published->is_run && !setup.fits_images;
  const std::filesystem::path net(is_of_run ? setup.published->net.string() : chosen.net);
  const auto beside = chosen.batch == 0 ? record_beside(net) : std::nullopt;
  if (beside && beside->options.batch > 0) {
    chosen.batch = beside->options.batch;
    setup.note("batch {}, of the run in whose folder the net is (--batch)", chosen.batch);
  }
  if (chosen.batch == 0 && setup.fits_images) chosen.batch = photos_batch(registry, setup);
  if (chosen.batch == 0) chosen.batch = setup.net.batch_size(TANDEM_TRAIN).value_or(default_batch);
  const int64_t size = setup.record.training_samples;
  const int64_t images = chosen.batch * setup.solver.micro_batches_per_step;  // of a step
  const auto steps_of = [&](int64_t epochs) { return (epochs * size + images - 1) / images; };
  if (chosen.steps == 0 && chosen.epochs > 0) chosen.steps = steps_of(chosen.epochs);
  // A model's own solver is of its authors' data: Caffe's AlexNet has 450,000 steps.
  const bool has_own_length = !options.solver.empty() || options.recipe == "caffe" ||
                              options.solver_fields.contains("max_iter");
  if (chosen.steps == 0 && has_own_length) chosen.steps = setup.solver.max_steps;
  if (chosen.steps == 0) {
    const int64_t epochs = usual_epochs(chosen.recipe);
    chosen.steps = steps_of(epochs);
    if (!is_photos || tunes) setup.note("{} epochs (--epochs, --steps)", epochs);
  }
  if (setup.solver.micro_batches_per_step > 1) {
    setup.note("iter_size {}: every step adds up {} batches of {}, {} images",
               setup.solver.micro_batches_per_step, setup.solver.micro_batches_per_step,
               chosen.batch, images);
  }
  if (is_photos) fit_photos(options, setup);
  fit_recipe(options, setup);
  note_changes(options, setup);
  if (!is_photos) note_recipe(options, setup);
  note_mixing(options, setup);
  resolve_tests(setup);
  setup.solver.max_steps = chosen.steps;
  if (chosen.display == 0) {
    chosen.display = setup.solver.display > 0 ? setup.solver.display : default_display;
  }
  if (chosen.test_interval == 0) chosen.test_interval = setup.solver.test_interval;
  if (chosen.snapshot == 0) chosen.snapshot = setup.solver.snapshot;
  if (chosen.devices.empty()) chosen.devices = default_kind;
  if (chosen.precision.empty()) chosen.precision = dtype_name(TANDEM_FLOAT32);
  require_loss_scale_of(chosen.precision, chosen.loss_scale);
  if (chosen.strategy.empty()) {
    // Options without a strategy are of the one that was the default before there was a choice.
    setup.forecasts_strategy = chosen.strategy_options.empty();
    chosen.strategy = setup.forecasts_strategy ? "auto" : "two_phase";
  }
  if (!chosen.seed) chosen.seed = setup.solver.seed.value_or(1);
}

}  // namespace tandem
