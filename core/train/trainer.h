// The loop and nothing else: batches in, steps issued, results out; evaluation, checkpoints and
// reports happen between steps. Same seed, devices and strategy give bit-identical weights; a
// resumed run equals one never stopped.
#pragma once

#include <filesystem>
#include <string>

#include "core/train/observer.h"
#include "core/train/options.h"

namespace tandem {

struct TrainResult {
  std::filesystem::path run;
  int64_t steps = 0;     // done in all
  bool stopped = false;  // by options.stop, before the end
  double loss = 0;       // of the last step
  Evaluation last, best;
  double seconds = 0;
  double images_per_second = 0;
};

// Trains as told and leaves a run folder. Every user error is an Error with one message; a loss
// that is not finite stops the run and names the step and the first layer.
TrainResult train(const TrainOptions& options, Observer& observer);

}  // namespace tandem
