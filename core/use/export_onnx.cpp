#include "core/use/export_onnx.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/memory_file.h"
#include "core/base/text/strings.h"
#include "core/formats/onnx/export.h"
#include "core/formats/onnx/graph.h"
#include "core/model/passes/build_net.h"
#include "core/model/passes/results.h"
#include "core/report/findings.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/setup/setup_data.h"
#include "core/session/net_runner.h"
#include "core/use/export_weights.h"
#include "core/use/loaded_run.h"
#include "core/use/verify_onnx.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

float number_or(const std::string& text, double absent) {
  double value = absent;
  (void)parse_number(text, &value);
  return static_cast<float>(value);
}

PictureSteps picture_steps(const RunRecord& record) {
  PictureSteps steps;
  steps.resize = std::llround(number_or(parameter(record, "resize"), 0));
  steps.resize_width = std::llround(number_or(parameter(record, "resize_width"), 0));
  const std::string fit = parameter(record, "fit");
  if (fit == "squash") steps.fit = center_crop::Fit::squash;
  if (fit == "pad") steps.fit = center_crop::Fit::pad;
  steps.scale = number_or(parameter(record, "scale"), 1);
  steps.is_rgb = parameter(record, "color") == "rgb";
  steps.is_cubic = parameter(record, "interpolation") == "bicubic";
  if (parameter(record, "resampling") == "pillow") {
    steps.rounding = PictureSteps::Rounding::each_pass;
  } else if (record.options.pixels == "bytes") {
    steps.rounding = PictureSteps::Rounding::once;
  }
  const std::string mean = parameter(record, "mean");
  if (!mean.empty()) {
    for (const std::string& one : split(mean, ',')) {
      steps.means.push_back(number_or(one, 0));
    }
  }
  if (steps.means.size() == 1) steps.means.assign(size_t(record.data.c), steps.means.front());
  // They are given as B,G,R.
  if (steps.is_rgb) std::reverse(steps.means.begin(), steps.means.end());
  // Pixels that are bytes show the byte that is nearest to the mean.
  if (record.options.pixels == "bytes") {
    for (const float one : steps.means) {
      steps.bars.push_back((std::nearbyint(one) - one) * steps.scale);
    }
  }
  return steps;
}

// What the mean image of a run leaves of a black picture of that size.
std::vector<float> less_mean_image(const LoadedRun& run, int64_t height, int64_t width) {
  const int64_t channels = run.record.data.c;
  const std::vector<uint8_t> black(size_t(height * width * channels), 0);
  const MemoryFile file = MemoryFile::picture(black.data(), height, width, channels);
  const auto dataset = open_dataset(run.registry, run.folder.net(), run.record, file.path() + "\n",
                                    "predict", TANDEM_TEST);
  std::vector<float> values(size_t(element_count(dataset->shape())));
  float label = 0;
  std::string reason;
  if (dataset->get(0, 0, values.data(), &label, &reason) != SampleStatus::good) {
    throw error("the mean image cannot be applied: {}", reason);
  }
  return values;
}

// The mean image becomes a part of a model that prepares pictures. Returns what is said of it.
std::string add_mean_image(const LoadedRun& run, const OnnxOptions& wanted, PictureSteps& steps) {
  if (parameter(run.record, "mean_image").empty()) return "";
  const std::string file = run.folder.mean_image_file().string();
  if (!wanted.picture && !wanted.any_picture) {
    return fmt::format(
        "the model's input is (pixel - mean) * scale with the mean of each pixel, "
        "'{}' (--preprocess puts it into the model)",
        file);
  }
  if (wanted.any_picture && steps.fit != center_crop::Fit::squash) {
    throw error(
        "--dynamic-size: run '{}' has a mean image, whose place depends on the form of a "
        "picture; give the size of your pictures, as --preprocess 480x640",
        run.folder.path().string());
  }
  const Shape& seen = run.record.data;
  const OnnxOptions::Size size = wanted.picture.value_or(OnnxOptions::Size{seen.h, seen.w});
  steps.shifts = less_mean_image(run, size.height, size.width);
  return fmt::format("the model takes the mean of each pixel away, as '{}' has it", file);
}

constexpr int64_t checked_rows = 8;

