#include "core/schedule/execution/kernel_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/model/fields.h"
#include "core/plugin/registry.h"
#include "core/schedule/execution/capture.h"

namespace tandem {

void require_activation(const Layer& layer, const tandem_kernel& kernel, int32_t activation) {
  if (activation == TANDEM_ACTIVATION_NONE || (kernel.activations >> activation & 1U) != 0) return;
  throw error(
      "{}: its kernel for {} devices does no {} along, but the net was made for one that does{}",
      layer.title(), kernel.device_kind, activation_name(activation), in_file(layer.location));
}

std::string reason_against_graphs(const Registry& registry, const std::string& layer_type,
                                  const std::string& device_kind) {
  const std::string offer = fmt::format("kernel {}/{}", layer_type, device_kind);
  for (const ModuleReport& module : registry.modules()) {
    const auto& offers = module.offers;
    if (std::find(offers.begin(), offers.end(), offer) == offers.end()) continue;
    if (module.abi_minor >= minor_with_graphs) return "";
    return fmt::format("the kernel of '{}' is of {}, built for plugin ABI {}.{}, before graphs",
                       layer_type, module.path.filename().string(), module.abi_major,
                       module.abi_minor);
  }
  return "";
}

}  // namespace tandem
