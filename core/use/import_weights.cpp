#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/plain_text_file.h"
#include "core/base/text/strings.h"
#include "core/device/parse.h"
#include "core/formats/onnx_reader/reader.h"
#include "core/model/adapted/adapted.h"
#include "core/model/adapted/classes.h"
#include "core/model/adapted/models.h"
#include "core/model/adapted/target_losses.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/folder/run_folder.h"
#include "core/run/setup/images_text.h"
#include "core/run/setup/setup_data.h"
#include "core/run/weights/published.h"
#include "core/schedule/strategies/strategies.h"
#include "core/use/verify_onnx.h"
#include "include/tandem/predict.h"
#include "plugins/class_names.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The net with another number of classes under its own names, for a file that has them so.
NetDefinition with_outputs(const NetDefinition& net, int64_t classes) {
  const std::vector<std::string> names = classifier_names(net);
  NetDefinition result = with_class_count(net, classes);
  const std::vector<std::string> adapted = classifier_names(result);
  for (LayerDefinition& layer : result.layers) {
    for (size_t i = 0; i < adapted.size(); ++i) {
      if (layer.name == adapted[i]) layer.name = names[i];
    }
  }
  return result;
}

// As of a data set's classes: they are written to files with a name on each line, and printed.
void require_class_name(const std::string& file, const std::string& name) {
  if (!is_utf8(name)) throw error("{}: a name in it is not UTF-8", file);
  for (const char c : name) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) continue;
    throw error("{}: class '{}' has a control character", file, name);
  }
}

std::vector<std::string> names_of_file(const fs::path& file) {
  ClassNames read = read_class_names(read_plain_text(file, "file of class names"));
  if (!read.mistake.empty()) {
    throw error("--classes '{}'{}: {}", file.string(),
                read.line > 0 ? fmt::format(", line {}", read.line) : "", read.mistake);
  }
  std::set<std::string> seen;
  for (const std::string& name : read.names) {
    require_class_name(fmt::format("--classes '{}'", file.string()), name);
    if (!seen.insert(name).second) {
      throw error("--classes '{}': class '{}' is there twice", file.string(), name);
    }
  }
  return std::move(read.names);
}

std::vector<std::string> names_of_classes(const ImportOptions& options, int64_t count) {
  std::vector<std::string> names;
  if (options.classes.empty()) {
    for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("class {}", i));
    return names;
  }
  names = names_of_file(options.classes);
  if (static_cast<int64_t>(names.size()) == count) return names;
  throw error("--classes '{}' has {} names, the net has {} classes", options.classes.string(),
              names.size(), count);
}

// An export of this program has several labels or numbers where its run had.
void take_task(const OnnxImport& onnx, const Registry& registry, NetDefinition& definition,
               RunRecord& record) {
  for (const int64_t task : {TANDEM_TASK_LABELS, TANDEM_TASK_VALUES}) {
    if (onnx.task != task_word(task)) continue;
    const int64_t count = class_count(definition);
    definition = with_target_losses(definition, registry, task, count, "").net;
    record.task = task;
    if (onnx.target_means.empty()) continue;
    record.target_scale = {{onnx.target_means.begin(), onnx.target_means.end()},
                           {onnx.target_deviations.begin(), onnx.target_deviations.end()}};
  }
}

// Those that the file has, or a config.json beside it. Returns a line on what was changed, or "".
std::string take_class_names(const OnnxImport& onnx, const fs::path& file, RunRecord& record) {
  if (onnx.class_names.empty()) return "";
  if (onnx.class_names.size() != record.class_names.size()) {
    return fmt::format("\nthe file's {} names of classes are not taken: it has {} outputs",
                       onnx.class_names.size(), record.class_names.size());
  }
  std::vector<std::string> names;
  std::set<std::string> seen;
  std::string changed;
  try {
    for (std::string name : onnx.class_names) {
      require_class_name(fmt::format("'{}'", file.string()), name);
      if (!seen.insert(name).second) {
        changed = fmt::format("\nclass '{0}' is there twice: the later one is called '{0} ({1})'",
                              name, names.size());
        name += fmt::format(" ({})", names.size());
      }
      names.push_back(std::move(name));
    }
  } catch (const Error& unusable) {
    return fmt::format("\nthe file's names of classes are not taken: {}", unusable.what());
  }
  record.class_names = std::move(names);
  return changed;
}

