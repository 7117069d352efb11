// Convolutions by cuDNN: the three passes of y = w * x, and what may follow the first. Each pass is
// a graph and one of cuDNN's engines for it. By default the engine is the first usable one in the
// order of cuDNN's own model of the GPU. The same shapes on the same GPU and library give the same
// engine, so that a repeated or resumed run has the same bits. If the user allows it, the engine is
// the fastest measured one, which the host records and requests again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/dnn_choice.h"
#include "plugins/cuda/scratch_memory.h"

namespace tandem::cuda {

class Convolution {
 public:
  // `epilogue`: what the forward pass does, too, if adds_bias(). Throws Refusal if this GPU does
  // not support the kind, or does not have the recorded algorithms.
  Convolution(const sdk::Call& call, const ConvolutionShape& shape, const ConvolutionKind& kind,
              bool backward_data, bool backward_weights, const ConvolutionChoice& how,
              ConvolutionEpilogue epilogue = {}) {
    using detail::DnnPass;
    require_computable(kind.dtype, kind.allows_tf32);
    detail::PlanChooser chooser(call, shape, kind, how);
    plan(DnnPass::forward) = chooser.choose(DnnPass::forward, epilogue);
    if (backward_data) plan(DnnPass::backward_data) = chooser.choose(DnnPass::backward_data);
    if (backward_weights) {
      plan(DnnPass::backward_weights) = chooser.choose(DnnPass::backward_weights);
    }
    algorithm_ = chooser.text();
  }

  // The largest scratch size of the chosen engines, and their names for people and records.
  [[nodiscard]] int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const auto& plan : plans_) bytes = std::max(bytes, plan ? plan->scratch_bytes() : 0);
    return bytes == 0 ? 0 : bytes + scratch_alignment;
  }
  [[nodiscard]] const std::string& algorithm() const { return algorithm_; }
  // Whether forward() does what the epilogue says.
  [[nodiscard]] bool adds_bias() const {
    return plans_[static_cast<size_t>(detail::DnnPass::forward)]->adds_bias();
  }

  // Tensors, weights and bias have the kind's dtype. A result overwrites what was there.
  void forward(const sdk::Call& call, const void* x, const void* weight, const void* bias, void* y,
               void* scratch) const {
    run(call, detail::DnnPass::forward, {x, weight, y, bias}, scratch);
  }
  void backward_data(const sdk::Call& call, const void* weight, const void* dy, void* dx,
                     void* scratch) const {
    run(call, detail::DnnPass::backward_data, {dx, weight, dy, nullptr}, scratch);
  }
  void backward_weights(const sdk::Call& call, const void* x, const void* dy, void* dw,
                        void* scratch) const {
    run(call, detail::DnnPass::backward_weights, {x, dw, dy, nullptr}, scratch);
  }

 private:
  [[nodiscard]] std::optional<detail::Plan>& plan(detail::DnnPass pass) {
    return plans_[static_cast<size_t>(pass)];
  }
  void run(const sdk::Call& call, detail::DnnPass pass, const detail::Operands& operands,
           void* scratch) const {
    check(plans_[static_cast<size_t>(pass)]->run(dnn_of(call), operands, aligned_scratch(scratch)),
          "cudnnBackendExecute");
  }

  std::array<std::optional<detail::Plan>, detail::dnn_passes> plans_;
  std::string algorithm_;
};

}  // namespace tandem::cuda
