// What a training run reports of its steps and epochs: mean losses, accuracies, rates, the time
// that is left. It keeps the sums of the epoch so far, which a checkpoint within the epoch holds
// too.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "include/tandem/observer.h"

namespace tandem {

// Epochs that `step` steps are, of `per_step` each. The step that completes an epoch is said to end
// it, though its last images belong to the next.
[[nodiscard]] double epochs_after(int64_t step, double per_step);
// "3", "2.25", "166700": four digits, and no power of ten.
[[nodiscard]] std::string epochs_text(double epochs);

class TrainingProgress {
 public:
  struct Extents {
    int64_t steps = 0;             // of the run
    int64_t images_of_step = 0;    // of all micro-batches
    int64_t training_samples = 0;  // of an epoch
    int64_t average_loss = 1;      // steps over which the loss that is shown is averaged
  };
  explicit TrainingProgress(const Extents& extents) : extents_(extents) {}

  // The clock starts; `first`: the steps that were done before.
  void begin(int64_t first);
  // The evaluations before the first step are over; the time of the steps begins.
  void begin_steps();
  // Since begin().
  [[nodiscard]] double seconds() const;

  // Adds the predictions of a micro-batch; `share`: of its samples, correct.
  void add_accuracy(int64_t samples, double share);
  // Adds step `done`, counted from 1, with its loss. The report lacks the seconds waited and the
  // samples skipped.
  [[nodiscard]] StepReport add_step(int64_t done, double loss, double rate);
  // Adds the time since the last call to the epoch; `waited`: the seconds for data in all.
  void count_time(double waited);
  // Seconds between steps, of which the rates know nothing; `tests`: in an evaluation.
  void add_pause(double seconds) { paused_ += seconds; }
  void add_test(double seconds) { epoch_.tested += seconds; }

  [[nodiscard]] bool ends_epoch(int64_t done) const;
  // Epochs that are complete after `done` steps.
  [[nodiscard]] int64_t epochs_of(int64_t done) const;
  [[nodiscard]] bool has_steps() const { return epoch_.steps > 0; }
  // The epoch so far, and begins the next one where it ends after step `done`. The report lacks the
  // validation.
  [[nodiscard]] EpochReport end_epoch(int64_t done, double rate);
  // Of all steps of this process, without the pauses.
  [[nodiscard]] double images_per_second() const { return images_per_second_; }

  // The sums of the epoch as text, and from it; values that are missing stay as they are.
  [[nodiscard]] std::string sums() const;
  void read_sums(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  struct EpochSums {
    double loss = 0, correct = 0, steps = 0, samples = 0;
    // Of this process, until the last pause; `tested`: of the seconds, in evaluations.
    double seconds = 0, waited = 0, tested = 0, timed_steps = 0;
  };
  // Those that a checkpoint keeps.
  [[nodiscard]] static std::vector<double*> kept(EpochSums& sums);
  [[nodiscard]] double epochs() const;
  [[nodiscard]] double shown_loss(double loss);

  const Extents extents_;
  Clock::time_point begin_;
  int64_t first_ = 0;
  double paused_ = 0;
  EpochSums epoch_;
  double counted_to_ = 0, waited_before_ = 0;  // the time that epoch_ has
  double images_per_second_ = 0;
  std::deque<double> losses_;                      // of the last steps
  std::deque<std::pair<double, int64_t>> recent_;  // seconds and steps done, of the last steps
};

}  // namespace tandem
