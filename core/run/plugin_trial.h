// What `tandem train` does before the first step with layers of third parties: it tries for a short
// time to break the promises by which they are trained (core/check), since most authors never call
// `tandem plugin check`.
#pragma once

#include <string>

#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// Throws Error, with the layer, the reason and a command that runs the failing case again, for a
// layer that breaks a promise. Otherwise returns a line for the user; "" if the net has no layer of
// a third party, or if all were tried in an earlier run: the same bytes of the modules with the
// same net.
[[nodiscard]] std::string try_plugins(Registry& registry, const TrainSetup& setup, bool has_ranks);

}  // namespace tandem
