// Operators with weights: products with matrices, normalizations.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"
#include "core/formats/onnx_reader/spans.h"

namespace tandem::onnx_operators {

// ---- products

OnnxNetValue product(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, const OnnxTensor& weight,
                     bool is_transposed, double scale, const ProductParameters& parameters) {
  if (weight.shape.size() != 2 || x.axes.empty()) throw error("its weights must be a matrix");
  const int64_t inputs = weight.shape[is_transposed ? 1 : 0];
  const int64_t outputs = weight.shape[is_transposed ? 0 : 1];
  const size_t last = x.axes.size() - 1;
  if (x.extent(last) != inputs || outputs < 1) {
    throw error("its weights are {}, the last axis of its input has {}",
                fmt::join(weight.shape, "x"), x.extent(last));
  }
  const bool is_row = x.count() == inputs;
  // The order of the inputs in memory; weights follow it.
  std::vector<size_t> sorted = x.axes[last];
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> strides;  // of the sorted factors, in the order of the axis
  for (const size_t factor : sorted) {
    int64_t stride = 1;
    const auto at = std::find(x.axes[last].begin(), x.axes[last].end(), factor);
    for (auto next = at + 1; next != x.axes[last].end(); ++next) stride *= x.factors[*next];
    strides.push_back(stride);
  }
  std::vector<int64_t> place(size_t(inputs), 0);  // of each element of memory
  for (int64_t i = 0; i < inputs; ++i) {
    int64_t rest = i;
    for (size_t k = sorted.size(); k-- > 0;) {
      place[size_t(i)] += rest % x.factors[sorted[k]] * strides[k];
      rest /= x.factors[sorted[k]];
    }
  }
  std::vector<float> values(size_t(inputs * outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const int64_t from =
          is_transposed ? o * inputs + place[size_t(i)] : place[size_t(i)] * outputs + o;
      values[size_t(o * inputs + i)] = static_cast<float>(scale * weight.at(size_t(from)));
    }
  }
  if (!is_row) x = m.exposed(x, sorted, true).value;
  const auto& [inputs_of_node, biases, bias_origin] = parameters;
  Message& layer =
      m.add(m.layer_name(node, inputs_of_node), is_row ? "InnerProduct" : "Convolution", {x.top});
  std::vector<int64_t> shape{outputs, inputs};
  if (!is_row) shape.insert(shape.end(), {1, 1});
  m.weight(layer, "weight", shape, std::move(values), inputs_of_node.empty() ? nullptr : &weight,
           1);
  if (!biases.empty()) m.weight(layer, "bias", {outputs}, biases, bias_origin, 0);
  Message& block = layer.add_block(is_row ? "inner_product_param" : "convolution_param");
  block.add("num_output", whole(outputs));
  if (!is_row) block.add("kernel_size", "1");
  if (biases.empty()) block.add("bias_term", "false");
  add_filler(block, "weight_filler", "xavier");
  OnnxNetValue result;
  result.top = layer.find("top")->text;
  result.net = {outputs, is_row ? 1 : x.net[1], is_row ? 1 : x.net[2]};
  if (outputs > 1) result.factors.push_back(outputs);
  const size_t taken = is_row ? 0 : sorted.size();
  for (size_t axis = 0; axis < last; ++axis) {
    result.axes.emplace_back();
    if (is_row) continue;
    for (const size_t factor : x.axes[axis]) {
      result.axes.back().push_back(factor - taken + result.factors.size());
    }
  }
  result.axes.emplace_back();
  if (outputs > 1) result.axes.back().push_back(0);
  if (!is_row)
    result.factors.insert(result.factors.end(), x.factors.begin() + int64_t(taken),
                          x.factors.end());
  return result;
}

namespace {

void gemm(OnnxMapper& m, const OnnxNode& node) {
  if (node.integer("transA", 0) != 0) throw error("transA is not read");
  const OnnxConstant weight = m.required(node, 1);
  const bool is_transposed = node.integer("transB", 0) != 0;
  if (weight->shape.size() != 2) throw error("its weights must be a matrix");
  const int64_t outputs = weight->shape[is_transposed ? 0 : 1];
  std::vector<float> biases;
  if (node.has_input(2)) {
    const OnnxConstant written = m.required(node, 2);
    const bool is_row = !written->shape.empty() && written->shape.back() == outputs;
    if (written->count() != 1 && !is_row) {
      throw error("its third input is {}; one number for each of {} outputs is read",
                  fmt::join(written->shape, "x"), outputs);
    }
    if (written->count() == 1)
      biases.assign(size_t(outputs), static_cast<float>(written->at(0)));
    else
      biases = channel_values(m, node, 2, outputs);
    for (float& value : biases) value *= static_cast<float>(node.number("beta", 1));
  }
  m.set(node, product(m, node, m.value(node, 0), *weight, is_transposed, node.number("alpha", 1),
                      {{1, 2}, biases, m.constant(node, 2).get()}));
}

// The product of two computed values, matrix by matrix.
OnnxNetValue matrices(OnnxMapper& m, const OnnxNode& node, OnnxNetValue a, OnnxNetValue b) {
  const size_t rank = a.axes.size();
  if (rank < 2 || b.axes.size() != rank) throw error("its inputs must have equally many axes");
  std::vector<size_t> outer(rank - 2);
  std::iota(outer.begin(), outer.end(), 0);
  std::vector<int64_t> of_a = a.extents(), of_b = b.extents();
  for (const size_t axis : outer) {
    if (of_a[axis] != of_b[axis] && of_a[axis] != 1 && of_b[axis] != 1) {
      throw error("its inputs are {} and {}", fmt::join(of_a, "x"), fmt::join(of_b, "x"));
    }
    of_a[axis] = of_b[axis] = std::max(of_a[axis], of_b[axis]);
  }
  a = m.repeated(std::move(a), of_a);
  b = m.repeated(std::move(b), of_b);
  const int64_t inner = a.extent(rank - 1);
  if (b.extent(rank - 2) != inner) {
    throw error("matrices of {} and {} cannot be multiplied", fmt::join(a.extents(), "x"),
                fmt::join(b.extents(), "x"));
  }
  if (!divide_alike(a, b, outer)) throw error("its inputs have their matrices in different orders");
  // The matrices in the order of the axes; rows first, or columns first and `transpose`.
  const auto arrange = [&](OnnxNetValue& x, bool& is_transposed) {
    const std::vector<size_t> groups = x.factors_of(outer);
    std::vector<size_t> rows = groups, columns = groups;
    for (const size_t axis : {rank - 2, rank - 1}) {
      rows.insert(rows.end(), x.axes[axis].begin(), x.axes[axis].end());
    }
    for (const size_t axis : {rank - 1, rank - 2}) {
      columns.insert(columns.end(), x.axes[axis].begin(), x.axes[axis].end());
    }
    const int64_t count = x.product(groups), of_rows = x.extent(rank - 2),
                  of_columns = x.extent(rank - 1);
    is_transposed =
        !std::is_sorted(rows.begin(), rows.end()) && std::is_sorted(columns.begin(), columns.end());
    x = is_transposed ? m.arranged(x, columns, {count, of_columns, of_rows})
                      : m.arranged(x, rows, {count, of_rows, of_columns});
  };
  bool transpose_a = false, transpose_b = false;
  arrange(a, transpose_a);
  arrange(b, transpose_b);
  Message& layer = m.add(m.layer_name(node), "MatMul", {a.top, b.top});
  Fields fields;
  if (transpose_a) fields.emplace_back("transpose_a", "true");
  if (transpose_b) fields.emplace_back("transpose_b", "true");
  add_fields(layer, "matmul_param", fields);
  OnnxNetValue result;
  result.top = layer.find("top")->text;
  std::vector<int64_t> extents;
  for (const size_t axis : outer) extents.push_back(a.extent(axis));
  extents.push_back(a.extent(rank - 2));
  extents.push_back(b.extent(rank - 1));
  result.net = {a.net[0], a.extent(rank - 2), b.extent(rank - 1)};
  result.set_plain(extents);
  return result;
}

// Sums of products of two values that are products of matrices: each label is of the batch (in all
// three), of rows (in the first), of columns (in the second), or summed over.
void einsum(OnnxMapper& m, const OnnxNode& node) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      equation.find(',', comma + 1) != std::string::npos ||
      equation.find('.') != std::string::npos) {
    throw error("only an equation of two values and a result is read, not '{}'", equation);
  }
  const std::string of_a = equation.substr(0, comma),
                    of_b = equation.substr(comma + 1, arrow - comma - 1),
                    of_result = equation.substr(arrow + 2);
  const bool is_left = m.is_constant(node, 0), is_right = m.is_constant(node, 1);
  const OnnxNetValue computed = m.value(node, is_left ? 1 : 0);
  OnnxNetValue a = is_left ? value_of_constant(m, node, 0, computed) : computed;
  OnnxNetValue b = is_left    ? computed
                   : is_right ? value_of_constant(m, node, 1, computed)
                              : m.value(node, 1);
  if (a.axes.size() != of_a.size() || b.axes.size() != of_b.size()) {
    throw error("'{}' does not fit its inputs", equation);
  }
  std::string batch, rows, columns, summed;
  const auto has = [](const std::string& labels, char label) {
    return labels.find(label) != std::string::npos;
  };
  for (const char label : of_result) {
    (has(of_a, label) && has(of_b, label) ? batch : has(of_a, label) ? rows : columns) += label;
  }
  for (const char label : of_a) {
    if (!has(of_result, label)) summed += label;
  }
  const auto arrange = [&](OnnxNetValue& x, const std::string& labels, const std::string& first,
                           const std::string& second) {
    std::vector<std::vector<size_t>> axes;
    const auto axis = [&](char label) {
      const size_t at = labels.find(label);
      if (at == std::string::npos || labels.find(label, at + 1) != std::string::npos) {
        throw error("'{}' is no product of matrices", equation);
      }
      return at;
    };
    for (const char label : batch) axes.push_back(x.axes[axis(label)]);
    for (const std::string& group : {first, second}) {
      std::vector<size_t> all;
      for (const char label : group) all.push_back(axis(label));
      axes.push_back(x.factors_of(all));
    }
    if (labels.size() != batch.size() + first.size() + second.size()) {
      throw error("'{}' is no product of matrices", equation);
    }
    x.axes = std::move(axes);
  };
  std::vector<int64_t> extents;
  for (const char label : batch + rows) extents.push_back(a.extent(of_a.find(label)));
  for (const char label : columns) extents.push_back(b.extent(of_b.find(label)));
  arrange(a, of_a, rows, summed);
  arrange(b, of_b, summed, columns);
  OnnxNetValue result = matrices(m, node, std::move(a), std::move(b));
  result.set_plain(extents);
  std::vector<std::vector<size_t>> axes;
  const std::string order = batch + rows + columns;
  for (const char label : of_result) axes.push_back(result.axes[order.find(label)]);
  result.axes = std::move(axes);
  m.set(node, std::move(result));
}

