// What `tandem train` does before the first step with layers and data sets of third parties: it
// tries for a short time to break the promises by which they are trained (core/check), since most
// authors never call `tandem plugin check`.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// Throws Error for what breaks a promise: the layer or the data set, the reason, and a command that
// runs the failing case again. Otherwise returns lines for the user; none if the run has nothing of
// a third party, or if all was tried in an earlier run: the same bytes of the modules with the same
// net, or with the same source and parameters. `without`: promises that are not tried, nor
// remembered as tried; an unknown name is an Error.
[[nodiscard]] std::vector<std::string> try_plugins(Registry& registry, const TrainSetup& setup,
                                                   const std::vector<std::string>& without,
                                                   bool has_ranks);

}  // namespace tandem
