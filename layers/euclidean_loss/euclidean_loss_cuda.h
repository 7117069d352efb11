// EuclideanLoss on NVIDIA GPUs, in any layout that both inputs have.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/euclidean_loss/euclidean_loss.h"

namespace tandem::layers {

// For losses that compare two inputs element by element.
inline sdk::LayoutOptions layouts_of_pairs(const sdk::Binding& binding) {
  if (sdk::equal(binding.input(0).shape, binding.input(1).shape)) return cuda::plain_layouts();
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
}

struct SquaredDistance {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const {
    if (!rows.holds_sample(cuda::quotient(i, size))) return 0;
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return distance * distance;
  }
  SampleRows rows;
  cuda::Divisor size;
  const float *a, *b;
};

struct EuclideanGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const double factor = static_cast<double>(*loss_weight) / normaliser.divisor();
    const bool counts = rows.holds_sample(cuda::quotient(i, size));
    gradient[i] = (counts ? static_cast<float>(factor) : 0.0F) * (own[i] - other[i]);
  }
  SampleRows rows;
  DeviceNormaliser normaliser;
  cuda::Divisor size;
  const float *loss_weight, *own, *other;
  float* gradient;
};

class EuclideanLossCuda : public sdk::Needs {
 public:
  EuclideanLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)),
        size_(elements_ / binding.input(0).shape.n),
        total_(elements_) {
    scratch_bytes = total_.scratch_bytes();
  }

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return layouts_of_pairs(binding);
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call,
               SquaredDistance{SampleRows(pass), size_, pass.input(0).get(), pass.input(1).get()},
               pass.scratch<double>().get(),
               StoreLoss{DeviceNormaliser(pass), 0.5, pass.output(0).get(), nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    for (const size_t input : {size_t{0}, size_t{1}}) {
      if (pass.input_gradient(input).get() == nullptr) continue;
      cuda::for_each(
          call, elements_,
          EuclideanGradient{SampleRows(pass), DeviceNormaliser(pass), size_,
                            pass.output_gradient(0).get(), pass.input(input).get(),
                            pass.input(1 - input).get(), pass.input_gradient(input).get()});
    }
  }

 private:
  int64_t elements_, size_;
  cuda::Total total_;
};

}  // namespace tandem::layers
