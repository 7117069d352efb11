#include "core/schedule/cost/bounds.h"

#include <map>
#include <tuple>
#include <variant>

#include "core/schedule/cost/link_loads.h"

namespace tandem {

StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs, double bandwidth,
                     const Topology* topology) {
  std::map<int, double> computes;
  LinkLoads links(bandwidth, topology);
  for (const Task& task : plan.tasks) {
    if (std::holds_alternative<LayerWork>(task.work)) {
      const int device = task.streams[0].device;
      const double speed = topology == nullptr ? 1 : topology->speeds[size_t(device)];
      computes[device] += costs.seconds(net, plan, task) / speed;
    }
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.streams.size() < 2) continue;
    for (const CopySegment& segment : copy->segments) {
      links.add(plan.buffers[size_t(segment.source.buffer)].device,
                plan.buffers[size_t(segment.target.buffer)].device,
                static_cast<double>(plan.bytes(segment.source)));
    }
  }
  StepBounds bounds;
  for (const auto& [device, seconds] : computes) {
    if (seconds <= bounds.compute) continue;
    bounds.compute = seconds;
    bounds.device = device;
  }
  std::tie(bounds.link, bounds.link_name) = links.busiest();
  return bounds;
}

}  // namespace tandem