// Evenly spaced samples of the validation data. Error if none can be read.
std::vector<float> validation_rows(LoadedRun& run) {
  const auto dataset =
      open_dataset(run.registry, run.folder.net(), run.record, "", "val", TANDEM_TEST);
  std::vector<float> rows, row(size_t(element_count(dataset->shape())));
  const int64_t wanted = std::min(checked_rows, dataset->size());
  for (int64_t i = 0; i < wanted; ++i) {
    std::string reason;
    const int64_t index = i * dataset->size() / wanted;
    if (read_row(*dataset, index, run.rounds_pixels(), row.data(), &reason) == SampleStatus::good) {
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  if (rows.empty()) throw error("none of {} images of the validation data can be used", wanted);
  return rows;
}

// Bytes from 0 to 255 that look like nothing, the same ones each time, prepared as pictures are.
std::vector<float> made_up_rows(int64_t row_elements, const PictureSteps& steps) {
  const float mean = steps.means.empty() ? 0 : steps.means.front();
  std::vector<float> rows(size_t(checked_rows * row_elements));
  uint32_t state = 1;
  for (float& value : rows) {
    state = state * 1664525U + 1013904223U;
    value = (static_cast<float>(state >> 24U) - mean) * steps.scale;
  }
  return rows;
}

// Pictures of the run's validation data, or made-up ones where these cannot be read, and their
// scores. Error for scores that are not finite.
ScoredRows scored_rows(LoadedRun& run, const PictureSteps& steps) {
  run.open(checked_rows, dtype_name(TANDEM_FLOAT32), PixelForm::floats, {});
  NetRunner runner(*run.session);
  std::vector<float> values;
  try {
    values = validation_rows(run);
  } catch (const Error&) {
    values = made_up_rows(runner.row_elements(), steps);
  }
  const int64_t rows = int64_t(values.size()) / runner.row_elements(), classes = runner.classes();
  std::vector<float> scores(size_t(rows * classes));
  runner.run(values.data(), rows, scores.data());
  for (int64_t i = 0; i < rows; ++i) {
    if (are_usable(scores.data() + i * classes, classes)) continue;
    throw error(
        "the weights in '{}' give scores that are not finite: they are of no use (training "
        "diverged?)",
        weights_file(run.folder.path(), run.name).string());
  }
  const Shape& data = run.record.data;
  return {{rows, data.c, data.h, data.w}, std::move(values), std::move(scores)};
}

// Why the model's output cannot be compared with the scores of the net here; "": it can.
std::string not_comparable(const OnnxOptions& wanted, bool reads_pictures) {
  if (wanted.picture || wanted.any_picture) return "it prepares pictures itself";
  return reads_pictures ? "" : "its net reads more than pictures";
}

// The same for another program, which gives what the file gives; read here, that is left out.
std::string not_comparable_elsewhere(const OnnxOptions& wanted, bool reads_pictures) {
  if (wanted.sigmoid) return "it gives probabilities of labels";
  if (!wanted.means.empty()) return "it gives numbers in their own units";
  return not_comparable(wanted, reads_pictures);
}

// Class names need not be UTF-8.
std::string text_of(const nlohmann::json& tree) {
  return tree.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* to_text(PictureSteps::Rounding rounding) {
  switch (rounding) {
    case PictureSteps::Rounding::once:
      return "once";
    case PictureSteps::Rounding::each_pass:
      return "each pass";
    case PictureSteps::Rounding::none:
      break;
  }
  return "none";
}

const char* to_text(center_crop::Fit fit) {
  switch (fit) {
    case center_crop::Fit::squash:
      return "squash";
    case center_crop::Fit::pad:
      return "pad";
    case center_crop::Fit::crop:
      break;
  }
  return "crop";
}

std::string steps_json(const PictureSteps& steps, const RunRecord& record, const Shape& input,
                       bool is_inside) {
  nlohmann::json tree = {{"in_model", is_inside},
                         {"fit", to_text(steps.fit)},
                         {"shorter_side", steps.resize},
                         {"crop", {record.data.h, record.data.w}},
                         {"filter", steps.is_cubic ? "bicubic" : "triangle"},
                         {"rounding", to_text(steps.rounding)},
                         {"channels", record.data.c == 1 ? "gray"
                                      : steps.is_rgb     ? "rgb"
                                                         : "bgr"},
                         {"mean", steps.means},
                         {"scale", steps.scale}};
  if (!parameter(record, "mean_image").empty()) {
    tree["mean_image"] = is_inside ? "in the model" : "mean_image.binaryproto of the run";
  }
  if (steps.resize_width > 0) tree["resized_width"] = steps.resize_width;
  if (is_inside) {
    tree["channels_of_input"] = record.data.c == 1 ? "gray" : "rgb";
    if (input.h > 0) tree["size_of_input"] = {input.h, input.w};
  }
  return text_of(tree);
}

OnnxOptions onnx_options(const ExportOptions& options, const RunRecord& record) {
  OnnxOptions result;
  result.softmax = options.softmax && record.task == TANDEM_TASK_CLASSES;
  result.sigmoid = options.softmax && record.task == TANDEM_TASK_LABELS;
  if (options.softmax && record.task == TANDEM_TASK_VALUES) {
    throw error("--softmax: run '{}' has learned numbers, of which there are no probabilities",
                options.run.string());
  }
  const TargetScale& scale = record.target_scale;
  result.means.assign(scale.means.begin(), scale.means.end());
  result.deviations.assign(scale.deviations.begin(), scale.deviations.end());
  result.fold_batch_norm = options.fold_batch_norm;
  if (options.picture_height > 0 && options.picture_width > 0) {
    result.picture = OnnxOptions::Size{options.picture_height, options.picture_width};
  }
  result.any_picture = options.dynamic_size;
  const int64_t usual = options.dynamic_size ? OnnxGraph::antialias_opset : OnnxGraph::least_opset;
  result.opset = options.opset > 0 ? options.opset : usual;
  if (result.any_picture && result.picture) {
    throw error("--preprocess {}x{} and --dynamic-size: pictures of one size, or of any; give one",
                options.picture_height, options.picture_width);
  }
  if (result.opset < OnnxGraph::least_opset || result.opset > OnnxGraph::most_opset) {
    throw error("--opset {}: from {} to {}", result.opset, OnnxGraph::least_opset,
                OnnxGraph::most_opset);
  }
  if (result.any_picture && result.opset < OnnxGraph::antialias_opset) {
    throw error("--dynamic-size and --opset {}: Resize averages from opset {} on", result.opset,
                OnnxGraph::antialias_opset);
  }
  return result;
}

std::string folding_text(size_t folded) {
  if (folded == 0) return "no BatchNorm layer to fold";
  return fmt::format("{} BatchNorm {} folded into the weights before them", folded,
                     folded == 1 ? "layer" : "layers");
}

}  // namespace

ExportResult export_onnx(const ExportOptions& options) {
  require_target(options.file, options.overwrite);
  Registry registry = Registry::with_defaults();
  LoadedRun run(registry, options.run, default_kind, options.weights);
  const OnnxOptions wanted = onnx_options(options, run.record);
  const bool has_steps = wanted.picture || wanted.any_picture;
  if (has_steps && run.record.data.c != 1 && run.record.data.c != 3) {
    throw error("--preprocess, --dynamic-size: net '{}' reads {} channels; pictures have 1 or 3",
                run.record.net_name, run.record.data.c);
  }
  if (const std::string own = has_steps ? run.own_preparation() : ""; !own.empty()) {
    throw error(
        "--preprocess, --dynamic-size: data set '{}' prepared the run's images in a way that a "
        "model cannot hold; export without them, and prepare images as it does",
        own);
  }
  const Shape& seen = run.record.data;
  if (wanted.picture &&
      (4 * wanted.picture->height < seen.h || 4 * wanted.picture->width < seen.w)) {
    throw error(
        "--preprocess {}x{}: the net sees {}x{} pixels, and of so small pictures hardly anything; "
        "give the size of your pictures, as 480x640, or --dynamic-size",
        wanted.picture->height, wanted.picture->width, seen.h, seen.w);
  }
  PictureSteps steps = picture_steps(run.record);
  const std::string mean_text = add_mean_image(run, wanted, steps);
  const Net net =
      build_net(run.folder.net(), registry, {TANDEM_TEST, 1, run.record.data, /*device_kind=*/""});
  const Checkpoint checkpoint = read_checkpoint(run.folder.path(), run.name, net, false);
  OnnxModel model = make_onnx(net, checkpoint.weights, steps, wanted);
  const std::map<std::string, std::string> metadata = {
      {"classes", text_of(nlohmann::json(run.record.class_names))},
      {"net", run.record.net_name},
      {"task", task_word(run.record.task)},
      {"preprocessing", steps_json(steps, run.record, model.input, has_steps)},
      {"weights", run.name}};
  // A net that reads more than pictures is exported without what its scores do not need; the net
  // here cannot be run on pictures alone.
  const bool reads_pictures = std::all_of(net.more_inputs.begin(), net.more_inputs.end(),
                                          [&](int input) { return is_targets(net, input); });
  const std::string reason = not_comparable(wanted, reads_pictures);
  const std::string elsewhere = not_comparable_elsewhere(wanted, reads_pictures);
  if (!elsewhere.empty() && !options.verify.empty()) {
    throw error("--verify {}: the model cannot be compared: {}", options.verify, elsewhere);
  }
  ScoredRows rows;
  if (reads_pictures) rows = scored_rows(run, steps);
  model.bytes += OnnxGraph::metadata_bytes(metadata);
  // It gets its name when the scores are right: until then a file of that name stays.
  const fs::path written = pending_file(options.file);
  OutputFile file(written, options.file);
  file.write(model.bytes.data(), model.bytes.size());
  ExportResult result{run.name, {}};
  result.lines.push_back(reason.empty() ? compare_as_net(registry, written, rows)
                                        : "not verified by reading it again: " + reason);
  if (!options.verify.empty()) {
    result.lines.push_back(compare_with(options.verify, written, rows));
  }
  file.finish_as(options.file);
  if (!mean_text.empty()) result.lines.push_back(mean_text);
  if (wanted.fold_batch_norm) result.lines.push_back(folding_text(model.folded.size()));
  return result;
}

}  // namespace tandem
