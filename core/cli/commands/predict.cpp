#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/memory_file.h"
#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

struct PredictArguments {
  std::filesystem::path run;
  std::vector<std::filesystem::path> paths;
  std::filesystem::path explain;  // folder; "": nothing is explained
  std::string devices = default_kind, weights = "best";
  int top = 5;
  double threshold = 0.5;
  bool as_json = false, all_views = false;
};

// How a score is called and written.
struct ScoreForm {
  bool are_probabilities = true, are_values = false;
};

json prediction_json(const Prediction& prediction, const ScoreForm& form) {
  json entry = {{"path", prediction.path}};
  if (!prediction.error.empty()) entry["error"] = prediction.error;
  if (!prediction.explanation.empty()) entry["explanation"] = prediction.explanation;
  const char* key = form.are_values ? "value" : form.are_probabilities ? "probability" : "score";
  if (prediction.error.empty()) entry["scores"] = json::array();
  for (const auto& score : prediction.scores) {
    entry["scores"].push_back(
        {{form.are_values ? "name" : "class", score.name}, {key, score.value}});
  }
  return entry;
}

std::string to_text(const Prediction& prediction, const ScoreForm& form) {
  if (!prediction.error.empty()) return "not used: " + prediction.error;
  std::string text;
  for (const auto& score : prediction.scores) {
    const std::string value = form.are_values          ? fmt::format("{:.6g}", score.value)
                              : form.are_probabilities ? fmt::format("{:.1f} %", 100 * score.value)
                                                       : fmt::format("score {:.4g}", score.value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", score.name, value);
  }
  return text.empty() ? "no label" : text;
}

constexpr const char* input_name = "-";

// The image on the standard input.
MemoryFile read_input() {
  constexpr size_t most = size_t{1} << 30, step = size_t{1} << 16;
  std::string bytes;
  size_t count = step;
  while (count == step) {
    const size_t before = bytes.size();
    if (before > most) throw error("the image on the standard input is larger than 1 GiB");
    bytes.resize(before + step);
    count = std::fread(bytes.data() + before, 1, step, stdin);
    bytes.resize(before + count);
  }
  return {bytes.data(), bytes.size()};
}

template <size_t N>
bool ends_with_one(const std::filesystem::path& path,
                   const std::array<std::string_view, N>& endings) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

// Why no image can be read from the path; "": it may be one, or a folder of some.
std::string reason_against(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 12> videos{".avi", ".flv", ".m4v",  ".mkv",
                                                    ".mov", ".mp4", ".mpeg", ".mpg",
                                                    ".mts", ".ogv", ".webm", ".wmv"};
  constexpr std::array<std::string_view, 3> lists{".txt", ".csv", ".tsv"};
  const std::string text = path.string();
  if (!path_status(path).exists()) {
    if (text.find("://") != std::string::npos || text.starts_with("http:/")) {
      return "is an address: download it, and give the file";
    }
    const bool is_pattern = text.find_first_of("*?") != std::string::npos;
    return is_pattern ? "does not exist: a pattern is written without quotes, or give the folder"
                      : "does not exist";
  }
  if (path_status(path).is_folder()) return "";
  if (ends_with_one(path, videos)) {
    return "is a video: extract frames of it, one of each second with 'mkdir frames; ffmpeg -i "
           "VIDEO -vf fps=1 frames/%04d.png', and give their folder";
  }
  if (ends_with_one(path, lists)) {
    return "is a list, no image: give the images or their folder, or 'xargs -a LIST tandem predict "
           "--run RUN' for a list of paths; 'tandem test --data LIST' tests one with classes";
  }
  return "";
}

// Takes the paths away that no image can be read from, and returns them with their reasons.
std::vector<Prediction> without_use(std::vector<std::filesystem::path>& paths) {
  std::vector<Prediction> unused;
  std::erase_if(paths, [&](const std::filesystem::path& path) {
    const std::string reason = reason_against(path);
    if (reason.empty()) return false;
    unused.emplace_back().path = path.string();
    unused.back().error = reason;
    return true;
  });
  if (paths.empty()) throw error("'{}' {}", unused.at(0).path, unused[0].error);
  return unused;
}

void require_explainable(const PredictArguments& a) {
  if (a.explain.empty()) return;
  for (const std::filesystem::path& path : a.paths) {
    if (path != input_name) continue;
    throw error("--explain names pictures by their files, and '-' is none: give the file");
  }
}

// Exit code 1 if an image could not be used.
int run_predict(PredictArguments& a, const Command& command) {
  require_explainable(a);
  std::optional<MemoryFile> input;
  for (std::filesystem::path& path : a.paths) {
    if (path != input_name) continue;
    if (!input) input.emplace(read_input());
    path = input->path();
  }
  Predictor predictor(a.run, a.devices, a.weights);
  const ScoreForm form{predictor.has_probabilities(), predictor.task() == "regression"};
  if (command.given("--threshold")) predictor.set_threshold(a.threshold);
  if (a.all_views) predictor.use_views();
  const std::vector<Prediction> unused = without_use(a.paths);
  const std::string how = a.explain.empty() ? "" : predictor.explain(a.explain);
  std::vector<Prediction> failed;
  json tree = json::array();
  std::vector<Prediction> all = predictor.predict(a.paths, a.top);
  all.insert(all.end(), unused.begin(), unused.end());
  for (Prediction& prediction : all) {
    if (input && prediction.path == input->path()) prediction.path = input_name;
    if (!prediction.error.empty()) failed.push_back(prediction);
    if (a.as_json) {
      tree.push_back(prediction_json(prediction, form));
    } else {
      print_names("{}: {}\n", prediction.path, to_text(prediction, form));
    }
  }
  if (!a.as_json && !a.explain.empty()) {
    print_names("pictures in {}: {}\n", a.explain.string(), how);
  }
  if (a.as_json) print_json(tree);
  if (failed.empty()) {
    say(stderr, "{}\n", predictor.images());
    for (const std::string& line : predictor.remarks()) say(stderr, "{}\n", printable(line));
    return 0;
  }
  throw error("{} of the images cannot be used; the first: {}: {}", failed.size(), failed[0].path,
              failed[0].error);
}

}  // namespace

void add_predict(CommandLine& line) {
  Command& command = line.add("predict", "Classify images with a run's best weights");
  PredictArguments& a = command.runs(run_predict);
  command.add({
      run_option(a.run),
      {"paths PATH", &a.paths,
       "Image files or folders of them; - reads one image from the standard input", required},
      {"--top N", &a.top, "Classes to print for each image", show_default, in_range(1)},
      {"--threshold P", &a.threshold,
       "Of a run with several labels: the probability from which on a label is printed",
       show_default},
      {"--tta", &a.all_views,
       "Predict from ten views of each image, the corners and the middle, each as it is and "
       "mirrored: the mean of their scores"},
      {"--explain FOLDER", &a.explain,
       "Write a picture for each image there: what speaks for its first class"},
      devices_option(a.devices),
      weights_option(a.weights),
      json_option(a.as_json),
  });
}

}  // namespace tandem::cli
