// Parameters of a type that nobody has given: a value of each required one, and other values of
// all, one after the other.
#pragma once

#include <string>
#include <vector>

#include "core/check/cases/known_types.h"
#include "plugins/abi.h"

namespace tandem::checker {

// The value of a required parameter; "" if none can be guessed.
[[nodiscard]] std::string guess(const tandem_parameter& p);

// The given parameters with another value of each parameter in turn, and each pair of switches and
// words.
[[nodiscard]] std::vector<Parameters> variants(const tandem_layer_type& type,
                                               const Parameters& base);

}  // namespace tandem::checker
