// A pass of a layer and the arrays of addresses that it points to.
#pragma once

#include <vector>

#include "plugins/abi.h"

namespace tandem {

struct LayerPointers {
  LayerPointers() { pass.struct_size = sizeof pass; }
  LayerPointers(const LayerPointers&) = delete;
  LayerPointers& operator=(const LayerPointers&) = delete;

  // Lets the pass point to the arrays as they are now.
  void connect() {
    pass.inputs = inputs.data();
    pass.outputs = outputs.data();
    pass.weights = weights.data();
    pass.input_gradients = input_gradients.data();
    pass.output_gradients = output_gradients.data();
    pass.weight_gradients = weight_gradients.data();
  }

  std::vector<void*> inputs, outputs, weights, input_gradients, weight_gradients;
  std::vector<const void*> output_gradients;
  tandem_pass pass{};
};

}  // namespace tandem
