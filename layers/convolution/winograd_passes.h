// One group's Winograd passes over some rows of a batch: oneDNN's primitives and their scratch in
// scratch memory, of which each pass has all.
#pragma once

#include "layers/convolution/convolution.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class WinogradPasses {
 public:
  WinogradPasses(const dnnl::engine& engine, const sdk::Binding& binding, int64_t rows);
  // False: oneDNN has not all the passes that the binding wants.
  [[nodiscard]] bool exists() const { return exists_; }
  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t scratch_bytes() const { return bytes_; }

  // Weights from the host's order into oneDNN's, at `weights`, for the pass.
  cpu::Operation fetch, backward_fetch;
  cpu::Operation forward, backward_data, backward_weights;
  // Their gradient from oneDNN's order, at `weights`, into the host's, or added to what is there.
  cpu::Operation store, add;
  // Byte offsets in scratch memory. With groups: one group's rows of input and output.
  int64_t weights = 0, input = 0, output = 0, bias_gradient = 0;

 private:
  struct Description;
  // `wanted`: the weights, or their gradient, as the pass has them.
  [[nodiscard]] cpu::ScratchPlan plan(const Description& d, const dnnl::memory::desc& wanted);
  bool prepare_backward_data(const Description& d);
  bool prepare_backward_weights(const Description& d);

  int64_t rows_;
  bool exists_ = false;
  int64_t bytes_ = 0;
};

}  // namespace tandem::layers
