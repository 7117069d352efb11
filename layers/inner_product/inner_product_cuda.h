// InnerProduct on NVIDIA GPUs: cuBLAS with the plain weights. Slices use a part of the same
// matrices, so that nothing is copied. 16-bit tensors are multiplied by a copy of the weights,
// which is rounded when they are fetched; sums are float32 and rounded at the end. In float32, the
// forward pass of a whole layer adds the bias in the same kernel, by cuBLASLt.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "layers/common/fused_relu_cuda.h"
#include "layers/inner_product/inner_product.h"
#include "plugins/cuda/blas.h"
#include "plugins/cuda/blas_bias.h"
#include "plugins/cuda/scratch_memory.h"
#include "plugins/cuda/tensor_sums.h"

namespace tandem::layers {

// Initializes every row with the bias.
struct RowsOfBias {
  static constexpr int at_once = cuda::elements_at_once<float>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(bias, y) && outputs % at_once == 0 && stride % at_once == 0;
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(bias + (i - cuda::quotient(i, outputs) * outputs));
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<float, n>& v) const {
    const int64_t row = cuda::quotient(i, outputs);
    cuda::write(v, y + row * stride + (i - row * outputs));
  }
  cuda::Divisor outputs;
  int64_t stride;
  const float* bias;
  float* y;
};

// Stores contiguous rows of sums plus the bias, rounded.
template <class T>
struct RoundedRows {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(sums, bias) && cuda::are_aligned(y) && outputs % at_once == 0 &&
           stride % at_once == 0;
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(sums + i, bias + (i - cuda::quotient(i, outputs) * outputs));
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::TwoElements<float, n>& v) const {
    const int64_t row = cuda::quotient(i, outputs);
    write_with_relu(cuda::each_lane<n>([&](int lane) { return v.first[lane] + v.second[lane]; }),
                    y + row * stride + (i - row * outputs), fuses_relu);
  }
  cuda::Divisor outputs;
  int64_t stride;
  const float *sums, *bias;
  T* y;
  bool fuses_relu;
};

// The rounded copy of a binding's part of the weights, with contiguous rows.
template <class T>
struct RoundedWeights {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(weight) && cuda::are_aligned(rounded) &&
           (inputs == stride || (inputs % at_once == 0 && stride % at_once == 0));
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    if (inputs == stride) return cuda::read<n>(weight + i);
    const int64_t row = cuda::quotient(i, inputs);
    return cuda::read<n>(weight + row * stride + (i - row * inputs));
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<float, n>& v) const {
    cuda::write(cuda::each_lane<n>([&](int lane) { return v[lane]; }), rounded + i);
  }
  cuda::Divisor inputs;
  int64_t stride;
  const float* weight;
  T* rounded;
};

