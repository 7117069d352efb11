#include "core/run/setup/setup_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/data/dataset_statistics.h"
#include "core/data/loader/loader.h"
#include "core/data/splits.h"
#include "core/formats/caffemodel.h"
#include "core/model/adapted/classes.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool may_be_path(const tandem_parameter& parameter) {
  const bool is_any_text = parameter.choices == nullptr || *parameter.choices == '\0';
  return parameter.type == TANDEM_PARAMETER_TEXT && is_any_text;
}

// Resolves a relative path from the folder where the run was started. A number is not a path.
std::string as_given_in(const fs::path& folder, const std::string& value) {
  std::error_code code;
  double number = 0;
  if (folder.empty() || value.empty() || parse_number(value, &number) ||
      fs::equivalent(folder, fs::current_path(code), code)) {
    return value;
  }
  const fs::path there = folder / value;
  return path_status(there).exists() ? there.string() : value;
}

}  // namespace

const char* task_word(int64_t task) {
  return task == TANDEM_TASK_LABELS   ? "multilabel"
         : task == TANDEM_TASK_VALUES ? "regression"
                                      : "labels";
}

std::map<std::string, std::string> image_parameters(const TransformDefinition& transform) {
  std::map<std::string, std::string> parameters;
  if (transform.scale != 1) parameters["scale"] = fmt::format("{:.9g}", transform.scale);
  if (transform.mirror) parameters["mirror"] = "true";
  const int64_t crop = std::max(transform.crop_height, transform.crop_width);
  const int64_t height = transform.resize_height, width = transform.resize_width;
  if (height > 0) {
    if (transform.fit != "crop") parameters["fit"] = transform.fit;
    if (crop > 0 || transform.fit == "crop" || transform.mean_height > 0) {
      const bool is_squashed = transform.fit == "squash";
      parameters["resize"] = fmt::format("{}", is_squashed ? height : std::min(height, width));
      if (is_squashed) parameters["resize_width"] = fmt::format("{}", width);
    }
  } else if (crop > 0) {
    // Caffe's data were made with a shorter side of 256 for a crop of 227.
    parameters["resize"] = fmt::format("{}", std::lround(static_cast<double>(crop) * 256 / 227));
  }
  if (!transform.mean_values.empty()) {
    parameters["mean"] = fmt::format("{:.9g}", fmt::join(transform.mean_values, ","));
  }
  if (transform.mean_height > 0) parameters["mean_image"] = transform.mean_file;
  return parameters;
}

// What the samples have, which every other split must have too. A run that goes on keeps its scale.
void take_task(TrainSetup& setup) {
  RunRecord& record = setup.record;
  Dataset& training = *setup.training_data;
  record.task = training.task();
  if (record.task == TANDEM_TASK_CLASSES) return;
  record.class_names = training.class_names();
  if (record.task != TANDEM_TASK_VALUES) return;
  if (record.target_scale.means.empty()) record.target_scale = measure_target_scale(training);
  training.set_target_scale(record.target_scale);
}

namespace {

// What is done with a mean of each pixel, for the user. Caffe's images have its size.
std::string use_by_pixel(int64_t height, int64_t width, TransformDefinition& transform) {
  const std::string size = fmt::format("{}x{}", height, width);
  transform.mean_height = height;
  transform.mean_width = width;
  std::string text =
      fmt::format("mean_file '{}': the mean of each pixel is subtracted", transform.mean_file);
  if (transform.resize_height == 0 && transform.crop_height <= height &&
      transform.crop_width <= width) {
    transform.fit = "squash";
    transform.resize_height = height;
    transform.resize_width = width;
    return text + fmt::format(
                      "; images are squashed to its size, {}, which they have in Caffe "
                      "(--data-option fit=crop keeps their form)",
                      size);
  }
  if (transform.resize_height == height && transform.resize_width == width) return text;
  return text + fmt::format("; it is {}, and is stretched to the size of the images", size);
}

}  // namespace

std::string last_name(const std::string& path) {
  return path.substr(path.find_last_of("/\\") + 1);
}

std::string read_mean_file(const NetDefinition& net, bool by_pixel,
                           TransformDefinition& transform) {
  if (transform.mean_file.empty() || !transform.mean_values.empty()) return "";
  // As Caffe, from where it was started; else from the net's folder, also where the path is of
  // another machine or the folder a run's.
  const fs::path folder = fs::path(net.file).parent_path(), written = transform.mean_file;
  const std::string name = last_name(transform.mean_file);
  fs::path file;
  const fs::path of_run = folder / "mean_image.binaryproto";
  for (const fs::path& one : {written, folder / written, folder / name, of_run}) {
    if (file.empty() && path_status(one).is_file()) file = one;
  }
  if (file.empty()) return "";
  const CaffeBlob mean = read_caffe_blob(file);
  const size_t axes = mean.shape.size();
  const int64_t channels = axes < 3 ? 0 : mean.shape[axes - 3];
  if (mean.values.empty() || (channels != 1 && channels != 3)) {
    throw error("mean_file '{}' has the shape {}; a mean of images has 1 or 3 channels",
                file.string(), fmt::join(mean.shape, "x"));
  }
  const size_t plane = mean.values.size() / size_t(channels);
  for (size_t c = 0; c < size_t(channels); ++c) {
    double sum = 0;
    for (size_t i = 0; i < plane; ++i) sum += mean.values[c * plane + i];
    const double value = sum / static_cast<double>(plane);
    if (!std::isfinite(value)) {
      throw error("mean_file '{}' has values that are not finite", file.string());
    }
    transform.mean_values.push_back(value);
  }
  transform.mean_file = file.string();
  if (by_pixel) return use_by_pixel(mean.shape[axes - 2], mean.shape[axes - 1], transform);
  return fmt::format(
      "mean_file '{}': its mean of each channel is subtracted, {:.6g}, not that of each pixel, "
      "which the data set cannot do",
      file.string(), fmt::join(transform.mean_values, ","));
}

