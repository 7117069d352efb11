#include "core/schedule/cost/link_loads.h"

#include <fmt/format.h>

#include <variant>

#include "core/base/overloaded.h"

namespace tandem {

const CopyWork* transfer_of(const Task& task) {
  return std::visit(
      overloaded{
          [&](const CopyWork& copy) { return task.streams.size() > 1 ? &copy : nullptr; },
          [](const OneOf<LayerWork, AddWork, MergeWork, NormWork, UpdateWork, CheckWork,
                         ConvertWork> auto&) -> const CopyWork* { return nullptr; },
      },
      task.work);
}

LinkLoads::LinkLoads(const Plan& plan, double bandwidth, const Topology* topology)
    : LinkLoads(bandwidth, topology) {
  for (const Task& task : plan.tasks) {
    const CopyWork* transfer = transfer_of(task);
    if (transfer == nullptr) continue;
    for (const CopySegment& segment : transfer->segments) {
      add(task.streams[1].device, task.streams[0].device,
          static_cast<double>(plan.bytes(segment.source)));
    }
  }
}

void LinkLoads::add(int source, int target, double bytes) {
  const double bandwidth = topology_ == nullptr ? bandwidth_ : topology_->bandwidth(source, target);
  sent_[source] += bytes / bandwidth;
  received_[target] += bytes / bandwidth;
  if (topology_ == nullptr) return;
  for (const uint32_t channel : topology_->path(source, target).channels) {
    channels_[channel] += bytes / topology_->channels[channel].bandwidth;
  }
}

std::pair<double, std::string> LinkLoads::busiest() const {
  std::pair<double, std::string> most{0, ""};
  for (const auto& [channel, seconds] : channels_) {
    if (seconds > most.first) most = {seconds, topology_->channels[channel].name};
  }
  for (const auto& [device, seconds] : sent_) {
    if (seconds > most.first) most = {seconds, fmt::format("what @{} sends", device)};
  }
  for (const auto& [device, seconds] : received_) {
    if (seconds > most.first) most = {seconds, fmt::format("what @{} receives", device)};
  }
  return most;
}

double LinkLoads::unevenness() const {
  double sum = 0;
  const auto add_squares = [&](const auto& loads) {
    for (const auto& [of, seconds] : loads) sum += seconds * seconds;
  };
  add_squares(sent_);
  add_squares(received_);
  add_squares(channels_);
  return sum;
}

}  // namespace tandem
