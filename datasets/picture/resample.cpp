#include "datasets/picture/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "datasets/picture/axis.h"
#include "datasets/picture/vector.h"

namespace tandem::picture {
namespace {

// What is inlined into every clone of a vector.h function, so that its loops become the clone's.
#define TANDEM_INTO_CLONES inline __attribute__((always_inline))

// How the values of one row become the result's: by channel of the picture.
struct RowFinish {
  std::array<float, 4> mean{};
  float scale = 1;
  float inside_down = 1;
  std::array<float*, 3> planes{};
};

// Sums are added up tap by tap, in the order of the taps, however they are grouped.
template <int taps>
TANDEM_INTO_CLONES void weigh(const unsigned char* rows, std::ptrdiff_t stride, int length,
                              const float* weights, bool onto, float* __restrict result) {
  const auto value = [&](int t, int i) {
    return weights[t] * static_cast<float>(rows[t * stride + i]);
  };
  for (int i = 0; i < length; ++i) {
    float sum = onto ? result[i] + value(0, i) : value(0, i);
    for (int t = 1; t < taps; ++t) sum += value(t, i);
    result[i] = sum;
  }
}

// A row of the result before it is taken apart along the row: pixels of the picture's rows,
// weighed.
TANDEM_PICTURE_VECTOR void weigh_rows(const unsigned char* rows, std::ptrdiff_t stride, int length,
                                      const float* weights, int taps, float* result) {
  constexpr int together = 4;
  int t = 0;
  for (; t + together <= taps; t += together) {
    weigh<together>(rows + t * stride, stride, length, weights + t, t > 0, result);
  }
  const unsigned char* rest = rows + t * stride;
  if (taps - t == 3) weigh<3>(rest, stride, length, weights + t, t > 0, result);
  if (taps - t == 2) weigh<2>(rest, stride, length, weights + t, t > 0, result);
  if (taps - t == 1) weigh<1>(rest, stride, length, weights + t, t > 0, result);
}

// A pixel's channels in one vector, and what lies behind them.
using Pixel = float __attribute__((vector_size(16)));

TANDEM_INTO_CLONES Pixel load(const float* at) {
  Pixel pixel;
  __builtin_memcpy(&pixel, at, sizeof(pixel));
  return pixel;
}
TANDEM_INTO_CLONES void store(const Pixel& pixel, float* at) {
  __builtin_memcpy(at, &pixel, sizeof(pixel));
}

// Position i of the result, its mean taken away and scaled. `taps` 0: as many as the axis has.
template <int channels, int taps>
TANDEM_INTO_CLONES Pixel value_of(const float* row, const Axis& axis, const RowFinish& finish,
                                  int i) {
  const float* from = row + axis.first[static_cast<size_t>(i)] * channels;
  const float* weight = axis.weights.data() + i;
  Pixel sum = *weight * load(from);
  for (int t = 1; t < (taps == 0 ? axis.taps : taps); ++t) {
    weight += axis.count;
    from += channels;
    sum += *weight * load(from);
  }
  const float inside = axis.inside[static_cast<size_t>(i)] * finish.inside_down;
  return (sum - load(finish.mean.data()) * inside) * finish.scale;
}

// Four pixels at a time, so that what is stored is four neighbours of one channel.
template <int channels, int taps>
TANDEM_INTO_CLONES void finish_row(const float* row, const Axis& axis, RowFinish finish) {
  int i = 0;
  for (; i + 4 <= axis.count; i += 4) {
    const Pixel a = value_of<channels, taps>(row, axis, finish, i);
    const Pixel b = value_of<channels, taps>(row, axis, finish, i + 1);
    const Pixel c = value_of<channels, taps>(row, axis, finish, i + 2);
    const Pixel d = value_of<channels, taps>(row, axis, finish, i + 3);
    const Pixel ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Pixel cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    store(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), finish.planes[0] + i);
    if constexpr (channels == 3) {
      store(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), finish.planes[1] + i);
      const Pixel last_ab = __builtin_shufflevector(a, b, 2, 6, 2, 6);
      const Pixel last_cd = __builtin_shufflevector(c, d, 2, 6, 2, 6);
      store(__builtin_shufflevector(last_ab, last_cd, 0, 1, 4, 5), finish.planes[2] + i);
    }
  }
  for (; i < axis.count; ++i) {
    const Pixel value = value_of<channels, taps>(row, axis, finish, i);
    for (int c = 0; c < channels; ++c) finish.planes[static_cast<size_t>(c)][i] = value[c];
  }
}

// Up to the step at which a JPEG would have been halved, a position has at most four taps.
template <int channels>
TANDEM_INTO_CLONES void finish_by_taps(const float* row, const Axis& axis,
                                       const RowFinish& finish) {
  if (axis.taps == 2) return finish_row<channels, 2>(row, axis, finish);
  if (axis.taps == 3) return finish_row<channels, 3>(row, axis, finish);
  if (axis.taps == 4) return finish_row<channels, 4>(row, axis, finish);
  finish_row<channels, 0>(row, axis, finish);
}

TANDEM_PICTURE_VECTOR void finish_color(const float* row, const Axis& axis,
                                        const RowFinish& finish) {
  finish_by_taps<3>(row, axis, finish);
}
TANDEM_PICTURE_VECTOR void finish_gray(const float* row, const Axis& axis,
                                       const RowFinish& finish) {
  finish_by_taps<1>(row, axis, finish);
}

