#include "include/tandem/train.h"
#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/ranks/ranks.h"
#include "include/tandem/process.h"
#include "include/tandem/profile.h"

namespace tandem::cli {
namespace {

struct TrainArguments {
  TrainOptions options;
  NetState train_state, test_state;
  std::vector<std::string> data_options, solver_options, solver_fields;
  std::string weights;
  bool strict = false, finds_rate = false;
  int64_t folds = 0;
  double bad_percent = 5;
  SearchOptions search;
  std::string time;
};

// "90s", "30m", "2h", "1.5h"
double seconds_of(const std::string& text) {
  double value = 0;
  const std::string number = text.substr(0, text.size() - 1);
  const double unit = text.ends_with('s') ? 1 : text.ends_with('m') ? 60 : 3600;
  const bool has_unit = text.ends_with('s') || text.ends_with('m') || text.ends_with('h');
  if (!has_unit || !parse_number(number, &value) || !(value > 0)) {
    throw error("--time {}: a time with its unit, as 90s, 30m or 2h", text);
  }
  return unit * value;
}

int run_find_rate(const TrainOptions& options) {
  Progress progress;
  const RateCurve curve = find_rate(options, progress);
  progress.finish();
  say("suggested: --lr {:.2g}. Its trial was the best of those of {} steps, by its {}\n",
      curve.suggestion, curve.trials.back().steps,
      curve.is_scored      ? "validation score and loss"
      : curve.is_validated ? "validation loss"
                           : "training loss");
  print_names("curve: {} and {}\n", curve.picture.string(), curve.table.string());
  return 0;
}

int run_folds(const TrainOptions& options, int64_t folds) {
  Progress progress;
  const FoldsResult result = train_folds(options, folds, progress);
  progress.finish();
  if (result.stopped) {
    print_names("stopped; go on with the same command, --out {} and --resume\n",
                result.folder.string());
    return 130;
  }
  print_names("{}page: {}\n", result.text, result.page.string());
  return 0;
}

// Takes into the options what was given; throws Error for what contradicts itself.
void complete(TrainArguments& arguments, const Command& command) {
  TrainOptions& options = arguments.options;
  if (command.given("--level") || command.given("--stage")) {
    options.train_state = arguments.train_state;
  }
  if (command.given("--test-level") || command.given("--test-stage")) {
    options.test_state = arguments.test_state;
  }
  const auto refuse_if = [](bool is_wrong, const char* message) {
    if (is_wrong) throw error("{}", message);
  };
  refuse_if(command.given("--batch") && options.batch == 0,
            "--batch 0: the batch must have at least 1 image");
  refuse_if(command.given("--steps") && options.steps == 0,
            "--steps 0: there must be at least 1 step");
  if (command.given("--steps") && command.given("--epochs")) {
    throw error("--steps {} and --epochs {}: each is the length of the run; give one of them",
                options.steps, options.epochs);
  }
  refuse_if(command.given("--epochs") && options.epochs == 0,
            "--epochs 0: there must be at least 1 epoch");
  const std::string strategy =
      options.strategy.empty() && !options.resume && !options.strategy_options.empty()
          ? "two_phase"
          : options.strategy;
  require_strategy_options(command, strategy);
  refuse_if(options.resume && options.out.empty(),
            "--resume needs --out: the folder of the run to go on with");
  refuse_if(command.given("--recompute") && command.given("--no-recompute"),
            "--recompute and --no-recompute contradict each other: give one of them");
  refuse_if(command.given("--no-recompute") && !options.resume,
            "--no-recompute is for --resume: without --recompute a new run keeps all outputs");
  options.data_parameters = read_pairs(arguments.data_options, "--data-option", "mirror=true");
  // --momentum and its like first, which are fields of the solver, too.
  std::vector<std::string> fields = arguments.solver_fields;
  fields.insert(fields.end(), arguments.solver_options.begin(), arguments.solver_options.end());
  options.solver_fields = read_pairs(fields, "--solver-option", "weight_decay=0.001");
  if (!arguments.weights.empty()) options.solver_fields["weights"] = arguments.weights;
  if (!(arguments.bad_percent >= 0 && arguments.bad_percent <= 100)) {
    throw error("--bad-limit {}: a percentage from 0 (as --strict) to 100 (no limit)",
                arguments.bad_percent);
  }
  options.bad_share_limit = arguments.strict ? 0 : arguments.bad_percent / 100;
  options.given = command.given_values();
}

const std::atomic<bool>* stop_between_steps() {
  // A launcher sends signals to all ranks, and also ends a job by them in which one has failed.
  const char* answer =
      "\ntandem: stopping after this step and saving it, or now if none has begun (Ctrl-\\ ends "
      "without saving)\n";
  return stop_on_signals(launched_ranks() > 1 ? "" : answer);
}

int run_search(TrainArguments& arguments, const Command& command) {
  complete(arguments, command);
  SearchOptions& search_options = arguments.search;
  search_options.base = arguments.options;
  if (!arguments.time.empty()) search_options.seconds = seconds_of(arguments.time);
  search_options.base.stop = stop_between_steps();
  Progress progress;
  const SearchResult result = search(search_options, progress);
  progress.finish();
  print_names("{}", result.text);
  if (!result.page.empty()) {
    print_names("again: {}\npage: {}; run folder of the best: {}\n", result.command,
                result.page.string(), result.best.string());
  }
  if (!result.stopped) return 0;
  print_names("stopped; go on with the same command, --out {} and --resume\n",
              result.folder.string());
  return 130;
}

int run_train(TrainArguments& arguments, const Command& command) {
  complete(arguments, command);
  TrainOptions& options = arguments.options;
  options.stop = stop_between_steps();
  if (arguments.finds_rate) return run_find_rate(options);
  if (command.given("--kfold")) return run_folds(options, arguments.folds);
  Progress progress;
  TrainResult result;
  try {
    result = train(options, progress);
  } catch (const CompleteRun& complete) {  // what was asked for is there
    print_names("{}\n", complete.what());
    return 0;
  }
  if (result.rank > 0) return result.stopped ? 130 : 0;
  progress.finish();
  const int64_t steps = result.steps - result.steps_before;
  say("{} {} in {}, {:.1f} images/s, peak memory {}\n", steps, steps == 1 ? "step" : "steps",
      clock_text(result.seconds), result.images_per_second, human_bytes(peak_memory_bytes()));
  if (result.best.has_loss || result.best.has_score) {
    say("best validation (step {}): {}\n", result.best.step, evaluation_text(result.best));
  }
  if (!result.run.empty()) {
    print_names("run folder: {} (report.html shows the run)\n", result.run.string());
  }
  return result.stopped ? 130 : 0;
}

void add_data_and_model_options(Command& command, TrainArguments& a) {
  TrainOptions& o = a.options;
  command.group("Data");
  command.add({
      {"--data PATH", &o.data,
       "Folder with train/ and val/, or with one folder per class; a list (.txt, .csv) or another "
       "data set (docs/reference/data.md); or 'synthetic'"},
      {"--image-size N", &o.image_size,
       "Height and width of the images that the net takes (default: the net's)",
       in_range(1, max_image_size)},
      {"--data-option NAME=VALUE", &a.data_options,
       "A parameter of the data set: resize, mirror, mean, scale, val_fraction, ..."},
      task_option(&o.task),
      {"--loss euclidean|huber", &o.loss,
       "Loss of numbers to predict (default: the net's, else huber)"},
      {"--augment none|light|photos|strong", &o.augment,
       "Augmentation: light mirrors and crops, photos also resizes and recolors, strong, for long "
       "runs, is RandAugment or TrivialAugment and random erasing (default: by the recipe)"},
      {"--balance", &o.balance,
       "Draw every class equally often, rare ones several times per epoch"},
      {"--class-weights WEIGHTS", &o.class_weights,
       "Weight of each class in the loss: balanced, numbers in the order of the classes, or a file "
       "with a class and its weight on each line"},
      {"--mixup X", &o.mixup, "Mix pairs of images, with shares from Beta(X, X); 0.2 is usual"},
      {"--cutmix X", &o.cutmix,
       "Exchange a box between pairs of images, its share from Beta(X, X); 1 is usual"},
  });
  command.group("Model");
  command.add({
      {"--net,--model FILE", &o.net,
       "A model's name, a prototxt file, or an ONNX file, whose weights are the initial ones "
       "(default: the solver's, else resnet18)"},
      {"--from-scratch", &o.from_scratch,
       "Train from initial weights, not from those of an ONNX file or of the cache (tandem fetch)"},
      {"--weights PATH", &a.weights,
       "Initial weights: a file (.safetensors, .pth, .pt, .bin, .caffemodel), layers by name; a "
       "run "
       "folder; a folder of timm's (model.safetensors, config.json); or the name of a repository "
       "of "
       "Hugging Face, as of tandem fetch"},
      {"--download", &o.download, "Fetch weights that are named by their repository and not there"},
      {"--freeze PATTERN", &o.freeze,
       "Layers that keep the weights of --weights, by name or pattern, e.g. 'conv*,res2*'",
       separated_by(',')},
      {"--freeze-bn", &o.freeze_batch_norm,
       "BatchNorm keeps and uses the running statistics of --weights; its factors and biases "
       "(BatchNormScale, or the Scale and Bias layers after it) are frozen"},
      {"--head-lr FACTOR", &o.head_rate,
       "Factor of the learning rate of layers that --weights does not have, and of the last layer "
       "(default: by the recipe finetune up to 10 where layers are new, else 1)"},
      {"--unfreeze-after EPOCHS", &o.unfreeze_after,
       "Train only these layers for so many epochs, then all (default: 1 by the recipe finetune "
       "where layers are new and the run is three times as long, else 0)"},
      {"--layer-decay FACTOR", &o.layer_decay,
       "Factor of the learning rate from each layer to the one before it; 0.9 is usual (default: "
       "1)"},
      {"--adapt-classes", &o.adapt_classes,
       "If a net's file has another number of classes than the data: train an adapted copy "
       "(models, and copies of their files, always follow the data)"},
  });
}

// An option for a field of the solver that --solver-option sets, too.
std::function<void(const std::string&)> field_option(TrainArguments& a, const std::string& field) {
  return [&a, field](const std::string& value) { a.solver_fields.push_back(field + "=" + value); };
}

void add_training_options(Command& command, TrainArguments& a) {
  TrainOptions& o = a.options;
  command.group("Training");
  command.add({
      {"--epochs N", &o.epochs, "Passes over the training data"},
      {"--steps N", &o.steps, "Steps, instead of epochs"},
      {"--batch N", &o.batch, "Images in the global batch, however many devices share it"},
      {"--recipe plain|photos|caffe|finetune", &o.recipe,
       "photos: warm-up, half a cosine, sizes and augmentation by the images (default for models "
       "with BatchNorm); finetune: the same from trained weights, at a low rate (default with "
       "--weights); caffe: the model's own solver; plain: neither"},
      {"--lr X", &o.rate, "Base learning rate (default: the solver's)"},
      {"--solver-type,--optimizer SGD|Nesterov|AdaGrad|RMSProp|AdaDelta|Adam|AdamW|LARS",
       &o.solver_type,
       "Type of the solver (default: the solver's); without --solver it has its usual constants"},
      {"--momentum X", field_option(a, "momentum"), "Momentum (default: the solver's)"},
      {"--weight-decay,--wd X", field_option(a, "weight_decay"),
       "Weight decay (default: the solver's)"},
      {"--solver FILE", &o.solver, "A Caffe solver file (default: the model's own)"},
      {"--ema DECAY", &o.average_decay,
       "Average the weights over the steps with this decay, 0.999 is usual: the average is "
       "validated and kept as the best weights"},
      {"--label-smoothing X", &o.label_smoothing,
       "Share of each target that is spread over all classes; 0.1 is usual"},
      {"--patience N", &o.patience,
       "End after so many evaluations without a better accuracy, or other figure by which the best "
       "weights are kept (default: never)",
       in_range(1)},
      {"--seed N", &o.seed, "Seed of weights, order, augmentation, dropout and split"},
  });
  command.group("Run");
  command.add({
      {"--out FOLDER", &o.out, "Run folder (default: runs/<net>-<number>)"},
      {"--resume", &o.resume, "Continue the run in --out as if it had never stopped"},
      {"--devices DEVICES", &o.devices, "Devices to train on, e.g. cpu:2 (default: cpu)"},
      ranks_option(o.ranks),
      precision_option(o.precision, "float32; with --resume the run's"),
      {"--strict", &a.strict, "End at the first image that cannot be used"},
  });
}

// Caffe's option of this name takes the file with which a run goes on.
void refuse_state_of_caffe(const std::string& text) {
  const bool is_file = text.find('.') != text.npos || path_status(text).is_file();
  if (!is_file || text.find_first_not_of("0123456789.,") == text.npos) return;
  throw error(
      "--snapshot {}: here it is the number of steps between extra checkpoints; a run goes on with "
      "'--resume --out RUN'; of a run of Caffe's '--weights FILE.caffemodel' takes the weights, "
      "and 'tandem import FILE.caffemodel --net FILE' makes a run folder of them",
      text);
}

void add_less_usual_options(Command& command, TrainArguments& a) {
  TrainOptions& o = a.options;
  command.experts_group("Solver and net");
  command.add({{"--solver-option NAME=VALUE", &a.solver_options,
                "A field of the solver: momentum, weight_decay, lr_policy, clip_gradients, "
                "iter_size, warmup_iter, ..."}});
  add_state_options(command, "", "training net (default: the solver's)", a.train_state);
  add_state_options(command, "test-", "testing net (default: the solver's)", a.test_state);
  command.experts_group("Evaluation and files");
  command.add({
      {"--test-interval N", &o.test_interval,
       "Steps between evaluations (default: that of the file of --solver, else every epoch)",
       in_range(0)},
      {"--display N", &o.display, "Steps between lines of metrics (default: the solver's, else 20)",
       in_range(0)},
      {"--snapshot N", &o.snapshot, "Steps between extra checkpoints", in_range(0),
       checked_first_by(refuse_state_of_caffe)},
  });
  command.experts_group("Reading data");
  command.add({
      {"--bad-limit PERCENT", &a.bad_percent,
       "End when more than this share of the images cannot be used", show_default},
      decode_threads_option(o.decode_threads),
      {"--prefetch N", &o.prefetch,
       "Batches in memory: a slow read may take as long as the steps of all but one (default: 3)",
       in_range(1)},
      pixels_option(o.pixels,
                    "bytes where the devices have memory of their own and the data have bytes, "
                    "else floats; with --resume the run's"),
  });
}

void add_device_and_strategy_options(Command& command, TrainOptions& o) {
  command.experts_group("Devices and kernels");
  command.add({
      {"--loss-scale N", &o.loss_scale,
       "float16: the factor of gradients, a power of two (default: 1024; with --resume the run's). "
       "Take a smaller one where gradients overflow"},
      tune_option(o.tune),
      recompute_option([&o] { o.recompute = true; }),
      {"--no-recompute", [&o] { o.recompute = false; },
       "With --resume: end --recompute of the run; from now on outputs are kept"},
      graphs_option(o.graphs),
  });
  add_device_options(command, o.machine);
  command.add({
      watchdog_option("step", o.watchdog_seconds),
      {"--check-plugins", &o.check_plugins,
       "Run the layers and data sets of plugins between guards: end where one writes beyond its "
       "memory, leaves some unwritten or reads what it has not written (cpu); takes time"},
      {"--no-plugin-check", [&o] { o.try_plugins = false; },
       "Do not try the layers and data sets of plugins, for 2 s at most each, before the first "
       "step"},
      {"--plugin-check-without NAMES", &o.plugin_check_without,
       "Try them, but not by these promises, as phases,skip", separated_by(','),
       excludes("--no-plugin-check")},
  });
  command.experts_group("Strategies (docs/reference/strategies.md)");
  command.add({strategy_option({"auto"}, o.strategy,
                               "The strategy (default: the fastest by forecast costs; two_phase "
                               "where only options of it are given); auto: the fastest by "
                               "measured costs")});
  add_strategy_options(command, o.strategy_options);
}

}  // namespace

void add_train(CommandLine& line) {
  Command& command = line.add("train", "Train a net on a folder of images, or on synthetic data");
  TrainArguments& a = command.runs(run_train);
  add_data_and_model_options(command, a);
  add_training_options(command, a);
  command.group("Instead of one run");
  command.add({
      {"--kfold K", &a.folds,
       "Cross-validation: K runs, each of which holds out another of K equal parts of the images, "
       "in the folders fold-1, ... of --out, and a page of all of them"},
      {"--find-lr", &a.finds_rate,
       "Do not train: suggest a rate for --lr by short trainings at several rates, and write their "
       "curve (find_lr.csv, find_lr.svg, in --out or here)"},
  });
  add_less_usual_options(command, a);
  add_device_and_strategy_options(command, a.options);
}

void add_search(CommandLine& line) {
  Command& command =
      line.add("search", "Search for a good learning rate, augmentation, image size and model");
  TrainArguments& a = command.runs(run_search);
  command.add({
      {"--trials N", &a.search.trials,
       "Trials that are drawn; what is given, as --lr or --augment, is not drawn", show_default},
      {"--time T", &a.time, "Time for all runs, as 90s, 30m or 2h (default: any)"},
      {"--models NAME", &a.search.models, "Models to draw from, with commas (default: --net)",
       separated_by(',')},
  });
  add_data_and_model_options(command, a);
  add_training_options(command, a);
  add_less_usual_options(command, a);
  add_device_and_strategy_options(command, a.options);
}

}  // namespace tandem::cli
