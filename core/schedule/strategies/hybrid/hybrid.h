// The strategy `hybrid` (docs/design/strategies.md §5): conv devices and FC devices. Activations go
// from the first to the second, and the activation gradients and the gradient of the last
// convolution come back. Each kind of device sums and updates its own weights, layer by layer,
// while the next layer is computed.
#pragma once

#include <string>

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

struct HybridOptions {
  int conv_devices = 0, fc_devices = 0;  // 0: chosen
  std::string fc_memory;                 // "device" or "extended"; "": device
};
[[nodiscard]] const OptionTable<HybridOptions>& hybrid_options();

// Requires at least two devices, the same number of conv devices for each FC device, at least one
// row of the batch for each conv device, and a net in which all fully connected layers come after
// one last convolution.
[[nodiscard]] Strategy hybrid_strategy();

}  // namespace tandem
