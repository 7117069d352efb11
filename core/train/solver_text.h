// A solver definition as prototxt again, for the run folder.
#pragma once

#include <string>

#include "core/model/solver_definition.h"

namespace tandem {

[[nodiscard]] std::string write_solver(const SolverDefinition& solver);

}  // namespace tandem
