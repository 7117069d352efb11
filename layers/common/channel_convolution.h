// Direct convolution in vectors of channels, in all three passes, for any window, groups, numbers
// of channels and layouts, float32. Bands of an image's rows are copied with their padding, the
// channels of a group next to each other, so that what a point of the kernel reads is at the same
// distance from every pixel; then vector_products.h multiplies them where they are. The order of
// the sums depends neither on the number of threads nor on the batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/common/vector_products.h"
#include "layers/common/window.h"
#include "plugins/cpu/layout.h"

namespace tandem::layers {

// One axis of a pass. Index i of a target phase is pixel i * target_step + phase. It gets what lies
// at source pixel i * source_step + shift of each of the phase's points of the kernel, whose shifts
// are equally far from each other.
struct ChannelAxis {
  struct Phase {
    std::vector<int64_t> points;  // in the order of their shifts
    int64_t shift, distance;      // of the first point, and from a point to the next one
    int64_t count;                // of target pixels
  };
  std::vector<Phase> phases;  // the first one has the most pixels
  int64_t source_step, target_step;
  int64_t low, high;  // the least and the largest shift
  int64_t source_pixels;

  struct Extents {
    int64_t kernel, stride, pad, dilation, inputs, outputs;
  };
  static ChannelAxis forward(const Extents& extents);
  // From the outputs, or their gradients, to the inputs.
  static ChannelAxis backward(const Extents& extents);

  [[nodiscard]] int64_t count() const { return phases[0].count; }
  // Source pixels that `indexes` targets read, with those between them.
  [[nodiscard]] int64_t reach(int64_t indexes) const {
    return (indexes - 1) * source_step + high - low + 1;
  }
  [[nodiscard]] bool stays_inside() const {
    return low >= 0 && (count() - 1) * source_step + high < source_pixels;
  }
};

class ChannelConvolution {
 public:
  struct Passes {
    bool forward, backward, weights;
  };
  // `out` is what a convolution makes of `in`. Of a deconvolution, `in` is its output. Weights are
  // (channels of out, channels of a group of in, height, width). `threads`: the most of a call.
  ChannelConvolution(const tandem_tensor& in, const tandem_tensor& out, const Window& window,
                     int64_t groups, const Passes& passes, int32_t threads);

  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] std::string name() const;

  // From `in` to `out`; the bias of the channels of `out` may be null.
  void forward(int32_t threads, const float* in, const float* weights, const float* bias,
               float* out, float* scratch) const;
  // The transpose: from `out` to `in`.
  void backward(int32_t threads, const float* out, const float* weights, const float* bias,
                float* in, float* scratch) const;
  // gradient = or += the sum over all pixels of in * out.
  void correlate(int32_t threads, const float* in, const float* out, bool adds, float* gradient,
                 float* scratch) const;

 private:
  // Forward or backward. Of a group: the channels of source and target, and how far a weight is
  // from that of the next source and of the next target channel.
  struct Images {
    cpu::Placement from, to;
    ChannelAxis h, w;
    int64_t sources, targets, source_stride, target_stride;
    bool is_copied;
    int64_t pixel, pitch;  // floats from a source pixel, and from a source row, to the next one
    int64_t rows, bands;   // of target indexes
    std::vector<int64_t> places;  // of the sources of a band's indexes

    [[nodiscard]] int64_t rows_of(int64_t band) const;
    [[nodiscard]] int64_t copied_floats() const;
  };
  // What a phase of a target channel sums up: lines of steps, in `columns` parts.
  struct Terms {
    int64_t lines, columns, steps;  // columns: 1 if the points of a row are next to each other
    int64_t first, line, column;    // floats: of the first value, and distances
  };
  // A part of a pass: some panels of a group's targets for a band of an image.
  struct Unit {
    int64_t image, group, band, first_panel, last_panel;
  };

  // Pixels of a phase, and targets of the group from `first` on.
  struct PhasePanel {
    int64_t h_count, w_count, h_phase, w_phase, first, width;
  };

  [[nodiscard]] ChannelAxis::Extents extents_h() const;
  [[nodiscard]] ChannelAxis::Extents extents_w() const;
  [[nodiscard]] Images make_images(ChannelAxis h, ChannelAxis w, const cpu::Placement& from,
                                   const cpu::Placement& to) const;
  [[nodiscard]] static Terms terms_of(const Images& images, const ChannelAxis::Phase& h,
                                      const ChannelAxis::Phase& w);
  [[nodiscard]] int64_t points() const { return window_.kernel.h * window_.kernel.w; }
  [[nodiscard]] int64_t chunks(int64_t channels) const;
  [[nodiscard]] int64_t panels(int64_t channels) const;
  [[nodiscard]] int64_t first_chunk(int64_t channels, int64_t panel) const;
  [[nodiscard]] int64_t packed_floats(const Images& images) const;
  [[nodiscard]] int64_t slot_floats(const Images& images) const;
  [[nodiscard]] int64_t sum_floats() const;
  [[nodiscard]] int64_t sum_slot_floats() const;
  void pack(int32_t threads, const Images& images, const float* weights, float* packed) const;
  void pack_panel(const Images& images, int64_t group, int64_t panel, const float* weights,
                  float* packed) const;
  void convolve(int32_t threads, const Images& images, const float* source, const float* weights,
                const float* bias, float* target, float* scratch) const;
  void convolve_unit(const Images& images, const Unit& unit, const float* source,
                     const float* packed, const float* bias, float* target, float* slot) const;
  void multiply(const Images& images, const Terms& terms, int64_t row_count, const float* source,
                const float* weights, int64_t width, float* sums) const;
  void store(const Images& images, const Unit& unit, const PhasePanel& panel, const float* sums,
             const float* bias, float* target) const;
  [[nodiscard]] const float* source_of(const Images& images, const Unit& unit, const float* source,
                                       float* copied) const;
  void add_band(int64_t first, int64_t last, int64_t image, int64_t band, const float* in,
                const float* out, float* sums, float* slot) const;
  void copy_pixels(const Unit& unit, int64_t first, int64_t width, const float* out,
                   float* target) const;
  void store_gradient(int32_t threads, const float* sums, bool adds, float* gradient) const;

  const vector_products::Kernels& kernels_;
  cpu::Placement in_, out_;
  Window window_;
  int64_t groups_, inputs_, outputs_;  // channels of a group
  int64_t slots_;                      // threads at a time
  Images forward_, backward_;
  std::vector<int64_t> taps_;  // where the taps of a weight gradient are in a source
  int64_t scratch_bytes_ = 0;
};

}  // namespace tandem::layers
