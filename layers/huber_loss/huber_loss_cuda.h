// HuberLoss on NVIDIA GPUs.
#pragma once

#include "layers/euclidean_loss/euclidean_loss_cuda.h"
#include "layers/huber_loss/huber_loss.h"

namespace tandem::layers {

struct HuberTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const {
    if (!rows.holds_sample(cuda::quotient(i, size))) return 0;
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    const double absolute = difference < 0 ? -difference : difference;
    const double square = absolute < delta ? absolute : delta;
    return square * (absolute - square / 2);
  }
  SampleRows rows;
  cuda::Divisor size;
  double delta;
  const float *a, *b;
};

struct HuberGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const double factor = static_cast<double>(*loss_weight) / normaliser.divisor();
    const bool counts = rows.holds_sample(cuda::quotient(i, size));
    const float difference = a[i] - b[i];
    const float bounded = difference > delta ? delta : difference < -delta ? -delta : difference;
    gradient[i] = (counts ? static_cast<float>(factor) : 0.0F) * bounded;
  }
  SampleRows rows;
  DeviceNormaliser normaliser;
  cuda::Divisor size;
  float delta;
  const float *loss_weight, *a, *b;
  float* gradient;
};

class HuberLossCuda : public sdk::Needs {
 public:
  HuberLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)),
        size_(elements_ / binding.input(0).shape.n),
        delta_(binding.attributes.number("delta")),
        total_(elements_) {
    scratch_bytes = total_.scratch_bytes();
  }

  // A target is a label, which no layout changes.
  static sdk::LayoutOptions layouts(const sdk::Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call,
               HuberTerm{SampleRows(pass), size_, delta_, pass.input(0).get(), pass.input(1).get()},
               pass.scratch<double>().get(),
               StoreLoss{DeviceNormaliser(pass), 1, pass.output(0).get(), nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(
        call, elements_,
        HuberGradient{SampleRows(pass), DeviceNormaliser(pass), size_, static_cast<float>(delta_),
                      pass.output_gradient(0).get(), pass.input(0).get(), pass.input(1).get(),
                      pass.input_gradient(0).get()});
  }

 private:
  int64_t elements_, size_;
  double delta_;
  cuda::Total total_;
};

}  // namespace tandem::layers
