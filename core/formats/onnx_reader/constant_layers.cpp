// What layers would compute, of constants: weights that a file standardizes, encodings of positions
// that it convolves.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constant_operators.h"
#include "core/formats/onnx_reader/spans.h"

namespace tandem::onnx_constants {
namespace {

// A small file can ask for any number of products.
constexpr int64_t max_products = int64_t{1} << 28;  // some seconds

void check_products(const Extents& factors) {
  if (count_of(factors, max_products) >= 0) return;
  throw error("it would take {} products", fmt::join(factors, "x"));
}

// Values of each channel; `absent` where the input is left out.
std::vector<double> channels_of(const Inputs& inputs, size_t i, int64_t channels, double absent) {
  std::vector<double> values(size_t(channels), absent);
  if (!has(inputs, i)) return values;
  if (int64_t(inputs[i]->count()) != channels) {
    throw error("input {} has {} values for {} channels", i, inputs[i]->count(), channels);
  }
  for (size_t c = 0; c < values.size(); ++c) values[c] = inputs[i]->at(c);
  return values;
}

// x normalized by the means and variances of its own groups of values: `group` tells that of each.
void normalize(OnnxTensor& x, const std::vector<size_t>& group, size_t groups, double eps) {
  std::vector<double> sum(groups), squares(groups), count(groups);
  for (size_t i = 0; i < x.count(); ++i) {
    sum[group[i]] += x.at(i);
    ++count[group[i]];
  }
  for (size_t i = 0; i < x.count(); ++i) {
    const double away = x.at(i) - sum[group[i]] / count[group[i]];
    squares[group[i]] += away * away;
  }
  for (size_t i = 0; i < x.count(); ++i) {
    const size_t g = group[i];
    set(x, i, (x.at(i) - sum[g] / count[g]) / std::sqrt(squares[g] / count[g] + eps));
  }
}

void scale(OnnxTensor& x, const std::vector<size_t>& channel, const std::vector<double>& factors,
           const std::vector<double>& shifts) {
  for (size_t i = 0; i < x.count(); ++i) {
    set(x, i, x.at(i) * factors[channel[i]] + shifts[channel[i]]);
  }
}

// The index of an axis that each value has.
std::vector<size_t> indices_of(const OnnxTensor& x, size_t axis) {
  std::vector<size_t> indices(x.count());
  const auto step = size_t(strides_of(x.shape)[axis]), extent = size_t(x.shape[axis]);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i / step % extent;
  return indices;
}

// With the statistics of the file, or in training mode those of the values themselves.
OnnxConstant batch_norm(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  if (x.shape.size() < 2 || x.is_integer) return nullptr;
  const int64_t channels = x.shape[1];
  const double eps = node.number("epsilon", 1e-5F);
  const std::vector<size_t> channel = indices_of(x, 1);
  auto result = std::make_shared<OnnxTensor>(x);
  if (node.integer("training_mode", 0) != 0) {
    normalize(*result, channel, size_t(channels), eps);
  } else {
    std::vector<double> mean = channels_of(inputs, 3, channels, 0);
    std::vector<double> factor = channels_of(inputs, 4, channels, 1);
    for (size_t c = 0; c < factor.size(); ++c) {
      factor[c] = 1 / std::sqrt(factor[c] + eps);
      mean[c] *= -factor[c];
    }
    scale(*result, channel, factor, mean);
  }
  scale(*result, channel, channels_of(inputs, 1, channels, 1), channels_of(inputs, 2, channels, 0));
  return result;
}

// Over the last axes, from `axis` on.
OnnxConstant layer_norm(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  if (x.shape.empty() || x.is_integer) return nullptr;
  const size_t axis = axis_of(node.integer("axis", -1), x.shape.size());
  const int64_t inner = strides_of(x.shape)[axis] * x.shape[axis];
  if (inner == 0) return nullptr;
  std::vector<size_t> row(x.count()), place(x.count());
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = i / size_t(inner);
    place[i] = i % size_t(inner);
  }
  auto result = std::make_shared<OnnxTensor>(x);
  normalize(*result, row, x.count() / size_t(inner), node.number("epsilon", 1e-5F));
  scale(*result, place, channels_of(inputs, 1, inner, 1), channels_of(inputs, 2, inner, 0));
  return result;
}

OnnxConstant softmax(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  if (x.shape.empty() || x.is_integer || node.integer("flattens", 0) != 0) return nullptr;
  const size_t axis = axis_of(node.integer("axis", -1), x.shape.size());
  const auto step = size_t(strides_of(x.shape)[axis]), extent = size_t(x.shape[axis]);
  auto result = std::make_shared<OnnxTensor>(x);
  for (size_t first = 0; first < x.count(); ++first) {
    if (first / step % extent != 0) continue;
    double largest = x.at(first), sum = 0;
    for (size_t i = 0; i < extent; ++i) largest = std::max(largest, x.at(first + i * step));
    for (size_t i = 0; i < extent; ++i) sum += std::exp(x.at(first + i * step) - largest);
    for (size_t i = 0; i < extent; ++i) {
      set(*result, first + i * step, std::exp(x.at(first + i * step) - largest) / sum);
    }
  }
  return result;
}

// Of images with two axes.
OnnxConstant convolution(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(inputs, 0), &weight = input(inputs, 1);
  const int64_t groups = node.integer("group", 1);
  if (x.shape.size() != 4 || weight.shape.size() != 4 || groups < 1) return nullptr;
  const int64_t outputs = weight.shape[0], each = weight.shape[1];
  if (outputs % groups != 0 || each * groups != x.shape[1]) {
    throw error("weights of {} in {} groups do not fit an input of {}",
                fmt::join(weight.shape, "x"), groups, fmt::join(x.shape, "x"));
  }
  using namespace onnx_operators;
  const OnnxImage image{x.shape[1], x.shape[2], x.shape[3]};
  const OnnxWindow window = window_of(node, image, {weight.shape[2], weight.shape[3]}, 2);
  const OnnxSpan size = window.results(image), kernel = window.kernel;
  check_products({x.shape[0], outputs, size.h, size.w, each, kernel.h, kernel.w});
  const std::vector<double> biases = channels_of(inputs, 2, outputs, 0);
  auto result = make({x.shape[0], outputs, size.h, size.w}, false);
  for (size_t at = 0; at < result->count(); ++at) {
    auto rest = int64_t(at);
    const int64_t column = rest % size.w * window.stride.w - window.before.w;
    rest /= size.w;
    const int64_t row = rest % size.h * window.stride.h - window.before.h;
    rest /= size.h;
    const int64_t output = rest % outputs, n = rest / outputs;
    double sum = biases[size_t(output)];
    for (int64_t i = 0; i < each * kernel.h * kernel.w; ++i) {
      const int64_t h = row + i / kernel.w % kernel.h * window.dilation.h;
      const int64_t w = column + i % kernel.w * window.dilation.w;
      if (h < 0 || h >= image.h || w < 0 || w >= image.w) continue;
      const int64_t c = output / (outputs / groups) * each + i / (kernel.h * kernel.w);
      sum += weight.at(size_t(output * each * kernel.h * kernel.w + i)) *
             x.at(size_t(((n * image.c + c) * image.h + h) * image.w + w));
    }
    set(*result, at, sum);
  }
  return result;
}

// Matrices of the last two axes, the others combined as elements are.
OnnxConstant product(const OnnxNode&, const Inputs& inputs) {
  const OnnxTensor &a = input(inputs, 0), &b = input(inputs, 1);
  if (a.shape.size() < 2 || b.shape.size() < 2) return nullptr;
  const int64_t rows = a.shape[a.shape.size() - 2], inner = a.shape.back(),
                columns = b.shape.back();
  if (b.shape[b.shape.size() - 2] != inner) {
    throw error("matrices of {} and {} cannot be multiplied", fmt::join(a.shape, "x"),
                fmt::join(b.shape, "x"));
  }
  Extents shape =
      broadcast({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
  const auto whole = [&](const OnnxTensor& x, int64_t height, int64_t width) {
    Extents all = shape;
    all.insert(all.end(), {height, width});
    return spread(x, all);
  };
  const OnnxConstant of_a = whole(a, rows, inner), of_b = whole(b, inner, columns);
  shape.insert(shape.end(), {rows, columns});
  auto result = make(shape, false);
  check_products({int64_t(result->count()), inner});
  for (size_t at = 0; at < result->count(); ++at) {
    const size_t column = at % size_t(columns), row = at / size_t(columns) % size_t(rows);
    const size_t matrix = at / size_t(columns) / size_t(rows);
    double sum = 0;
    for (size_t i = 0; i < size_t(inner); ++i) {
      sum += of_a->at((matrix * size_t(rows) + row) * size_t(inner) + i) *
             of_b->at((matrix * size_t(inner) + i) * size_t(columns) + column);
    }
    set(*result, at, sum);
  }
  return result;
}

OnnxConstant gemm(const OnnxNode& node, const Inputs& inputs) {
  const auto matrix = [&](size_t i, const char* transposes) {
    const OnnxTensor& x = input(inputs, i);
    if (x.shape.size() != 2) throw error("input {} is no matrix", i);
    if (node.integer(transposes, 0) == 0) return with_shape(x, x.shape);
    return strided(x, {x.shape[1], x.shape[0]}, {1, x.shape[1]});
  };
  const OnnxConstant multiplied = product(node, {matrix(0, "transA"), matrix(1, "transB")});
  const Extents& shape = multiplied->shape;
  const OnnxConstant added =
      has(inputs, 2) ? spread(*inputs[2], broadcast(shape, inputs[2]->shape)) : nullptr;
  if (added != nullptr && added->shape != shape) {
    throw error("its third input is {}", fmt::join(inputs[2]->shape, "x"));
  }
  auto result = make(shape, false);
  for (size_t i = 0; i < result->count(); ++i) {
    set(*result, i,
        node.number("alpha", 1) * multiplied->at(i) +
            (added == nullptr ? 0 : node.number("beta", 1) * added->at(i)));
  }
  return result;
}

// Sums of products, index by index: each label of the equation is an axis.
OnnxConstant einsum(const OnnxNode& node, const Inputs& inputs) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return nullptr;
  std::vector<std::string> labels{""};  // of each input
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') labels.emplace_back();
    if (c != ',') labels.back() += c;
  }
  std::string all = equation.substr(arrow + 2);  // the result's labels, and those that are summed
  const size_t kept = all.size();
  for (const std::string& some : labels) {
    for (const char label : some) {
      if (all.find(label) == std::string::npos) all += label;
    }
  }
  Extents extents(all.size(), 0);
  std::vector<Extents> strides(labels.size(), Extents(all.size(), 0));  // of each input
  for (size_t k = 0; k < labels.size(); ++k) {
    const OnnxTensor& x = input(inputs, k);
    if (x.shape.size() != labels[k].size()) {
      throw error("'{}' does not fit its inputs", equation);
    }
    for (size_t axis = 0; axis < labels[k].size(); ++axis) {
      const size_t at = all.find(labels[k][axis]);
      if (extents[at] != 0 && extents[at] != x.shape[axis]) {
        throw error("'{}' does not fit its inputs", equation);
      }
      extents[at] = x.shape[axis];
      strides[k][at] += strides_of(x.shape)[axis];
    }
  }
  check_products(extents);
  auto result = make({extents.begin(), extents.begin() + int64_t(kept)}, false);
  const int64_t each = count_of({extents.begin() + int64_t(kept), extents.end()}, max_products);
  for (size_t at = 0; at < result->count(); ++at) {
    double sum = 0;
    for (int64_t i = 0; i < each; ++i) {
      int64_t rest = int64_t(at) * each + i;
      std::vector<int64_t> places(labels.size(), 0);
      for (size_t axis = all.size(); axis-- > 0; rest /= extents[axis]) {
        for (size_t k = 0; k < places.size(); ++k) {
          places[k] += rest % extents[axis] * strides[k][axis];
        }
      }
      double term = 1;
      for (size_t k = 0; k < places.size(); ++k) term *= inputs[k]->at(size_t(places[k]));
      sum += term;
    }
    set(*result, at, sum);
  }
  return result;
}

}  // namespace

const std::vector<NamedEvaluation>& layers() {
  static const std::vector<NamedEvaluation> table{
      {"BatchNormalization", batch_norm},
      {"Conv", convolution},
      {"Einsum", einsum},
      {"Gemm", gemm},
      {"LayerNormalization", layer_norm},
      {"MatMul", product},
      {"Softmax", softmax},
  };
  return table;
}

}  // namespace tandem::onnx_constants
