// What a run tells whoever watches: programs draw a progress bar, the run folder's recorder writes
// log and CSV. The trainer does not know them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data/loader.h"

namespace tandem {

struct StepReport {
  int64_t step = 0;   // done, counted from 1
  int64_t steps = 0;  // of the run
  int64_t epoch = 0;  // of its first sample, from 0
  double epochs = 0;  // of the run
  double loss = 0;    // weighted sum of the losses
  double rate = 0;
  double images_per_second = 0;  // over the last reports
  double seconds_left = 0;       // -1: not known yet
  double waited_seconds = 0;     // for data, since the run began
  int64_t skipped = 0;           // damaged samples in this batch
};

struct Evaluation {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t samples = 0, skipped = 0;
  double loss = 0;
  bool has_accuracy = false;
  double top1 = 0, top5 = 0;  // shares of the samples
  bool best = false;
  std::vector<BadSample> bad;  // what was skipped, and why
  std::vector<std::pair<std::string, double>>
      scalars;  // the net's own losses and metrics, means over samples
  std::vector<std::vector<int64_t>> confusion;  // [true class][predicted]; empty above 1000 classes
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_message(const std::string& /*line*/) {}
  virtual void on_step(const StepReport& /*report*/) {}
  virtual void on_evaluation(const Evaluation& /*evaluation*/) {}
};

}  // namespace tandem
