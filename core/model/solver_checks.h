// What no single field of a solver can say wrong, but several together can.
#pragma once

#include <map>
#include <string>

#include "core/model/solver_definition.h"
#include "core/model/text_format.h"

namespace tandem {

// `written`: the fields that were written, and where. Error for the first contradiction.
void check_solver(const SolverDefinition& solver, const std::map<std::string, Location>& written);

}  // namespace tandem
