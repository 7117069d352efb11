#include <csignal>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/train/measure.h"
#include "core/train/trainer.h"

namespace tandem::cli {
namespace {

// A signal handler reaches nothing else; the second Ctrl-C ends the program at once.
std::atomic<bool> interrupted{false};

extern "C" void on_interrupt(int signal_number) {
  interrupted = true;
  std::signal(signal_number, SIG_DFL);
}

struct TrainArguments {
  TrainOptions options;
  MachineArguments machine;
  StateArguments train_state, test_state;
  double rate = 0;
  uint64_t seed = 1;
  std::vector<std::string> data_options, solver_options;
  std::string weights;
  bool strict = false;
  double bad_percent = 5;
};

int run_train(TrainArguments& arguments, const CLI::App& command) {
  TrainOptions& options = arguments.options;
  options.machine = arguments.machine.options();
  if (command.count("--lr") > 0) options.rate = arguments.rate;
  if (command.count("--level") + command.count("--stage") > 0) {
    options.train_state = arguments.train_state.state();
  }
  if (command.count("--test-level") + command.count("--test-stage") > 0) {
    options.test_state = arguments.test_state.state();
  }
  if (command.count("--seed") > 0) options.seed = arguments.seed;
  if (command.count("--batch") > 0 && options.batch == 0)
    throw error("--batch 0: the batch must have at least 1 image");
  if (command.count("--steps") > 0 && options.steps == 0)
    throw error("--steps 0: there must be at least 1 step");
  if (command.count("--epochs") > 0 && options.epochs == 0)
    throw error("--epochs 0: there must be at least 1 epoch");
  const std::string strategy =
      options.strategy.empty() && !options.resume ? "two_phase" : options.strategy;
  require_strategy_options(command, strategy);
  options.explicit_options = given_strategy_options(command);
  if (options.resume && options.out.empty())
    throw error("--resume needs --out: the folder of the run to go on with");
  options.data_parameters = read_pairs(arguments.data_options, "--data-option", "mirror=true");
  options.solver_fields =
      read_pairs(arguments.solver_options, "--solver-option", "weight_decay=0.001");
  if (!arguments.weights.empty()) options.solver_fields["weights"] = arguments.weights;
  if (!(arguments.bad_percent >= 0 && arguments.bad_percent <= 100)) {
    throw error("--bad-limit {}: a percentage from 0 (as --strict) to 100 (no limit)",
                arguments.bad_percent);
  }
  options.bad_share_limit = arguments.strict ? 0 : arguments.bad_percent / 100;
  options.stop = &interrupted;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  Progress progress(options.display > 0 ? options.display : 20);
  const TrainResult result = train(options, progress);
  progress.finish();
  fmt::print("{} steps in {}, {:.1f} images/s, peak memory {}\n", result.steps,
             clock_text(result.seconds), result.images_per_second,
             human_bytes(peak_memory_bytes()));
  if (result.best.samples > 0) {
    fmt::print("best validation (step {}): {}\n", result.best.step, evaluation_text(result.best));
  }
  fmt::print("run folder: {}\n", result.run.string());
  return result.stopped ? 130 : 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train a net on a folder of images, or on synthetic data");
  TrainOptions& o = arguments->options;
  command->add_option("--data", o.data,
                      "Folder with train/ and val/, or with one folder a class; a list (.txt, "
                      ".csv) or another data set (docs/data.md); or 'synthetic'");
  command->add_option("--net", o.net,
                      "A model's name or a prototxt file (default: the solver's, else alexnet)");
  command->add_option("--solver", o.solver, "A Caffe solver file (default: the model's own)");
  add_state_options(*command, "", "training net (default: the solver's)", arguments->train_state);
  add_state_options(*command, "test-", "testing net (default: the solver's)",
                    arguments->test_state);
  command->add_option(
      "--solver-type", o.solver_type,
      "SGD, Nesterov, AdaGrad, RMSProp, AdaDelta, Adam, AdamW or LARS (default: the "
      "solver's); without --solver with the constants usual for it");
  command->add_option("--solver-option", arguments->solver_options,
                      "A field of the solver, name=value: momentum, weight_decay, lr_policy, "
                      "clip_gradients, iter_size, warmup_iter, ...");
  command->add_option("--weights", arguments->weights,
                      "A .caffemodel or .safetensors file to begin with, layers by name");
  command->add_option("--devices", o.devices, "cpu, cpu:2, ... (default: cpu)");
  add_precision_option(*command, o.precision, "float32; with --resume the run's");
  command->add_option("--loss-scale", o.loss_scale,
                      "float16: what gradients are multiplied by, a power of two (default: 1024; "
                      "with --resume the run's). Smaller where gradients overflow");
  add_pixels_option(
      *command, o.pixels,
      "bytes where the devices have memory of their own and the data have them, else floats; with "
      "--resume the run's");
  command->add_option(
      "--strategy", o.strategy,
      strategy_help(" (default: two_phase); auto: the fastest, priced with measured costs"));
  command->add_option("--batch", o.batch,
                      "Images in the global batch, however many devices share it");
  command->add_option("--epochs", o.epochs, "Passes over the training data");
  command->add_option("--steps", o.steps, "Steps, instead of epochs");
  command->add_option("--lr", arguments->rate, "Base learning rate (default: the solver's)");
  command->add_option("--seed", arguments->seed,
                      "Of weights, order, augmentation, dropout and split");
  command->add_option("--out", o.out, "Run folder (default: runs/<net>-<number>)");
  command->add_flag("--resume", o.resume, "Go on with the run in --out as if it had never stopped");
  command->add_flag(
      "--adapt-classes", o.adapt_classes,
      "If a net's file has another number of classes than the data: train an adapted copy");
  command->add_option("--test-interval", o.test_interval,
                      "Steps between evaluations (default: every epoch)");
  command->add_option("--display", o.display,
                      "Steps between lines of metrics (default: the solver's, else 20)");
  command->add_option("--snapshot", o.snapshot, "Steps between extra checkpoints");
  command->add_option(
      "--data-option", arguments->data_options,
      "A parameter of the data set, name=value: resize, mirror, mean, scale, val_fraction, ...");
  command->add_flag(
      "--balance", o.balance,
      "Show every class as often as the others, the rare ones several times an epoch");
  command->add_option("--mixup", o.mixup,
                      "Mix pairs of images, with shares from Beta(x, x); 0.2 is usual");
  command->add_option("--cutmix", o.cutmix,
                      "Let pairs of images exchange a box, its share from Beta(x, x); 1 is usual");
  command->add_option("--class-weights", o.class_weights,
                      "What classes count in the loss: balanced, numbers in their order, or a file "
                      "with a class and its weight on each line");
  command->add_flag("--strict", arguments->strict, "End at the first damaged image");
  command
      ->add_option("--bad-limit", arguments->bad_percent,
                   "End when more than so many percent of the images are damaged")
      ->capture_default_str();
  command->add_option("--decode-threads", o.decode_threads,
                      "Threads that read images (default: by cores)");
  command
      ->add_option("--watchdog", o.watchdog_seconds,
                   "Seconds a step may take before it counts as stuck")
      ->capture_default_str();
  add_tune_option(*command, o.tune);
  add_graphs_option(*command, o.graphs);
  add_strategy_options(*command, o.strategy_options);
  add_machine_options(*command, arguments->machine);
  command->callback([&action, arguments, command] {
    action = [arguments, command] { return run_train(*arguments, *command); };
  });
}

}  // namespace tandem::cli
