// `tandem plugin check`: tries to break every promise of layers and data sets, in a child process,
// so that a crash or an endless loop of a plugin is a broken promise and not the end of the check.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/check/options.h"

namespace tandem::checker {

// Throws Error, with all names, for one that no promise of layers or data sets has.
void require_promises(const std::vector<std::string>& names);

// Calls report() for each promise of each layer and data set, in order. False: the time was over
// before all were tried. Throws Error for an unknown target or promise.
bool check_plugins(const CheckOptions& options, const std::function<void(const Finding&)>& report);

}  // namespace tandem::checker
