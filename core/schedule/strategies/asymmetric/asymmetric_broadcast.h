// The broadcast of new weights in the strategy `asymmetric`: its messages and their routes.
#pragma once

#include <vector>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/asymmetric/asymmetric_rows.h"
#include "core/schedule/strategies/common/broadcast_routes.h"
#include "core/schedule/strategies/common/weight_division.h"

namespace tandem {

// A message to all devices: some of the weights of a layer that one device of W updates.
struct WeightMessage {
  int layer = -1;
  int number = 0;                // among those of the owner's part of the layer
  int owner = 0;                 // device
  std::vector<Interval> ranges;  // bytes of the weight array
  std::vector<int> line;         // devices that forward it, in both directions from its owner
};
// All messages, of about 2 MiB. `others`: the step without them.
[[nodiscard]] std::vector<WeightMessage> weight_messages(const StrategyInputs& inputs,
                                                         const AsymmetricGroups& groups,
                                                         const WeightDivision& division,
                                                         const Plan& others);

// The transfer of a message from one device to the next.
struct WeightTransfer {
  size_t message = 0;
  int from = 0, to = 0;
};
// All of them, those of a message in the order of its line.
[[nodiscard]] std::vector<WeightTransfer> weight_transfers(
    const std::vector<WeightMessage>& messages);

// The transfers of all messages, to E, whose next forward and backward need them, and within W.
void emit_broadcasts(PlanBuilder& builder, const WeightDivision& division,
                     const std::vector<WeightMessage>& messages);

}  // namespace tandem
