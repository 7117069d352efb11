// What a training run begins with: the state of a checkpoint, or none.
#pragma once

#include "core/device/communicator.h"
#include "core/run/folder/checkpoint.h"

namespace tandem {

// What a run begins with: rank 0's to all, when all are ready for the first step. Without weights
// each rank draws the initial ones.
struct FirstState {
  bool is_resumed = false;
  Checkpoint checkpoint;
};
void share_first_state(const Communicator& ranks, FirstState& state);

}  // namespace tandem
