// Training with other strategies than the built-in ones. The loop is training_run.h; same seed,
// devices and strategy give bit-identical weights, and a resumed run equals one never stopped.
#pragma once

#include "core/schedule/strategies/strategies.h"
#include "include/tandem/train.h"

namespace tandem {

// `strategies` are those that the options may name; they outlive the call.
TrainResult train(const TrainOptions& options, Observer& observer, const Strategies& strategies);

}  // namespace tandem
