// InnerProduct on NVIDIA GPUs: cuBLAS on the plain weights. Slices are parts of the same matrices,
// so that nothing is copied.
#pragma once

#include "layers/inner_product/inner_product.h"
#include "plugins/cuda/blas.h"
#include "plugins/cuda/sums.h"

namespace tandem::layers {

// Every row begins as the bias.
struct RowsOfBias {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, outputs);
    y[row * stride + (i - row * outputs)] = bias[i - row * outputs];
  }
  cuda::Divisor outputs;
  int64_t stride;
  const float* bias;
  float* y;
};

struct ColumnTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t column, int64_t row) const {
    return static_cast<double>(dy[row * stride + column]);
  }
  int64_t stride;
  const float* dy;
};
struct ColumnStore {
  TANDEM_HOST_DEVICE void operator()(int64_t column, double sum) const {
    gradient[column] = (accumulate ? gradient[column] : 0.0F) + static_cast<float>(sum);
  }
  float* gradient;
  bool accumulate;
};

class InnerProductCuda : public sdk::Needs {
 public:
  InnerProductCuda(const sdk::Binding& binding, const sdk::Call&)
      : rows_(binding.input(0).shape.n),
        inputs_(sdk::count(binding.input(0).shape) / rows_),
        outputs_(binding.raw.slice_end - binding.raw.slice_begin),
        weight_stride_(sdk::count(binding.weight(0)) / outputs_),
        output_stride_(binding.output(0).shape.c),
        first_input_(binding.input_begin()),
        first_output_(output_stride_ == outputs_ ? 0 : binding.raw.slice_begin),
        bias_(binding.attributes.boolean("bias_term")),
        adds_(binding.has(TANDEM_ADD_TO_OUTPUT)),
        bias_sums_(outputs_, rows_, true) {
    if (bias_ && !adds_ && binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = bias_sums_.scratch_bytes();
    }
    algorithm = "cublasSgemm";
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    float* y = pass.output(0) + first_output_;
    if (bias_ && !adds_) {
      cuda::for_each(call, rows_ * outputs_,
                     RowsOfBias{outputs_, output_stride_, pass.weight(1), y});
    }
    cuda::multiply(call, {pass.input(0), inputs_},
                   {pass.weight(0) + first_input_, weight_stride_, true}, y, output_stride_, rows_,
                   outputs_, inputs_, bias_ || adds_ ? 1.0F : 0.0F);
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::multiply(call, {pass.output_gradient(0) + first_output_, output_stride_},
                   {pass.weight(0) + first_input_, weight_stride_}, pass.input_gradient(0), inputs_,
                   rows_, inputs_, outputs_, 0.0F);
  }

  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* dy = pass.output_gradient(0) + first_output_;
    cuda::multiply(call, {dy, output_stride_, true}, {pass.input(0), inputs_},
                   pass.weight_gradient(0) + first_input_, weight_stride_, outputs_, inputs_, rows_,
                   pass.accumulate() ? 1.0F : 0.0F);
    if (!bias_ || adds_) return;
    bias_sums_.run(call, ColumnTerm{output_stride_, dy}, pass.scratch<double>(),
                   ColumnStore{pass.weight_gradient(1), pass.accumulate()});
  }

 private:
  int64_t rows_, inputs_, outputs_;
  int64_t weight_stride_, output_stride_;
  int64_t first_input_, first_output_;
  bool bias_, adds_;
  cuda::GroupSums<> bias_sums_;
};

}  // namespace tandem::layers
