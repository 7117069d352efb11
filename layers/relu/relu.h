// ReLU: y = x for x > 0, negative_slope * x otherwise, element by element; can run in place, since
// the slope is computed from the output.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Relu : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "ReLU"; }
  const char* help() const override { return "rectified linear unit, leaky with a negative_slope"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::number("relu_param", "negative_slope")
            .by_default("0")
            .range(0, 1e6)
            .help("slope below zero"),
        engine_parameter("relu_param"),
    };
  }
  int32_t activation(const sdk::Query& query) const override {
    const bool is_plain = query.attributes.number("negative_slope") == 0;
    return is_plain ? TANDEM_ACTIVATION_RELU : TANDEM_ACTIVATION_NONE;
  }
};

}  // namespace tandem::layers
