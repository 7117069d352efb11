// The split of a net into its conv part and its FC part (docs/design/strategies.md §1).
#pragma once

#include <string>
#include <vector>

#include "core/model/net/net.h"
#include "core/schedule/strategies/common/option_table.h"
#include "core/schedule/strategies/data_parallel/alexnet_like.h"

namespace tandem {

// The options of strategies that divide a net into these parts.
struct PartsOptions : AlexNetThresholds {
  // A layer's name; auto: the smallest predicted step; alexnet: p of the AlexNet-like test.
  std::string split = "auto";
};
[[nodiscard]] const OptionTable<PartsOptions>& parts_options();

struct Parts {
  int split_layer = 0;                        // the first layer of the FC part
  std::vector<int> fc_weights, conv_weights;  // trained weight arrays; an array of both is conv's
};

// The parts when the FC part begins with this layer, whatever they hold.
[[nodiscard]] Parts parts_at(const Net& net, int split_layer);
// The same by the layer's name. Error for a layer that the net does not have, with near names, and
// for one that leaves a part without trained weights.
[[nodiscard]] Parts parts_at(const Net& net, const std::string& split);

// The layers where an FC part can begin: those with trained weights that no layer before them uses.
// At the first of them the conv part has no weights.
[[nodiscard]] std::vector<int> split_candidates(const Net& net);

}  // namespace tandem
