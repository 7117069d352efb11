// Resize and Upsample: by a layer where there is one, or by products with matrices.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"

namespace tandem::onnx_operators {
namespace {

// As in opset 10 and older: the factors are the second input, and places are not chosen.
bool is_old_resize(const OnnxNode& node) {
  return node.operation == "Upsample" || node.inputs.size() == 2;
}

// The factors of all axes: those that are written, or of sizes that are.
std::vector<double> scales_of(const OnnxMapper& m, const OnnxNode& node, const OnnxNetValue& x) {
  const size_t rank = x.axes.size(), at = is_old_resize(node) ? 1 : 2;
  std::vector<int64_t> axes = node.integers("axes");
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool by_scales = node.has_input(at) && m.required(node, at)->count() > 0;
  const OnnxConstant written = m.required(node, by_scales ? at : 3);
  if (written->count() != axes.size() || rank != 4) {
    throw error("only images of four axes are resized");
  }
  std::vector<double> scales(rank, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], rank);
    scales[axis] = written->at(i) / (by_scales ? 1 : double(x.extent(axis)));
  }
  if (!by_scales && node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    throw error("keep_aspect_ratio_policy is not read");
  }
  return scales;
}

// One axis of a Resize: where in the input each pixel of the output is.
struct Places {
  int64_t input, output;
  double scale;
  std::string mode, rounding;  // rounding: "" for linear and cubic

  // As ONNX has it, also outside the image. Places that are whole but for the factor's rounding, by
  // less than `near`, count as whole.
  template <class Real>
  [[nodiscard]] Real place(int64_t i, Real near) const {
    const auto factor = static_cast<Real>(scale), half_pixel = Real(0.5);
    const Real half = (Real(i) + half_pixel) / factor - half_pixel;
    Real at = half;
    if (mode == "asymmetric") at = Real(i) / factor;
    if (mode == "tf_half_pixel_for_nn") at = half + half_pixel;
    if (mode == "align_corners") {
      at = output > 1 ? Real(i) * Real(input - 1) / Real(output - 1) : 0;
    }
    if (mode == "pytorch_half_pixel" && output == 1) at = 0;
    if (mode == "half_pixel_symmetric") {
      at = half + Real(input) / 2 * (1 - Real(output) / (factor * Real(input)));
    }
    if (rounding == "floor") at = std::floor(at + near);
    if (rounding == "ceil") at = std::ceil(at - near);
    if (rounding == "round_prefer_floor") at = std::ceil(at - half_pixel - near);
    if (rounding == "round_prefer_ceil") at = std::floor(at + half_pixel + near);
    return at;
  }
  static constexpr double near_whole = 1e-6;
  // In the image.
  [[nodiscard]] double onnx(int64_t i) const {
    return std::clamp(place<double>(i, near_whole), 0.0, double(input - 1));
  }
  // Whether the nearest pixels are the same by float32, as another program may compute them.
  [[nodiscard]] bool is_sure() const {
    for (int64_t i = 0; i < output && !rounding.empty(); ++i) {
      if (std::clamp(double(place<float>(i, 0)), 0.0, double(input - 1)) != onnx(i)) return false;
    }
    return true;
  }
  // As the layer Upsample has it.
  [[nodiscard]] double ours(int64_t i, bool aligns) const {
    const double all = double(input) * scale;
    const double step =
        std::abs(all - double(output)) < 2e-6 ? double(input) / double(output) : 1 / scale;
    double at =
        rounding.empty() ? (double(i) + 0.5) * step - 0.5 : std::floor(double(i) * step + 1e-9);
    if (aligns) {
      at = output > 1 ? double(i) * double(input - 1) / double(output - 1) : 0;
    }
    return std::clamp(at, 0.0, double(input - 1));
  }
  [[nodiscard]] bool agree(bool aligns) const {
    constexpr double tolerance = 1e-5;
    for (int64_t i = 0; i < output; ++i) {
      if (std::abs(onnx(i) - ours(i, aligns)) > tolerance) return false;
    }
    return true;
  }
};

