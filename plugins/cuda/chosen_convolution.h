// A convolution by cuDNN or, where that is faster, by cuBLAS. Shapes and kinds decide, so that a
// repeated or resumed run has the same bits; a record of an earlier run that names engines of cuDNN
// is followed. Of cuBLAS nothing is measured and nothing has to be recorded.
#pragma once

#include <string>
#include <variant>

#include "plugins/cuda/dnn.h"
#include "plugins/cuda/point_convolution.h"

namespace tandem::cuda {

class ChosenConvolution {
 public:
  // As those of Convolution.
  ChosenConvolution(const sdk::Call& call, const ConvolutionShape& shape,
                    const ConvolutionKind& kind, bool backward_data, bool backward_weights,
                    const ConvolutionChoice& how, ConvolutionEpilogue epilogue)
      : passes_(how.recorded == nullptr && PointConvolution::computes(shape, kind)
                    ? Passes(PointConvolution(shape, backward_weights))
                    : Passes(Convolution(call, shape, kind, backward_data, backward_weights, how,
                                         epilogue))),
        is_measured_(how.is_measured() && std::holds_alternative<Convolution>(passes_)) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    return std::visit([](const auto& one) { return one.scratch_bytes(); }, passes_);
  }
  [[nodiscard]] std::string algorithm() const {
    const auto* dnn = std::get_if<Convolution>(&passes_);
    return dnn != nullptr ? dnn->algorithm() : PointConvolution::name;
  }
  // Whether the algorithm is a text that `how` takes again.
  [[nodiscard]] bool is_measured() const { return is_measured_; }

  [[nodiscard]] bool adds_bias() const {
    const auto* dnn = std::get_if<Convolution>(&passes_);
    return dnn != nullptr && dnn->adds_bias();
  }

  void forward(const sdk::Call& call, const void* x, const void* weight, const void* bias, void* y,
               void* scratch) const {
    std::visit([&](const auto& one) { one.forward(call, x, weight, bias, y, scratch); }, passes_);
  }
  void backward_data(const sdk::Call& call, const void* weight, const void* dy, void* dx,
                     void* scratch) const {
    std::visit([&](const auto& one) { one.backward_data(call, weight, dy, dx, scratch); }, passes_);
  }
  void backward_weights(const sdk::Call& call, const void* x, const void* dy, void* dw,
                        void* scratch) const {
    std::visit([&](const auto& one) { one.backward_weights(call, x, dy, dw, scratch); }, passes_);
  }

 private:
  using Passes = std::variant<PointConvolution, Convolution>;
  Passes passes_;
  bool is_measured_;
};

}  // namespace tandem::cuda
