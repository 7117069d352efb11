// The batch of a run by the memory of its devices, from the plan of a training step: nothing is
// allocated or computed.
#pragma once

#include <cstdint>

#include "core/run/setup/train_setup.h"

namespace tandem {

// Bytes that are available on each device of the setup, or to all of them together if they share
// the host's memory. 0: not known.
[[nodiscard]] int64_t available_memory(const Registry& registry, const TrainSetup& setup);

// `batch`, halved down to `least` at most, until a training step of the setup's net takes no more
// than 80 % of `available`: what libraries keep for themselves is not in the plan. `batch` if the
// step cannot be planned or `available` is 0.
[[nodiscard]] int64_t batch_in_memory(Registry& registry, const TrainSetup& setup, int64_t batch,
                                      int64_t least, int64_t available);

}  // namespace tandem
