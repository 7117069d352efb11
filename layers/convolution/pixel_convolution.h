// Direct convolution in vectors of pixels, in all three passes, for any window and groups, float32:
// where vectors of channels would be mostly empty, or oneDNN multiplies plain matrices. Bands of an
// image's rows are copied to planes (pixel_planes.h), a part of a group's channels at a time, and
// multiplied there (pixel_products.h). Sums over the batch are divided into parts that depend on
// extents only, so that results do not depend on the number of threads.
#pragma once

#include <memory>
#include <vector>

#include "layers/convolution/convolution.h"
#include "layers/convolution/pixel_planes.h"
#include "layers/convolution/pixel_products.h"

namespace tandem::layers {

class PixelConvolution : public sdk::Needs {
 public:
  // Whether it is used, by extents and instruction set. It computes in any layout.
  static bool suits(const sdk::Binding& binding);
  static sdk::LayoutOptions layouts(const sdk::Binding& binding);
  // Null where it does not suit.
  static std::unique_ptr<PixelConvolution> make(const sdk::Binding& binding, const sdk::Call& call);

  void forward(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const;

 private:
  // Of a group: the channels of a pass's source and target, and how far a weight is from that of
  // the next source and the next target channel.
  struct Channels {
    int64_t sources, targets, source_stride, target_stride;
  };
  // Forward or to the input's gradient.
  struct Images {
    Images(PixelPlanes all_planes, const Channels& all_channels, const Axes& kernel);
    [[nodiscard]] int64_t parts() const;
    // Source channels of a part.
    [[nodiscard]] int64_t channels_of(int64_t part) const;
    [[nodiscard]] int64_t source_floats() const;
    [[nodiscard]] int64_t phase_floats() const;
    [[nodiscard]] int64_t slot_floats() const;

    PixelPlanes planes;
    Channels channels;
    int64_t part_channels;
    // By target phase: the points of the kernel, and for all source channels of a part where their
    // pixels are.
    std::vector<std::vector<int64_t>> points, terms;
  };
  PixelConvolution(const sdk::Binding& binding, const ConvolutionSettings& settings,
                   const sdk::Call& call);
  [[nodiscard]] int64_t points() const { return window_.kernel.h * window_.kernel.w; }
  [[nodiscard]] int64_t weights() const { return out_.shape.c * inputs_ * points(); }
  [[nodiscard]] int64_t gradient_slot_floats() const;
  void pack(const Images& images, const float* weights, float* packed) const;
  void convolve(const sdk::Call& call, const sdk::Pass& pass, const Images& images,
                const cpu::Placement& from, const float* source, const cpu::Placement& to,
                const float* bias, float* target) const;
  void convolve_band(const Images& images, int64_t unit, const cpu::Placement& from,
                     const float* source, const float* packed, const cpu::Placement& to,
                     const float* bias, float* target, float* slot) const;
  void sum_part(int64_t unit, const sdk::Pass& pass, float* slot, float* sums) const;
  void sum_band(int64_t group, int64_t image, int64_t band, const sdk::Pass& pass, float* slot,
                float* sums) const;
  void store(const sdk::Pass& pass, const float* sums) const;

  const pixel_products::Kernels& kernels_;
  cpu::Placement in_, out_;
  Window window_;
  int64_t groups_, inputs_, outputs_;  // channels of a group
  bool bias_;
  int64_t slots_;  // threads at a time
  int64_t parts_;  // of all images' bands, in sums
  std::unique_ptr<Images> forward_, backward_;
};

}  // namespace tandem::layers
