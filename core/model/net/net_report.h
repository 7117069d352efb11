// Reports of a net for users: each layer with its shapes, weights and operations, and a drawing.
#pragma once

#include <string>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

struct LayerSummary {
  int layer = -1;              // in net.layers
  std::vector<Shape> outputs;  // at the net's batch
  int64_t weights = 0;         // values that this layer is the first to use, trained or not
  double forward_flops = 0;    // of the whole batch
  double backward_flops = 0;
  int64_t output_bytes = 0;  // memory of its outputs; 0 where it runs in place
};
[[nodiscard]] std::vector<LayerSummary> summarize(const Net& net);

// "fused into conv1", the layer whose kernel computes a pass; "" for -1, none.
[[nodiscard]] std::string fusion_text(const Net& net, int fused_into);

// Layers as boxes and tensors as edges with their sizes, for `dot -Tsvg`.
[[nodiscard]] std::string to_dot(const Net& net);

}  // namespace tandem