// What ONNX's cubic mode gives the pixels at these distances, up to 2.
double cubic_factor(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// How much of each pixel of the input a pixel of the output is.
std::vector<double> shares_of(const OnnxNode& node, const Places& places, int64_t i) {
  std::vector<double> shares(size_t(places.input), 0);
  const auto add = [&](double pixel, double share) {
    shares[size_t(std::clamp(pixel, 0.0, double(places.input - 1)))] += share;
  };
  const std::string mode = node.text("mode", "nearest");
  const double at = mode == "cubic" ? places.place<double>(i, 0) : places.onnx(i);
  const double pixel = std::floor(at);
  if (mode != "cubic") {
    add(pixel, 1 - (at - pixel));
    add(pixel + 1, at - pixel);
    return shares;
  }
  const bool excludes = node.integer("exclude_outside", 0) != 0;
  double sum = 0;
  for (double k = pixel - 1; k <= pixel + 2; ++k) {
    const double share = cubic_factor(at - k, node.number("cubic_coeff_a", -0.75F));
    if (excludes && (k < 0 || k >= double(places.input))) continue;
    add(k, share);
    sum += share;
  }
  for (double& share : shares) share /= excludes ? sum : 1;
  return shares;
}

// One axis by a product with a matrix that is not trained: for places and modes without a layer.
OnnxNetValue resized(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, size_t axis,
                     const Places& places) {
  constexpr int64_t most_values = int64_t{1} << 26;
  if (count_of({places.output, places.input}, most_values) < 0) {
    throw error("it makes {} pixels of {}", places.output, places.input);
  }
  OnnxTensor matrix;
  matrix.shape = {places.output, places.input};
  for (int64_t i = 0; i < places.output; ++i) {
    for (const double share : shares_of(node, places, i)) {
      matrix.floats.push_back(static_cast<float>(share));
    }
  }
  std::swap(x.axes[axis], x.axes.back());
  x = product(m, node, std::move(x), matrix, true, 1, {});
  std::swap(x.axes[axis], x.axes.back());
  return x;
}

// By the layer Upsample.
OnnxNetValue upsampled(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x,
                       const std::vector<size_t>& order, const Places& h, const Places& w) {
  const bool is_linear = node.text("mode", "nearest") == "linear", is_last = order[0] == 3;
  const NetExtents net{x.extent(order[0]), h.input, w.input};
  x = m.arranged(x, x.factors_of(order), net);
  Fields fields{{"scale_h", fmt::format("{:.17g}", h.scale)},
                {"scale_w", fmt::format("{:.17g}", w.scale)}};
  if (is_linear) fields.emplace_back("mode", "BILINEAR");
  if (is_linear && h.mode == "align_corners") fields.emplace_back("align_corners", "true");
  apply(m, node, x, "Upsample", "upsample_param", fields);
  x.net = {net[0], h.output, w.output};
  x.set_plain({1, x.net[0], x.net[1], x.net[2]});
  if (is_last) x.axes = {x.axes[0], x.axes[2], x.axes[3], x.axes[1]};
  return x;
}

Places places_of(const OnnxNode& node, int64_t extent, double scale) {
  constexpr double rounding = 1e-6, largest = 1e6;
  const bool is_old = is_old_resize(node);
  const double size = std::floor(double(extent) * scale + rounding);
  if (!(size >= 1 && size <= largest)) throw error("it makes {} pixels of an axis", size);
  const auto factor = static_cast<float>(scale);
  const bool is_written = double(factor) == scale;
  if (is_written && std::floor(factor * static_cast<float>(extent)) != float(size)) {
    throw error("the factor {:.9g} of {} pixels is too near to another size", factor, extent);
  }
  const bool is_nearest = node.text("mode", "nearest") == "nearest";
  return {extent, int64_t(size), scale,
          node.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel"),
          is_nearest ? node.text("nearest_mode", is_old ? "floor" : "round_prefer_floor") : ""};
}

void resize(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const std::vector<double> scales = scales_of(m, node, x);
  const bool is_last = scales[1] != 1 && scales[3] == 1;  // N, H, W, C
  const std::vector<size_t> order =
      is_last ? std::vector<size_t>{3, 1, 2} : std::vector<size_t>{1, 2, 3};
  if (scales[0] != 1 || scales[order[0]] != 1) throw error("only height and width are resized");
  const std::string mode = node.text("mode", "nearest");
  const Places h = places_of(node, x.extent(order[1]), scales[order[1]]),
               w = places_of(node, x.extent(order[2]), scales[order[2]]);
  const bool smooths = node.integer("antialias", 0) != 0 && (h.scale < 1 || w.scale < 1);
  const bool is_known = mode == "linear" || mode == "cubic" || mode == "nearest";
  const bool aligns = mode == "linear" && h.mode == "align_corners";
  const bool has_layer = mode != "cubic" && h.agree(aligns) && w.agree(aligns);
  const bool is_sure = has_layer || (h.is_sure() && w.is_sure());
  if (!is_known || smooths || h.mode == "tf_crop_and_resize" || !is_sure) {
    throw error("mode {} by factors of {:.6g} and {:.6g} with the places {} {}{}is not read", mode,
                h.scale, w.scale, h.mode, h.rounding.empty() ? "" : "(" + h.rounding + ") ",
                smooths ? "and antialias " : "");
  }
  if (has_layer) return m.set(node, upsampled(m, node, std::move(x), order, h, w));
  x = resized(m, node, std::move(x), order[1], h);
  m.set(node, resized(m, node, std::move(x), order[2], w));
}

}  // namespace

const std::vector<NamedOnnxOperator>& sizes() {
  static const std::vector<NamedOnnxOperator> table{
      {"", "Resize", resize},
      {"", "Upsample", resize},
  };
  return table;
}

}  // namespace tandem::onnx_operators