TransformDefinition transform_of(const NetDefinition& net) {
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    if (const auto transform = net.transform(phase)) return *transform;
  }
  return {};
}

// `beside`: the run in whose folder the net is, if it is in one.
RunRecord record_of(const ImportOptions& options, const NetDefinition& net,
                    const std::optional<PublishedWeights>& published,
                    const std::optional<RunRecord>& beside, std::string* mean_note) {
  RunRecord record;
  record.options.net = published ? published->architecture : options.net;
  record.options.devices = default_kind;
  record.options.precision = "float32";
  record.options.pixels = "floats";
  record.options.strategy = "two_phase";
  record.options.batch = 32;
  record.options.seed = 1;
  std::error_code ignored;
  record.folder = fs::current_path(ignored);
  record.net_name = net.name;
  record.data = net.input_shape();
  record.data.n = 1;
  if (record.data.c == 0) record.data.c = 3;
  if (published) {
    record.data_parameters = published->data_parameters();
    if (published->resizes) {
      record.data_parameters["resize"] =
          fmt::format("{}", published->resize_for(std::max(record.data.h, record.data.w)));
    }
  } else if (beside) {
    record.data_parameters = preparation_of(*beside);
    if (record.data.h == 0) record.data = beside->data;
  } else {
    TransformDefinition transform = transform_of(net);
    *mean_note = read_mean_file(net, true, transform);
    record.data_parameters = image_parameters(transform);
  }
  return record;
}

// How the run's images are prepared, and what says so.
std::string preparation_text(const RunRecord& record, const std::string& mean_note,
                             const std::optional<PublishedWeights>& published, bool is_of_run,
                             const NetDefinition& net) {
  const std::string images = images_text(record);
  if (published) return to_text(*published) + "\n" + images;
  if (is_of_run) return images + " (of the run in whose folder the net is)";
  if (!mean_note.empty()) return mean_note + "\n" + images;
  const TransformDefinition transform = transform_of(net);
  if (!transform.mean_file.empty()) {
    return fmt::format(
        "{}; the net's mean_file '{}' does not exist: give it, or write its channel means as "
        "mean_value in the prototxt file, or predictions are wrong",
        images, transform.mean_file);
  }
  const auto& parameters = record.data_parameters;
  const std::string source =
      parameters.empty()
          ? "unknown preparation: the net has no transform_param, so pixels are taken "
            "as they are, from 0 to 255"
      : parameters.contains("mean")
          ? "by the net's transform_param"
          : "by the net's transform_param; it has no mean_value, so no mean "
            "is subtracted";
  return fmt::format("{} ({})", images, source);
}

void require_weights_and_net(const ImportOptions& options) {
  if (!path_status(options.weights).exists()) {
    throw error("weights '{}' do not exist", options.weights.string());
  }
  if (options.net.empty()) {
    throw error(
        "--model is missing: '{}' does not say of which net it is. Name a model or a prototxt file",
        options.weights.string());
  }
  (void)find_net(options.net);
}

void require_all_weights(const Pretrained& report, const ImportOptions& options, const Net& net) {
  if (report.missing.empty()) return;
  const std::span missing(report.missing);
  const size_t shown = std::min<size_t>(5, missing.size()), more = missing.size() - shown;
  throw error("'{}' has no weights for {}{} of net '{}'", options.weights.string(),
              fmt::join(missing.first(shown), ", "),
              more > 0 ? fmt::format(" and {} more layers", more) : "", net.name);
}

// A deploy net has no loss: only its testing net can be built.
Net build_for_weights(const NetDefinition& definition, const Registry& registry,
                      const Shape& data) {
  try {
    return build_net(definition, registry, {TANDEM_TRAIN, 1, data, /*device_kind=*/""});
  } catch (const Error&) {  // of a net that only tests, the reason is the same again
    return build_net(definition, registry, {TANDEM_TEST, 1, data, /*device_kind=*/""});
  }
}

// What an import that failed has left in its folder.
void remove_contents(const RunFolder& folder) {
  std::error_code ignored;
  for (const fs::path& entry : entries_of(folder.path(), ignored)) {
    const fs::path name = entry.filename();
    if (name != "find_lr.csv" && name != "find_lr.svg") fs::remove(entry, ignored);
  }
  if (!folder.was_there()) fs::remove(folder.path(), ignored);
}

}  // namespace

