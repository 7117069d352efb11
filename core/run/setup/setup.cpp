#include "core/run/setup/setup.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/data/dataset_statistics.h"
#include "core/data/loader/loader.h"
#include "core/device/machine.h"
#include "core/model/adapted/adapted.h"
#include "core/model/adapted/classes.h"
#include "core/model/adapted/target_losses.h"
#include "core/model/adapted/two_scores.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/run/setup/images_text.h"
#include "core/run/setup/net_lists.h"
#include "core/run/setup/program_options.h"
#include "core/run/setup/recipe.h"
#include "core/run/setup/setup_classes.h"
#include "core/run/setup/setup_data.h"
#include "core/run/setup/setup_solver.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t mean_samples = 2000;
// The first names of labels or values, and how many there are.
std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t shown = 5;
  const size_t count = std::min(names.size(), shown);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<ptrdiff_t>(count));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     names.size() > count ? fmt::format(", ... {} in all", names.size()) : "");
}

constexpr int64_t pair_classes = 2;  // of synthetic data, if the net has no classes: alike or not

// What the net or its weights suggest and the data set does not have. The report says so: a net
// that gets pixels of other values than it was written for trains badly. The crop is not in the
// report: the size that the net expects is required of every data set.
void report_missing_parameters(const TransformDefinition& transform, const std::string& source,
                               const DeclaredParameters& declared, bool is_model,
                               TrainSetup& setup) {
  std::vector<std::string> wanted, missing;
  const auto want = [&](const char* parameter, const std::string& field) {
    if (declared.contains(parameter)) return;
    wanted.push_back(field);
    missing.push_back(fmt::format("'{}'", parameter));
  };
  if (transform.scale != 1) want("scale", "scale " + image_parameters(transform)["scale"]);
  if (!transform.mean_values.empty()) {
    want("mean", "mean_value " + image_parameters(transform)["mean"]);
  } else if (!transform.mean_file.empty()) {
    want("mean", "mean_file");
  }
  if (!missing.empty()) {
    throw error(
        "net '{}': its transform_param has {}, but data '{}' cannot do that: its data set has no "
        "parameter {}; use a net without them if the data set prepares the pixels itself",
        setup.net.file.empty() ? setup.net.name : setup.net.file, fmt::join(wanted, " and "),
        source, fmt::join(missing, " and "));
  }
  const auto tell = [&](const char* parameter, const std::string& what) {
    if (declared.contains(parameter)) return;
    setup.note("data '{}': its data set has no parameter '{}', so {}", source, parameter, what);
  };
  if (transform.mirror) tell("mirror", "no image is mirrored, though the net has mirror: true");
  if (setup.published && source != "synthetic") {
    for (const auto& [name, value] : setup.published->data_parameters()) {
      tell(name.c_str(),
           fmt::format("{} {}, with which the weights were trained, is not applied", name, value));
    }
  } else if (is_model && transform.mean_values.empty()) {
    tell("mean", "no mean is subtracted from the pixels");
  }
}

// The preparation of published weights, for the net's size of images.
void add_published_preparation(const TrainSetup& setup,
                               std::map<std::string, std::string>& parameters) {
  const PublishedWeights& published = *setup.published;
  parameters.erase("mean_image");
  for (const auto& [name, value] : published.data_parameters()) parameters[name] = value;
  const Shape images = setup.net.input_shape();
  if (published.resizes && images.h > 0) {
    parameters["resize"] = fmt::format("{}", published.resize_for(std::max(images.h, images.w)));
  } else if (!published.resizes && setup.record.options.image_size == 0) {
    parameters.erase("resize");
  }
}