// Whether the constant is one matrix, whatever axes of extent 1 come before it.
bool is_matrix(const OnnxTensor& constant) {
  const size_t rank = constant.shape.size();
  return rank >= 2 &&
         int64_t(constant.count()) == constant.shape[rank - 1] * constant.shape[rank - 2];
}

OnnxTensor matrix_of(OnnxTensor constant) {
  constant.shape.erase(constant.shape.begin(), constant.shape.end() - 2);
  return constant;
}

// x times a constant, which is the node's input `at`.
OnnxNetValue times(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, const OnnxTensor& constant,
                   size_t at, const ProductParameters& parameters) {
  if (is_matrix(constant) && x.axes.size() >= constant.shape.size()) {
    return product(m, node, std::move(x), matrix_of(constant), false, 1, parameters);
  }
  OnnxNetValue values = value_of_constant(m, node, at, x);
  return matrices(m, node, std::move(x), std::move(values));
}

// The recognized form: x, what is added, the matrix. One layer if that is a bias for each output.
void linear(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const OnnxConstant biases = m.required(node, 1), matrix = m.required(node, 2);
  const auto count = int64_t(biases->count());
  const bool is_one = is_matrix(*matrix) && matrix->shape.back() == count &&
                      (count == 1 || biases->shape.back() == count) &&
                      std::max(matrix->shape.size(), biases->shape.size()) <= x.axes.size();
  if (is_one) {
    const ProductParameters both{{2, 1}, floats_of(*biases), biases.get()};
    return m.set(node, times(m, node, std::move(x), *matrix, 2, both));
  }
  x = times(m, node, std::move(x), *matrix, 2, {{2}});
  m.set(node, with_constant(m, node, std::move(x), *biases, "Add", 1));
}

