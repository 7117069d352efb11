// Joins the updates of neighbouring weight arrays, so that one call updates them all. Every element
// is updated by the same rule and with the same bits as before.
#pragma once

#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// The updates of the trained arrays that are not empty, with their sizes in bytes filled in.
// Neighbours with one rule are one update, unless each array has a rate of its own (`merges` is
// false, as for LARS). Only whole arrays are merged: what lies between them is padding, and not
// another device's part.
[[nodiscard]] std::vector<ArrayUpdate> merged_updates(const Net& net, const Plan& plan,
                                                      const std::vector<ArrayUpdate>& arrays,
                                                      bool merges);

}  // namespace tandem
