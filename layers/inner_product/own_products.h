// The products of InnerProduct by matrix_product.h, where oneDNN has only reference code.
#pragma once

#include <algorithm>
#include <string>

#include "layers/common/matrix_product.h"
#include "layers/inner_product/product_extents.h"

namespace tandem::layers {

class OwnProducts {
 public:
  OwnProducts(const ProductExtents& e, int32_t threads)
      : e_(e),
        // As y^T = W x^T: x is copied, not the weights, whose values follow each other in a row.
        forward_({e.outputs,
                  e.rows,
                  e.inputs,
                  {e.weight_stride, 1},
                  {1, e.inputs},
                  {1, e.output_stride}},
                 threads),
        backward_data_({e.rows,
                        e.inputs,
                        e.outputs,
                        {e.output_stride, 1},
                        {e.weight_stride, 1},
                        {e.inputs, 1}},
                       threads),
        backward_weights_({e.outputs,
                           e.inputs,
                           e.rows,
                           {1, e.output_stride},
                           {e.inputs, 1},
                           {e.weight_stride, 1}},
                          threads) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    return std::max({forward_.scratch_bytes(), backward_data_.scratch_bytes(),
                     backward_weights_.scratch_bytes()});
  }
  [[nodiscard]] std::string name() const { return forward_.name(); }

  // Tensors that lie as in the extents. Without `bias` it is zero, or what y has if the layer adds.
  void forward(int32_t threads, const float* x, const float* weights, const float* bias, float* y,
               float* scratch) const {
    for (int64_t row = 0; row < e_.rows && !e_.adds; ++row) {
      float* target = y + row * e_.output_stride;
      bias != nullptr ? std::copy_n(bias, e_.outputs, target)
                      : std::fill_n(target, e_.outputs, 0.0F);
    }
    forward_.run(threads, weights, x, y, true, scratch);
  }
  void backward_data(int32_t threads, const float* dy, const float* weights, float* dx,
                     float* scratch) const {
    backward_data_.run(threads, dy, weights, dx, false, scratch);
  }
  void backward_weights(int32_t threads, const float* x, const float* dy, bool adds,
                        float* gradient, float* scratch) const {
    backward_weights_.run(threads, dy, x, gradient, adds, scratch);
  }

 private:
  ProductExtents e_;
  MatrixProduct forward_, backward_data_, backward_weights_;
};

}  // namespace tandem::layers
