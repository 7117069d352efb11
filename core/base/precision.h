// The precisions a user may ask for that are no dtype of their own.
#pragma once

#include <cstdint>

namespace tandem {

// Float32 whose products may round their factors to TF32. No tensor and no layer has it as a dtype
// (Layer::allows_tf32). Beside the TANDEM_ dtypes, of which the ABI will have fewer.
inline constexpr int32_t tf32_precision = 64;

}  // namespace tandem
