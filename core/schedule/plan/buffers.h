// The names and layouts of the buffers that every plan has and that the trainer, the executor and
// the strategies agree on.
#pragma once

#include <cstdint>

#include "core/base/numbers/interval.h"
#include "core/base/numbers/shape.h"
#include "core/model/net/net.h"

namespace tandem::buffers {

// Persistent, one per device: the net's whole weight array, `weight_floats` floats.
constexpr const char* weights = "weights";
// Persistent, on devices that update: the solver's state of what they update, placed as
// Plan::state_at says. The second one lies in extended memory.
constexpr const char* state = "state";
constexpr const char* extended_state = "extended state";
// One per device: its part of an array laid out as the weights. Transient; persistent if a step has
// several micro-batches.
constexpr const char* gradients = "gradients";
// Persistent, on devices that update, float64: the sum of squares of each weight array's gradient,
// then of each array; zeros for arrays that are not trained. Only where the solver's rule needs
// them.
constexpr const char* norms = "norms";
// Persistent, one per device, of training plans: for each scalar its loss weight, in 64 bytes of
// its own.
constexpr const char* constants = "constants";
// Persistent, 64 bytes: int32, not 0 once a loss was not finite. Updates change nothing from then
// on.
constexpr const char* found_inf = "found_inf";
// Transient, one per device: the scalars of its share, each in 64 bytes of its own.
constexpr const char* metrics = "metrics";
// Transient, 2 slots, one per device: its share of the batch, laid out as core/data's BatchLayout.
constexpr const char* input = "input";
// Transient, one per device, where the batch has bytes for pixels: the bytes of its share. They are
// converted to floats in the input, which has the same layout as for a batch of floats.
constexpr const char* pixels = "pixels";
// External, device -1: the global batch, laid out as core/data's BatchLayout.
constexpr const char* batch = "batch";
// Persistent, device -1, 2 slots: the summed scalars (64 bytes each), then (training) found_inf.
constexpr const char* results = "results";
// Persistent, device -1, 2 slots, of testing plans: the prediction tensor of the whole batch.
constexpr const char* predictions = "predictions";

constexpr int64_t scalar_bytes = 64;
// Weights, their gradients and the solver's state are float32, whatever the activations are.
constexpr int64_t float_bytes = sizeof(float);

[[nodiscard]] inline int64_t weight_bytes(const Net& net) {
  return net.weight_floats * float_bytes;
}
// The bytes of these elements, or of all, within the net's weight array.
[[nodiscard]] inline Interval bytes_of(const WeightArray& array, const Interval& elements) {
  return {(array.offset + elements.begin) * float_bytes,
          (array.offset + elements.end) * float_bytes};
}
[[nodiscard]] inline Interval bytes_of(const WeightArray& array) {
  return bytes_of(array, {0, array.count});
}
// The bytes of one sample's row of the tensor, by its dtype.
[[nodiscard]] inline int64_t row_bytes(const Net& net, int tensor) {
  const Tensor& t = net.tensor(tensor);
  return element_count(t.shape) / net.batch * dtype_bytes(t.dtype);
}
[[nodiscard]] inline int64_t norms_bytes(const Net& net) {
  return 2 * static_cast<int64_t>(net.weights.size() * sizeof(double));
}
// The same for all nets of up to 63 scalars, so that training and testing plans share the buffer.
[[nodiscard]] inline int64_t results_bytes(const Net& net) {
  const auto scalars = static_cast<int64_t>(net.scalars.size());
  return (scalars < 63 ? 64 : scalars + 1) * scalar_bytes;
}

}  // namespace tandem::buffers
