// What cannot be guessed from the declaration of a type: parameters and inputs of some built-in
// types, and the values that their inputs need.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/numbers/shape.h"

namespace tandem::checker {

using Parameters = std::vector<std::pair<std::string, std::string>>;

enum class Values { normal, positive, labels, indices, flags };

// Types whose inputs or parameters cannot be guessed from their declaration.
struct Known {
  std::string type;
  Parameters parameters;
  std::vector<Shape> inputs;  // empty: the generated ones
  uint32_t outputs = 0;
  std::vector<Values> values = {};
};

[[nodiscard]] const std::vector<Known>& known_types();

// The values that a known type needs where it has so many inputs: a logarithm and the base of a
// power positive ones, an index whole numbers. Empty: any.
[[nodiscard]] std::vector<Values> values_of(const std::string& type, size_t inputs);

}  // namespace tandem::checker