void matmul(OnnxMapper& m, const OnnxNode& node) {
  const OnnxConstant left = m.constant(node, 0), right = m.constant(node, 1);
  if (left == nullptr && right == nullptr) {
    return m.set(node, matrices(m, node, m.value(node, 0), m.value(node, 1)));
  }
  OnnxNetValue x = m.value(node, left == nullptr ? 0 : 1);
  if (left == nullptr) return m.set(node, times(m, node, std::move(x), *right, 1, {{1}}));
  if (!is_matrix(*left) || x.axes.size() < std::max<size_t>(2, left->shape.size())) {
    OnnxNetValue values = value_of_constant(m, node, 0, x);
    return m.set(node, matrices(m, node, std::move(values), std::move(x)));
  }
  // (W x)' = x' W'
  std::swap(x.axes[x.axes.size() - 1], x.axes[x.axes.size() - 2]);
  x = product(m, node, std::move(x), matrix_of(*left), true, 1, {{0}});
  std::swap(x.axes[x.axes.size() - 1], x.axes[x.axes.size() - 2]);
  m.set(node, std::move(x));
}

// ---- normalizations

void batch_norm(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  if (x.axes.size() < 2) throw error("its input has no channels");
  if (node.integer("spatial", 1) == 0) throw error("spatial 0 is not read");
  const int64_t channels = x.extent(1);
  const size_t in_order[] = {3, 4, 1, 2};
  std::vector<std::vector<float>> values;
  for (const size_t input : in_order) {
    values.push_back(channel_values(m, node, input, channels));
    if (values.back().empty()) throw error("input {} is missing", input);
  }
  x = m.exposed(x, x.axes[1], true).value;
  Message& layer = m.add(m.layer_name(node, {1}), "BatchNorm", {x.top});
  const double fraction = node.number("momentum", 0.9F);
  // Sums over steps, whose weight is about that of the long run, 1 / (1 - fraction). Where it is a
  // power of two, what an export of this program divides by it is what was read, bit for bit.
  const auto sum =
      m.is_of_tandem()
          ? static_cast<float>(std::exp2(std::round(-std::log2(1 - std::min(0.9999, fraction)))))
          : 0;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    if (sum > 0) {
      for (float& value : values[k]) value *= sum;
    }
    m.weight(layer, k == 0 ? "mean" : "variance", {channels}, values[k], nullptr, 0);
  }
  if (sum > 0) {
    m.weight(layer, "scale_factor", {1}, {sum}, nullptr, 0);
  } else {
    layer.add_block("param").add("lr_mult", "0");
  }
  m.weight(layer, "weight", {channels}, values[2], m.constant(node, 1).get(), 0);
  m.weight(layer, "bias", {channels}, values[3], m.constant(node, 2).get(), 0);
  add_fields(layer, "batch_norm_param",
             {{"moving_average_fraction", text_of(fraction)},
              {"eps", text_of(node.number("epsilon", 1e-5F))},
              {"scale_bias", "true"}});
  m.count_convolution(true);
  x.top = layer.find("top")->text;
  m.set(node, std::move(x));
}

