#include "core/use/loaded_run.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/data/dataset_statistics.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/setup/setup.h"
#include "core/run/setup/setup_data.h"
#include "core/session/target_figures.h"

namespace tandem {

namespace fs = std::filesystem;

namespace {

// The one path of the list, which the data set reads.
std::string source_for(Registry& registry, const std::string& dataset, const std::string& paths) {
  const tandem_dataset_type& type = registry.dataset(dataset);
  std::string reason;
  for (const std::string& path : split(paths, '\n')) {
    if (path.empty()) continue;
    const bool is_read = type.recognizes != nullptr && type.recognizes(path.c_str()) != 0;
    if (is_read && path + "\n" == paths) return path;
    reason = is_read                      ? "it reads one path at a time"
             : path.starts_with("/proc/") ? "a picture in memory is none of its files"
                                          : fmt::format("it does not read '{}'", path);
    if (!is_read) break;
  }
  throw error(
      "the run learned from images as data set '{0}' prepares them, and {1}: give a file or folder "
      "that it reads ('tandem datasets {0}'), whose samples of split 'test' are predicted then",
      dataset, reason);
}

}  // namespace

LoadedRun::LoadedRun(Registry& all, const fs::path& run, std::string on, const std::string& which)
    : registry(all), folder(RunFolder::open(run)), record(folder.record()), devices(std::move(on)) {
  name = checkpoint_name(run, which);
  require_computing(registry, devices);
}

SessionOptions LoadedRun::testing_options(int64_t batch, const std::string& precision,
                                          PixelForm pixels, const PixelScale& scale) const {
  SessionOptions options;
  options.devices = devices;
  options.testing_pixels = pixels;
  options.pixel_scale = scale;
  options.batch = batch > 0 ? batch : record.options.batch;
  options.data = record.data;
  options.precision = parse_precision(precision.empty() ? record.options.precision : precision);
  options.training = false;
  return options;
}

void LoadedRun::open(int64_t batch, const std::string& precision, PixelForm pixels,
                     const PixelScale& scale) {
  open(testing_options(batch, precision, pixels, scale), !precision.empty());
}

void LoadedRun::open(SessionOptions options, bool is_explicit) {
  try {
    session.emplace(registry, folder.net(), options);
  } catch (const Error& refused) {
    if (is_explicit || options.precision == TANDEM_FLOAT32) throw;
    if (options.ranks != nullptr) {  // the others may not refuse
      throw error("{}. This is the run's precision; --precision float32 computes everywhere",
                  refused.what());
    }
    options.precision = TANDEM_FLOAT32;
    session.emplace(registry, folder.net(), options);
    add_note(fmt::format("in float32, not in the run's {}: {}", record.options.precision,
                         refused.what()));
  }
  session->set_weights(read_checkpoint(folder.path(), name, session->net(), false).weights);
}

PixelForm LoadedRun::pixels_of(const Dataset& dataset, const std::string& given) {
  const bool decides = !given.empty() && given != "auto";
  if (decides) require_pixels_word(given);
  const std::string& pixels = decides ? given : record.options.pixels;
  if (pixels == "bytes" && !dataset.has_bytes()) {
    const std::string reason = dataset.why_no_bytes();
    if (decides) throw error("--pixels bytes: {}", reason);
    add_note(fmt::format("pixels are floats, not bytes as in the run: {}", reason));
  }
  return pixel_form(pixels, dataset);
}

std::vector<double> LoadedRun::values_of(const float* scores, int64_t count) const {
  std::vector<double> values(scores, scores + count);
  const TargetScale& scale = record.target_scale;
  for (size_t k = 0; k < values.size(); ++k) {
    if (record.task == TANDEM_TASK_LABELS) {
      values[k] = sigmoid(values[k]);
    } else if (k < scale.means.size()) {
      values[k] = scale.means[k] + scale.deviations[k] * values[k];
    }
  }
  return values;
}

void LoadedRun::require_threshold(double threshold) const {
  if (record.task != TANDEM_TASK_LABELS) {
    throw error("--threshold {}: is for several labels, and run '{}' has learned {}", threshold,
                folder.path().string(), task_text(record.task));
  }
  if (threshold >= 0 && threshold <= 1) return;
  throw error("--threshold {}: a probability from 0 to 1; 0.5 is usual", threshold);
}

std::string LoadedRun::own_preparation() const {
  if (record.dataset.empty()) return "";
  try {
    (void)registry.dataset(record.dataset);
  } catch (const Error& missing) {
    throw error("run '{}' learned from images as its data set prepares them: {}",
                folder.path().string(), missing.what());
  }
  const ModuleReport* module = registry.module_of_dataset(record.dataset);
  return module == nullptr || module->built_in ? "" : record.dataset;
}

std::vector<std::unique_ptr<Dataset>> LoadedRun::open_pictures(const std::string& paths,
                                                               bool all_views) {
  const std::string own = own_preparation();
  const std::string source = own.empty() ? paths : source_for(registry, own, paths);
  // The split "predict" of image_folder gives every file label 0.
  const char* part = own.empty() ? "predict" : "test";
  if (all_views) return open_views(registry, folder.net(), record, source, part);
  std::vector<std::unique_ptr<Dataset>> one;
  one.push_back(open_dataset(registry, folder.net(), record, source, part, TANDEM_TEST));
  return one;
}

std::vector<std::map<std::string, std::string>> views() {
  std::vector<std::map<std::string, std::string>> all;
  for (const char* mirrored : {"false", "true"}) {
    for (const char* part : {"middle", "top_left", "top_right", "bottom_left", "bottom_right"}) {
      all.push_back({{"view", part}, {"mirror_view", mirrored}});
    }
  }
  return all;
}

std::vector<std::unique_ptr<Dataset>> open_views(Registry& registry, const NetDefinition& net,
                                                 const RunRecord& record, const std::string& source,
                                                 const std::string& split) {
  const std::string data = source.empty() ? data_source(registry, record) : source;
  if (!declared_parameters(registry, data, split).contains("view")) {
    throw error("--tta: data '{}': its data set has no views of its images (parameter 'view')",
                data);
  }
  std::vector<std::unique_ptr<Dataset>> opened;
  for (const auto& view : views()) {
    RunRecord changed = record;
    for (const auto& [name, value] : view) changed.data_parameters[name] = value;
    opened.push_back(open_dataset(registry, net, changed, source, split, TANDEM_TEST));
  }
  return opened;
}

std::vector<const Dataset*> pointers(const std::vector<std::unique_ptr<Dataset>>& datasets) {
  std::vector<const Dataset*> result;
  for (const auto& one : datasets) result.push_back(one.get());
  return result;
}

SampleStatus read_row(const Dataset& dataset, int64_t index, bool rounds_pixels, float* row,
                      std::string* reason) {
  float label = 0;
  if (!rounds_pixels || !dataset.has_bytes()) return dataset.get(index, 0, row, &label, reason);
  std::vector<uint8_t> bytes(size_t(element_count(dataset.shape())));
  const SampleStatus status = dataset.get_bytes(index, 0, bytes.data(), &label, reason);
  to_floats(bytes.data(), dataset.shape(), dataset.pixel_scale(), row);
  return status;
}

}  // namespace tandem
