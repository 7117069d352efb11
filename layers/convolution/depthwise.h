// Depthwise convolution (each channel is a group) in vectors of channels, in all three passes, for
// any window, float32 (depthwise_kernels.h). Sums over the batch are divided into parts that depend
// on extents only, so that results do not depend on the number of threads.
#pragma once

#include <memory>
#include <vector>

#include "layers/convolution/convolution.h"
#include "layers/convolution/depthwise_kernels.h"

namespace tandem::layers {

class DepthwiseConvolution : public sdk::Needs {
 public:
  // Null for other convolutions, and where oneDNN's kernels are used: by layouts and instruction
  // set.
  static std::unique_ptr<DepthwiseConvolution> make(const sdk::Binding& binding);

  void forward(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const;

 private:
  // All lines of a plane, row by row, `at_once` for each row of the target.
  struct Lines {
    std::vector<depthwise::Tap> taps;
    std::vector<depthwise::Line> lines;
    int64_t at_once;
  };
  // What becomes of a row once it is complete.
  struct Finish {
    const float* bias;       // may be null
    bool rectifies;          // by a ReLU after the layer
    const float* rectified;  // the output of a ReLU before it, whose gradient is stored; or null
  };
  DepthwiseConvolution(const sdk::Binding& binding, const ConvolutionSettings& settings,
                       int64_t block);
  void plan_forward();
  void plan_backward();
  static void finish(Lines& lines, const std::vector<int64_t>& tap_counts);
  [[nodiscard]] int64_t sums_of_vector() const { return (points() + 1) * kernels_.lanes; }
  [[nodiscard]] int64_t first_channel(int64_t vector) const;  // in its block
  [[nodiscard]] int64_t points() const { return window_.kernel.h * window_.kernel.w; }
  void pack(const float* weights, float* packed) const;
  void convolve(const sdk::Call& call, const Lines& lines, int64_t source_plane,
                int64_t target_plane, const float* source, const float* weights,
                const Finish& finish, float* target) const;
  void sum_part(int64_t vector, int64_t part, const sdk::Pass& pass, float* sums) const;
  void store(const sdk::Pass& pass, const float* sums) const;

  const depthwise::Kernels& kernels_;
  sdk::Shape in_, out_;
  Window window_;
  bool bias_, fuses_relu_, follows_relu_;
  int64_t block_, blocks_, vectors_;  // vectors_: of a block
  int64_t parts_;                     // of the batch, in sums
  Lines forward_, backward_;
};

}  // namespace tandem::layers