namespace {

// Runs the net on made-up images: Error for scores that are not finite, and, where that is asked
// for, for others than those of another program. Returns a line on the latter, or "".
std::string verify_import(const ImportOptions& options, const PublishedWeights& published,
                          const NetDefinition& definition, const Net& net,
                          const std::vector<float>& weights) {
  constexpr int64_t images = 2;
  Registry registry = Registry::with_defaults();
  const Shape data = definition.input_shape();
  ScoredRows rows{{images, data.c, data.h, data.w}, {}, {}};
  rows.rows = seeded_rows(rows.input);
  rows.scores = scores_of(registry, definition, weights, rows.input, rows.rows);
  const auto is_finite = [](float score) { return std::isfinite(score); };
  if (!std::all_of(rows.scores.begin(), rows.scores.end(), is_finite)) {
    throw error("'{}': the net gives scores that are not finite", published.file.string());
  }
  if (options.verify.empty()) return "";
  // The net divides by deviations, which the file has not.
  const int index =
      published.onnx->arrays.arrays.contains("std.weight") && published.onnx->preparation.empty()
          ? net.find_layer("std")
          : -1;
  if (index >= 0) {
    const float* factors = weights.data() + net.weight(net.layer(index).weights.front()).offset;
    const int64_t plane = data.h * data.w;
    for (size_t i = 0; i < rows.rows.size(); ++i) {
      rows.rows[i] *= factors[int64_t(i) / plane % data.c];
    }
  }
  return "\n" + compare_with(options.verify, published.file, rows);
}

}  // namespace

ImportResult import_weights(const ImportOptions& options) {
  const std::optional<PublishedWeights> published =
      find_published(options.weights, options.net, options.download);
  if (published && published->is_run) {
    throw error(
        "'{}' is a run folder already: 'tandem train --weights' and others take it as it is",
        options.weights.string());
  }
  if (!published) require_weights_and_net(options);
  NetDefinition definition = published ? net_of(*published) : read_net_file(options.net);
  std::string outputs;
  if (published) {
    const std::string classifier = classifier_names(definition).back();
    const int64_t classes = classes_in_file(*published, classifier);
    if (classes > 0 && classes != class_count(definition)) {
      outputs = fmt::format("\n'{}' has {} outputs in the file, so the net has {} classes",
                            classifier, classes, classes);
      definition = with_outputs(definition, classes);
    }
  }
  const std::optional<RunRecord> beside = published ? std::nullopt : record_beside(options.net);
  std::string mean_note;
  RunRecord record = record_of(options, definition, published, beside, &mean_note);
  record.class_names = names_of_classes(options, class_count(definition));
  const bool is_onnx = published && published->onnx != nullptr;
  if (is_onnx && options.classes.empty()) {
    outputs += take_class_names(*published->onnx, published->file, record);
  }
  const Registry registry = Registry::with_defaults();
  if (is_onnx) take_task(*published->onnx, registry, definition, record);
  const Net net = build_for_weights(definition, registry, record.data);
  Checkpoint checkpoint;
  checkpoint.weights = initial_weights(net, 1);
  const Pretrained report = published ? read_published(*published, net, &checkpoint.weights)
                                      : read_pretrained(options.weights, net, &checkpoint.weights);
  require_all_weights(report, options, net);
  std::string verified;
  if (published && published->onnx != nullptr) {
    verified = verify_import(options, *published, definition, net, checkpoint.weights);
  } else if (!options.verify.empty()) {
    throw error("--verify {}: '{}' is no ONNX file", options.verify, options.weights.string());
  }
  const fs::path out = options.out.empty() ? RunFolder::free_name(net.name) : options.out;
  const RunFolder folder = RunFolder::create(out);
  try {
    // The record last: a folder with it is a run.
    write_checkpoint(folder.path(), "last", net, checkpoint, {"best"});
    folder.write(record, definition, default_solver("SGD"));
  } catch (...) {
    remove_contents(folder);
    throw;
  }
  const std::string preparation =
      preparation_text(record, mean_note, published, beside.has_value(), definition);
  return {folder.path(), preparation + outputs + "\n" +
                             to_text(report, published ? published->file : options.weights) +
                             verified};
}

}  // namespace tandem
