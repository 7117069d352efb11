// Evaluating a run: its accuracy on a data set, exactly, with the run's own classes, input size and
// normalization.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observer.h"

namespace tandem {

struct TestOptions {
  std::filesystem::path run;
  std::string data;            // a data set or "synthetic"; "": the run's
  std::string split = "test";  // test (else val), val or train
  std::string devices = "cpu";
  // Processes of the job that tests, each with `devices` of its own; 0: as many as were started.
  int ranks = 0;
  std::string weights = "best";  // best (else last) or last
  int64_t batch = 0;             // global; 0: the run's
  int decode_threads = 0;        // 0: by the number of cores
  // Of activations; "": the run's, or float32 where the devices do not have it.
  std::string precision;
  std::string pixels;  // bytes or floats; "" and auto: as the run was trained
  // Of several labels: the probability from which on one counts as predicted; else 0.5.
  std::optional<double> threshold;
  // Takes the mean of the scores of ten views of each image: the four corners and the middle, each
  // as it is and mirrored.
  bool all_views = false;
  // Writes the run's report.html again, with the confusion matrix and the mistakes of this test.
  bool writes_report = false;
  // After which a batch that has not finished, or a rank that another one waits for, counts as
  // stuck.
  double watchdog_seconds = 600;
  // Parameters of the data set in place of the run's: "val_fraction" to "1".
  std::map<std::string, std::string> data_parameters;
  std::map<std::string, std::string> given;  // as that of TrainOptions
};

struct TestResult {
  int rank = 0;  // of this process; others than 0 know nothing else
  Evaluation evaluation;
  std::vector<std::string> class_names;
  std::string weights;    // the file used
  std::string precision;  // the one used
  std::string pixels;     // bytes or floats
  std::string notes;      // of the data set, and why a setting differs from the run's
  struct Mistake {
    std::string path;
    std::string truth, predicted;
    double probability = 0;
  };
  std::vector<Mistake> worst;  // at most 20, the most confident first
  // Whether the net has a softmax. Without one the softmax of its scores is given, which says
  // nothing of certainty.
  bool has_probabilities = true;
  std::string report;  // the page written, or ""
  std::string task;    // labels (one class for each image), multilabel or regression
};

// Throws Error for a folder that is no run, and for data or devices that cannot be used.
[[nodiscard]] TestResult test_run(const TestOptions& options, Observer& observer);

}  // namespace tandem
