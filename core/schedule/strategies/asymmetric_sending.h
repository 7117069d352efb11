// What the strategy `asymmetric` sends backward, when, and by which ways.
#pragma once

#include <vector>

#include "core/schedule/strategies/asymmetric_groups.h"
#include "core/schedule/strategies/broadcast_routes.h"
#include "core/schedule/strategies/weight_shares.h"

namespace tandem {

// Of each device of W, of each piece of what it has updated.
using AsymmetricRoutes = std::vector<std::vector<BroadcastRoute>>;
constexpr int broadcast_pieces = 2;

// `others`: a plan of the step without broadcasts, for what else the links carry.
[[nodiscard]] AsymmetricRoutes asymmetric_routes(const StrategyInputs& inputs,
                                                 const AsymmetricGroups& groups,
                                                 const Plan& others);

// A layer's errors on their way to W, or its new weights on their way to all.
struct LayerMove {
  int layer = -1;
  bool is_return = false;
};
// The order in which they take the links, by the costs: errors first, because E's next passes and
// W's follow them; while none is ready, the weights that the next forward needs first. With
// clipping all errors come first.
[[nodiscard]] std::vector<LayerMove> asymmetric_moves(const StrategyInputs& inputs,
                                                      const AsymmetricGroups& groups,
                                                      const WeightShares& shares);

}  // namespace tandem