void open_datasets(Registry& registry, TrainSetup& setup) {
  setup.training_data = open_dataset(registry, setup.net, setup.record, "", "train", TANDEM_TRAIN);
  setup.record.dataset = setup.training_data->type_name();
  setup.record.data_parameters.merge(setup.training_data->chosen_parameters());
  take_task(setup);
  // Both splits have the image size of the training data, even if validation images differ.
  setup.record.data = setup.training_data->shape();
  const std::string notes = setup.training_data->notes();
  if (!notes.empty()) setup.messages.push_back(notes);
  if (setup.training_data->split_is_drawn() && holds_out_nothing(setup.record.data_parameters)) {
    setup.messages.push_back("no image is held out (val_fraction 0): nothing is validated");
    return;
  }
  setup.validation_data = open_dataset(registry, setup.net, setup.record, "", "val", TANDEM_TEST);
}

std::optional<RunRecord> record_beside(const std::filesystem::path& net) {
  const std::string name = net.filename().string();
  if (name != "net.prototxt" && name != "untuned_net.prototxt") return std::nullopt;
  const std::filesystem::path folder = net.has_parent_path() ? net.parent_path() : ".";
  if (!RunFolder::holds_run(folder)) return std::nullopt;
  return RunFolder::open(folder).record();
}

std::unique_ptr<Dataset> open_dataset(Registry& registry, const NetDefinition& net,
                                      const RunRecord& record, const std::string& source,
                                      const std::string& split, int32_t phase) {
  DatasetOptions options;
  options.source = source.empty() ? data_source(registry, record) : source;
  options.split = split;
  options.phase = phase;
  options.seed = record.options.seed.value_or(1);
  options.shape = record.data;
  options.class_names = record.class_names;
  options.parameters = record.data_parameters;
  options.guarded = record.options.check_plugins;
  const DeclaredParameters declared = declared_parameters(registry, options.source, split);
  for (auto& [name, value] : options.parameters) {
    const auto found = declared.find(name);
    if (found != declared.end() && may_be_path(*found->second)) {
      value = as_given_in(record.folder, value);
    }
  }
  // Other data of the run are not looked at to find out what they have.
  if (!record.class_names.empty() && declared.contains("task")) {
    options.parameters["task"] = task_word(record.task);
  }
  for (const NetInput& input : net.net_inputs(phase)) {
    // The loader makes them.
    if (input.name == class_targets_input) continue;
    if (input.role != NetInput::Role::more) continue;
    options.more.push_back({input.name, input.shape, input.filler});
  }
  auto dataset = std::make_unique<Dataset>(registry, options);
  // A record without names is of a run that begins: it has the task of its training data.
  if (split != "predict" && !record.class_names.empty() && dataset->task() != record.task) {
    throw error("data '{}': its samples have {}, but the run has learned {} ({})", options.source,
                task_text(dataset->task()), task_text(record.task),
                fmt::join(record.class_names, ", "));
  }
  dataset->set_target_scale(record.target_scale);
  return dataset;
}

std::string leave_out_undeclared(Registry& registry, const std::string& source, RunRecord& record) {
  const DeclaredParameters declared = declared_parameters(registry, source);
  std::string names;
  std::erase_if(record.data_parameters, [&](const auto& parameter) {
    if (declared.contains(parameter.first)) return false;
    names += (names.empty() ? "" : ", ") + parameter.first;
    return true;
  });
  if (names.empty()) return "";
  return fmt::format("data '{}': its data set has no parameter {}, which the run has: left out",
                     source, names);
}

std::string foreign_module(const Registry& registry, const std::string& dataset) {
  const ModuleReport* module = registry.module_of_dataset(dataset);
  return module == nullptr || module->built_in ? "" : module->path.string();
}

std::string foreign_module_text(const Registry& registry, const std::string& dataset) {
  const std::string module = foreign_module(registry, dataset);
  return module.empty() ? "" : fmt::format(" ({})", module);
}

std::string data_source(Registry& registry, const RunRecord& record) {
  const std::string& data = record.options.data;
  return is_dataset(registry, data) ? data : as_given_in(record.folder, data);
}

}  // namespace tandem