// `name`: the operand that the layer is named after.
void normalize(OnnxMapper& m, const OnnxNode& node, size_t axis, double eps, size_t factor,
               size_t bias) {
  OnnxNetValue x = m.value(node, 0);
  const int64_t channels = x.extent(axis);
  std::vector<float> factors = channel_values(m, node, factor, channels);
  std::vector<float> biases = channel_values(m, node, bias, channels);
  if (factors.empty()) factors.assign(size_t(channels), 1);
  if (biases.empty()) biases.assign(size_t(channels), 0);
  x = m.exposed(x, x.axes[axis], true).value;
  Message& layer = m.add(m.layer_name(node, {factor}), "LayerNorm", {x.top});
  m.weight(layer, "weight", {channels}, std::move(factors), m.constant(node, factor).get(), 0);
  m.weight(layer, "bias", {channels}, std::move(biases), m.constant(node, bias).get(), 0);
  add_fields(layer, "layer_norm_param", {{"eps", text_of(eps)}});
  m.count_convolution(true);
  x.top = layer.find("top")->text;
  m.set(node, std::move(x));
}

// Each channel of an image alone, or each group of channels: a normalization over what follows.
void instance_norm(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  if (x.axes.size() < 3) throw error("its input is no image");
  const int64_t channels = x.extent(1), groups = node.integer("num_groups", channels);
  const std::vector<int64_t> extents = x.extents();
  if (groups != channels) {
    if (groups < 1 || channels % groups != 0) throw error("{} groups of {}", groups, channels);
    x = m.plain(x, {groups, x.count() / groups, 1});
    x.set_plain({1, groups, x.count() / groups});
  }
  const std::vector<float> factors = channel_values(m, node, 1, channels);
  const std::vector<float> biases = channel_values(m, node, 2, channels);
  std::vector<size_t> pixels(x.axes.size() - 2);
  std::iota(pixels.begin(), pixels.end(), 2);
  x = m.exposed(x, x.factors_of(pixels), true).value;
  apply(m, node, x, "LayerNorm", "layer_norm_param",
        {{"eps", text_of(node.number("epsilon", 1e-5F))}, {"affine", "false"}});
  if (groups != channels) {
    x = m.plain(x, {groups, x.count() / groups, 1});
    x.set_plain(extents);
  }
  const OnnxConstant of_factors = m.constant(node, 1), of_biases = m.constant(node, 2);
  const bool is_trained = (of_factors != nullptr && of_factors->is_trained()) ||
                          (of_biases != nullptr && of_biases->is_trained());
  const bool is_plain = !is_trained && std::all_of(factors.begin(), factors.end(), [](float v) {
    return v == 1;
  }) && std::all_of(biases.begin(), biases.end(), [](float v) { return v == 0; });
  if (!is_plain) {
    const OnnxMapper::Exposed at = m.exposed(x, x.axes[1]);
    Message& layer = m.add(m.layer_name(node, {1}), "Scale", {at.value.top});
    m.weight(layer, "weight", {channels}, factors, of_factors.get(), 0);
    m.weight(layer, "bias", {channels}, biases, of_biases.get(), 0);
    add_fields(layer, "scale_param",
               {{"axis", whole(at.axis)}, {"num_axes", whole(at.count)}, {"bias_term", "true"}});
    x = at.value;
    x.top = layer.find("top")->text;
  }
  m.count_convolution(true);
  m.set(node, std::move(x));
}

