// Mixed samples and weighed classes: the net that can take them, and what the loader makes of the
// labels.
#pragma once

#include "core/data/targets.h"
#include "core/train/setup.h"

namespace tandem {

// Of a new run: its class weights, and a net that reads a target for each class if anything needs
// it. Error for options that do not fit each other, the data or the net.
void resolve_targets(const Registry& registry, TrainSetup& setup);

[[nodiscard]] TargetOptions target_options(const TrainSetup& setup);

}  // namespace tandem
