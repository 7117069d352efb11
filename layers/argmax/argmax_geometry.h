// The runs over which ArgMax ranks values, and where it writes the results; the same code on host
// and device.
#pragma once

#include "layers/argmax/argmax.h"

namespace tandem::layers {

struct ArgMaxGeometry {
  explicit ArgMaxGeometry(const sdk::Binding& binding)
      : along_axis(binding.attributes.is_set("axis")),
        wants_values(binding.attributes.boolean("out_max_val")),
        top_k(binding.attributes.integer("top_k")) {
    const sdk::Shape& shape = binding.input(0).shape;
    const Extents e = extents_of(shape);
    const size_t axis = along_axis ? sample_axis(binding.attributes.integer("axis"), shape) : 1;
    for (size_t i = 0; i < axis; ++i) outer *= e[i];
    for (size_t i = axis; i < e.size(); ++i) (along_axis && i > axis ? inner : extent) *= e[i];
  }

  // Writes number `k` of run outer_index * inner + inner_index. `rank` as in ranked_index().
  TANDEM_HOST_DEVICE void write(float* y, int64_t outer_index, int64_t inner_index, int64_t k,
                                int64_t rank, const float* values) const {
    const int64_t run = outer_index * inner + inner_index;
    const int64_t index = rank < 0 ? -1 - rank : rank;
    const auto position = static_cast<float>(index);
    const float value = values[index * inner];
    if (along_axis) {
      y[(outer_index * top_k + k) * inner + inner_index] = wants_values ? value : position;
    } else if (wants_values) {
      y[2 * run * top_k + k] = position;
      y[(2 * run + 1) * top_k + k] = value;
    } else {
      y[run * top_k + k] = position;
    }
  }

  bool along_axis, wants_values;
  int64_t top_k, outer = 1, extent = 1, inner = 1;
};

// The rank of equal values: the index, or -1 - index for NaN. The larger rank comes first.
TANDEM_HOST_DEVICE inline int64_t ranked_index(float value, int64_t index) {
  return value == value ? index : -1 - index;
}

}  // namespace tandem::layers
