// SumLoss on NVIDIA GPUs.
#pragma once

#include "layers/common/rows_cuda.h"
#include "layers/sum_loss/sum_loss.h"

namespace tandem::layers {

struct SumLossTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t i) const {
    return rows.holds_sample(cuda::quotient(i, size)) ? static_cast<double>(x[i]) : 0;
  }
  SampleRows rows;
  cuda::Divisor size;
  const float* x;
};

struct SumLossGradient {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const double each = static_cast<double>(*loss_weight) / normaliser.divisor();
    gradient[i] = rows.holds_sample(cuda::quotient(i, size)) ? static_cast<float>(each) : 0.0F;
  }
  SampleRows rows;
  DeviceNormaliser normaliser;
  cuda::Divisor size;
  const float* loss_weight;
  float* gradient;
};

class SumLossCuda : public sdk::Needs {
 public:
  SumLossCuda(const sdk::Binding& binding, const sdk::Call&)
      : normaliser_(binding.attributes, 1),
        elements_(sdk::count(binding.input(0).shape)),
        size_(elements_ / binding.input(0).shape.n),
        total_(elements_) {
    scratch_bytes = total_.scratch_bytes();
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    total_.run(call, SumLossTerm{SampleRows(pass), size_, pass.input(0).get()},
               pass.scratch<double>().get(),
               StoreLoss{normaliser_.of(pass), 1, pass.output(0).get(), nullptr});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, elements_,
                   SumLossGradient{SampleRows(pass), normaliser_.of(pass), size_,
                                   pass.output_gradient(0).get(), pass.input_gradient(0).get()});
  }

 private:
  DeviceNormaliser normaliser_;
  int64_t elements_, size_;
  cuda::Total total_;
};

}  // namespace tandem::layers
