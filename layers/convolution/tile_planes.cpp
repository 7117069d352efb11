#include "layers/convolution/tile_planes.h"

#include <algorithm>
#include <utility>

#include "layers/convolution/divide.h"
#include "layers/convolution/tile_products.h"

namespace tandem::layers {

namespace {

using cpu::bfloat16;

int64_t whole_tiles(int64_t depth) {
  return divide_up(depth, tile_products::depth) * tile_products::depth;
}

// Pixels that are `step` of the image's apart, each with zeros behind its channels.
void load_pixels(const TileImage& image, const bfloat16* source, int64_t step, int64_t count,
                 int64_t pixel, bfloat16* target) {
  if (step == 1 && image.channels == pixel && image.stride == pixel) {
    std::copy_n(source, count * pixel, target);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const bfloat16* end = std::copy_n(source + i * step * image.stride, image.channels, target);
    target = std::fill_n(const_cast<bfloat16*>(end), pixel - image.channels, bfloat16{});
  }
}

}  // namespace

TilePlanes TilePlanes::of_channels(PixelAxis height, PixelAxis width, int64_t channels,
                                   int64_t multiple) {
  const int64_t depth = whole_tiles(channels);
  return {PixelPlanes(std::move(height), std::move(width), multiple), depth, depth, false};
}

TilePlanes TilePlanes::folded(const Window& window, const sdk::Shape& in, const sdk::Shape& out,
                              int64_t multiple) {
  const int64_t pixel = window.stride.w * in.c, depth = whole_tiles(window.kernel.w * in.c);
  PixelAxis width{
      {window.stride.w, window.pad.w, 1, in.w}, {1, 0, 1, out.w}, {{0, 0, 0}}, out.w, 0};
  width.reach = divide_up(std::max<int64_t>(0, depth - pixel), pixel);
  return {PixelPlanes(PixelAxis::forward(window.kernel.h, window.stride.h, window.pad.h,
                                         window.dilation.h, in.h, out.h),
                      std::move(width), multiple),
          pixel, depth, true};
}

std::vector<TilePlanes::Tap> TilePlanes::taps(const Axes& kernel) const {
  std::vector<Tap> result;
  const int64_t columns = folds ? 1 : kernel.w;
  for (int64_t i = 0; i < kernel.h * columns; ++i) {
    const PixelAxis::Tap &row = planes.h.taps[static_cast<size_t>(i / columns)],
                         &column = planes.w.taps[static_cast<size_t>(i % columns)];
    result.push_back({i, row.source_phase * planes.w.source.phases + column.source_phase,
                      row.shift * planes.pitch + column.shift});
  }
  return result;
}

int64_t TilePlanes::values() const {
  constexpr int64_t line = 32;
  const int64_t behind = folds ? depth : 0;
  return divide_up(planes.source_floats * pixel + behind, line) * line;
}

void TilePlanes::load_row(int64_t column_phase, const TileImage& image, const bfloat16* row,
                          bfloat16* target) const {
  const PixelSide& w = planes.w.source;
  bfloat16* const end = target + planes.pitch * pixel;
  if (folds) {
    target = std::fill_n(target, w.offset * image.channels, bfloat16{});
    const int64_t count = std::min(w.pixels * image.channels, end - target);
    target = std::copy_n(row, count, target);
    std::fill(target, end, bfloat16{});
    return;
  }
  int64_t first = 0, last = 0;
  w.find(column_phase, planes.pitch, first, last);
  std::fill_n(target, first * pixel, bfloat16{});
  std::fill(target + last * pixel, end, bfloat16{});
  if (first == last) return;
  load_pixels(image, row + w.pixel(first, column_phase) * image.stride, w.step, last - first, pixel,
              target + first * pixel);
}

void TilePlanes::load(int64_t plane, int64_t band, const TileImage& image, bfloat16* target) const {
  const PixelSide &h = planes.h.source, &w = planes.w.source;
  const int64_t row_phase = plane / w.phases, line = planes.pitch * pixel;
  bfloat16* const end = target + values();
  const int64_t rows = planes.rows_of(band) + planes.h.reach;
  for (int64_t i = 0; i < rows; ++i, target += line) {
    const int64_t index = band * planes.rows + i;
    if (h.has(index, row_phase)) {
      const int64_t row = h.pixel(index, row_phase) * w.pixels * image.stride;
      load_row(plane % w.phases, image, image.pixels + row, target);
    } else {
      std::fill_n(target, line, bfloat16{});
    }
  }
  std::fill(target, end, bfloat16{});
}

void load_tile_target(const PixelPlanes& planes, int64_t band, const TileImage& image,
                      int64_t pixel, int64_t values, bfloat16* target) {
  const int64_t width = planes.w.target.pixels, gap = planes.pitch - planes.w.count;
  bfloat16* const end = target + values;
  for (int64_t i = 0; i < planes.rows_of(band); ++i) {
    const int64_t row = band * planes.rows + i;
    load_pixels(image, image.pixels + row * width * image.stride, 1, width, pixel, target);
    target += width * pixel;
    // Nothing is behind the last row but the rest.
    if (i + 1 < planes.rows_of(band)) target = std::fill_n(target, gap * pixel, bfloat16{});
  }
  std::fill(target, end, bfloat16{});
}

}  // namespace tandem::layers
