// What a run reports while it goes on. Programs draw a progress bar from it; the run folder's log
// and metrics are written from it, too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// A sample that could not be used.
struct BadSample {
  std::string name, reason;
};

struct StepReport {
  int64_t step = 0;              // done, counted from 1
  int64_t steps = 0;             // of the run
  int64_t epoch = 0;             // of the step's first sample, from 0
  double epochs = 0;             // of the run
  double loss = 0;               // weighted sum of the losses
  double rate = 0;               // learning rate
  double images_per_second = 0;  // over the last reports
  double seconds_left = 0;       // -1: not known yet
  double waited_seconds = 0;     // for data, since the run began
  int64_t skipped = 0;           // damaged samples of this step
  bool is_shown = false;         // the first step, the last, or one of every TrainOptions::display
};

// Of one label or number of a run that learns several labels or numbers. NaN: there is none.
struct TargetFigure {
  std::string name;
  int64_t images = 0;  // that have the label; of a number all
  double average_precision = 0, precision = 0, recall = 0, f1 = 0;
  double mean_absolute_error = 0, r2 = 0;  // in the number's own unit; share of the variance
};

// A mean over labels or numbers.
struct Metric {
  std::string name;  // "mAP", "F1"; "MAE", "R2"
  double value = 0;
  bool is_share = false;  // of 1, which is the best
};

struct Evaluation {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t samples = 0, skipped = 0;
  bool has_loss = false;  // whether the net has one in the test phase
  double loss = 0;
  bool has_accuracy = false;
  double top1 = 0, top5 = 0;  // shares of the samples
  // What decides which evaluation is the best, where there is such a share: the accuracy, or the
  // mean average precision of labels. Else the loss decides.
  bool has_score = false;
  double score = 0;
  std::vector<Metric> metrics;        // of labels and numbers, in place of the accuracy
  std::vector<TargetFigure> figures;  // of each of them
  bool best = false;
  bool ends_epoch = false;     // an EpochReport with the same figures follows
  std::vector<BadSample> bad;  // the samples skipped
  std::vector<std::pair<std::string, double>>
      scalars;  // the net's own losses and metrics, means over samples
  std::vector<std::vector<int64_t>> confusion;  // [true class][predicted]; empty above 1000 classes
};

// A pass over the training data, with the evaluation after it.
struct EpochReport {
  int64_t epoch = 0;             // done, counted from 1
  double epochs = 0;             // of the run
  bool is_partial = false;       // the run ends within the epoch after these
  int64_t step = 0;              // done
  double loss = 0;               // mean over the steps of the epoch
  bool has_accuracy = false;     // if the net computes it in training
  double top1 = 0;               // share of the training samples, while the weights change
  double rate = 0;               // learning rate of the last step
  double seconds = 0;            // of the epoch, with the evaluation
  double images_per_second = 0;  // of its steps
  double waiting_share = 0;      // of the time of its steps, for data
  bool has_validation = false;
  Evaluation validation;
};

// What the best evaluation has found, drawn: the confusion matrix, mistakes. The bytes of a PNG.
struct PictureReport {
  int64_t step = 0;  // of the evaluation
  std::string name;  // "confusion matrix"
  int64_t width = 0, height = 0;
  std::string png;
};

// Called by the thread that trains, between steps. An exception ends the run.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_message(const std::string& /*line*/) {}
  virtual void on_step(const StepReport& /*report*/) {}
  virtual void on_evaluation(const Evaluation& /*evaluation*/) {}
  virtual void on_epoch(const EpochReport& /*report*/) {}
  virtual void on_picture(const PictureReport& /*picture*/) {}
};

}  // namespace tandem
