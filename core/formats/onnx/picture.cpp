#include "core/formats/onnx/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/center_crop.h"
#include "plugins/resampling.h"

namespace tandem {
namespace onnx_picture {
namespace {

using resampling::Filter;
using Rounding = PictureSteps::Rounding;

// The share of each pixel of the part, which begins at `first`, in each pixel of the result:
// pixels x results.
struct Shares {
  int64_t first = 0, pixels = 0, results = 0;
  std::vector<double> values;  // none: each pixel of the part is one of the result
};

Shares shares_of(const center_crop::Part& part, Filter filter) {
  Shares shares{part.begin, part.count, part.count, {}};
  if (part.whole == part.resized) return shares;
  std::vector<resampling::Taps> taps(size_t(part.count));
  for (size_t i = 0; i < taps.size(); ++i) {
    find_taps(filter, part.whole, part.resized, part.begin + static_cast<int64_t>(i), taps[i]);
  }
  const resampling::Taps& last = taps.back();
  shares.first = taps.front().first;
  shares.pixels = last.first + static_cast<int64_t>(last.weights.size()) - shares.first;
  shares.values.assign(size_t(shares.pixels * part.count), 0);
  for (size_t i = 0; i < taps.size(); ++i) {
    auto to = size_t((taps[i].first - shares.first) * part.count) + i;
    for (const double weight : taps[i].weights) {
      shares.values[to] = weight;
      to += taps.size();
    }
  }
  return shares;
}

// The resizing of one crop of a picture.
class Resizing {
 public:
  Resizing(OnnxGraph& graph, const PictureSteps& steps) : graph_(graph), steps_(steps) {}

  // Rows are the last axis only after a transposition: runtimes differ in what they multiply from
  // the left.
  std::string down(std::string value, const Shares& rows) {
    const std::vector<OnnxAttribute> turned{{"perm", std::vector<int64_t>{0, 1, 3, 2}}};
    if (rows.values.empty()) return value;
    value = graph_.add("Transpose", name("turn"), {value}, turned);
    value = pass(value, rows, "down");
    return graph_.add("Transpose", name("turn_back"), {value}, turned);
  }
  std::string across(const std::string& value, const Shares& columns) {
    return columns.values.empty() ? value : pass(value, columns, "across");
  }
  // What happens to the result of both.
  std::string finished(std::string value) {
    if (steps_.rounding == Rounding::each_pass) return value;
    if (steps_.is_cubic) value = limited(value, "");
    return steps_.rounding == Rounding::once ? graph_.add("Round", name("round"), {value}) : value;
  }
  static std::string name(const std::string& part) { return "picture/" + part; }

