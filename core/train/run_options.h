// How a run's session is made from its setup, with what is chosen by measuring.
#pragma once

#include "core/train/session.h"
#include "core/train/setup.h"

namespace tandem {

// With `--split auto`, two_phase and several devices a few steps are measured first; their times
// are the costs that the split is then chosen by. The bits of a run do not depend on the split.
// With strategy `auto` the choice is made and written into the setup's record, its table into the
// messages.
[[nodiscard]] SessionOptions session_options(Registry& registry, TrainSetup& setup);

}  // namespace tandem
