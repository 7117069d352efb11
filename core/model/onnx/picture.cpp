#include "core/model/onnx/picture.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "plugins/center_crop.h"

namespace tandem {
namespace onnx_picture {
namespace {

// A part of a picture along one axis, and how many pixels are made of it.
struct Span {
  double begin = 0, length = 0;
  int64_t whole = 0, count = 0;
};

// The data set's filter (datasets/picture/axis.h) at a distance in pixels.
double filter_at(bool is_cubic, double distance) {
  const double x = std::abs(distance);
  if (!is_cubic) return std::max(0.0, 1 - x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// The share of each pixel of the part, which begins at `first`, in each pixel of the result:
// pixels x results.
struct Shares {
  int64_t first = 0, pixels = 0;
  std::vector<float> values;
  bool is_copy = false;
};

Shares shares_of(const Span& span, bool is_cubic) {
  const double step = span.length / static_cast<double>(span.count);
  const double stretch = std::max(1.0, step), reach = (is_cubic ? 2 : 1) * stretch;
  const auto centre = [&](int64_t i) {
    return span.begin + (static_cast<double>(i) + 0.5) * step - 0.5;
  };
  const auto low = [&](int64_t i) {
    return std::clamp<int64_t>(std::llround(std::floor(centre(i) - reach + 1e-9)) + 1, 0,
                               span.whole - 1);
  };
  const auto high = [&](int64_t i) {
    return std::clamp<int64_t>(std::llround(std::ceil(centre(i) + reach - 1e-9)) - 1, 0,
                               span.whole - 1);
  };
  Shares shares;
  // Such a part consists of whole pixels.
  shares.is_copy = span.length == static_cast<double>(span.count);
  shares.first = shares.is_copy ? std::llround(span.begin) : low(0);
  shares.pixels = shares.is_copy ? span.count : high(span.count - 1) + 1 - shares.first;
  if (shares.is_copy) return shares;
  shares.values.assign(static_cast<size_t>(shares.pixels * span.count), 0);
  for (int64_t i = 0; i < span.count; ++i) {
    const auto weight = [&](int64_t pixel) {
      return filter_at(is_cubic, (static_cast<double>(pixel) - centre(i)) / stretch);
    };
    double sum = 0;
    for (int64_t pixel = low(i); pixel <= high(i); ++pixel) sum += weight(pixel);
    for (int64_t pixel = low(i); pixel <= high(i); ++pixel) {
      shares.values[static_cast<size_t>((pixel - shares.first) * span.count + i)] =
          static_cast<float>(sum > 0 ? weight(pixel) / sum : (pixel == low(i) ? 1 : 0));
    }
  }
  return shares;
}

// The part of a picture that becomes the crop, rows and columns: its middle.
std::pair<Span, Span> middle_of(const OnnxOptions::Size& size, const Shape& crop, int64_t resize) {
  const auto [across, down] =
      center_crop::middle_of(size.width, size.height, crop.w, crop.h, resize);
  return {Span{down.begin, down.length, size.height, crop.h},
          Span{across.begin, across.length, size.width, crop.w}};
}

}  // namespace
}  // namespace onnx_picture

std::string add_picture_steps(OnnxGraph& graph, const std::string& picture,
                              const OnnxOptions::Size& size, const Shape& crop,
                              const PictureSteps& steps) {
  using onnx_picture::Shares;
  const auto [down, across] = onnx_picture::middle_of(size, crop, steps.resize);
  const Shares rows = onnx_picture::shares_of(down, steps.is_cubic);
  const Shares columns = onnx_picture::shares_of(across, steps.is_cubic);
  const auto name = [](const std::string& part) { return "picture/" + part; };
  std::string value = graph.add(
      "Slice", name("crop"),
      {picture, graph.integers(name("starts"), {rows.first, columns.first}),
       graph.integers(name("ends"), {rows.first + rows.pixels, columns.first + columns.pixels}),
       graph.integers(name("axes"), {2, 3})});
  // First down the rows, as the data set does it. They are the last axis only after a
  // transposition: runtimes differ in what they multiply from the left.
  const std::vector<OnnxAttribute> turned{{"perm", std::vector<int64_t>{0, 1, 3, 2}}};
  if (!rows.is_copy) {
    const std::string shares = graph.constant(name("rows"), {rows.pixels, crop.h}, rows.values);
    value = graph.add("Transpose", name("turn"), {value}, turned);
    value = graph.add("MatMul", name("resize_down"), {value, shares});
    value = graph.add("Transpose", name("turn_back"), {value}, turned);
  }
  if (!columns.is_copy) {
    const std::string shares =
        graph.constant(name("columns"), {columns.pixels, crop.w}, columns.values);
    value = graph.add("MatMul", name("resize_across"), {value, shares});
  }
  if (steps.is_cubic && !(rows.is_copy && columns.is_copy)) {
    // To 0 and 255, as the layer Clip (core/model/onnx/layers.cpp).
    value =
        graph.add("HardSigmoid", name("limit"), {value}, {{"alpha", 1.0F / 255}, {"beta", 0.0F}});
    value = graph.add("Mul", name("limited"), {value, graph.scalar(name("most"), 255)});
  }
  if (steps.rounds && !(rows.is_copy && columns.is_copy)) {
    value = graph.add("Round", name("round"), {value});
  }
  // Order of the channels, mean and scale are one product of each pixel's channels.
  const auto channels = static_cast<size_t>(crop.c);
  std::vector<float> matrix(channels * channels, 0), biases(channels, 0);
  for (size_t to = 0; to < channels; ++to) {
    matrix[to * channels + (steps.is_rgb ? to : channels - 1 - to)] = steps.scale;
    if (!steps.means.empty()) biases[to] = -steps.means.at(to) * steps.scale;
  }
  return graph.add("Conv", name("normalise"),
                   {value, graph.constant(name("factors"), {crop.c, crop.c, 1, 1}, matrix),
                    graph.constant(name("shifts"), {crop.c}, biases)},
                   {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}

}  // namespace tandem
