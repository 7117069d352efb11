#include "core/schedule/cost/bounds.h"

#include <map>
#include <tuple>
#include <variant>

#include "core/schedule/cost/link_loads.h"

namespace tandem {

StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs, double bandwidth,
                     const Topology* topology) {
  std::map<int, double> computes;
  for (const Task& task : plan.tasks) {
    if (!std::holds_alternative<LayerWork>(task.work)) continue;
    const int device = task.streams[0].device;
    const double speed = topology == nullptr ? 1 : topology->speeds[size_t(device)];
    computes[device] += costs.seconds(net, plan, task) / speed;
  }
  StepBounds bounds;
  for (const auto& [device, seconds] : computes) {
    if (seconds <= bounds.compute) continue;
    bounds.compute = seconds;
    bounds.device = device;
  }
  std::tie(bounds.link, bounds.link_name) = LinkLoads(plan, bandwidth, topology).busiest();
  return bounds;
}

}  // namespace tandem
