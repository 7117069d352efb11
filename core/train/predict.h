// Using a run: exact evaluation on a data set, and predictions for single images, with the run's
// own classes, input size and normalisation.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/device/parse.h"
#include "core/train/observer.h"

namespace tandem {

struct TestOptions {
  std::filesystem::path run;
  std::string data;            // a folder or "synthetic"
  std::string split = "test";  // test (else val), val or train
  std::string devices = default_kind;
  std::string weights = "best";  // best (else last) or last
  int64_t batch = 0;             // 0: the run's
  int decode_threads = 0;
  // Of activations, as `--precision`; "": the run's, or float32 where the devices do not know it.
  std::string precision = "";
  std::string pixels = "";  // bytes or floats; "" and auto: as the run was trained
};

struct TestResult {
  Evaluation evaluation;
  std::vector<std::string> class_names;
  std::string weights;    // the file used
  std::string precision;  // what it was computed in
  std::string pixels;     // of which: bytes or floats
  std::string notes;      // why not as in the run; of the data set
  struct Mistake {
    std::string path;
    std::string truth, predicted;
    double probability = 0;
  };
  std::vector<Mistake> worst;  // at most 20, the most confident first
};
[[nodiscard]] TestResult test_run(const TestOptions& options, Observer& observer);

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
  Predictor(const std::filesystem::path& run, const std::string& devices = default_kind,
            const std::string& weights = "best");
  ~Predictor();
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  // Files and folders (walked, in natural order). Error if nothing is found; an unusable image is a
  // Prediction with its error.
  [[nodiscard]] std::vector<Prediction> predict(const std::vector<std::filesystem::path>& paths,
                                                int top = 5);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
