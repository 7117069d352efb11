// The setup of a training run of several ranks: rank 0 resolves it, the others receive it and open
// their own data sets.
#pragma once

#include "core/device/communicator.h"
#include "core/plugin/registry.h"
#include "core/run/setup/setup.h"

namespace tandem {

// Error that names the first option that one process supports and several do not.
void require_supported_by_ranks(const Registry& registry, const TrainOptions& options);

// Rank 0's setup to the others, which open their own data sets. Error on a rank whose data are not
// rank 0's.
void send_setup(const Communicator& ranks, const TrainSetup& setup);
[[nodiscard]] TrainSetup receive_setup(const Communicator& ranks, Registry& registry,
                                       const TrainOptions& options, const Strategies& strategies);

}  // namespace tandem
