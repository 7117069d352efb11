// A net for people: each layer with its shapes, weights and work, and the whole as a drawing.
#pragma once

#include <string>
#include <vector>

#include "core/model/net.h"

namespace tandem {

struct LayerSummary {
  int layer = -1;              // in net.layers
  std::vector<Shape> outputs;  // at the net's batch
  int64_t weights = 0;         // values this layer is the first to use, trained or not
  double forward_flops = 0;    // of the whole batch
  double backward_flops = 0;
  int64_t output_bytes = 0;  // own memory of its outputs: nothing where it runs in place
};
[[nodiscard]] std::vector<LayerSummary> summarize(const Net& net);

// "fused into conv1": whose kernel does the layer's forward pass as it writes its output; "" if
// none.
[[nodiscard]] std::string fusion_text(const Net& net, const Layer& layer);

// Layers as boxes, tensors as edges with their sizes. For `dot -Tsvg`.
[[nodiscard]] std::string to_dot(const Net& net);

}  // namespace tandem
