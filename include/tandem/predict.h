// Using the weights of a run: predictions for images, and the weights as one file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tandem {

struct Prediction {
  std::string path;
  std::string error;  // not empty: the image could not be used
  struct Score {
    std::string name;
    double probability = 0;
  };
  std::vector<Score> scores;  // the best first, at most `top`
};

class Predictor {
 public:
  // Loads the weights "best" (else last) or "last" of a run. Throws Error for a folder without
  // them.
  explicit Predictor(const std::filesystem::path& run, const std::string& devices = "cpu",
                     const std::string& weights = "best");
  ~Predictor();
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  // What the user should know of the run's weights, or "".
  [[nodiscard]] const std::string& note() const;
  // Files and folders (searched, in natural order). Throws Error if there is no image; one that
  // cannot be used is a Prediction with its error.
  [[nodiscard]] std::vector<Prediction> predict(const std::vector<std::filesystem::path>& paths,
                                                int top = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ExportOptions {
  std::filesystem::path run, file;
  std::string weights = "best";  // best (else last) or last
};
struct ExportResult {
  std::string weights;  // which: "best" or "last"
  std::string note;     // what the user should know of them, or ""
};
// Writes a run's weights in the format of the file's ending, .caffemodel or .safetensors. Throws
// Error for a file that exists.
ExportResult export_run(const ExportOptions& options);

struct ImportOptions {
  std::filesystem::path weights;  // a folder of timm's, or a .safetensors or .caffemodel file
  std::string net;  // of a file alone: an architecture, a model's name or a prototxt file
  std::filesystem::path classes;  // a file with a class name on each line; "": class 0, ...
  std::filesystem::path out;      // the run folder; "": runs/<net>-<number>
};
struct ImportResult {
  std::filesystem::path run;
  std::string notes;  // lines on what was read
};
// Makes a run folder of published weights, which can be tested and used for predictions. Throws
// Error for weights that do not fit the net, and as train() for the run folder.
ImportResult import_weights(const ImportOptions& options);

}  // namespace tandem