 private:
  std::string pass(const std::string& value, const Shares& shares, const std::string& which) {
    if (steps_.rounding == Rounding::each_pass) return rounded_pass(value, shares, which);
    return multiplied(value, shares, "resize_" + which, [](double weight) { return weight; });
  }
  std::string multiplied(const std::string& value, const Shares& shares, const std::string& what,
                         double (*factor_of)(double)) {
    std::vector<float> factors;
    for (const double weight : shares.values) {
      factors.push_back(static_cast<float>(factor_of(weight)));
    }
    const std::string factor =
        graph_.constant(name("shares_" + what), {shares.pixels, shares.results}, factors);
    return graph_.add("MatMul", name(what), {value, factor});
  }
  // Float32 has too few bits for sums of bytes and whole weights, but not for sums of the weights'
  // upper and of their lower bits, nor for what both have after the point: the result is exact.
  // Halves are rounded up, and ONNX's Round takes them to even numbers.
  std::string rounded_pass(const std::string& value, const Shares& shares,
                           const std::string& which) {
    const auto named = [&](const char* part) { return name(part + ("_" + which)); };
    const std::string upper = multiplied(value, shares, "upper_" + which, &upper_part);
    const std::string lower = multiplied(value, shares, "lower_" + which, &lower_part);
    const std::string whole = graph_.add("Floor", named("whole"), {upper});
    std::string rest = graph_.add("Sub", named("fraction"), {upper, whole});
    rest = graph_.add("Add", named("rest"), {rest, lower});
    rest = graph_.add("Add", named("half"), {rest, graph_.scalar(named("a_half"), 0.5)});
    rest = graph_.add("Floor", named("carry"), {rest});
    const std::string sum = graph_.add("Add", named("sum"), {whole, rest});
    if (!steps_.is_cubic) return sum;
    return graph_.add("Round", named("round"), {limited(sum, "_" + which)});
  }
  static double upper_part(double weight) {
    return std::ldexp((resampling::whole_weight(weight) + (1 << (lower_bits - 1))) >> lower_bits,
                      lower_bits - resampling::weight_bits);
  }
  static double lower_part(double weight) {
    return std::ldexp(resampling::whole_weight(weight), -resampling::weight_bits) -
           upper_part(weight);
  }
  // To 0 and 255, as the layer Clip (core/formats/onnx/layers.cpp).
  std::string limited(std::string value, const std::string& pass) {
    value = graph_.add("HardSigmoid", name("limit" + pass), {value},
                       {{"alpha", 1.0F / 255}, {"beta", 0.0F}});
    return graph_.add("Mul", name("limited" + pass),
                      {value, graph_.scalar(name("most" + pass), 255)});
  }

  static constexpr int lower_bits = resampling::weight_bits / 2 - 1;

  OnnxGraph& graph_;
  const PictureSteps& steps_;
};

bool has_bars(const Shape& crop, const center_crop::Middle& middle) {
  return middle.across.count < crop.w || middle.down.count < crop.h;
}

// Order of the channels, mean and scale as one product of each pixel's channels. Where there are
// bars, less what they are for each channel of the net.
std::string normalized(OnnxGraph& graph, const std::string& value, const Shape& crop,
                       const PictureSteps& steps, bool less_bars) {
  const auto name = &Resizing::name;
  const auto channels = size_t(crop.c);
  std::vector<float> matrix(channels * channels, 0), biases(channels, 0);
  for (size_t to = 0; to < channels; ++to) {
    matrix[to * channels + (steps.is_rgb ? to : channels - 1 - to)] = steps.scale;
    if (!steps.means.empty() && steps.shifts.empty())
      biases[to] = -steps.means.at(to) * steps.scale;
    if (less_bars && !steps.bars.empty()) biases[to] -= steps.bars.at(to);
  }
  return graph.add("Conv", name("normalize"),
                   {value, graph.constant(name("factors"), {crop.c, crop.c, 1, 1}, matrix),
                    graph.constant(name("shifts"), {crop.c}, biases)},
                   {{"kernel_shape", std::vector<int64_t>{1, 1}}});
}

// The input of the net from the part of it that the picture fills, less what a bar is for each
// channel of the net. `bars` may be empty: zeros. `pads`: a tensor of Pad.
std::string between_bars(OnnxGraph& graph, const std::string& value, const Shape& crop,
                         const std::string& pads, const std::vector<float>& bars) {
  const auto name = &Resizing::name;
  const std::string padded = graph.add("Pad", name("bars"), {value, pads});
  if (bars.empty()) return padded;
  return graph.add("Add", name("with_bars"),
                   {padded, graph.constant(name("of_bars"), {crop.c, 1, 1}, bars)});
}

// Of rows: some programs make an addition to a convolution's output its bias, for which it has to
// be one for each channel.
std::string shifted(OnnxGraph& graph, const std::string& value, const Shape& crop,
                    const PictureSteps& steps) {
  if (steps.shifts.empty()) return value;
  const auto name = &Resizing::name;
  const int64_t pixels = crop.c * crop.h * crop.w;
  const std::string rows =
      graph.add("Reshape", name("rows"), {value, graph.integers(name("rows_sides"), {-1, pixels})});
  const std::string less =
      graph.add("Add", name("less_mean_image"),
                {rows, graph.constant(name("mean_image"), {pixels}, steps.shifts)});
  return graph.add("Reshape", name("less_mean"),
                   {less, graph.integers(name("image_sides"), {-1, crop.c, crop.h, crop.w})});
}

// Whole numbers of a graph that is being written, as tensors of height and width.
class Sides {
 public:
  explicit Sides(OnnxGraph& graph) : graph_(graph) {}
  std::string of(int64_t height, int64_t width) {
    return graph_.integers(Resizing::name("sides"), {height, width});
  }
  std::string add(const char* operation, const std::string& a, const std::string& b) {
    return graph_.add(operation, Resizing::name("side"), {a, b});
  }

