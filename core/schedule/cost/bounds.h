// Lower bounds of the time of a step for any order of a plan's tasks: the compute of the busiest
// device, the copies of the busiest link, and chains of tasks that wait for each other. A measured
// or simulated step is longer because of its waits.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/device/topology.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/cost/step_model.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// The copy of a task that copies from one device to another and so occupies a stream of each, the
// target's first; nullptr for every other task.
[[nodiscard]] const CopyWork* transfer_of(const Task& task);

// How long copies keep links busy: each channel of the topology, and the sending and the receiving
// side of each device, which handles one copy at a time.
class LinkLoads {
 public:
  // Without a topology only the sides of devices count, with `bandwidth` each; 0: the bandwidth of
  // a simulated link.
  LinkLoads(double bandwidth, const Topology* topology)
      : bandwidth_(bandwidth > 0 ? bandwidth : timing::default_link_bandwidth),
        topology_(topology) {}
  // The same, with all transfers of the plan added.
  LinkLoads(const Plan& plan, double bandwidth, const Topology* topology);

  // A copy between two devices. Negative bytes remove one.
  void add(int source, int target, double bytes);
  // The busiest one's seconds and name: "hub0 -> hub1", "what @1 receives"; 0 and "" if nothing
  // was added.
  [[nodiscard]] std::pair<double, std::string> busiest() const;
  // The sum of the squares of all loads: the smaller, the more even the loads.
  [[nodiscard]] double unevenness() const;

 private:
  double bandwidth_;
  const Topology* topology_;
  std::map<int, double> sent_, received_;  // seconds, by device
  std::map<uint32_t, double> channels_;
};

struct StepBounds {
  double compute = 0, link = 0;  // seconds of a step
  int device = 0;                // the busiest
  std::string link_name;         // "hub0 -> hub1", "what @1 receives"; "": none
  [[nodiscard]] double step() const { return compute > link ? compute : link; }
};

// From the costs of passes, with the topology's speeds, and from the bytes of copies between
// devices, as LinkLoads adds them.
[[nodiscard]] StepBounds bounds_of(const Net& net, const Plan& plan, const CostTable& costs,
                                   double bandwidth, const Topology* topology = nullptr);

// The least time from an update to the same update of the next step: the new weights reach a
// device, the device computes, and the tasks that the next update waits for follow.
struct ChainBound {
  double seconds = 0;   // of a step; 0: the plan updates nothing
  int device = 0;       // which computes meanwhile
  double computes = 0;  // the part of `seconds` in which it computes
  std::string task;     // the update
};

// From conflicts in memory only: streams and their order do not count, and copies do not delay each
// other. The largest over one update of each layer, and over the devices. The time of a layer is
// proportional to the tasks, so of more than 512 layers about so many are looked at, evenly spaced:
// the bound of some is one, too.
[[nodiscard]] ChainBound chain_bound(const StepModel& model, const Plan& plan);

}  // namespace tandem
