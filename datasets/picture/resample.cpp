#include "datasets/picture/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "datasets/picture/vector.h"

namespace tandem::picture {
namespace {

// What each position along one axis of the result is made of: `taps` neighbouring pixels from
// first[i] on, tap t with weights[t * count + i].
struct Axis {
  int count = 0, taps = 0;
  std::vector<int> first;
  std::vector<float> weights;
  std::vector<float> inside;  // sum of a position's weights; below 1 beyond the picture's edge
};

struct Span {
  double begin = 0, length = 0;  // in pixels of the shrunk picture
  int pixels = 0;                // of the shrunk picture, along this axis
  bool beyond = false;           // the region reaches beyond the picture
};

Span span_of(double begin, double length, int whole, int shrunk) {
  const double last = begin + length;
  const int pixels = (whole + shrunk - 1) / shrunk;
  const bool beyond = begin < -1e-6 || last > whole + 1e-6;
  return {begin / shrunk, length / shrunk, pixels, beyond};
}

double step_of(const Span& span, int count) {
  return span.length / count;
}
double reach_of(double step) {
  return std::max(1.0, step);
}

// The pixels that position i is made of, clamped to the picture.
std::pair<int, int> pixels_of(const Span& span, int count, int i) {
  const double step = step_of(span, count), reach = reach_of(step);
  const double centre = span.begin + (i + 0.5) * step - 0.5;
  const auto low = static_cast<int>(std::floor(centre - reach + 1e-9)) + 1;
  const auto high = static_cast<int>(std::ceil(centre + reach - 1e-9)) - 1;
  return {std::clamp(low, 0, span.pixels - 1), std::clamp(high, 0, span.pixels - 1)};
}

void make_axis(const Span& span, int count, int offset, bool mirrored, Axis& axis) {
  const double step = step_of(span, count), reach = reach_of(step);
  axis.count = count;
  axis.taps = static_cast<int>(std::ceil(2 * reach)) + 1;
  axis.taps = std::min(axis.taps, span.pixels);
  const auto size = static_cast<size_t>(count);
  axis.first.assign(size, 0);
  axis.inside.assign(size, 0);
  axis.weights.assign(size * static_cast<size_t>(axis.taps), 0);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(mirrored ? count - 1 - i : i);
    const double centre = span.begin + (i + 0.5) * step - 0.5;
    const auto [low, high] = pixels_of(span, count, i);
    // So that all taps are pixels of the picture, though the last may weigh nothing.
    const int first = std::clamp(low, 0, span.pixels - axis.taps);
    double sum = 0, all = 0;
    const auto weight = [&](int p) { return std::max(0.0, 1 - std::abs(p - centre) / reach); };
    const auto begin = static_cast<int>(std::floor(centre - reach)) + 1;
    const auto end = static_cast<int>(std::ceil(centre + reach));
    for (int p = begin; p < end; ++p) all += weight(p);
    for (int p = low; p <= high; ++p) sum += weight(p);
    const bool edge_only = sum <= 0;
    const double divisor = span.beyond ? (all > 0 ? all : 1) : (edge_only ? 1 : sum);
    double inside = 0;
    for (int p = low; p <= high; ++p) {
      const double one = edge_only && !span.beyond ? (p == low ? 1 : 0) : weight(p) / divisor;
      axis.weights[static_cast<size_t>(p - first) * size + at] = static_cast<float>(one);
      inside += one;
    }
    axis.first[at] = first - offset;
    axis.inside[at] = span.beyond ? static_cast<float>(inside) : 1.0F;
  }
}

struct Scratch {
  Axis across, down;
  std::vector<float> row, sums;
};

// One row of the result before it is taken apart: pixels of the picture's rows, weighed.
TANDEM_PICTURE_VECTOR void weigh_rows(const unsigned char* rows, std::ptrdiff_t stride, int length,
                                      const float* weights, int weight_step, int taps,
                                      float* result) {
  for (int i = 0; i < length; ++i) result[i] = weights[0] * static_cast<float>(rows[i]);
  for (int t = 1; t < taps; ++t) {
    const unsigned char* row = rows + t * stride;
    const float weight = weights[static_cast<std::ptrdiff_t>(t) * weight_step];
    if (weight == 0) continue;
    for (int i = 0; i < length; ++i) result[i] += weight * static_cast<float>(row[i]);
  }
}

TANDEM_PICTURE_VECTOR void weigh_columns(const float* row, int channels, const int* first,
                                         const float* weights, int count, int taps, float* result) {
  for (int i = 0; i < count; ++i) result[i] = weights[i] * row[first[i] * channels];
  for (int t = 1; t < taps; ++t) {
    const float* w = weights + static_cast<std::ptrdiff_t>(t) * count;
    const float* from = row + t * channels;
    for (int i = 0; i < count; ++i) result[i] += w[i] * from[first[i] * channels];
  }
}

TANDEM_PICTURE_VECTOR void finish_row(const float* sums, const float* inside, float inside_down,
                                      float mean, float scale, int count, float* result) {
  for (int i = 0; i < count; ++i) {
    result[i] = (sums[i] - mean * (inside[i] * inside_down)) * scale;
  }
}

// A region that needs no resampling: every value is a byte's.
TANDEM_PICTURE_VECTOR void copy_row(const unsigned char* row, int step, int count, float mean,
                                    float scale, float* result) {
  for (int i = 0; i < count; ++i) {
    result[i] = (static_cast<float>(row[static_cast<std::ptrdiff_t>(i) * step]) - mean) * scale;
  }
}

bool is_whole(double value) {
  return value == std::floor(value);
}

int target_plane(const Finish& finish, int channels, int channel) {
  return finish.rgb ? channels - 1 - channel : channel;
}

void copy(const View& view, const Region& region, const Finish& finish, const Planes& result) {
  const int left = static_cast<int>(region.x) - view.left;
  const int top = static_cast<int>(region.y) - view.top;
  const int channels = view.channels;
  for (int c = 0; c < channels; ++c) {
    float* plane = result.plane(target_plane(finish, channels, c));
    for (int y = 0; y < result.height; ++y) {
      const unsigned char* row = view.pixels + (top + y) * view.stride + left * channels + c;
      if (finish.mirrored) row += static_cast<std::ptrdiff_t>(result.width - 1) * channels;
      copy_row(row, finish.mirrored ? -channels : channels, result.width,
               finish.mean[static_cast<size_t>(c)], finish.scale,
               plane + static_cast<std::ptrdiff_t>(y) * result.width);
    }
  }
}

bool is_plain(const View& view, const Size& whole, const Region& region, const Planes& result) {
  return view.shrunk == 1 && region.width == result.width && region.height == result.height &&
         is_whole(region.x) && is_whole(region.y) && region.x >= 0 && region.y >= 0 &&
         region.x + region.width <= whole.width && region.y + region.height <= whole.height;
}

}  // namespace

