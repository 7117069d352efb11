// The observer that writes the run folder's metrics.csv, log.txt and event file of TensorBoard,
// line by line, and passes all reports on to the program's own observer.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/files/files.h"
#include "core/formats/event_file.h"
#include "core/run/folder/run_folder.h"
#include "include/tandem/observer.h"

namespace tandem {

// Whether there are more than five classes: of fewer, all samples are among the first five.
[[nodiscard]] inline bool has_top5(const Evaluation& evaluation) {
  const size_t classes = evaluation.confusion.size();  // 0: more than a matrix is kept for
  return evaluation.has_accuracy && (classes == 0 || classes > 5);
}

// Whether the text of an evaluation says that it is the best so far. A net without a loss and class
// scores has no best one, no image recognized is the best result of nothing yet, and a loss of over
// twice that of guessing is no good one where the accuracy is about that of guessing, too.
[[nodiscard]] inline bool is_worth_a_mark(const Evaluation& evaluation) {
  const auto classes = static_cast<double>(evaluation.confusion.size());
  const bool guesses = !evaluation.has_accuracy || evaluation.top1 * classes < 1.5;
  const bool has_large_loss = evaluation.has_loss && evaluation.loss > 2 * std::log(classes);
  if (classes > 1 && guesses && has_large_loss) return false;
  return evaluation.best && (evaluation.has_score ? evaluation.score > 0 : evaluation.has_loss);
}

// "top-1 56.10 %", "mAP 81.20 %", "MAE 2.41" of each figure of the evaluation besides its loss.
[[nodiscard]] std::vector<std::string> metric_texts(const Evaluation& evaluation);
// Headings of the two columns of metrics.csv behind the loss: top1 and top5, or the metrics of
// labels or values.
[[nodiscard]] std::array<std::string, 2> metric_columns(int64_t task);

// What an evaluation of a net says that has neither loss nor class scores in the test phase.
constexpr const char* no_result =
    "no result (the net has no loss and no class scores in the test phase)";

// "epoch 3/10: training loss 1.2345 top-1 56.10 %, validation loss ..., lr 0.01, 12 s, 420
// images/s (best so far)"
[[nodiscard]] std::string epoch_text(const EpochReport& report);

class Recorder : public Observer {
 public:
  // `task`: TANDEM_TASK_CLASSES, ... `resumed_step`: lines of later steps, written before the run
  // was interrupted, are removed; 0: a new run. `epoch`: the epochs that end before the first step.
  Recorder(const RunFolder& folder, Observer& next, int64_t task, int64_t resumed_step,
           int64_t epoch);

  void on_message(const std::string& line) override;
  // Every report goes on; those that are shown are written, and the last of an epoch.
  void on_step(const StepReport& report) override;
  void on_evaluation(const Evaluation& evaluation) override;
  void on_epoch(const EpochReport& report) override;
  void on_picture(const PictureReport& picture) override;

 private:
  void log(const std::string& text);
  void line(OutputFile& file, const std::string& text);
  Observer& next_;
  OutputFile metrics_, log_;
  EventFile events_;
  int64_t epoch_;
  bool has_said_lost_ = false;
};

}  // namespace tandem
