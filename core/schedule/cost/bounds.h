// What no order of a plan's tasks can pass: a step takes at least as long as its busiest device
// computes, and as the bytes of its busiest link take. What a measured or simulated step is beyond
// that, its waits are to blame for.
#pragma once

#include <string>

#include "core/device/topology.h"
#include "core/model/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

struct StepBounds {
  double compute = 0, link = 0;  // seconds of a step
  int device = 0;                // the busiest
  std::string link_name;         // "hub0 -> hub1", "what @1 receives"; "": none
  [[nodiscard]] double step() const { return compute > link ? compute : link; }
};

// Of passes by the costs, slower or faster by the topology's speeds, and of the bytes of copies
// between devices, as LinkLoads counts them.
[[nodiscard]] StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs,
                                   double bandwidth, const Topology* topology = nullptr);

}  // namespace tandem
