// The layer types and data sets that a check looks at, of the targets that its user names.
#pragma once

#include <string>
#include <vector>

#include "core/check/options.h"
#include "core/plugin/registry.h"

namespace tandem::checker {

// What is checked with all promises: a layer type with cases of some sizes, or a data set.
struct Unit {
  std::string target, type;
  bool is_data = false;
  CaseSizes sizes = CaseSizes::all;
};

// Whether a target is a module, and not a type or a data set.
[[nodiscard]] bool is_file(const std::string& target);
// Loads the module. Throws Error if it has nothing to check.
std::vector<Unit> units_of_module(Registry& registry, const std::string& file);
// The layers of the net, or those that --layer names; empty without a net.
[[nodiscard]] std::vector<NetUse> uses_of(const Registry& registry, const CheckOptions& options);
// All of the options, in order; `options.cases.uses` has what uses_of() gives.
[[nodiscard]] std::vector<Unit> units_of(Registry& registry, const CheckOptions& options);
// The error for a name that is not among the known ones.
[[nodiscard]] Error not_there(const std::string& what, const std::string& name,
                              const std::vector<std::string>& known);

}  // namespace tandem::checker
