#include "datasets/picture/byte_resize.h"

#include <algorithm>

#include "datasets/picture/target_clones.h"

namespace tandem::picture {
namespace {

using resampling::weight_bits;

constexpr int32_t half = 1 << (weight_bits - 1);

// Inlined into every clone, so that each loop is compiled for the clone's instruction set.
#define TANDEM_INTO_CLONES inline __attribute__((always_inline))

TANDEM_INTO_CLONES unsigned char to_byte(int32_t sum) {
  return static_cast<unsigned char>(std::clamp(sum >> weight_bits, 0, 255));
}

// The channels of a pixel in one vector, with the byte after them.
using Bytes = unsigned char __attribute__((vector_size(4)));
using Sums = int32_t __attribute__((vector_size(16)));

// `row` must have a readable byte after its last pixel.
TANDEM_TARGET_CLONES void narrow_color(const unsigned char* row, const ByteAxis& axis,
                                       unsigned char* result) {
  const auto count = static_cast<int>(axis.first.size());
  const int32_t* weights = axis.weights.data();
  for (int i = 0; i < count; ++i, weights += axis.most, result += 3) {
    const unsigned char* from = row + 3 * static_cast<std::ptrdiff_t>(axis.first[i]);
    const int taps = axis.counts[i];
    Sums sum = {half, half, half, half};
    for (int t = 0; t < taps; ++t, from += 3) {
      Bytes pixel;
      __builtin_memcpy(&pixel, from, sizeof(pixel));
      sum += weights[t] * __builtin_convertvector(pixel, Sums);
    }
    for (int c = 0; c < 3; ++c) result[c] = to_byte(sum[c]);
  }
}

void narrow_gray(const unsigned char* row, const ByteAxis& axis, unsigned char* result) {
  const int32_t* weights = axis.weights.data();
  for (size_t i = 0; i < axis.first.size(); ++i, weights += axis.most) {
    int32_t sum = half;
    for (int t = 0; t < axis.counts[i]; ++t) sum += weights[t] * row[axis.first[i] + t];
    result[i] = to_byte(sum);
  }
}

template <int taps>
TANDEM_INTO_CLONES void add(const unsigned char* rows, std::ptrdiff_t stride, int length,
                            const int32_t* weights, int32_t* __restrict sums) {
  for (int i = 0; i < length; ++i) {
    int32_t sum = sums[i];
    for (int t = 0; t < taps; ++t) sum += weights[t] * static_cast<int32_t>(rows[t * stride + i]);
    sums[i] = sum;
  }
}

TANDEM_TARGET_CLONES void add_rows(const unsigned char* rows, std::ptrdiff_t stride, int length,
                                   const int32_t* weights, int taps, int32_t* __restrict sums,
                                   unsigned char* __restrict result) {
  constexpr int together = 4;
  for (int i = 0; i < length; ++i) sums[i] = half;
  int t = 0;
  for (; t + together <= taps; t += together) {
    add<together>(rows + t * stride, stride, length, weights + t, sums);
  }
  for (; t < taps; ++t) add<1>(rows + t * stride, stride, length, weights + t, sums);
  for (int i = 0; i < length; ++i) result[i] = to_byte(sums[i]);
}

bool is_copy(const center_crop::Part& part) {
  return part.whole == part.resized;
}

}  // namespace

std::pair<int, int> touched(const center_crop::Part& part, resampling::Filter filter) {
  const int64_t last = part.begin + part.count - 1;
  if (is_copy(part)) return {static_cast<int>(part.begin), static_cast<int>(last) + 1};
  resampling::Taps taps;
  find_taps(filter, part.whole, part.resized, part.begin, taps);
  const int64_t first = taps.first;
  find_taps(filter, part.whole, part.resized, last, taps);
  return {static_cast<int>(first),
          static_cast<int>(taps.first) + static_cast<int>(taps.weights.size())};
}

void make_axis(const center_crop::Part& part, resampling::Filter filter, ByteAxis& axis) {
  const auto count = static_cast<size_t>(part.count);
  axis.is_copy = is_copy(part);
  axis.first.resize(count);
  axis.counts.assign(count, 1);
  axis.weights.clear();
  if (axis.is_copy) {
    for (size_t i = 0; i < count; ++i) {
      axis.first[i] = static_cast<int>(part.begin) + static_cast<int>(i);
    }
    return;
  }
  const double scale = static_cast<double>(part.whole) / static_cast<double>(part.resized);
  axis.most = 2 * static_cast<int>(std::ceil(reach_of(filter) * std::max(1.0, scale))) + 1;
  axis.weights.assign(count * static_cast<size_t>(axis.most), 0);
  resampling::Taps taps;
  for (size_t i = 0; i < count; ++i) {
    find_taps(filter, part.whole, part.resized, part.begin + static_cast<int64_t>(i), taps);
    axis.first[i] = static_cast<int>(taps.first);
    axis.counts[i] = static_cast<int>(taps.weights.size());
    std::transform(taps.weights.begin(), taps.weights.end(),
                   axis.weights.begin() + static_cast<std::ptrdiff_t>(i) * axis.most,
                   &resampling::whole_weight);
  }
}

void ByteResize::begin(const View& view, const center_crop::Middle& middle,
                       resampling::Filter filter) {
  const auto& [across, down] = middle;
  make_axis(across, filter, across_);
  make_axis(down, filter, down_);
  const auto columns = touched(across, filter), rows = touched(down, filter);
  for (int& first : across_.first) first -= columns.first;
  for (int& first : down_.first) first -= rows.first;
  columns_ = columns.second - columns.first;
  rows_ = view;
  rows_.pixels += (rows.first - view.top) * view.stride +
                  static_cast<std::ptrdiff_t>(columns.first - view.left) * view.channels;
  rows_.width = columns_;
  rows_.height = rows.second - rows.first;
  is_down_first_ =
      resampling::is_down_first(across.whole, down.whole, across.resized, down.resized);
  if (!is_down_first_ && !across_.is_copy) narrow_rows();
}

void ByteResize::narrow_rows() {
  const auto width = static_cast<int>(across_.first.size());
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(width) * rows_.channels;
  pixels_.resize(static_cast<size_t>(stride) * static_cast<size_t>(rows_.height));
  for (int y = 0; y < rows_.height; ++y) {
    (void)narrow(rows_.pixels + y * rows_.stride, pixels_.data() + y * stride);
  }
  rows_.pixels = pixels_.data();
  rows_.stride = stride;
  rows_.width = width;
}

// The row is copied, for the byte that is read after its last pixel.
const unsigned char* ByteResize::narrow(const unsigned char* row, unsigned char* result) {
  const size_t length = static_cast<size_t>(columns_) * static_cast<size_t>(rows_.channels);
  padded_.resize(length + 1);
  std::copy_n(row, length, padded_.data());
  rows_.channels == 3 ? narrow_color(padded_.data(), across_, result)
                      : narrow_gray(padded_.data(), across_, result);
  return result;
}

const unsigned char* ByteResize::shorten(int y) {
  const auto at = static_cast<size_t>(y);
  const unsigned char* rows = rows_.pixels + down_.first[at] * rows_.stride;
  if (down_.is_copy) return rows;
  const int length = rows_.width * rows_.channels;
  sums_.resize(static_cast<size_t>(length));
  row_.resize(static_cast<size_t>(length));
  const int32_t* weights = down_.weights.data() + static_cast<std::ptrdiff_t>(y) * down_.most;
  add_rows(rows, rows_.stride, length, weights, down_.counts[at], sums_.data(), row_.data());
  return row_.data();
}

const unsigned char* ByteResize::row(int y) {
  const unsigned char* shortened = shorten(y);
  if (!is_down_first_ || across_.is_copy) return shortened;
  pixels_.resize(across_.first.size() * static_cast<size_t>(rows_.channels));
  return narrow(shortened, pixels_.data());
}

}  // namespace tandem::picture
