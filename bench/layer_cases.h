// The layers that bench_layers times: shapes and parameters, without memory or kernels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"

namespace tandem::bench {

struct LayerCase {
  const char* name;
  const char* type;
  Shape input;
  std::map<std::string, std::vector<std::string>> parameters;
  uint32_t inputs = 1;  // of this shape each
};

// AlexNet's layers, then element-wise layers at the size of ResNet's first block, for a batch of
// `n`.
[[nodiscard]] std::vector<LayerCase> layer_cases(int64_t n);

}  // namespace tandem::bench