// Images that have about the size of the crop already, all the same one, are cropped as they are,
// as Caffe does.
void keep_size(Registry& registry, const TransformDefinition& transform, TrainSetup& setup,
               std::map<std::string, std::string>& parameters) {
  const int64_t crop = std::max(transform.crop_height, transform.crop_width);
  const auto& given = setup.record.options.data_parameters;
  if (crop == 0 || transform.resize_height > 0) return;
  if (given.contains("resize") || given.contains("fit")) return;
  double resize = 0;
  if (!parse_number(parameters["resize"], &resize)) return;
  const ImageSizes sizes = find_sizes(registry, setup);
  if (!sizes.is_one_size || sizes.shorter_side < crop ||
      static_cast<double>(sizes.shorter_side) > resize) {
    return;
  }
  parameters["resize"] = fmt::format("{}", sizes.shorter_side);
}

// What is given of the size counts alone.
void leave_out_other_sizes(const std::map<std::string, std::string>& given,
                           std::map<std::string, std::string>& parameters) {
  const auto fit = given.find("fit");
  if (fit != given.end() && fit->second != "crop") parameters.erase("resize");
  if (fit != given.end() || given.contains("resize")) parameters.erase("resize_width");
}

// The mean that is given counts, else the net's mean_file. Returns what is said of it.
std::string find_mean(const NetDefinition& net, bool synthetic, const DeclaredParameters& declared,
                      const std::map<std::string, std::string>& given,
                      TransformDefinition& transform) {
  const auto image = given.find("mean_image");
  if (image != given.end()) {
    transform.mean_file = image->second;
    transform.mean_values.clear();
  } else if (given.contains("mean")) {
    transform.mean_file.clear();
  }
  return synthetic ? "" : read_mean_file(net, declared.contains("mean_image"), transform);
}

// The net's own transform_param as parameters of the data set; the user's come last.
std::map<std::string, std::string> data_parameters(Registry& registry, TrainSetup& setup,
                                                   bool synthetic, bool is_model,
                                                   bool* measure_mean) {
  TransformDefinition transform = setup.net.transform(TANDEM_TRAIN).value_or(TransformDefinition{});
  const auto& given = setup.record.options.data_parameters;
  const std::string source = data_source(registry, setup.record);
  const DeclaredParameters declared = declared_parameters(registry, source);
  const std::string mean_note = find_mean(setup.net, synthetic, declared, given, transform);
  std::map<std::string, std::string> parameters;
  if (synthetic) {
    if (transform.scale != 1) parameters["scale"] = image_parameters(transform)["scale"];
    parameters["class_count"] =
        fmt::format("{}", has_classes(setup.net) ? classes_of_net(registry, setup) : pair_classes);
  } else {
    parameters = image_parameters(transform);
    const Shape images = setup.net.input_shape();
    const auto augmented =
        augmentation(setup.record.options.augment, std::max(images.h, images.w), setup.mirrors);
    if (augmented.contains("resize")) parameters.erase("resize_width");
    for (const auto& [name, value] : augmented) parameters[name] = value;
    if (augmented.empty() && !setup.published && declared.contains("fit")) {
      keep_size(registry, transform, setup, parameters);
    }
    if (setup.published) add_published_preparation(setup, parameters);
    leave_out_other_sizes(given, parameters);
    // They exclude each other, and what is given counts.
    if (given.contains("crop_area")) parameters.erase("pad");
    if (given.contains("pad")) parameters.erase("crop_area");
  }
  // What the user gives, a data set must have.
  const std::string& task = setup.record.options.task;
  require_word("--task", task, {"labels", "multilabel", "regression"});
  require_word("--loss", setup.record.options.loss, {"euclidean", "huber"});
  if (!task.empty() && !declared.contains("task") && task != task_word(TANDEM_TASK_CLASSES)) {
    throw error(
        "--task {}: data '{}' have one class for each image; several labels or numbers are in a "
        "CSV file or a list (docs/reference/data.md)",
        task, source);
  }
  if (!task.empty()) parameters["task"] = task;
  report_missing_parameters(transform, source, declared, is_model, setup);
  if (!mean_note.empty()) setup.messages.push_back(mean_note);
  std::erase_if(parameters, [&](const auto& each) { return !declared.contains(each.first); });
  for (const auto& [name, value] : given) parameters[name] = value;
  // Weights of a run were trained with its mean, or without one.
  const bool is_known =
      parameters.contains("mean") || (setup.published && !setup.published->run_parameters.empty());
  *measure_mean = !synthetic && declared.contains("mean") && !is_known &&
                  (!transform.mean_file.empty() || is_model);
  if (*measure_mean && !transform.mean_file.empty()) {
    setup.note(
        "mean_file '{}' does not exist: the channel means of the training data are subtracted "
        "instead (--data-option mean=B,G,R)",
        transform.mean_file);
  }
  return parameters;
}

