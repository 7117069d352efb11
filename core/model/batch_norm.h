// Which of the built-in layer types are a BatchNorm: the first three weights are the running sums
// of mean and variance and the sum of their weights, and batch_norm_param has the parameters.
#pragma once

#include <string_view>

namespace tandem {

// With two more weights, a factor and a bias for each channel.
[[nodiscard]] inline bool is_batch_norm_scale(std::string_view type) {
  return type == "BatchNormScale";
}

// With or without them.
[[nodiscard]] inline bool is_batch_norm(std::string_view type) {
  return type == "BatchNorm" || is_batch_norm_scale(type);
}

}  // namespace tandem
