// In which pieces and by which ways the strategy `asymmetric` sends new weights.
#pragma once

#include <vector>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/asymmetric/asymmetric_groups.h"
#include "core/schedule/strategies/common/broadcast_routes.h"
#include "core/schedule/strategies/common/weight_shares.h"

namespace tandem {

// A part of the weights that one device of W updates in a layer, on its way to all.
struct WeightChunk {
  int layer = -1, share = 0;  // of WeightShares::of(layer)
  int number = 0;             // of the share's
  int owner = 0;              // device
  std::vector<WeightRange> ranges;
  std::vector<int> line;  // devices that hand it on, from its owner both ways
};
// All chunks, of about 2 MiB. `others`: the step without them.
[[nodiscard]] std::vector<WeightChunk> weight_chunks(const StrategyInputs& inputs,
                                                     const AsymmetricGroups& groups,
                                                     const WeightShares& shares,
                                                     const Plan& others);

// A chunk handed from one device to the next.
struct WeightHop {
  size_t chunk = 0;
  int from = 0, to = 0;
};
// All of them, those of a chunk in the order of its line.
[[nodiscard]] std::vector<WeightHop> weight_hops(const std::vector<WeightChunk>& chunks);

// The transfers of all chunks, to E, whose next forward and errors need them, and within W.
void emit_broadcasts(PlanBuilder& builder, const WeightShares& shares,
                     const std::vector<WeightChunk>& chunks);

}  // namespace tandem
