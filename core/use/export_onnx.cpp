#include "core/use/export_onnx.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/memory_file.h"
#include "core/base/text/strings.h"
#include "core/formats/onnx/export.h"
#include "core/formats/onnx/graph.h"
#include "core/model/passes/build_net.h"
#include "core/report/findings.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/setup/setup.h"
#include "core/run/setup/setup_data.h"
#include "core/session/net_runner.h"
#include "core/use/loaded_run.h"
#include "core/use/onnx_runners.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t checked_rows = 8;
// Of the largest score. Both sides compute in float32, in different orders.
constexpr double most_difference = 1e-4;
// Where resampled pixels are rounded: one that is nearly half way may become either neighbour.
constexpr double most_difference_rounded = 1e-3;

std::string parameter(const RunRecord& record, const std::string& name) {
  const auto found = record.data_parameters.find(name);
  return found == record.data_parameters.end() ? "" : found->second;
}

double number_or(const std::string& text, double absent) {
  double value = absent;
  (void)parse_number(text, &value);
  return value;
}

PictureSteps picture_steps(const RunRecord& record) {
  PictureSteps steps;
  steps.resize = std::llround(number_or(parameter(record, "resize"), 0));
  steps.scale = static_cast<float>(number_or(parameter(record, "scale"), 1));
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
      steps.means.push_back(static_cast<float>(number_or(one, 0)));
    }
  }
  const auto channels = static_cast<size_t>(record.data.c);
  if (steps.means.size() == 1) steps.means.assign(channels, steps.means.front());
  // They are given as B,G,R.
  if (steps.is_rgb) std::reverse(steps.means.begin(), steps.means.end());
  return steps;
}

// What the net is given, by which the model is compared with it.
struct Rows {
  std::string what;  // "8 photos of the data"
  int64_t count = 0;
  std::vector<float> for_model, for_net;
};

// Evenly spaced samples of the validation data, whole rows of the data set's shape.
std::vector<float> validation_rows(LoadedRun& run, const RunRecord& record, bool rounds) {
  const auto dataset = open_dataset(run.registry, run.folder.net(), record, "", "val", TANDEM_TEST);
  const auto size = static_cast<size_t>(element_count(dataset->shape()));
  std::vector<float> rows, row(size);
  const int64_t wanted = std::min(checked_rows, dataset->size());
  for (int64_t i = 0; i < wanted; ++i) {
    std::string reason;
    const int64_t index = i * dataset->size() / wanted;
    if (read_row(*dataset, index, rounds, row.data(), &reason) == SampleStatus::good) {
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  if (rows.empty()) throw error("none of {} images of the validation data can be used", wanted);
  return rows;
}

// Bytes from 0 to 255 that look like nothing, the same ones each time.
std::vector<float> made_up_rows(int64_t elements) {
  std::vector<float> rows(static_cast<size_t>(elements * checked_rows));
  uint32_t state = 1;
  for (float& value : rows) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 24U);
  }
  return rows;
}

int64_t row_count(const std::vector<float>& rows, const Shape& row) {
  return static_cast<int64_t>(rows.size()) / std::max<int64_t>(1, row.c * row.h * row.w);
}

std::string photos(int64_t count) {
  return fmt::format("{} {} of the validation data", count, count == 1 ? "picture" : "pictures");
}

// Where the data cannot be read any more, made-up pictures must do.
std::string made_up() {
  return fmt::format("{} made-up pictures, since the run's data cannot be read", checked_rows);
}

Rows rows_of_net(LoadedRun& run, const Shape& data, const PictureSteps& steps) {
  Rows rows;
  try {
    rows.for_net = validation_rows(run, run.record, run.rounds_pixels());
    rows.count = row_count(rows.for_net, data);
    rows.what = photos(rows.count);
  } catch (const Error&) {
    rows.for_net = made_up_rows(element_count(data));
    rows.count = checked_rows;
    const float mean = steps.means.empty() ? 0 : steps.means.front();
    for (float& value : rows.for_net) value = (value - mean) * steps.scale;
    rows.what = made_up();
  }
  rows.for_model = rows.for_net;
  return rows;
}

// The run's pictures as the model takes them: in R,G,B, of the model's size, whole numbers.
Rows pictures_of_size(LoadedRun& run, const Shape& picture) {
  Rows rows;
  try {
    RunRecord plain = run.record;
    plain.data = picture;
    for (const char* name : {"mean", "scale", "resize", "interpolation", "resampling"}) {
      plain.data_parameters.erase(name);
    }
    if (picture.c == 3) plain.data_parameters["color"] = "rgb";
    rows.for_model = validation_rows(run, plain, false);
    rows.count = row_count(rows.for_model, picture);
    rows.what = photos(rows.count);
    for (float& value : rows.for_model) value = std::clamp(std::nearbyint(value), 0.0F, 255.0F);
  } catch (const Error&) {
    rows.for_model = made_up_rows(element_count(picture));
    rows.count = checked_rows;
    rows.what = made_up();
  }
  return rows;
}

