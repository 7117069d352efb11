// The cases of a type for which its author gives none: usual shapes, inputs of several kinds, and
// other values of each parameter.
#pragma once

#include <vector>

#include "core/check/cases/maker.h"

namespace tandem::checker {

// Throws Error, with the type's reason, if it accepts none.
[[nodiscard]] std::vector<Case> generated_cases(const Maker& maker, const tandem_layer_type& type);

// The least number of outputs with which a layer of the type computes something.
[[nodiscard]] uint32_t min_outputs(const tandem_layer_type& type);

}  // namespace tandem::checker
