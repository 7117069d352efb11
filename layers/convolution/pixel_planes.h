// Where the pixels of images lie in the planes that a convolution computes with, so that what a
// point of the kernel reads is always at the same distance from where its products go. A plane
// holds rows of pixels one after the other, with the zeros of the padding. With strides there is a
// plane for each phase: for the pixels of a row that are a stride apart.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/common/window.h"
#include "plugins/cpu/layout.h"

namespace tandem::layers {

// A tensor along one axis: index i of a phase is pixel i * step + phase - offset, or a zero if
// there is no such pixel.
struct PixelSide {
  int64_t step, offset, phases, pixels;

  [[nodiscard]] int64_t pixel(int64_t index, int64_t phase) const {
    return index * step + phase - offset;
  }
  [[nodiscard]] bool has(int64_t index, int64_t phase) const {
    return pixel(index, phase) >= 0 && pixel(index, phase) < pixels;
  }
  // The indexes below `limit` that are pixels are [first, last).
  void find(int64_t phase, int64_t limit, int64_t& first, int64_t& last) const;
};

// One axis of a pass: index i of a target phase gets what the source phases have at i + shift.
struct PixelAxis {
  struct Tap {
    int64_t source_phase, target_phase, shift;
  };
  PixelSide source, target;
  std::vector<Tap> taps;  // by the points of the kernel
  int64_t count;          // the indexes of a target phase
  int64_t reach;          // the largest shift

  // From `inputs` to `outputs` pixels.
  static PixelAxis forward(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                           int64_t inputs, int64_t outputs);
  // From the gradients of the outputs to those of the inputs.
  static PixelAxis backward(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                            int64_t inputs, int64_t outputs);
};

// The planes of a pass. A band is some rows of all target phases, of one image.
struct PixelPlanes {
  // `lanes`: of a vector, by which what is read and written is rounded up.
  PixelPlanes(PixelAxis height, PixelAxis width, int64_t lanes);

  PixelAxis h, w;
  int64_t pitch;                         // from a row of a plane to the next one
  int64_t rows, bands;                   // rows: of a target phase, in a band
  int64_t source_floats, target_floats;  // of a plane

  [[nodiscard]] int64_t rows_of(int64_t band) const;
  [[nodiscard]] int64_t vectors_of(int64_t band, int64_t lanes) const;
  [[nodiscard]] int64_t source_phases() const { return h.source.phases * w.source.phases; }
  [[nodiscard]] int64_t target_phases() const { return h.target.phases * w.target.phases; }
  // Where a tap's source begins in a channel's planes.
  [[nodiscard]] int64_t place(const PixelAxis::Tap& row, const PixelAxis::Tap& column) const {
    return (row.source_phase * w.source.phases + column.source_phase) * source_floats +
           row.shift * pitch + column.shift;
  }
};

// Some channels of a tensor's images.
struct PixelChannels {
  const cpu::Placement& tensor;
  int64_t first, count;
};

// The planes of these channels of an image, all source phases, for a band.
void load_source(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                 const float* image, float* target);
// A plane of each channel with the band's target rows, and zeros between them. For one target
// phase.
void load_target(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                 const float* image, float* target);
// The reverse, of all phases, with a bias for each of the tensor's channels unless it is null. The
// planes of a phase are `phase_floats` apart.
void store_target(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                  const float* source, int64_t phase_floats, const float* bias, float* image);

}  // namespace tandem::layers
