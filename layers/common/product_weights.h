// The weights of layers that multiply by a matrix or by filters: "weight", and "bias" with one
// value per output. Their fillers are the parameters weight_filler and bias_filler, if they are
// set.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

inline std::vector<sdk::Weight> product_weights(const sdk::Attributes& attributes,
                                                const sdk::Shape& shape, int64_t fan_in,
                                                int64_t fan_out, int64_t outputs) {
  const auto filler = [&](const char* name) { return attributes.is_set(name) ? name : nullptr; };
  std::vector<sdk::Weight> result{{.name = "weight",
                                   .shape = shape,
                                   .filler = filler("weight_filler"),
                                   .fan_in = fan_in,
                                   .fan_out = fan_out}};
  if (attributes.boolean("bias_term")) {
    result.push_back({.name = "bias",
                      .shape = {outputs, 1, 1, 1},
                      .filler = filler("bias_filler"),
                      .fan_in = 1,
                      .fan_out = outputs});
  }
  return result;
}

}  // namespace tandem::layers
