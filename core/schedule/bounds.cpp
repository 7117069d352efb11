#include "core/schedule/bounds.h"

#include <fmt/format.h>

#include <map>

namespace tandem {

namespace {

constexpr double assumed_bandwidth = 4e9;

// Seconds of each link, by name.
class Links {
 public:
  Links(double bandwidth, const Topology* topology)
      : bandwidth_(bandwidth > 0 ? bandwidth : assumed_bandwidth), topology_(topology) {}

  void add(int source, int target, double bytes) {
    if (topology_ == nullptr) {
      seconds_[fmt::format("what @{} sends", source)] += bytes / bandwidth_;
      seconds_[fmt::format("what @{} receives", target)] += bytes / bandwidth_;
      return;
    }
    for (const uint32_t index : topology_->path(source, target).channels) {
      const Topology::Channel& channel = topology_->channels[index];
      seconds_[channel.name] += bytes / channel.bandwidth;
    }
  }
  void busiest(StepBounds& bounds) const {
    for (const auto& [name, seconds] : seconds_) {
      if (seconds <= bounds.link) continue;
      bounds.link = seconds;
      bounds.link_name = name;
    }
  }

 private:
  double bandwidth_;
  const Topology* topology_;
  std::map<std::string, double> seconds_;
};

}  // namespace

StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs, double bandwidth,
                     const Topology* topology) {
  std::map<int, double> computes;
  Links links(bandwidth, topology);
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
  links.busiest(bounds);
  return bounds;
}

}  // namespace tandem