// The same pictures as the data set of `tandem predict` makes the net's input of them.
void read_as_files(LoadedRun& run, const Shape& picture, bool rounds, Rows& rows) {
  const int64_t plane = picture.h * picture.w;
  std::vector<MemoryFile> files;
  std::string paths;
  for (int64_t i = 0; i < rows.count; ++i) {
    const float* from = rows.for_model.data() + i * picture.c * plane;
    std::vector<uint8_t> bytes(static_cast<size_t>(picture.c * plane));
    for (int64_t c = 0; c < picture.c; ++c) {
      for (int64_t p = 0; p < plane; ++p) {
        bytes[static_cast<size_t>(p * picture.c + c)] = static_cast<uint8_t>(from[c * plane + p]);
      }
    }
    files.push_back(MemoryFile::picture(bytes.data(), picture.h, picture.w, picture.c));
    paths += files.back().path() + "\n";
  }
  const auto dataset = run.open_pictures(paths);
  const int64_t elements = element_count(dataset->shape());
  rows.for_net.resize(static_cast<size_t>(elements * rows.count));
  for (int64_t i = 0; i < rows.count; ++i) {
    std::string reason;
    if (read_row(*dataset, i, rounds, rows.for_net.data() + i * elements, &reason) ==
        SampleStatus::good) {
      continue;
    }
    throw error("a picture to check with could not be read: {}", reason);
  }
}

struct Difference {
  std::string runner;
  double largest = 0, score = 0;
};

// Throws Error unless the runner gives the scores. Also one row alone, since the number of rows is
// open.
Difference compare(const tandem_onnx_runner& runner, const fs::path& file, const OnnxModel& model,
                   const Rows& rows, const std::vector<float>& expected, double most) {
  Difference difference{runner.name, 0, 0};
  for (const int64_t count : {rows.count, int64_t{1}}) {
    const int64_t extents[] = {count, model.input.c, model.input.h, model.input.w};
    std::vector<float> results(static_cast<size_t>(count * model.classes));
    char reason[400] = "";
    if (runner.run(file.c_str(), rows.for_model.data(), extents, results.data(), model.classes,
                   reason, sizeof(reason)) != 0) {
      throw error("{} cannot run the exported net: {}", runner.name, reason);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] == expected[i] && std::isinf(expected[i])) continue;  // of a logarithm
      const double away = std::abs(static_cast<double>(results[i]) - expected[i]);
      difference.largest = std::max(
          difference.largest, std::isnan(away) ? std::numeric_limits<double>::infinity() : away);
      if (std::isinf(expected[i])) continue;
      difference.score = std::max(difference.score, std::abs(static_cast<double>(expected[i])));
    }
  }
  if (difference.largest <= most * difference.score) return difference;
  throw error(
      "the exported net gives other scores in {}: they differ by {:.2g}, and the largest score is "
      "{:.3g}; at most {:g} of it is allowed",
      runner.name, difference.largest, difference.score, most);
}

