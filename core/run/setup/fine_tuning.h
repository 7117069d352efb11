// Fine-tuning: a run that begins with the weights of files. Some layers may keep them (--freeze,
// --freeze-bn), and what is new may learn faster (--head-lr). The run's net has all of it, so that
// a resumed run has the same.
#pragma once

#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// Reads the solver's weight files into the setup's first_weights, and changes its net by the
// options; messages tell each. Error for a file that does not fit, for options that freeze nothing
// or everything, and for frozen layers that no file has.
void resolve_fine_tuning(const Registry& registry, TrainSetup& setup);

}  // namespace tandem
