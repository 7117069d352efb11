// What of a kernel is known to be wrong, or not known, before it is prepared.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/net.h"

namespace tandem {

class Registry;

// Error if the kernel does not offer the activation: a net is made for the kernels of one kind of
// device.
void require_activation(const Layer& layer, const tandem_kernel& kernel, int32_t activation);
// Why the type's kernel may not be captured: its module is of a plugin ABI before graphs; "" if
// not.
[[nodiscard]] std::string reason_against_graphs(const Registry& registry,
                                                const std::string& layer_type,
                                                const std::string& device_kind);

}  // namespace tandem
