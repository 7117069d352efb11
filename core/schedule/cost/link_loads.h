// How long the links of a machine are busy with given copies: every channel of the topology, and
// both ends of each device, which send and receive one copy after the other.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/device/machine.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// The copy of a task that copies from one device to another and so occupies a stream of each, the
// target's first; nullptr for every other task.
[[nodiscard]] const CopyWork* transfer_of(const Task& task);

class LinkLoads {
 public:
  // Without a topology only ends count, of `bandwidth` each; 0: 4 GB/s, as sim takes it to be.
  LinkLoads(double bandwidth, const Topology* topology)
      : bandwidth_(bandwidth > 0 ? bandwidth : 4e9), topology_(topology) {}

  // With all transfers of the plan.
  LinkLoads(const Plan& plan, double bandwidth, const Topology* topology);

  // A copy between two devices. Bytes below zero take one back.
  void add(int source, int target, double bytes);
  // Seconds, and which: "hub0 -> hub1", "what @1 receives"; 0 and "" if nothing was added.
  [[nodiscard]] std::pair<double, std::string> busiest() const;
  // The sum of the squares of all: of two ways to load the busiest alike, the less the evener.
  [[nodiscard]] double unevenness() const;

 private:
  double bandwidth_;
  const Topology* topology_;
  std::map<int, double> sent_, received_;  // seconds, by device
  std::map<uint32_t, double> channels_;
};

}  // namespace tandem
