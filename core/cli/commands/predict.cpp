#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/memory_file.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

struct PredictArguments {
  std::filesystem::path run;
  std::vector<std::filesystem::path> paths;
  std::filesystem::path explain;  // folder; "": nothing is explained
  std::string devices = default_kind, weights = "best";
  double every = 1;  // seconds of a video
  int top = 5;
  bool as_json = false;
};

json prediction_json(const Prediction& prediction, bool has_probabilities) {
  json entry = {{"path", prediction.path}};
  if (prediction.seconds >= 0) entry["seconds"] = std::round(1000 * prediction.seconds) / 1000;
  if (!prediction.error.empty()) entry["error"] = prediction.error;
  if (!prediction.explanation.empty()) entry["explanation"] = prediction.explanation;
  for (const auto& score : prediction.scores) {
    entry["scores"].push_back(
        {{"class", score.name}, {has_probabilities ? "probability" : "score", score.value}});
  }
  return entry;
}

std::string to_text(const Prediction& prediction, bool has_probabilities) {
  if (!prediction.error.empty()) return "not used: " + prediction.error;
  std::string text;
  for (const auto& score : prediction.scores) {
    const std::string value = has_probabilities ? fmt::format("{:.1f} %", 100 * score.value)
                                                : fmt::format("score {:.4g}", score.value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", score.name, value);
  }
  return text;
}

// "clip.mp4 1:05.2": the path of an image; of a video's frame also its time.
std::string place_of(const Prediction& prediction) {
  if (prediction.seconds < 0) return prediction.path;
  const auto tenths = int64_t(std::llround(10 * prediction.seconds));
  return fmt::format("{} {}:{:02}.{}", prediction.path, tenths / 600, tenths / 10 % 60,
                     tenths % 10);
}

constexpr const char* input_name = "-";

// The image on the standard input.
MemoryFile read_input() {
  constexpr size_t max = size_t{1} << 30, step = size_t{1} << 16;
  std::string bytes;
  size_t count = step;
  while (count == step) {
    const size_t before = bytes.size();
    if (before > max) throw error("the image on the standard input is larger than 1 GiB");
    bytes.resize(before + step);
    count = std::fread(bytes.data() + before, 1, step, stdin);
    bytes.resize(before + count);
  }
  return {bytes.data(), bytes.size()};
}

bool is_video_file(const std::filesystem::path& path) {
  return Predictor::is_video(path) && !path_status(path).is_folder();
}

// Before the first prediction: a missing path would discard the work on those before it.
void require_existing(const std::vector<std::filesystem::path>& paths) {
  for (const std::filesystem::path& path : paths) {
    if (!path_status(path).exists()) throw error("'{}' does not exist", path.string());
  }
}

// Images and videos in the order in which they were given. Neighbouring images are computed
// together, frames of a video as they are read.
void predict_all(Predictor& predictor, const PredictArguments& a,
                 const std::function<void(const Prediction&)>& found) {
  std::vector<std::filesystem::path> images;
  const auto predict_images = [&] {
    if (images.empty()) return;
    for (const Prediction& prediction : predictor.predict(images, a.top)) found(prediction);
    images.clear();
  };
  for (const std::filesystem::path& path : a.paths) {
    if (!is_video_file(path)) {
      images.push_back(path);
      continue;
    }
    predict_images();
    predictor.predict_video(path, a.every, a.top, found);
  }
  predict_images();
}

void require_explainable(const PredictArguments& a) {
  if (a.explain.empty()) return;
  for (const std::filesystem::path& path : a.paths) {
    if (path == input_name) {
      throw error("--explain names pictures by their files, and '-' is none: give the file");
    }
    if (is_video_file(path)) {
      throw error("--explain draws images, and '{}' is a video", path.string());
    }
  }
}

// Exit code 1 if an image could not be used.
int run_predict(PredictArguments& a) {
  require_explainable(a);
  std::optional<MemoryFile> input;
  for (std::filesystem::path& path : a.paths) {
    if (path != input_name) continue;
    if (!input) input.emplace(read_input());
    path = input->path();
  }
  Predictor predictor(a.run, a.devices, a.weights);
  if (!predictor.note().empty()) say(stderr, "note: {}\n", predictor.note());
  require_existing(a.paths);
  const std::string how = a.explain.empty() ? "" : predictor.explain(a.explain);
  bool all_good = true;
  json tree = json::array();
  predict_all(predictor, a, [&](Prediction prediction) {
    if (input && prediction.path == input->path()) prediction.path = input_name;
    all_good = all_good && prediction.error.empty();
    if (a.as_json) {
      tree.push_back(prediction_json(prediction, predictor.has_probabilities()));
    } else {
      print_names("{}: {}\n", place_of(prediction),
                  to_text(prediction, predictor.has_probabilities()));
    }
  });
  if (!a.as_json && !a.explain.empty()) {
    print_names("pictures in {}: {}\n", a.explain.string(), how);
  }
  if (a.as_json) print_json(tree);
  return all_good ? 0 : 1;
}

}  // namespace

void add_predict(CommandLine& line) {
  const auto check_seconds = [](const std::string& value) {
    double seconds = 0;
    if (parse_number(value, &seconds) && seconds >= 0 && seconds < 1e6) return;
    throw error("--every {}: seconds, from 0 (every frame) to below 1000000", value);
  };
  Command& command = line.add("predict", "Classify images with a run's best weights");
  PredictArguments& a = command.runs(run_predict);
  command.add({
      run_option(a.run),
      {"paths PATH", &a.paths,
       "Image files, folders of them, or videos; - reads one image from the standard input",
       required},
      {"--top N", &a.top, "Classes to print for each image", show_default, in_range(1)},
      {"--every SECONDS", &a.every, "Of a video: from one frame to the next; 0: every frame",
       show_default, checked_by(check_seconds)},
      {"--explain FOLDER", &a.explain,
       "Write a picture for each image there: what speaks for its first class"},
      devices_option(a.devices),
      weights_option(a.weights),
      json_option(a.as_json),
  });
}

}  // namespace tandem::cli
