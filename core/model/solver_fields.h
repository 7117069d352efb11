// The fields of a solver file: what reads each into a SolverDefinition, checked for itself. What
// fields say together is checked by solver_checks.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/model/solver_definition.h"
#include "core/model/text_format.h"

namespace tandem {

using SolverField = std::function<void(const Field&, SolverDefinition&)>;

// By name; those that have no effect here leave a note.
[[nodiscard]] const std::map<std::string, SolverField>& solver_fields();
// By name in any case ("ADAM" is what old files say), or by the old enum's number.
void read_solver_type(const Field& field, SolverDefinition& solver);

}  // namespace tandem
