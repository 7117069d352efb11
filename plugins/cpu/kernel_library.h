// The library that the cpu's kernels compute with, and what it can do on this CPU: for people.
#pragma once

#include <string>

namespace tandem::cpu {

// Such as "oneDNN 3.7.2 with AVX2; no bfloat16". Found when it is first
// called; what a layer does depends on the same functions (onednn.h).
[[nodiscard]] const std::string& kernel_library();

}  // namespace tandem::cpu