// Nets for Caffe often leave the shape of samples to the data. Synthetic data then have the first
// shape that the net can be built for.
void choose_synthetic_shape(const Registry& registry, TrainSetup& setup) {
  Shape& data = setup.record.data;
  const auto& given = setup.record.options.data_parameters;
  const bool is_explicit =
      given.count("channels") + given.count("height") + given.count("width") > 0;
  if (is_explicit || (data.h > 0 && data.w > 0)) return;
  NetOptions options;
  options.device_kind = "";
  for (const int64_t size : {32, 28}) {
    for (const int64_t channels : {3, 1, 2}) {
      options.data = {1, data.c > 0 ? data.c : channels, size, size};
      try {
        (void)build_net(setup.net, registry, options);
      } catch (const Error&) {
        continue;  // if no shape fits, the message of the default shape has the reason
      }
      data = options.data;
      return;
    }
  }
}

// For samples with several labels, or with numbers.
void fit_targets(const Registry& registry, TrainSetup& setup, bool may_adapt) {
  const RunRecord& record = setup.record;
  const TrainOptions& chosen = record.options;
  const bool are_labels = record.task == TANDEM_TASK_LABELS;
  const auto count = static_cast<int64_t>(record.class_names.size());
  const auto refuse = [&](bool given, const char* option) {
    if (!given) return;
    throw error("{}: is for classes, of which each image has one; the images of '{}' have {}",
                option, chosen.data, are_labels ? "several labels" : "numbers");
  };
  refuse(chosen.balance, "--balance");
  refuse(!chosen.class_weights.empty(), "--class-weights");
  refuse(!are_labels && chosen.label_smoothing != 0, "--label-smoothing");
  const int64_t outputs = class_count(setup.net);
  if (outputs != count && !may_adapt) {
    throw error(
        "net '{}' has {} outputs in its last layer, the data have {} {}: use --adapt-classes to "
        "train an adapted copy (kept in the run folder; the file stays as it is)",
        setup.net.file, outputs, count, task_text(record.task));
  }
  const char* loss = chosen.loss == "huber"       ? "HuberLoss"
                     : chosen.loss == "euclidean" ? "EuclideanLoss"
                                                  : "";
  TargetNet adapted = with_target_losses(setup.net, registry, record.task, count, loss);
  setup.net = std::move(adapted.net);
  require_scores(registry, setup, count);
  std::string text = fmt::format("the net's last layer has {} output{}, one a {}", count,
                                 count == 1 ? "" : "s", are_labels ? "label" : "value");
  for (const std::string& note : adapted.notes) text += "; " + note;
  setup.note("task {} (--task): the images have {} ({}); {}", task_word(record.task),
             are_labels ? "several labels" : "numbers", names_text(record.class_names), text);
  if (are_labels) return;
  std::vector<std::string> scales;
  for (size_t k = 0; k < std::min<size_t>(record.class_names.size(), 3); ++k) {
    scales.push_back(fmt::format("{} {:.4g}, {:.4g}", record.class_names[k],
                                 record.target_scale.means[k], record.target_scale.deviations[k]));
  }
  setup.note(
      "values are learned as (value - mean) / deviation of the training images ({}{}); the loss is "
      "of these, results and predictions are in the values' own units",
      fmt::join(scales, "; "), record.class_names.size() > 3 ? "; ..." : "");
}

