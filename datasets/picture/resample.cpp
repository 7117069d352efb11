#include "datasets/picture/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "datasets/picture/byte_resize.h"
#include "datasets/picture/rows.h"

namespace tandem::picture {
namespace {

bool is_whole(double value) {
  return value == std::floor(value);
}

template <class Value>
RowFinish<Value> finish_of(const Finish& finish, const PlanesOf<Value>& result, int row) {
  RowFinish<Value> one;
  std::copy(finish.mean.begin(), finish.mean.end(), one.mean.begin());
  one.scale = finish.scale;
  one.limited = finish.filter == Filter::cubic;
  for (int c = 0; c < result.channels; ++c) {
    const int plane = finish.rgb ? result.channels - 1 - c : c;
    one.planes[static_cast<size_t>(c)] =
        result.plane(plane) + static_cast<std::ptrdiff_t>(row) * result.width;
  }
  return one;
}

template <class Value>
void copy(const View& view, const Region& region, const Finish& finish,
          const PlanesOf<Value>& result) {
  const int left = static_cast<int>(region.x) - view.left;
  const int top = static_cast<int>(region.y) - view.top;
  for (int y = 0; y < result.height; ++y) {
    const unsigned char* row = view.pixels + (top + y) * view.stride + left * view.channels;
    const RowFinish<Value> one = finish_of(finish, result, y);
    for (int c = 0; c < view.channels; ++c) {
      copy_row(row, result.width, view.channels, c, one);
      Value* plane = one.planes[static_cast<size_t>(c)];
      if (finish.mirrored) std::reverse(plane, plane + result.width);
    }
  }
}

bool is_plain(const View& view, const Size& whole, const Region& region, const Size& result) {
  return view.shrunk == 1 && region.width == result.width && region.height == result.height &&
         is_whole(region.x) && is_whole(region.y) && region.x >= 0 && region.y >= 0 &&
         region.x + region.width <= whole.width && region.y + region.height <= whole.height;
}

// Kept from picture to picture, so that memory is only allocated while it grows.
struct Scratch {
  Axis across, down;
  std::vector<float> row, weights;
};

// Sets the weights of a row's taps; returns the number of taps up to the last that is not zero.
int take_weights(const Axis& down, size_t row, std::vector<float>& weights) {
  int used = 0;
  for (int t = 0; t < down.taps; ++t) {
    const auto at = static_cast<size_t>(t);
    weights[at] = down.weights[at * static_cast<size_t>(down.count) + row];
    if (weights[at] != 0) used = t + 1;
  }
  return std::max(used, 1);
}

template <class Value>
void resample_to(const View& view, const Size& whole, const Region& region, const Finish& how,
                 const PlanesOf<Value>& result) {
  if (is_plain(view, whole, region, {result.width, result.height})) {
    copy(view, region, how, result);
    return;
  }
  thread_local Scratch scratch;
  Axis& across = scratch.across;
  Axis& down = scratch.down;
  make_axis(span_of(region.x, region.width, whole.width, view.shrunk, how.filter), result.width,
            view.left, how.mirrored, across);
  make_axis(span_of(region.y, region.height, whole.height, view.shrunk, how.filter), result.height,
            view.top, false, down);
  const int channels = view.channels;
  const auto [least, most] = std::minmax_element(across.first.begin(), across.first.end());
  const int left = *least, columns = *most + across.taps - left;
  for (int& first : across.first) first -= left;
  // Loading a pixel as a vector reads up to three values after it.
  scratch.row.resize(static_cast<size_t>(columns) * static_cast<size_t>(channels) + 3);
  scratch.weights.resize(static_cast<size_t>(down.taps));
  for (int y = 0; y < result.height; ++y) {
    const auto at = static_cast<size_t>(y);
    const int taps = take_weights(down, at, scratch.weights);
    weigh_rows(view.pixels + down.first[at] * view.stride + left * channels, view.stride,
               columns * channels, scratch.weights.data(), taps, scratch.row.data());
    RowFinish<Value> one = finish_of(how, result, y);
    one.inside_down = down.inside[at];
    finish_row(scratch.row.data(), across, channels, one);
  }
}

template <class Value>
void resize_to(const View& view, const center_crop::Middle& middle, const Finish& how,
               const PlanesOf<Value>& result) {
  thread_local ByteResize bytes;
  bytes.begin(view, middle, how.filter);
  for (int y = 0; y < result.height; ++y) {
    const unsigned char* row = bytes.row(y);
    const RowFinish<Value> one = finish_of(how, result, y);
    for (int c = 0; c < view.channels; ++c) {
      copy_row(row, result.width, view.channels, c, one);
      Value* plane = one.planes[static_cast<size_t>(c)];
      if (how.mirrored) std::reverse(plane, plane + result.width);
    }
  }
}

}  // namespace

void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const Planes& result) {
  resample_to(view, whole, region, finish, result);
}

void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const BytePlanes& result) {
  resample_to(view, whole, region, finish, result);
}

void resize(const View& view, const center_crop::Middle& middle, const Finish& finish,
            const Planes& result) {
  resize_to(view, middle, finish, result);
}

void resize(const View& view, const center_crop::Middle& middle, const Finish& finish,
            const BytePlanes& result) {
  resize_to(view, middle, finish, result);
}

Part needed_part(const center_crop::Middle& middle, Filter filter) {
  const auto [left, right] = touched(middle.across, filter);
  const auto [top, bottom] = touched(middle.down, filter);
  return {left, top, right, bottom};
}

Part needed_part(const Size& whole, int shrunk, const Region& region, const Size& size,
                 Filter filter) {
  const auto [left, right] =
      touched(span_of(region.x, region.width, whole.width, shrunk, filter), size.width);
  const auto [top, bottom] =
      touched(span_of(region.y, region.height, whole.height, shrunk, filter), size.height);
  return {left, top, right, bottom};
}

}  // namespace tandem::picture
