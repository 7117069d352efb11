// The routes of a broadcast: lines of devices, each of which forwards what it has received, chosen
// so that no link is much busier than the others.
#pragma once

#include <vector>

#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/cost/bounds.h"

namespace tandem {

// Devices in the order of the line, along which the owner sends in both directions.
struct BroadcastRoute {
  std::vector<int> line;
};

// Adds a broadcast of these bytes from `owner`, in both directions along the line, to the loads.
void add_line(LinkLoads& loads, const std::vector<int>& line, int owner, double bytes);

// One route for each of the `parts` of every owner's bytes, by owner, then part. Each
// minimizes the load of the busiest link, given `loads` (the other copies of a step) and the routes
// chosen before it. Equal ones are compared by LinkLoads::unevenness() of the broadcasts alone.
[[nodiscard]] std::vector<std::vector<BroadcastRoute>> broadcast_routes(
    const StrategyInputs& inputs, LinkLoads loads, const std::vector<int>& owners,
    const std::vector<double>& bytes, int parts);

}  // namespace tandem
