#include "layers/convolution/pixel_planes.h"

#include <algorithm>
#include <utility>

#include "layers/convolution/pixel_products.h"

namespace tandem::layers {
namespace {

// Also of negative numbers.
int64_t divide_up(int64_t count, int64_t by) {
  return count > 0 ? (count + by - 1) / by : -(-count / by);
}

// An odd number of cache lines, since planes whose addresses differ by a multiple of 4 KiB share
// few places of a cache.
int64_t plane_floats(int64_t floats) {
  constexpr int64_t line = 16;
  return (divide_up(floats, line) | 1) * line;
}

PixelAxis::Tap tap_of(int64_t point, int64_t stride, int64_t dilation) {
  return {point * dilation % stride, 0, point * dilation / stride};
}

}  // namespace

void PixelSide::find(int64_t phase, int64_t limit, int64_t& first, int64_t& last) const {
  first = std::clamp<int64_t>(divide_up(offset - phase, step), 0, limit);
  last = std::clamp<int64_t>(divide_up(pixels + offset - phase, step), first, limit);
}

PixelAxis PixelAxis::forward(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                             int64_t inputs, int64_t outputs) {
  PixelAxis axis{{stride, pad, 1, inputs}, {1, 0, 1, outputs}, {}, outputs, 0};
  for (int64_t i = 0; i < kernel; ++i) {
    const Tap tap = tap_of(i, stride, dilation);
    axis.taps.push_back(tap);
    axis.source.phases = std::max(axis.source.phases, tap.source_phase + 1);
    axis.reach = std::max(axis.reach, tap.shift);
  }
  return axis;
}

// Input pixel i is pixel i + pad = (first + index) * stride + phase of the padded ones. A point of
// this phase comes from output first + index - shift.
PixelAxis PixelAxis::backward(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                              int64_t inputs, int64_t outputs) {
  const int64_t first = pad / stride;
  const int64_t reach = (kernel - 1) * dilation / stride;
  PixelAxis axis{{1, reach - first, 1, outputs},
                 {stride, pad - first * stride, stride, inputs},
                 {},
                 (inputs - 1 + pad) / stride - first + 1,
                 reach};
  for (int64_t i = 0; i < kernel; ++i) {
    const Tap tap = tap_of(i, stride, dilation);
    axis.taps.push_back({0, tap.source_phase, reach - tap.shift});
  }
  return axis;
}

PixelPlanes::PixelPlanes(PixelAxis height, PixelAxis width, int64_t lanes)
    : h(std::move(height)), w(std::move(width)) {
  pitch = w.count + w.reach;
  if (w.source.step == 1) {
    // The zeros at the end of a row are those at the beginning of the next one.
    const int64_t before = std::max<int64_t>(0, w.source.offset);
    const int64_t behind = std::max<int64_t>(0, pitch - w.source.offset - w.source.pixels);
    pitch -= std::min({before, behind, w.reach});
  }
  constexpr int64_t enough_pixels = 512;
  const int64_t most = std::clamp<int64_t>(std::max(enough_pixels / pitch, h.reach), 1, h.count);
  bands = divide_up(h.count, most);
  rows = divide_up(h.count, bands);
  bands = divide_up(h.count, rows);
  const int64_t band = divide_up(rows * pitch, lanes) * lanes;
  target_floats = plane_floats(band);
  source_floats = plane_floats(band + h.reach * pitch + w.reach);
}

int64_t PixelPlanes::rows_of(int64_t band) const {
  return std::min(rows, h.count - band * rows);
}

int64_t PixelPlanes::vectors_of(int64_t band, int64_t lanes) const {
  return divide_up((rows_of(band) - 1) * pitch + w.count, lanes);
}

namespace {

// Calls body(first, count) for the channels, as many at a time as can be copied together.
template <class Body>
void for_channels(const PixelChannels& channels, const Body& body) {
  constexpr int64_t together = pixel_products::channels_at_once;
  const int64_t block = channels.tensor.block, end = channels.first + channels.count;
  for (int64_t c = channels.first; c < end;) {
    const int64_t count = c + together <= end && c % block + together <= block ? together : 1;
    body(c, count);
    c += count;
  }
}

// A phase of a channel. Those of the next channel are `next` floats away.
struct Plane {
  const PixelSide &h, &w;
  int64_t row_phase, column_phase;
  int64_t first_row, rows, columns;
  int64_t pitch, floats, next;
};

// Some of a row's channels, from where its pixel 0 is.
void load_row(const Plane& plane, int64_t channels, const float* row, int64_t block,
              float* target) {
  int64_t first = 0, last = 0;
  plane.w.find(plane.column_phase, plane.columns, first, last);
  for (int64_t c = 0; c < channels; ++c) {
    float* line = target + c * plane.next;
    std::fill(line, line + first, 0.0F);
    std::fill(line + last, line + plane.pitch, 0.0F);
  }
  if (first == last) return;
  const int64_t step = plane.w.step * block;
  const float* source = row + plane.w.pixel(first, plane.column_phase) * block;
  if (channels > 1) {
    pixel_products::kernels().load(source, step, last - first, target + first, plane.next);
  } else if (step == 1) {
    std::copy_n(source, last - first, target + first);
  } else {
    for (int64_t i = 0; i < last - first; ++i) target[first + i] = source[i * step];
  }
}

void load_plane(const Plane& plane, const PixelChannels& channels, const float* image,
                float* target) {
  const cpu::Placement& tensor = channels.tensor;
  for_channels(channels, [&](int64_t first, int64_t count) {
    float* planes = target + (first - channels.first) * plane.next;
    for (int64_t i = 0; i < plane.rows; ++i) {
      const int64_t index = plane.first_row + i;
      float* line = planes + i * plane.pitch;
      if (plane.h.has(index, plane.row_phase)) {
        const int64_t row = plane.h.pixel(index, plane.row_phase);
        load_row(plane, count, image + tensor.offset(first, row, 0), tensor.block, line);
      } else {
        for (int64_t k = 0; k < count; ++k) std::fill_n(line + k * plane.next, plane.pitch, 0.0F);
      }
    }
    for (int64_t k = 0; k < count; ++k) {
      float* of_channel = planes + k * plane.next;
      std::fill(of_channel + plane.rows * plane.pitch, of_channel + plane.floats, 0.0F);
    }
  });
}

void store_row(const Plane& plane, int64_t channels, const float* source, const float* bias,
               int64_t block, float* row) {
  int64_t first = 0, last = 0;
  plane.w.find(plane.column_phase, plane.columns, first, last);
  if (first == last) return;
  const int64_t step = plane.w.step * block, count = last - first;
  float* target = row + plane.w.pixel(first, plane.column_phase) * block;
  source += first;
  if (channels > 1) {
    pixel_products::kernels().store(source, plane.next, count, bias, target, step);
  } else if (step == 1) {
    for (int64_t i = 0; i < count; ++i) target[i] = source[i] + *bias;
  } else {
    for (int64_t i = 0; i < count; ++i) target[i * step] = source[i] + *bias;
  }
}

}  // namespace

void load_source(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                 const float* image, float* target) {
  const PixelSide &h = planes.h.source, &w = planes.w.source;
  const int64_t rows = planes.rows_of(band) + planes.h.reach, floats = planes.source_floats;
  for (int64_t i = 0; i < planes.source_phases(); ++i) {
    load_plane({h, w, i / w.phases, i % w.phases, band * planes.rows, rows, planes.pitch,
                planes.pitch, floats, planes.source_phases() * floats},
               channels, image, target + i * floats);
  }
}

void load_target(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                 const float* image, float* target) {
  const int64_t floats = planes.target_floats;
  load_plane({planes.h.target, planes.w.target, 0, 0, band * planes.rows, planes.rows_of(band),
              planes.w.count, planes.pitch, floats, floats},
             channels, image, target);
}

void store_target(const PixelPlanes& planes, int64_t band, const PixelChannels& channels,
                  const float* source, int64_t phase_floats, const float* bias, float* image) {
  constexpr float none[pixel_products::channels_at_once] = {};
  const PixelSide &h = planes.h.target, &w = planes.w.target;
  const int64_t floats = planes.target_floats;
  for (int64_t i = 0; i < planes.target_phases(); ++i, source += phase_floats) {
    const Plane plane{h,
                      w,
                      i / w.phases,
                      i % w.phases,
                      band * planes.rows,
                      planes.rows_of(band),
                      planes.w.count,
                      planes.pitch,
                      floats,
                      floats};
    for_channels(channels, [&](int64_t first, int64_t count) {
      const float* of_channels = source + (first - channels.first) * floats;
      for (int64_t k = 0; k < plane.rows; ++k) {
        if (!h.has(plane.first_row + k, plane.row_phase)) continue;
        const int64_t row = h.pixel(plane.first_row + k, plane.row_phase);
        store_row(plane, count, of_channels + k * plane.pitch,
                  bias == nullptr ? none : bias + first, channels.tensor.block,
                  image + channels.tensor.offset(first, row, 0));
      }
    });
  }
}

}  // namespace tandem::layers
