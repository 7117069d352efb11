// Using the weights of a run: predictions for images, and the weights as one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tandem {

struct Prediction {
  std::string path;
  std::string error;  // not empty: the image could not be used
  struct Score {
    std::string name;
    double value = 0;  // a probability, or what the net computes: Predictor::has_probabilities()
  };
  // Of classes the best first, at most `top`; of several labels those that count as predicted, the
  // most probable first; of numbers all, in their own units and order.
  std::vector<Score> scores;
  std::string explanation;  // the picture written, after Predictor::explain()
};

// A picture in memory: the bytes of an image file (JPEG, PNG, ...); or, where a height is given,
// rows of bytes from the top, R,G,B (channels 3) or gray (1).
struct Picture {
  const void* data = nullptr;
  size_t bytes = 0;  // of a file; of rows they must be height * width * channels
  int64_t height = 0, width = 0, channels = 3;
};

// What a run has learned, ready for use. All functions may be called by several threads at the same
// time, and give each of them the bits that it would get alone. Pictures are decoded by the calling
// threads; the net is computed for one call after the other, with all of the device's threads.
class Predictor {
 public:
  // Loads the weights "best" (else last) or "last" of a run. `batch`: pictures that are computed
  // together; 1 answers soonest for single ones. Throws Error for a folder without weights.
  explicit Predictor(const std::filesystem::path& run, const std::string& devices = "cpu",
                     const std::string& weights = "best", int64_t batch = 32);
  ~Predictor();
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  // Values of a row of scores(). A net may have more than there are names.
  [[nodiscard]] int64_t class_count() const;
  // Whether the scores of predictions are probabilities. Those of a net that was not trained for
  // them, as with HingeLoss or EuclideanLoss, are what its last layer computes.
  [[nodiscard]] bool has_probabilities() const;
  // What the run has learned: "labels" (one class for each image), "multilabel", "regression".
  [[nodiscard]] std::string task() const;
  // What the net sees of an image, in one line: size, fit, channels, mean and scale.
  [[nodiscard]] std::string images() const;
  // The probability from which on a label counts as predicted; 0.5 if it is not set. Error for one
  // outside 0 to 1, or for a run that has not learned several labels.
  void set_threshold(double threshold);
  // From now on predict() takes the mean of the net's scores of ten views of each image: the four
  // corners and the middle, each as it is and mirrored.
  void use_views();
  // Files and folders (searched, in natural order). Throws Error if there is no image, and
  // for one that a failing disk does not give or this user may not read; another one that cannot be
  // used is a Prediction with its error.
  [[nodiscard]] std::vector<Prediction> predict(const std::vector<std::filesystem::path>& paths,
                                                int top = 5);
  // Lines on images of the last predict() that were used although something is odd with them.
  [[nodiscard]] std::vector<std::string> remarks() const;
  // From now on predict() writes a PNG for each image into the folder, which is made: the image as
  // the net sees it, and beside it what speaks for its first class. Returns how that is found:
  // class activation maps, or occlusion. Throws Error for a net that cannot be explained.
  std::string explain(const std::filesystem::path& folder);
  // Scores of all classes: class_count() floats for each picture. One that cannot be decoded has
  // zeros, and its reason in `errors`, which gets one text for each picture. Throws Error, before
  // anything is computed, for one without data or whose bytes are not those of its extents.
  void scores(const std::vector<Picture>& pictures, float* results,
              std::vector<std::string>* errors);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ExportOptions {
  std::filesystem::path run, file;
  std::string weights = "best";  // best (else last) or last
  // The rest is for ONNX, the format of a file that ends in .onnx or of any with `onnx`.
  bool onnx = false;
  bool softmax = false;          // probabilities instead of scores
  bool fold_batch_norm = false;  // into the weights before them
  // The size of the pictures that the model takes, R,G,B or gray, 0 to 255. It resizes, crops and
  // normalizes them as predict() does. 0: it takes what the net takes.
  int64_t picture_height = 0, picture_width = 0;
  std::string verify;  // "onnxruntime": also compares scores with those of Python's ONNX Runtime
  bool dynamic_size = false;  // it takes such pictures of any size
  int64_t opset = 0;          // 13 to 21; 0: 13, or 18 with dynamic_size
  bool overwrite = false;     // a file of that name, once the new one is whole
};
struct ExportResult {
  std::string weights;             // which: "best" or "last"
  std::vector<std::string> lines;  // what was done, for the user
};
// Writes a run's weights in the format of the file's ending, .caffemodel or .safetensors, or its
// net with them, .onnx. Throws Error for a file that exists, without overwrite, for a layer that
// has no form in ONNX, for a net whose scores are not finite, and for a model that, read again,
// gives other scores; it then leaves no file.
ExportResult export_run(const ExportOptions& options);

struct FetchOptions {
  std::string repository;                        // "timm/resnet18.a1_in1k"
  std::function<void(const std::string&)> note;  // gets a line before each file
};
// Downloads configuration and weights of a repository of Hugging Face into the cache, and returns a
// line on what was done. Throws Error, and leaves no file that is not whole.
std::string fetch_weights(const FetchOptions& options);

struct ImportOptions {
  std::filesystem::path weights;  // a folder of timm's, a file, or the name of a repository
  bool download = false;          // fetches that repository if it is not in the cache
  std::string net;  // of a file alone: an architecture, a model's name or a prototxt file
  std::filesystem::path classes;  // a file with a class name on each line; "": class 0, ...
  std::filesystem::path out;      // the run folder; "": runs/<net>-<number>
  std::string verify;             // of an ONNX file: as of ExportOptions
};
struct ImportResult {
  std::filesystem::path run;
  std::string notes;  // lines on what was read
};
// Makes a run folder of published weights, which can be tested and used for predictions. Throws
// Error for weights that do not fit the net, and as train() for the run folder.
ImportResult import_weights(const ImportOptions& options);

}  // namespace tandem
