// When copies between the devices of a machine are done, in virtual time: channels that serve one
// copy after the other in the order in which they are reserved, as those of plugins/links.h do,
// which the simulator has. A strategy can so try orders while it makes a plan.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/device/machine.h"

namespace tandem {

class LinkClock {
 public:
  // Without a topology each ordered pair of devices is a channel of `link`; bandwidth 0: 4 GB/s, as
  // sim takes it to be.
  LinkClock(const LinkSpec& link, const Topology* topology);

  // Of a copy that meets no other.
  [[nodiscard]] double seconds_alone(int source, int target, int64_t bytes) const;
  // A copy that is ready at `ready`: when it is done.
  double reserve(int source, int target, int64_t bytes, double ready);
  // From when a copy would take no longer than alone.
  [[nodiscard]] double free_for(int source, int target, int64_t bytes) const;

 private:
  struct Channel {
    double bandwidth = 0;
    double free = 0, free_of_small = 0;  // when its last copy leaves it
  };
  struct Way {
    double latency = 0;
    std::vector<size_t> channels;
  };
  [[nodiscard]] const Way& way(int source, int target) const;

  LinkSpec link_;
  const Topology* topology_;
  mutable std::vector<Channel> channels_;
  mutable std::map<std::pair<int, int>, Way> ways_;
};

}  // namespace tandem
