// Passes of layers that take far longer than their work should: where a device has no fast kernel
// for a layer's extents. It knows nothing of the machine: operations are held against the fastest
// pass of the same net, and bytes against a rate that every device reaches.
#pragma once

#include <string>
#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

struct SlowPass {
  int layer = -1;
  LayerPass pass = LayerPass::forward;
  double seconds = 0;   // of the pass on the device where it takes longest
  double expected = 0;  // seconds that its work should take
  double share = 0;     // of the time of all passes of layers on that device
  // Whose rate was expected; -1: its bytes take longer than its operations at any layer's rate.
  int fastest_layer = -1;
};

// The passes that take over 10 ms, over five times as long as expected, and at least a
// tenth of the time of all passes on their device; the slowest comes first. The time of a task is
// the shortest of its events, so that one accident of the host is no slow layer: have some
// micro-batches of events. Layers whose types state no work are left out.
[[nodiscard]] std::vector<SlowPass> slow_passes(const Net& net, const Plan& plan,
                                                const std::vector<TraceEvent>& events);
// A line for the user, in whole words.
[[nodiscard]] std::string to_text(const Net& net, const SlowPass& slow);

}  // namespace tandem
