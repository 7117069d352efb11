// File names that tell what a module holds, so that it need not be loaded before that is asked for:
// see registry.h.
#pragma once

#include <string>

namespace tandem {

inline const std::string dataset_prefix = "tandem_dataset_";
inline const std::string backend_prefix = "tandem_backend_";
inline const std::string kernels_prefix = "tandem_kernels_";

// `stem`: the file's name without ".so".
[[nodiscard]] inline bool is_put_off(const std::string& stem) {
  return stem.starts_with(dataset_prefix) || stem.starts_with(backend_prefix) ||
         stem.starts_with(kernels_prefix);
}

}  // namespace tandem
