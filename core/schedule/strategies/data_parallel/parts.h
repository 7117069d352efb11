// The split of a net into its conv part and its FC part (docs/design/strategies.md §1): by name, or
// where the predicted step is the shortest.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct Parts {
  int split_layer = 0;                        // the first layer of the FC part
  std::vector<int> fc_weights, conv_weights;  // trained weight arrays; one used by both is conv's
  std::vector<std::string> notes;             // how it was chosen, what the AlexNet-like test says
};

// Error for a net that has no trained weights.
void require_weights_to_train(const Net& net);

// Error with near names for a layer that the net does not have.
void require_known_split(const Net& net, const std::string& split);

// Error for an unknown layer, for a split that leaves a part without trained weights,
// and for a net that has none. With "auto" and a single layer with trained weights, everything is
// the FC part.
[[nodiscard]] Parts choose_parts(const StrategyInputs& inputs);

// The parts when the FC part begins with this layer, whatever they hold.
[[nodiscard]] Parts parts_at(const Net& net, int split_layer);

// Predicted seconds of a two_phase step: a + b + max(c, m) + n + what of the broadcast is exposed.
// m and n hold the transfers, additions and updates; clipped updates of the FC part come after n.
[[nodiscard]] double predict_two_phase(const StrategyInputs& inputs, const Parts& parts);

}  // namespace tandem
