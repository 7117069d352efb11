// The Winograd passes of one group over some rows of a batch: oneDNN's primitives and their offsets
// in scratch memory. Each pass uses all of the scratch memory.
#pragma once

#include "layers/convolution/convolution.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class WinogradPasses {
 public:
  WinogradPasses(const dnnl::engine& engine, const sdk::Binding& binding, int64_t rows);
  // False: oneDNN does not have all passes that the binding wants.
  [[nodiscard]] bool exists() const { return exists_; }
  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t scratch_bytes() const { return bytes_; }

  // The weights from the host's order to oneDNN's, at `weights`, for the pass.
  cpu::Operation fetch, backward_fetch;
  cpu::Operation forward, backward_data, backward_weights;
  // The weight gradient from oneDNN's order, at `weights`, to the host's order; `add` adds it to
  // the host's.
  cpu::Operation store, add;
  // Byte offsets in scratch memory. input and output are used with groups: one group's rows.
  int64_t weights = 0, input = 0, output = 0, bias_gradient = 0;

 private:
  struct Description;
  // `wanted`: the weights, or their gradient, in the format of the pass.
  [[nodiscard]] cpu::ScratchPlan plan(const Description& d, const dnnl::memory::desc& wanted);
  bool prepare_backward_data(const Description& d);
  bool prepare_backward_weights(const Description& d);

  int64_t rows_;
  bool exists_ = false;
  int64_t bytes_ = 0;
};

}  // namespace tandem::layers
