// By which ways and in which order the strategy `asymmetric` sends new weights.
#pragma once

#include <vector>

#include "core/schedule/link_loads.h"
#include "core/schedule/strategies/asymmetric_rows.h"
#include "core/schedule/strategies/broadcast_routes.h"
#include "core/schedule/strategies/weight_shares.h"

namespace tandem {

// A part of the weights that one device of W updates in a layer, on its way to all.
struct WeightChunk {
  int layer = -1, share = 0;  // of WeightShares::of(layer)
  int number = 0;             // of the share's
  int owner = 0;              // device
  std::vector<WeightRange> ranges;
  std::vector<int> line;  // devices that hand it on, from its owner both ways
  // Its next forward is so late that it may travel in the background: what is more urgent then
  // never waits behind it.
  bool is_late = false;
};
// All chunks, of about 2 MiB, in the order in which they take the links: by the costs, while
// several are ready, those of the layer whose next forward comes first. With clipping none is ready
// before all are. `others`: a plan of the step without them.
[[nodiscard]] std::vector<WeightChunk> weight_chunks(const StrategyInputs& inputs,
                                                     const AsymmetricGroups& groups,
                                                     const WeightShares& shares,
                                                     const Plan& others);

// A chunk handed from one device to the next.
struct WeightHop {
  size_t chunk = 0;
  int from = 0, to = 0;
};
// All of them, in the order of the chunks, but so that a device sends other chunks while one that
// it has to hand on is on its way to it. `owners`: how many.
[[nodiscard]] std::vector<WeightHop> weight_hops(const std::vector<WeightChunk>& chunks,
                                                 size_t owners);

}  // namespace tandem
