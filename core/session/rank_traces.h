// What the ranks of a job traced, put together on the clock of rank 0. Each machine has a clock of
// its own; a few messages to and fro tell how far it is from that of rank 0.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/schedule/report/report.h"
#include "core/session/session.h"

namespace tandem {

// The time of a machine by the host's clock, which was compared with it once.
class MachineClock {
 public:
  // While nothing else is on the first device's copy stream.
  explicit MachineClock(Session& session);
  [[nodiscard]] double at(std::chrono::steady_clock::time_point moment) const;
  [[nodiscard]] double now() const { return at(std::chrono::steady_clock::now()); }
  // Seconds by which it may be off.
  [[nodiscard]] double uncertainty() const { return uncertainty_; }

 private:
  std::chrono::steady_clock::time_point moment_;
  double seconds_ = 0, uncertainty_ = 0;
};

// What is to be added to a clock, which is `now`, to have that of rank 0: of the shortest of some
// messages to and fro. `uncertainty` is half the time it took, and what `now` may be off on both
// sides (`own_uncertainty`). Called by all ranks.
struct ClockShift {
  double seconds = 0, uncertainty = 0;
};
[[nodiscard]] ClockShift compare_clocks(const Communicator& ranks,
                                        const std::function<double()>& now,
                                        double own_uncertainty = 0);

// Of one rank, in the numbers of its own devices and on its own clock.
struct RankTrace {
  const Plan* plan = nullptr;
  std::vector<TraceEvent> events;
  std::vector<HostSpan> host;
  ClockShift shift;
};

// Of all ranks, for reports: the tasks that were traced say what they are and on which streams, in
// the numbers of all devices, and have no work and no memory.
struct JointTrace {
  Plan plan;
  std::vector<TraceEvent> events;
  std::vector<HostSpan> host;
  std::vector<TraceRank> ranks;
};

// Complete on rank 0, empty on others. Called by all ranks, which have as many devices each.
[[nodiscard]] JointTrace gather_traces(const Communicator& ranks, const RankTrace& mine);

}  // namespace tandem