void layer_norm(OnnxMapper& m, const OnnxNode& node) {
  const size_t rank = m.value(node, 0).axes.size();
  const size_t axis = axis_of(node.integer("axis", -1), rank);
  if (axis + 1 != rank) throw error("only a normalization over the last axis is read");
  normalize(m, node, axis, node.number("epsilon", 1e-5F), 1, 2);
}

// The recognized form: x, the axes, the bias, eps, the factors.
void layer_norm_parts(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const size_t rank = x.axes.size();
  const std::vector<int64_t> axes = m.integers(node, 1);
  const OnnxConstant eps = m.required(node, 3);
  if (axes.size() != 1 || eps->count() != 1) {
    throw error("only a normalization over one axis is read");
  }
  const size_t axis = axis_of(axes[0], rank);
  const OnnxConstant factors = m.required(node, 4), biases = m.required(node, 2);
  if (is_along(*factors, x, axis) && is_along(*biases, x, axis)) {
    return normalize(m, node, axis, eps->at(0), 4, 2);
  }
  x = m.exposed(x, x.axes[axis], true).value;
  apply(m, node, x, "LayerNorm", "layer_norm_param",
        {{"eps", text_of(eps->at(0))}, {"affine", "false"}});
  x = with_constant(m, node, std::move(x), *factors, "Mul", 4);
  m.set(node, with_constant(m, node, std::move(x), *biases, "Add", 2));
}

}  // namespace

const std::vector<NamedOnnxOperator>& weighted() {
  static const std::vector<NamedOnnxOperator> table{
      {"", "BatchNormalization", batch_norm},
      {"", "Einsum", einsum},
      {"", "Gemm", gemm},
      {"", "GroupNormalization", instance_norm},
      {"", "InstanceNormalization", instance_norm},
      {"", "LayerNormalization", layer_norm},
      {"", "MatMul", matmul},
      {"tandem", "LayerNorm", layer_norm_parts},
      {"tandem", "Linear", linear},
  };
  return table;
}

}  // namespace tandem::onnx_operators
