// Whether a file's costs are of the net that they are to be used for. Costs are found by the names
// of layers, which many nets share ("conv1"), so those of another net would be taken without a
// word.
#pragma once

#include <string>

#include "core/model/definition.h"
#include "core/schedule/cost/cost_table.h"

namespace tandem {

// `net`: as --net names it. Throws Error, with the `file` of the costs, if they are of another net:
// of another model, or of a file with other layers. A copy of a net, also with some other layers,
// has its costs; so has every net those of a file that names none.
void require_costs_of(const std::string& net, const NetDefinition& definition,
                      const CostTable& costs, const std::string& file);

}  // namespace tandem