template <class T>
struct ColumnTerms {
  using Element = T;
  static constexpr int ahead = 4;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::NoConstants groups(int64_t) const {
    return {};
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n, aligned>(dy + i);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const cuda::NoConstants&, int,
                                               const cuda::Elements<T, n>& v, int lane) const {
    return v[lane];
  }
  const T* dy;
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
  InnerProductCuda(const sdk::Binding& binding, const sdk::Call& call)
      : rows_(binding.input(0).shape.n),
        inputs_(sdk::count(binding.input(0).shape) / rows_),
        outputs_(binding.raw.slice_end - binding.raw.slice_begin),
        weight_stride_(sdk::count(binding.weight(0)) / outputs_),
        output_stride_(binding.output(0).shape.c),
        first_input_(binding.input_begin()),
        first_output_(output_stride_ == outputs_ ? 0 : binding.raw.slice_begin),
        dtype_(binding.input(0).dtype),
        bias_(binding.attributes.boolean("bias_term")),
        adds_(binding.has(TANDEM_ADD_TO_OUTPUT)),
        tf32_(binding.has(TANDEM_ALLOWS_TF32)),
        fuses_relu_(binding.fuses_relu()),
        bias_sums_({rows_, 1, outputs_, 1, output_stride_}) {
    cuda::require_computable(dtype_, tf32_);
    if (bias_ && !adds_ && binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = bias_sums_.scratch_bytes();
    }
    if (dtype_ != TANDEM_FLOAT32) {
      scratch_bytes = std::max(scratch_bytes, rounded_bytes() + rows_ * outputs_ * 4);
    }
    algorithm = "cublasGemmEx";
    // The memory of a slice may have too small an alignment.
    const bool is_whole = outputs_ == binding.attributes.integer("num_output") &&
                          outputs_ == output_stride_ && inputs_ == weight_stride_;
    if (dtype_ == TANDEM_FLOAT32 && bias_ && !adds_ && is_whole) fuse_bias(call);
    if (tf32_) algorithm += " in TF32";
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t fused_activations = relu_only;

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_,
                        [&](auto element) { multiply_forward<decltype(element)>(call, pass); });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const cuda::Matrix<T> dy{pass.output_gradient<T>(0).get() + first_output_, output_stride_};
      cuda::multiply(call, dy, weights<T>(call, pass), pass.input_gradient<T>(0).get(), inputs_,
                     rows_, inputs_, outputs_, 0.0F, tf32_);
    });
  }

  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0).get() + first_output_;
      cuda::multiply(call, cuda::Matrix<T>{dy, output_stride_, true},
                     cuda::Matrix<T>{pass.input<T>(0).get(), inputs_},
                     pass.weight_gradient(0).get() + first_input_, weight_stride_, outputs_,
                     inputs_, rows_, pass.accumulate() ? 1.0F : 0.0F, tf32_);
      if (!bias_ || adds_) return;
      bias_sums_.run(call, ColumnTerms<T>{dy}, pass.scratch<double>().get(),
                     ColumnStore{pass.weight_gradient(1).get(), pass.accumulate()});
    });
  }

 private:
  void fuse_bias(const sdk::Call& call) {
    auto product = std::make_unique<cuda::BiasedProduct>(call, rows_, inputs_, outputs_, tf32_);
    if (!product->is_possible()) return;
    biased_product_ = std::move(product);
    scratch_bytes = std::max(scratch_bytes, biased_product_->scratch_bytes());
    algorithm += ", forward with the bias by cublasLtMatmul";
  }

  // Of the rounded weights, which are at the beginning of the scratch memory.
  [[nodiscard]] int64_t rounded_bytes() const { return cuda::scratch_part(outputs_ * inputs_ * 2); }

  template <class T>
  cuda::Matrix<T> weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* weight = pass.weight(0).get() + first_input_;
    if constexpr (std::is_same_v<T, float>) {
      return {weight, weight_stride_};
    } else {
      T* rounded = pass.scratch<T>().get();
      cuda::for_each(call, outputs_ * inputs_,
                     RoundedWeights<T>{inputs_, weight_stride_, weight, rounded});
      return {rounded, inputs_};
    }
  }

  template <class T>
  void multiply_forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const cuda::Matrix<T> x{pass.input<T>(0).get(), inputs_};
    cuda::Matrix<T> weight = weights<T>(call, pass);
    weight.transposed = true;
    T* y = pass.output<T>(0).get() + first_output_;
    const bool adds_bias = bias_ && !adds_;
    if constexpr (std::is_same_v<T, float>) {
      if (biased_product_ != nullptr) {
        biased_product_->run(call, x.values, weight.values, pass.weight(1).get(), y,
                             pass.raw.scratch);
        return apply_relu(call, y);
      }
      if (adds_bias) {
        cuda::for_each(call, rows_ * outputs_,
                       RowsOfBias{outputs_, output_stride_, pass.weight(1).get(), y});
      }
    } else if (adds_bias) {
      auto* sums = reinterpret_cast<float*>(pass.scratch<char>().get() + rounded_bytes());
      cuda::multiply(call, x, weight, sums, outputs_, rows_, outputs_, inputs_, 0.0F);
      cuda::for_each(
          call, rows_ * outputs_,
          RoundedRows<T>{outputs_, output_stride_, sums, pass.weight(1).get(), y, fuses_relu_});
      return;
    }
    cuda::multiply(call, x, weight, y, output_stride_, rows_, outputs_, inputs_,
                   bias_ || adds_ ? 1.0F : 0.0F, tf32_);
    apply_relu(call, y);
  }

  // A separate pass: cuBLASLt's epilogue is max(x, 0), which turns NaN into zero, so that the run
  // would not stop.
  template <class T>
  void apply_relu(const sdk::Call& call, T* y) const {
    if (!fuses_relu_) return;
    cuda::for_each(call, rows_ * outputs_, ReluOfRows<T>{outputs_, output_stride_, y});
  }

  int64_t rows_, inputs_, outputs_;
  int64_t weight_stride_, output_stride_;
  int64_t first_input_, first_output_;
  int32_t dtype_;
  bool bias_, adds_, tf32_, fuses_relu_;
  cuda::TensorSums<> bias_sums_;
  // of the whole layer's float32 forward pass
  std::unique_ptr<cuda::BiasedProduct> biased_product_;
};

}  // namespace tandem::layers