// One output and SigmoidCrossEntropyLoss tell two classes apart.
void take_two_scores(TrainSetup& setup) {
  const std::vector<std::string>& classes = setup.record.class_names;
  if (classes.size() != 2) return;
  std::optional<NetDefinition> net = with_two_scores(setup.net);
  if (!net) return;
  setup.net = std::move(*net);
  setup.note(
      "the net's only output, whose loss is SigmoidCrossEntropyLoss, tells class '{}' (label 1) "
      "from "
      "'{}': the classes' scores are half of it and minus half, and their loss is SoftmaxWithLoss, "
      "which has the same value",
      classes[1], classes[0]);
}

void fit_task(const Registry& registry, TrainSetup& setup, bool may_adapt) {
  const TrainOptions& chosen = setup.record.options;
  if (!chosen.loss.empty() && setup.record.task != TANDEM_TASK_VALUES) {
    throw error("--loss {}: is for numbers to predict; the images of '{}' have {}", chosen.loss,
                chosen.data, task_text(setup.record.task));
  }
  if (setup.record.task != TANDEM_TASK_CLASSES) return fit_targets(registry, setup, may_adapt);
  if (tests_targets(setup.net)) {
    throw error(
        "net '{}' is of a run that learned several labels or numbers; the images of '{}' "
        "have classes: begin with a net of classes",
        setup.net.name, chosen.data);
  }
  take_two_scores(setup);
  require_losses_of_classes(setup);
  fit_classes(registry, setup, setup.training_data->class_count(), may_adapt);
}

void require_average(TrainSetup& setup) {
  const double decay = setup.record.options.average_decay;
  if (decay == 0) return;
  if (!(decay > 0 && decay < 1)) {
    throw error("--ema {}: a decay above 0 and below 1, as 0.999", decay);
  }
  if (setup.validation_data == nullptr) {
    throw error(
        "--ema {}: the average is kept as the best weights of the validation, and nothing is "
        "validated; give validation images, or leave --ema out",
        decay);
  }
  setup.note(
      "the weights are averaged with decay {} (--ema): the average is validated, and kept as the "
      "best weights",
      decay);
}

// `options`: the user's. A resumed run keeps its form of pixels.
void require_bytes(const Dataset& dataset, const std::string& source, const TrainOptions& options) {
  if (dataset.has_bytes()) return;
  if (options.resume) {
    throw error(
        "run '{}' learns from pixels as bytes, but data '{}': {}; resume it with data that have "
        "bytes, or begin a new run",
        options.out.string(), source, dataset.why_no_bytes());
  }
  throw error("--pixels bytes: data '{}': {}; leave the option out, or give --pixels floats",
              source, dataset.why_no_bytes());
}

// Devices with memory of their own wait for copies, which are four times as long with floats.
bool are_worth_bytes(const Registry& registry, const TrainSetup& setup) {
  const DeviceSpec devices = parse_devices(setup.record.options.devices, registry);
  if (!prefers_bytes(registry.backend(devices.kind))) return false;
  const bool validates = setup.validation_data != nullptr;
  return setup.training_data->has_bytes() && !target_options(setup).mixes() &&
         (!validates || setup.validation_data->has_bytes());
}

void say_how_images_are_seen(Registry& registry, TrainSetup& setup) {
  const std::string other = other_preparation_text(setup.net);
  if (!other.empty()) setup.messages.push_back(other);
  const std::string seen = images_text(registry, setup.record, "", "train");
  if (!seen.empty()) setup.messages.push_back(seen);
}

// Names are written to JSON files, which hold UTF-8 only.
void require_utf8(const Registry& registry, const TrainSetup& setup) {
  for (const std::string& name : setup.record.class_names) {
    if (is_utf8(name)) continue;
    const std::string data = setup.record.dataset;
    const std::string module = foreign_module_text(registry, data);
    const std::string folder = data == "image_folder" ? "; rename its folder" : "";
    throw error("class '{}': its name is not UTF-8{}", name,
                module.empty()
                    ? folder
                    : fmt::format("; class_name() of data set '{}'{} gave it", data, module));
  }
  for (const LayerDefinition& layer : setup.net.layers) {
    if (!is_utf8(layer.name)) {
      throw error("layer '{}': its name is not UTF-8 ({})", layer.name, to_string(layer.location));
    }
  }
}

}  // namespace