 private:
  OnnxGraph& graph_;
};

// center_crop::middle_of() in a graph: what height and width of a picture become.
std::string resized_sides(OnnxGraph& graph, const std::string& size, const Shape& crop,
                          const PictureSteps& steps) {
  Sides s(graph);
  int64_t height = crop.h, width = crop.w;
  if (steps.resize > 0 && steps.fit == center_crop::Fit::crop) height = width = steps.resize;
  if (steps.resize > 0 && steps.fit != center_crop::Fit::crop) {
    const int64_t shorter = std::min(crop.h, crop.w);
    height = center_crop::in_proportion(crop.h, steps.resize, shorter);
    width = center_crop::in_proportion(crop.w, steps.resize, shorter);
    if (steps.fit == center_crop::Fit::squash && steps.resize_width > 0) {
      height = steps.resize;
      width = steps.resize_width;
    }
  }
  const std::string wanted = s.of(height, width);
  if (steps.fit == center_crop::Fit::squash) return wanted;
  // Each side in proportion to the other one.
  const std::string turned = graph.add("Gather", Resizing::name("turned"), {size, s.of(1, 0)});
  const std::string product = s.add("Mul", s.of(width, height), size);
  if (steps.fit == center_crop::Fit::crop) {
    return s.add("Max", wanted, s.add("Div", product, turned));
  }
  const std::string two = s.of(2, 2);
  const std::string rounded =
      s.add("Div", s.add("Add", s.add("Mul", product, two), turned), s.add("Mul", turned, two));
  return s.add("Max", s.of(1, 1), s.add("Min", wanted, rounded));
}

std::string resized(OnnxGraph& graph, std::string value, const std::string& all_sides,
                    const PictureSteps& steps) {
  const auto name = &Resizing::name;
  constexpr int64_t onnx_float = 1, onnx_uint8 = 2;
  // Of bytes ONNX Runtime computes whole numbers in two passes, as Pillow; few differ by one.
  const bool in_bytes = steps.rounding == Rounding::each_pass;
  if (in_bytes) value = graph.add("Cast", name("bytes"), {value}, {{"to", onnx_uint8}});
  // At its borders a picture is not continued: the shares of the pixels that there are sum to one.
  std::vector<OnnxAttribute> how{{"antialias", int64_t{1}},
                                 {"exclude_outside", int64_t{1}},
                                 {"coordinate_transformation_mode", std::string("half_pixel")},
                                 {"mode", std::string(steps.is_cubic ? "cubic" : "linear")}};
  if (steps.is_cubic) how.push_back({"cubic_coeff_a", -0.5F});
  value = graph.add("Resize", name("resize"), {value, "", "", all_sides}, how);
  return in_bytes ? graph.add("Cast", name("floats"), {value}, {{"to", onnx_float}})
                  : Resizing(graph, steps).finished(value);
}

}  // namespace
}  // namespace onnx_picture

std::string add_picture_steps(OnnxGraph& graph, const std::string& picture, const Shape& size,
                              const Shape& crop, const PictureSteps& steps) {
  using onnx_picture::Resizing;
  const auto name = &Resizing::name;
  const bool is_in_passes = steps.rounding == PictureSteps::Rounding::each_pass;
  const auto filter = steps.is_cubic ? resampling::Filter::cubic : resampling::Filter::linear;
  const center_crop::Middle middle = center_crop::middle_of(
      size.w, size.h, {crop.w, crop.h, steps.resize, steps.resize_width, steps.fit});
  const bool has_bars = onnx_picture::has_bars(crop, middle);
  const auto rows = onnx_picture::shares_of(middle.down, filter);
  const auto columns = onnx_picture::shares_of(middle.across, filter);
  std::string value = graph.add(
      "Slice", name("crop"),
      {picture, graph.integers(name("starts"), {rows.first, columns.first}),
       graph.integers(name("ends"), {rows.first + rows.pixels, columns.first + columns.pixels}),
       graph.integers(name("axes"), {2, 3})});
  // In the order of the data set.
  const bool is_down_first =
      !is_in_passes ||
      resampling::is_down_first(size.w, size.h, middle.across.resized, middle.down.resized);
  Resizing resizing(graph, steps);
  if (!is_down_first) value = resizing.across(value, columns);
  value = resizing.down(value, rows);
  if (is_down_first) value = resizing.across(value, columns);
  if (!rows.values.empty() || !columns.values.empty()) value = resizing.finished(value);
  value = onnx_picture::normalized(graph, value, crop, steps, has_bars);
  if (!has_bars) return onnx_picture::shifted(graph, value, crop, steps);
  const auto& [across, down] = middle;
  const std::string pads =
      graph.integers(name("sides_of_bars"),
                     {0, 0, down.place, across.place, 0, 0, crop.h - down.place - down.count,
                      crop.w - across.place - across.count});
  value = onnx_picture::between_bars(graph, value, crop, pads, steps.bars);
  return onnx_picture::shifted(graph, value, crop, steps);
}

std::string add_steps_of_any_picture(OnnxGraph& graph, const std::string& picture,
                                     const Shape& crop, const PictureSteps& steps) {
  using onnx_picture::Resizing;
  const auto name = &Resizing::name;
  constexpr int64_t onnx_int64 = 7;
  onnx_picture::Sides s(graph);
  const std::string shape = graph.add("Shape", name("shape"), {picture});
  const std::string size = graph.add("Gather", name("size"), {shape, s.of(2, 3)});
  const std::string rows = graph.add("Gather", name("rows"), {shape, s.of(0, 1)});
  const std::string sides = onnx_picture::resized_sides(graph, size, crop, steps);
  const std::vector<OnnxAttribute> joined{{"axis", int64_t{0}}};
  const std::string all = graph.add("Concat", name("resized_shape"), {rows, sides}, joined);
  std::string value = onnx_picture::resized(graph, picture, all, steps);
  // center_crop::part_of()
  const std::string zero = s.of(0, 0), two = s.of(2, 2);
  const std::string room = s.add("Sub", sides, s.of(crop.h, crop.w));
  const std::string over = s.add("Max", room, zero);
  const std::string odd = s.add("Equal", s.add("Mod", over, s.of(4, 4)), s.of(3, 3));
  const std::string begin = s.add("Add", s.add("Div", over, two),
                                  graph.add("Cast", name("odd"), {odd}, {{"to", onnx_int64}}));
  value = graph.add("Slice", name("crop"),
                    {value, begin, s.add("Add", begin, s.of(crop.h, crop.w)), s.of(2, 3)});
  const bool may_have_bars = steps.fit == center_crop::Fit::pad;
  value = onnx_picture::normalized(graph, value, crop, steps, may_have_bars);
  if (!may_have_bars) return onnx_picture::shifted(graph, value, crop, steps);
  const std::string under = s.add("Max", s.add("Sub", zero, room), zero);
  const std::string before = s.add("Div", under, two);
  const std::string pads = graph.add("Concat", name("sides_of_bars"),
                                     {zero, before, zero, s.add("Sub", under, before)}, joined);
  return onnx_picture::between_bars(graph, value, crop, pads, steps.bars);
}

}  // namespace tandem