std::vector<float> expected_scores(LoadedRun& run, const OnnxModel& model, bool softmax,
                                   const Rows& rows) {
  run.open(checked_rows, dtype_name(TANDEM_FLOAT32), PixelForm::floats, {});
  NetRunner runner(*run.session);
  std::vector<float> scores(static_cast<size_t>(rows.count * model.classes));
  runner.run(rows.for_net.data(), rows.count, scores.data());
  for (int64_t i = 0; i < rows.count; ++i) {
    if (are_usable(scores.data() + i * model.classes, model.classes)) continue;
    throw error(
        "the weights in '{}' give scores that are not finite: they are of no use (training "
        "diverged?)",
        (run.folder.path() / (run.name + ".safetensors")).string());
  }
  if (!softmax || gives_probabilities(run.session->net())) return scores;
  for (int64_t i = 0; i < rows.count; ++i) {
    const auto p = probabilities(scores.data() + i * model.classes, model.classes, false);
    std::copy(p.begin(), p.end(), scores.begin() + i * model.classes);
  }
  return scores;
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

std::string steps_json(const PictureSteps& steps, const RunRecord& record, const Shape& input,
                       bool is_inside) {
  nlohmann::json tree = {{"in_model", is_inside},
                         {"shorter_side", steps.resize},
                         {"crop", {record.data.h, record.data.w}},
                         {"filter", steps.is_cubic ? "bicubic" : "triangle"},
                         {"rounding", to_text(steps.rounding)},
                         {"channels", record.data.c == 1 ? "gray"
                                      : steps.is_rgb     ? "rgb"
                                                         : "bgr"},
                         {"mean", steps.means},
                         {"scale", steps.scale}};
  if (is_inside) {
    tree["channels_of_input"] = record.data.c == 1 ? "gray" : "rgb";
    tree["size_of_input"] = {input.h, input.w};
  }
  return text_of(tree);
}

OnnxOptions onnx_options(const ExportOptions& options) {
  OnnxOptions result;
  result.softmax = options.softmax;
  result.fold_batch_norm = options.fold_batch_norm;
  if (options.picture_height > 0 && options.picture_width > 0) {
    result.picture = OnnxOptions::Size{options.picture_height, options.picture_width};
  }
  return result;
}

OnnxModel model_of(const LoadedRun& run, const OnnxOptions& options, ExportResult& result) {
  NetOptions net_options;
  net_options.phase = TANDEM_TEST;
  net_options.data = run.record.data;
  net_options.device_kind = "";
  const Net net = build_net(run.folder.net(), run.registry, net_options);
  const Checkpoint checkpoint = read_checkpoint(run.folder.path(), run.name, net, false);
  OnnxModel model = make_onnx(net, checkpoint.weights, picture_steps(run.record), options);
  if (options.fold_batch_norm && model.folded.empty()) {
    result.lines.emplace_back("no BatchNorm layer to fold");
  } else if (options.fold_batch_norm) {
    result.lines.push_back(fmt::format("{} BatchNorm {} folded into the weights before them",
                                       model.folded.size(),
                                       model.folded.size() == 1 ? "layer" : "layers"));
  }
  return model;
}

// Those that check the model. Error if there are none and the check is wanted.
std::vector<const tandem_onnx_runner*> runners_for(const ExportOptions& options) {
  if (!options.check) return {};
  const OnnxRunners runners = find_onnx_runners();
  if (!runners.found.empty()) return runners.found;
  const std::string why = runners.failures.empty()
                              ? "Tandem was built without a library that runs such "
                                "nets (docs/guide/install.md names it)"
                              : fmt::format("{}", fmt::join(runners.failures, "; "));
  throw error("nothing is here to check the exported net with: {}; --no-check exports without",
              why);
}

// Compares the scores of the model in the file with those of the net here. Returns what was
// compared, for the metadata. Throws Error if they are not the same.
std::string check(LoadedRun& run, const std::vector<const tandem_onnx_runner*>& runners,
                  const fs::path& file, const OnnxModel& model, const OnnxOptions& wanted,
                  ExportResult& result) {
  if (runners.empty()) {
    result.lines.emplace_back("not checked");
    return "[]";
  }
  const PictureSteps steps = picture_steps(run.record);
  Rows rows;
  if (wanted.picture) {
    rows = pictures_of_size(run, model.input);
    read_as_files(run, model.input, run.rounds_pixels(), rows);
  } else {
    rows = rows_of_net(run, model.input, steps);
  }
  const std::vector<float> expected = expected_scores(run, model, wanted.softmax, rows);
  const bool rounds = wanted.picture && steps.rounding == PictureSteps::Rounding::once;
  const double most = rounds ? most_difference_rounded : most_difference;
  nlohmann::json checks = nlohmann::json::array();
  for (const tandem_onnx_runner* runner : runners) {
    const Difference difference = compare(*runner, file, model, rows, expected, most);
    checks.push_back({{"by", difference.runner},
                      {"on", rows.what},
                      {"largest_difference", difference.largest},
                      {"largest_score", difference.score}});
    result.lines.push_back(fmt::format(
        "checked with {} on {}: {} differ by at most {:.2g}, the largest is {:.3g}",
        difference.runner, rows.what, model.gives_probabilities ? "probabilities" : "scores",
        difference.largest, difference.score));
  }
  return text_of(checks);
}

}  // namespace

ExportResult export_onnx(const ExportOptions& options) {
  if (path_status(options.file).exists()) {
    throw error("'{}' exists already: choose another name for the model", options.file.string());
  }
  Registry registry = Registry::with_defaults();
  LoadedRun run(registry, options.run, default_kind, options.weights);
  const OnnxOptions wanted = onnx_options(options);
  if (wanted.picture && run.record.data.c != 1 && run.record.data.c != 3) {
    throw error("--preprocess: net '{}' reads {} channels; pictures have 1 or 3",
                run.record.net_name, run.record.data.c);
  }
  const PictureSteps steps = picture_steps(run.record);
  ExportResult result;
  const OnnxModel model = model_of(run, wanted, result);
  std::map<std::string, std::string> metadata = {
      {"classes", text_of(nlohmann::json(run.record.class_names))},
      {"net", run.record.net_name},
      {"preprocessing", steps_json(steps, run.record, model.input, wanted.picture.has_value())},
      {"weights", run.name}};

  const std::vector<const tandem_onnx_runner*> runners = runners_for(options);
  const fs::path pending = pending_file(options.file);
  OutputFile file(pending, options.file);
  file.write(model.bytes.data(), model.bytes.size());
  metadata["checks"] = check(run, runners, pending, model, wanted, result);
  const std::string end = OnnxGraph::metadata_bytes(metadata);
  file.write(end.data(), end.size());
  file.finish_as(options.file);
  result.weights = run.name;
  result.note = run.note;
  return result;
}

}  // namespace tandem
