#include "core/data/audit/pixel_sums.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tandem {
namespace {

// The sum of the values and that of their squares. Neighbors are summed side by side, so that a
// compiler may do so in a vector.
std::pair<double, double> sums_of(const float* values, int64_t count) {
  constexpr int64_t lanes = 64, block = 32 * lanes;  // short enough for float
  double sum = 0, square = 0;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(count, begin + block);
    std::array<float, lanes> one{}, two{};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const float value = values[i + lane];
        one[size_t(lane)] += value;
        two[size_t(lane)] += value * value;
      }
    }
    for (; i < end; ++i) {
      one[0] += values[i];
      two[0] += values[i] * values[i];
    }
    for (const float part : one) sum += part;
    for (const float part : two) square += part;
  }
  return {sum, square};
}

}  // namespace

void PixelSums::add(const std::vector<float>& pixels, int64_t channels) {
  const auto plane = static_cast<int64_t>(pixels.size()) / channels;
  values.resize(size_t(channels));
  squares.resize(size_t(channels));
  for (int64_t c = 0; c < channels; ++c) {
    const auto [sum, square] = sums_of(pixels.data() + c * plane, plane);
    values[size_t(c)] += sum / static_cast<double>(plane);
    squares[size_t(c)] += square / static_cast<double>(plane);
  }
  ++pictures;
}

void PixelSums::add(const PixelSums& other) {
  values.resize(std::max(values.size(), other.values.size()));
  squares.resize(values.size());
  for (size_t c = 0; c < other.values.size(); ++c) {
    values[c] += other.values[c];
    squares[c] += other.squares[c];
  }
  pictures += other.pictures;
}

}  // namespace tandem
