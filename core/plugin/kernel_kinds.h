// For which kinds of devices a layer type has kernels.
#pragma once

#include <string>
#include <vector>

namespace tandem {

class Registry;

// Of the modules that are loaded (Registry::load_kernels), each kind once.
[[nodiscard]] std::vector<std::string> kinds_with_kernel(const Registry& registry,
                                                         const std::string& layer_type);

}  // namespace tandem