void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& options) {
  TrainOptions& chosen = setup.record.options;
  if (!chosen.pixels.empty()) require_pixels_word(chosen.pixels);
  const bool decides = chosen.pixels.empty() || chosen.pixels == "auto";
  if (decides) chosen.pixels = are_worth_bytes(registry, setup) ? "bytes" : "floats";
  if (chosen.pixels != "bytes") return;
  require_bytes(*setup.training_data, chosen.data, options);
  if (setup.validation_data != nullptr) {
    require_bytes(*setup.validation_data, chosen.data, options);
  }
  setup.note("pixels are bytes{}{}",
             decides ? "; resampled ones are rounded (--pixels floats does not round)" : "",
             target_options(setup).mixes() ? "; mixed images are sent as floats" : "");
}

PixelForm pixel_form(const std::string& pixels, const Dataset& dataset) {
  return pixels == "bytes" && dataset.has_bytes() ? PixelForm::bytes : PixelForm::floats;
}

TrainSetup resolve_with_lists_of_net(Registry& registry, TrainOptions options,
                                     const Strategies& strategies) {
  const std::string note = take_lists_of_net(options);
  TrainSetup setup = resolve(registry, options, strategies);
  setup.messages.insert(setup.messages.begin(), note);
  return setup;
}

TrainSetup resolve(Registry& registry, const TrainOptions& options, const Strategies& strategies) {
  if (options.data.empty()) return resolve_with_lists_of_net(registry, options, strategies);
  TrainSetup setup;
  setup.strategies = &strategies;
  RunRecord& record = setup.record;
  record.options = options;
  std::error_code ignored;
  record.folder = fs::current_path(ignored);
  record.machine = machine_options(options.machine);
  for (const auto& [key, value] : strategies.explicit_options(options.strategy_options)) {
    record.given_options.insert(key);
  }
  bool measure_mean = false;
  const bool is_model = resolve_solver_and_net(registry, options, setup);
  if (!record.options.seed) record.options.seed = setup.solver.seed.value_or(1);
  choose_image_size(registry, options, setup);
  const bool synthetic = options.data == "synthetic";
  record.data = setup.net.input_shape();
  record.data.n = 1;
  if (synthetic) choose_synthetic_shape(registry, setup);
  record.data_parameters = data_parameters(registry, setup, synthetic, is_model, &measure_mean);

  if (measure_mean) {
    // Caffe subtracts the mean before it scales.
    RunRecord unscaled = record;
    unscaled.data_parameters.erase("scale");
    const auto plain = open_dataset(registry, setup.net, unscaled, "", "train", TANDEM_TEST);
    const std::vector<double> measured = channel_means(*plain, mean_samples);
    const std::string means =
        fmt::format("{:.9g}", fmt::join(std::vector<float>(measured.begin(), measured.end()), ","));
    record.data_parameters["mean"] = means;
    setup.note("channel means of the training data: {}", means);
  }
  open_datasets(registry, setup);
  say_how_to_get_weights(options, setup);
  say_how_images_are_seen(registry, setup);
  record.class_names = setup.training_data->class_names();
  require_utf8(registry, setup);
  record.training_samples = setup.training_data->size();
  fit_task(registry, setup, is_model || options.adapt_classes);
  if (is_model && options.net_text.empty()) setup.net = with_training_accuracy(setup.net);
  record.net_name = setup.net.name;
  setup.untuned_net = setup.net;
  resolve_targets(registry, setup);
  resolve_fine_tuning(registry, setup);
  require_average(setup);
  resolve_amount(registry, setup, options);
  resolve_unfreezing(registry, setup);
  resolve_pixels(registry, setup, options);
  require_learning(registry, setup);
  return setup;
}

}  // namespace tandem
