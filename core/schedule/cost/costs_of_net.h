// Whether a file's costs are of the net that they are to be used for. Costs are found by the names
// of layers, which many nets share ("conv1"), so those of another net would be taken without a
// word.
#pragma once

#include <string>

#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"

namespace tandem {

// What the time of a layer depends on besides its rows: type, inputs, outputs and weights, as
// "Convolution 3x32x32 to 64x32x32 by 64x3x3x3 64x1x1x1".
[[nodiscard]] std::string extents_of(const Net& net, int layer);

// `name`: as --net names the net. Throws Error, with the `file` of the costs, if they are of
// another net: of another model, or of a file whose layers have other names or extents. A copy of a
// net, also with some other layers, has its costs; so has every net those of a file that says
// nothing of its net. The costs of single layers with other extents are removed.
void take_costs_of(const std::string& name, const NetDefinition& definition, const Net& net,
                   const std::string& file, CostTable& costs);

}  // namespace tandem