void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const Planes& result) {
  if (is_plain(view, whole, region, result)) {
    copy(view, region, finish, result);
    return;
  }
  // Kept from picture to picture: nothing is allocated once it has grown.
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
  scratch.row.resize(static_cast<size_t>(columns) * static_cast<size_t>(channels));
  scratch.sums.resize(static_cast<size_t>(result.width));
  for (int y = 0; y < result.height; ++y) {
    const auto at = static_cast<size_t>(y);
    weigh_rows(view.pixels + down.first[at] * view.stride + left * channels, view.stride,
               columns * channels, down.weights.data() + at, down.count, down.taps,
               scratch.row.data());
    for (int c = 0; c < channels; ++c) {
      weigh_columns(scratch.row.data() + c, channels, across.first.data(), across.weights.data(),
                    across.count, across.taps, scratch.sums.data());
      finish_row(scratch.sums.data(), across.inside.data(), down.inside[at],
                 finish.mean[static_cast<size_t>(c)], finish.scale, result.width,
                 result.plane(target_plane(finish, channels, c)) +
                     static_cast<std::ptrdiff_t>(y) * result.width);
    }
  }
}

Part needed_part(const Size& whole, int shrunk, const Region& region, const Size& size) {
  const auto along = [&](double begin, double length, int all, int count) {
    const Span span = span_of(begin, length, all, shrunk);
    const int taps =
        std::min(static_cast<int>(std::ceil(2 * reach_of(step_of(span, count)))) + 1, span.pixels);
    const int first = std::min(pixels_of(span, count, 0).first, span.pixels - taps);
    const int last = std::min(pixels_of(span, count, count - 1).first, span.pixels - taps) + taps;
    return std::pair(first, last);
  };
  const auto [left, right] = along(region.x, region.width, whole.width, size.width);
  const auto [top, bottom] = along(region.y, region.height, whole.height, size.height);
  return {left, top, right, bottom};
}

}  // namespace tandem::picture
