// The setup of a run that is resumed: its record, with the changes that a resumed run may make.
#pragma once

#include "core/run/folder/run_folder.h"
#include "core/run/setup/setup.h"

namespace tandem {

// `options`: what the user changes (devices, strategy, epochs, steps, data, ...). Throws Error for
// a change that would make it another run (net, batch, seed, ...), and for data that have changed.
[[nodiscard]] TrainSetup resolve_resumed(Registry& registry, const TrainOptions& options,
                                         const RunFolder& folder,
                                         const Strategies& strategies = built_in_strategies());

}  // namespace tandem
