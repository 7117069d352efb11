// Which of the built-in layer types are a BatchNorm: the first three weights are the running sums
// of mean and variance and the sum of their weights, and batch_norm_param has the parameters.
#pragma once

#include <string_view>

#include "core/model/file/text_format.h"

namespace tandem {

// With two more weights, a factor and a bias for each channel.
[[nodiscard]] inline bool is_batch_norm_scale(std::string_view type) {
  return type == "BatchNormScale";
}

// With or without them.
[[nodiscard]] inline bool is_batch_norm(std::string_view type) {
  return type == "BatchNorm" || is_batch_norm_scale(type);
}

// Makes the message of a BatchNorm with `batch_norm_param { scale_bias: true }` one of a
// BatchNormScale without that field, as a fork of Caffe reads it: a scale_filler or bias_filler
// alone has the same effect. Error for a scale_bias that is written twice, is no boolean, or does
// not agree with a filler or with `type: "BatchNormScale"`, and for param blocks that would train
// the running sums.
void read_scale_bias(Message& layer);

}  // namespace tandem
