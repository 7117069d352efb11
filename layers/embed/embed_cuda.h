// Embed on NVIDIA GPUs. A vector's gradient is summed over the batch in the batch's order: threads
// divide the values of the vectors, not the batch. The output for an invalid index is NaN.
#pragma once

#include <cmath>

#include "layers/embed/embed.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct EmbedIndices {
  static constexpr int64_t none = -1;      // holds no sample
  static constexpr int64_t no_index = -2;  // is not a whole number below `count`

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t of(int64_t i) const {
    const float value = x[i];
    if (value < 0) return none;
    const bool is_index = value < static_cast<float>(count) &&
                          static_cast<float>(static_cast<int64_t>(value)) == value;
    return is_index ? static_cast<int64_t>(value) : no_index;
  }
  int64_t count;
  const float* x;
};

struct EmbedForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, outputs), k = i - row * outputs;
    const int64_t index = indices.of(row);
    if (index < 0) {
      y[i] = index == EmbedIndices::none ? 0.0F : NAN;
    } else {
      y[i] = weight[index * outputs + k] + (bias == nullptr ? 0.0F : bias[k]);
    }
  }
  EmbedIndices indices;
  cuda::Divisor outputs;
  const float *weight, *bias;  // bias may be nullptr
  float* y;
};

struct EmbedBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t k) const {
    float bias = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices.of(i);
      if (index < 0) continue;
      dw[index * outputs + k] += dy[i * outputs + k];
      bias += dy[i * outputs + k];
    }
    if (db != nullptr) db[k] = (accumulate ? db[k] : 0.0F) + bias;
  }
  EmbedIndices indices;
  int64_t count, outputs;
  bool accumulate;
  const float* dy;
  float *dw, *db;
};

class EmbedCuda {
 public:
  EmbedCuda(const sdk::Binding& binding, const sdk::Call&)
      : count_(sdk::count(binding.input(0).shape)),
        outputs_(binding.attributes.integer("num_output")),
        indices_(binding.attributes.integer("input_dim")),
        bias_(binding.attributes.boolean("bias_term")) {}

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, count_ * outputs_,
                   EmbedForward{{indices_, pass.input(0).get()},
                                outputs_,
                                pass.weight(0).get(),
                                bias_ ? pass.weight(1).get() : nullptr,
                                pass.output(0).get()});
  }

  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    float* dw = pass.weight_gradient(0).get();
    if (!pass.accumulate()) cuda::clear(call, dw, indices_ * outputs_);
    cuda::for_each(call, outputs_,
                   EmbedBackward{{indices_, pass.input(0).get()},
                                 count_,
                                 outputs_,
                                 pass.accumulate(),
                                 pass.output_gradient(0).get(),
                                 dw,
                                 bias_ ? pass.weight_gradient(1).get() : nullptr});
  }

 private:
  int64_t count_, outputs_, indices_;
  bool bias_;
};

}  // namespace tandem::layers