// A row that needs no resampling: every value is a byte's.
TANDEM_PICTURE_VECTOR void copy_color(const unsigned char* row, int count,
                                      const RowFinish& finish) {
  float* __restrict blue = finish.planes[0];
  float* __restrict green = finish.planes[1];
  float* __restrict red = finish.planes[2];
  const float scale = finish.scale;
  const std::array<float, 4> mean = finish.mean;
  for (int i = 0; i < count; ++i) blue[i] = (static_cast<float>(row[3 * i]) - mean[0]) * scale;
  for (int i = 0; i < count; ++i) green[i] = (static_cast<float>(row[3 * i + 1]) - mean[1]) * scale;
  for (int i = 0; i < count; ++i) red[i] = (static_cast<float>(row[3 * i + 2]) - mean[2]) * scale;
}
TANDEM_PICTURE_VECTOR void copy_gray(const unsigned char* row, int count, const RowFinish& finish) {
  float* __restrict plane = finish.planes[0];
  const float scale = finish.scale, mean = finish.mean[0];
  for (int i = 0; i < count; ++i) plane[i] = (static_cast<float>(row[i]) - mean) * scale;
}

bool is_whole(double value) {
  return value == std::floor(value);
}

RowFinish finish_of(const Finish& finish, const Planes& result, int row) {
  RowFinish one;
  std::copy(finish.mean.begin(), finish.mean.end(), one.mean.begin());
  one.scale = finish.scale;
  for (int c = 0; c < result.channels; ++c) {
    const int plane = finish.rgb ? result.channels - 1 - c : c;
    one.planes[static_cast<size_t>(c)] =
        result.plane(plane) + static_cast<std::ptrdiff_t>(row) * result.width;
  }
  return one;
}

void copy(const View& view, const Region& region, const Finish& finish, const Planes& result) {
  const int left = static_cast<int>(region.x) - view.left;
  const int top = static_cast<int>(region.y) - view.top;
  for (int y = 0; y < result.height; ++y) {
    const unsigned char* row = view.pixels + (top + y) * view.stride + left * view.channels;
    const RowFinish one = finish_of(finish, result, y);
    view.channels == 3 ? copy_color(row, result.width, one) : copy_gray(row, result.width, one);
    if (!finish.mirrored) continue;
    for (int c = 0; c < view.channels; ++c) {
      float* plane = one.planes[static_cast<size_t>(c)];
      std::reverse(plane, plane + result.width);
    }
  }
}

bool is_plain(const View& view, const Size& whole, const Region& region, const Planes& result) {
  return view.shrunk == 1 && region.width == result.width && region.height == result.height &&
         is_whole(region.x) && is_whole(region.y) && region.x >= 0 && region.y >= 0 &&
         region.x + region.width <= whole.width && region.y + region.height <= whole.height;
}

// Kept from picture to picture: nothing is allocated once it has grown.
struct Scratch {
  Axis across, down;
  std::vector<float> row, weights;
};

// How many of a row's taps weigh something, and what each does.
int take_weights(const Axis& down, size_t row, std::vector<float>& weights) {
  int used = 0;
  for (int t = 0; t < down.taps; ++t) {
    const auto at = static_cast<size_t>(t);
    weights[at] = down.weights[at * static_cast<size_t>(down.count) + row];
    if (weights[at] != 0) used = t + 1;
  }
  return std::max(used, 1);
}

}  // namespace

void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const Planes& result) {
  if (is_plain(view, whole, region, result)) {
    copy(view, region, finish, result);
    return;
  }
  thread_local Scratch scratch;
  Axis& across = scratch.across;
  Axis& down = scratch.down;
  make_axis(span_of(region.x, region.width, whole.width, view.shrunk), result.width, view.left,
            finish.mirrored, across);
  make_axis(span_of(region.y, region.height, whole.height, view.shrunk), result.height, view.top,
            false, down);
  const int channels = view.channels;
  const auto [least, most] = std::minmax_element(across.first.begin(), across.first.end());
  const int left = *least, columns = *most + across.taps - left;
  for (int& first : across.first) first -= left;
  // Whoever loads a pixel as a vector reads up to three values behind it.
  scratch.row.resize(static_cast<size_t>(columns) * static_cast<size_t>(channels) + 3);
  scratch.weights.resize(static_cast<size_t>(down.taps));
  for (int y = 0; y < result.height; ++y) {
    const auto at = static_cast<size_t>(y);
    const int taps = take_weights(down, at, scratch.weights);
    weigh_rows(view.pixels + down.first[at] * view.stride + left * channels, view.stride,
               columns * channels, scratch.weights.data(), taps, scratch.row.data());
    RowFinish one = finish_of(finish, result, y);
    one.inside_down = down.inside[at];
    channels == 3 ? finish_color(scratch.row.data(), across, one)
                  : finish_gray(scratch.row.data(), across, one);
  }
}

Part needed_part(const Size& whole, int shrunk, const Region& region, const Size& size) {
  const auto [left, right] =
      touched(span_of(region.x, region.width, whole.width, shrunk), size.width);
  const auto [top, bottom] =
      touched(span_of(region.y, region.height, whole.height, shrunk), size.height);
  return {left, top, right, bottom};
}

}  // namespace tandem::picture
