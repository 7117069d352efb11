#include "core/plugin/kernel_kinds.h"

#include <algorithm>

#include "core/plugin/registry.h"

namespace tandem {

std::vector<std::string> kinds_with_kernel(const Registry& registry,
                                           const std::string& layer_type) {
  const std::string prefix = "kernel " + layer_type + "/";
  std::vector<std::string> kinds;
  for (const ModuleReport& module : registry.modules()) {
    for (const std::string& offer : module.offers) {
      if (!offer.starts_with(prefix)) continue;
      const std::string kind = offer.substr(prefix.size());
      if (std::count(kinds.begin(), kinds.end(), kind) == 0) kinds.push_back(kind);
    }
  }
  return kinds;
}

}  // namespace tandem
