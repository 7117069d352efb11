#include "datasets/picture/rows.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "datasets/picture/target_clones.h"

namespace tandem::picture {
namespace {

// Inlined into every clone, so that each loop is compiled for the clone's instruction set.
#define TANDEM_INTO_CLONES inline __attribute__((always_inline))

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

}  // namespace

TANDEM_TARGET_CLONES void weigh_rows(const unsigned char* rows, std::ptrdiff_t stride, int length,
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

namespace {

// The channels of a pixel in one vector, with the values after them.
using Pixel = float __attribute__((vector_size(16)));

TANDEM_INTO_CLONES Pixel load(const float* at) {
  Pixel pixel;
  __builtin_memcpy(&pixel, at, sizeof(pixel));
  return pixel;
}
TANDEM_INTO_CLONES void store(const Pixel& pixel, float* at) {
  __builtin_memcpy(at, &pixel, sizeof(pixel));
}

// The weighted taps of position i. `taps` 0: as many as the axis has.
template <int channels, int taps>
TANDEM_INTO_CLONES Pixel sum_of(const float* row, const Axis& axis, int i) {
  const float* from = row + axis.first[static_cast<size_t>(i)] * channels;
  const float* weight = axis.weights.data() + i;
  Pixel sum = *weight * load(from);
  for (int t = 1; t < (taps == 0 ? axis.taps : taps); ++t) {
    weight += axis.count;
    from += channels;
    sum += *weight * load(from);
  }
  return sum;
}

// Position i of the result, its mean taken away and scaled; plain: as the picture has it, which is
// the mean beyond it.
template <int channels, int taps, bool plain>
TANDEM_INTO_CLONES Pixel value_of(const float* row, const Axis& axis,
                                  const RowFinish<float>& finish, int i) {
  const float inside = axis.inside[static_cast<size_t>(i)] * finish.inside_down;
  const Pixel sum = sum_of<channels, taps>(row, axis, i), mean = load(finish.mean.data());
  if constexpr (plain) return sum + (mean - mean * inside);
  return (sum - mean * inside) * finish.scale;
}

// Four pixels at a time, so that four neighbors of one channel are stored together.
template <int channels, int taps, bool plain>
TANDEM_INTO_CLONES void finish_taps(const float* row, const Axis& axis, RowFinish<float> finish) {
  int i = 0;
  for (; i + 4 <= axis.count; i += 4) {
    const Pixel a = value_of<channels, taps, plain>(row, axis, finish, i);
    const Pixel b = value_of<channels, taps, plain>(row, axis, finish, i + 1);
    const Pixel c = value_of<channels, taps, plain>(row, axis, finish, i + 2);
    const Pixel d = value_of<channels, taps, plain>(row, axis, finish, i + 3);
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
    const Pixel value = value_of<channels, taps, plain>(row, axis, finish, i);
    for (int c = 0; c < channels; ++c) finish.planes[static_cast<size_t>(c)][i] = value[c];
  }
}

// Up to the step at which a JPEG would have been halved, a position has at most four taps.
template <int channels, bool plain>
TANDEM_INTO_CLONES void finish_by_taps(const float* row, const Axis& axis,
                                       const RowFinish<float>& finish) {
  if (axis.taps == 2) return finish_taps<channels, 2, plain>(row, axis, finish);
  if (axis.taps == 3) return finish_taps<channels, 3, plain>(row, axis, finish);
  if (axis.taps == 4) return finish_taps<channels, 4, plain>(row, axis, finish);
  finish_taps<channels, 0, plain>(row, axis, finish);
}

TANDEM_TARGET_CLONES void finish_color(const float* row, const Axis& axis,
                                       const RowFinish<float>& finish) {
  finish_by_taps<3, false>(row, axis, finish);
}
TANDEM_TARGET_CLONES void finish_gray(const float* row, const Axis& axis,
                                      const RowFinish<float>& finish) {
  finish_by_taps<1, false>(row, axis, finish);
}
TANDEM_TARGET_CLONES void finish_plain_color(const float* row, const Axis& axis,
                                             const RowFinish<float>& finish) {
  finish_by_taps<3, true>(row, axis, finish);
}
TANDEM_TARGET_CLONES void finish_plain_gray(const float* row, const Axis& axis,
                                            const RowFinish<float>& finish) {
  finish_by_taps<1, true>(row, axis, finish);
}

}  // namespace

namespace {

TANDEM_TARGET_CLONES void limit_row(float* __restrict values, int count, float mean, float scale) {
  for (int i = 0; i < count; ++i) {
    const float least = values[i] < 0 ? 0 : values[i];
    values[i] = ((least > 255 ? 255 : least) - mean) * scale;
  }
}

void finish_limited(const float* row, const Axis& axis, int channels, const RowFinish<float>& how) {
  channels == 3 ? finish_plain_color(row, axis, how) : finish_plain_gray(row, axis, how);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    limit_row(how.planes[c], axis.count, how.mean[c], how.scale);
  }
}

}  // namespace

void finish_row(const float* row, const Axis& axis, int channels, const RowFinish<float>& how) {
  if (how.limited) return finish_limited(row, axis, channels, how);
  channels == 3 ? finish_color(row, axis, how) : finish_gray(row, axis, how);
}

void finish_row(const float* row, const Axis& axis, int channels,
                const RowFinish<unsigned char>& how) {
  thread_local std::vector<float> values;
  const auto count = static_cast<size_t>(axis.count);
  values.resize(static_cast<size_t>(channels) * count);
  RowFinish<float> plain{how.mean, 1, how.inside_down, false, {}};
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    plain.planes[c] = values.data() + c * count;
  }
  channels == 3 ? finish_plain_color(row, axis, plain) : finish_plain_gray(row, axis, plain);
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    round_row(plain.planes[c], axis.count, 0, how.planes[c]);
  }
}

// A sum with 1.5 times 2^23 has no bits for a fraction: it is rounded as every sum, to nearest
// and ties to even, and its bits count from there. Clamped as integers, which vector code can.
TANDEM_TARGET_CLONES void round_row(const float* __restrict values, std::ptrdiff_t count,
                                    float added, unsigned char* __restrict bytes) {
  constexpr float no_fractions = 12582912.0F;
  constexpr int32_t zero = 0x4b400000;  // its bits
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const float sum = (values[i] + added) + no_fractions;
    int32_t bits = 0;
    __builtin_memcpy(&bits, &sum, sizeof(bits));
    bytes[i] = static_cast<unsigned char>(std::clamp(bits - zero, 0, 255));
  }
}

TANDEM_TARGET_CLONES void copy_row(const unsigned char* row, int count, int channels, int channel,
                                   const RowFinish<float>& finish) {
  float* __restrict plane = finish.planes[static_cast<size_t>(channel)];
  const float scale = finish.scale, mean = finish.mean[static_cast<size_t>(channel)];
  if (channels == 3) {
    for (int i = 0; i < count; ++i) {
      plane[i] = (static_cast<float>(row[3 * i + channel]) - mean) * scale;
    }
  } else {
    for (int i = 0; i < count; ++i) plane[i] = (static_cast<float>(row[i]) - mean) * scale;
  }
}
TANDEM_TARGET_CLONES void copy_row(const unsigned char* row, int count, int channels, int channel,
                                   const RowFinish<unsigned char>& finish) {
  unsigned char* __restrict plane = finish.planes[static_cast<size_t>(channel)];
  if (channels == 3) {
    for (int i = 0; i < count; ++i) plane[i] = row[3 * i + channel];
  } else {
    std::copy_n(row, count, plane);
  }
}

}  // namespace tandem::picture
