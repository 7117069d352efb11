// Convolution by Winograd's algorithms on the cpu, in all three passes, for any layout, batch and
// groups (winograd_kernels.h has the algorithms and the loops). F(4x4, 3x3) needs 36
// multiplications where direct convolution needs 144, F(2x2, 5x5) 36 instead of 100. With a
// dilation of d a tile lies in one of the images of every d-th row and column. A first layer with a
// stride is folded: an 11x11 kernel of stride 4 becomes 3x3, with 48 channels. The batch is
// processed in parts of so few tiles that the working memory stays in the caches. Parts depend on
// extents only, so that results do not depend on the number of threads. docs/reports/exactness.md
// has its errors.
#pragma once

#include <memory>

#include "layers/convolution/convolution.h"
#include "layers/convolution/winograd_kernels.h"

namespace tandem::layers {

class WinogradConvolution : public sdk::Needs {
 public:
  // Whether this is faster than direct convolution, by extents and instruction set, whatever the
  // layout.
  static bool suits(const sdk::Binding& binding);
  // Whether it suits, with a fold. The fastest input is then plain.
  static bool folds(const sdk::Binding& binding);
  // Null if it does not suit.
  static std::unique_ptr<WinogradConvolution> make(const sdk::Binding& binding,
                                                   const sdk::Call& call);

  void forward(const sdk::Call& call, const sdk::Pass& pass);
  void backward_data(const sdk::Call& call, const sdk::Pass& pass);
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass);

 private:
  // A pass whose result is an image: forward, and backward by the input. Tensors are those of the
  // first group, with the distance to the next group's channels.
  struct Images {
    winograd::Channels source, target;
    winograd::Grid source_grid, target_grid;
    winograd::Weights weights;
    winograd::Transformed weight_form, source_form, target_form;
    int64_t tiles, tiles_at_a_time;
  };
  struct Gradient {
    winograd::Grid input_grid, output_grid;
    winograd::Transformed input_form, output_form, weight_form;
    winograd::Weights weights;
    int64_t tiles, tiles_at_a_time;
  };

  WinogradConvolution(const sdk::Binding& binding, const sdk::Call& call, int algorithm);
  [[nodiscard]] Images plan_images(const winograd::Channels& source,
                                   const winograd::Channels& target, winograd::Grid source_grid,
                                   const winograd::Weights& weights) const;
  [[nodiscard]] Gradient plan_gradient(const Images& forward) const;
  [[nodiscard]] int64_t bytes(const Images& plan) const;
  [[nodiscard]] int64_t bytes(const Gradient& plan) const;
  [[nodiscard]] int64_t chunks(int64_t channels) const;
  [[nodiscard]] winograd::Transformed form(int64_t items, int64_t channels,
                                           int64_t depths_in_word) const;
  [[nodiscard]] winograd::Transformed operand(int64_t items, int64_t channels) const;
  [[nodiscard]] winograd::Transformed sums(int64_t items, int64_t channels) const;
  [[nodiscard]] int64_t floats(const winograd::Transformed& form) const;

  void convolve(const sdk::Call& call, const Images& plan, const void* source, const float* weights,
                const winograd::Finish& finish, void* target, float* scratch);
  void convolve_part(const Images& plan, int64_t group, const winograd::Range& tiles,
                     const void* source, const float* weights, const winograd::Finish& finish,
                     void* target, float* scratch) const;
  void sum_products(const sdk::Call& call, int64_t group, const void* input,
                    const void* output_gradient, float* sums, float* scratch);
  void write_weight_gradient(const sdk::Call& call, const float* sums, bool adds, float* target);
  void write_bias_gradient(const sdk::Call& call, const void* output_gradient, bool adds,
                           float* target);

  const winograd::Kernels& kernels_;
  const winograd::Algorithm& algorithm_;
  const winograd::Arithmetic& arithmetic_;
  const winograd::Transforms& transforms_;
  const winograd::ImageTransforms& images_of_;  // for the element type
  winograd::Kernels::Sums sum_channels_;
  int64_t images_, groups_, threads_;
  int64_t weights_;  // of one group
  bool bias_, fuses_relu_, follows_relu_;
  winograd::Channels input_, output_;
  Images forward_{}, backward_{};
  Gradient gradient_{};
};

}  // namespace tandem::layers
