// The routes of a broadcast: lines of devices, each of which hands on what it has received, chosen
// so that no link is much busier than the others.
#pragma once

#include <vector>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/strategy.h"

namespace tandem {

// Devices in the order of the line, along which the owner sends both ways.
struct BroadcastRoute {
  std::vector<int> line;
};

// What the bytes of `owner`, both ways along the line, add to the links' loads.
void add_line(LinkLoads& loads, const std::vector<int>& line, int owner, double bytes);

// One route for each of the `parts` of every owner's bytes, by owner, then part. Each is the one
// that leaves the busiest link least busy, of such the evenest, given `loads` (what else the links
// carry in a step) and the routes before it.
[[nodiscard]] std::vector<std::vector<BroadcastRoute>> broadcast_routes(
    const StrategyInputs& inputs, LinkLoads loads, const std::vector<int>& owners,
    const std::vector<double>& bytes, int parts);

}  // namespace tandem
