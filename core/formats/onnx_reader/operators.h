// The operators of ONNX that become layers, each a function, by their names.
#pragma once

#include <string>

#include "core/formats/onnx_reader/mapper.h"

namespace tandem {

// Maps the node, or throws an Error whose text is what is missing, without the node.
using OnnxOperator = void (*)(OnnxMapper&, const OnnxNode&);

// Null for an operator that is not known. `domain`: "", or "tandem" for a recognized form.
[[nodiscard]] OnnxOperator find_onnx_operator(const std::string& domain, const std::string& name);

struct NamedOnnxOperator {
  const char *domain, *name;
  OnnxOperator map;
};

namespace onnx_operators {

// Tables of a file each.
[[nodiscard]] const std::vector<NamedOnnxOperator>& convolutions();
[[nodiscard]] const std::vector<NamedOnnxOperator>& parts();
[[nodiscard]] const std::vector<NamedOnnxOperator>& sizes();
[[nodiscard]] const std::vector<NamedOnnxOperator>& weighted();
[[nodiscard]] const std::vector<NamedOnnxOperator>& elementwise();
[[nodiscard]] const std::vector<NamedOnnxOperator>& windows();
[[nodiscard]] const std::vector<NamedOnnxOperator>& shapes();

// Adds a layer with one input and the same axes, with a block of fields: {{"alpha", "0.1"}}.
using Fields = std::vector<std::pair<const char*, std::string>>;
void add_fields(Message& layer, const char* block, const Fields& fields);
void simple(OnnxMapper& mapper, const OnnxNode& node, const char* type, const char* block = "",
            const Fields& fields = {});
// Adds such a layer to a value, which then is that layer's.
void apply(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue& value, const char* type,
           const char* block = "", const Fields& fields = {});
// Sums, products and others of a value and a constant: of the node's input `parameter`, which comes
// before the value if `is_first`.
[[nodiscard]] OnnxNetValue with_constant(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue x,
                                         const OnnxTensor& constant, const std::string& operation,
                                         size_t parameter, bool is_first = false);
// y = x W + b over the last axis of x, W of (inputs, outputs), or of (outputs, inputs) if
// transposed.
struct ProductParameters {
  std::vector<size_t> inputs{};  // of the node, which name the layer; none: W is not of the file
  std::vector<float> biases{};   // one for each output, or none
  const OnnxTensor* bias_origin = nullptr;  // the constant that they are
};
[[nodiscard]] OnnxNetValue product(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue x,
                                   const OnnxTensor& weight, bool is_transposed, double scale,
                                   const ProductParameters& parameters);
// A constant input as a value: zeros made of another value's elements, and the constant added.
[[nodiscard]] OnnxNetValue value_of_constant(OnnxMapper& mapper, const OnnxNode& node, size_t input,
                                             const OnnxNetValue& like);
// Indices of an axis.
[[nodiscard]] OnnxNetValue taken(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue x,
                                 size_t axis, const OnnxRange& range);
// Whether the constant, combined with the value, has one number for each index of this axis.
[[nodiscard]] bool is_along(const OnnxTensor& constant, const OnnxNetValue& x, size_t axis);
// "0.25", with as many digits as a float has.
[[nodiscard]] std::string text_of(double value);
[[nodiscard]] std::string whole(int64_t value);

[[nodiscard]] std::vector<float> floats_of(const OnnxTensor& tensor);
// The values of an optional operand with one for each channel; empty where there is none.
[[nodiscard]] std::vector<float> channel_values(const OnnxMapper& mapper, const OnnxNode& node,
                                                size_t input, int64_t channels);
// `name { type: "xavier" }`, for a net that is trained anew.
void add_filler(Message& block, const char* name, const char* type);

// The value whose factors of the axis are one index range of its own: the axis is at `axis` of the
// tensor, with `before` and `after` as the factors around it.
struct Line {
  OnnxNetValue value;
  int64_t axis = 1;  // of the tensor
};
[[nodiscard]] Line line_of(OnnxMapper& mapper, const OnnxNetValue& x, size_t axis);
// A part of the line, the tensor `top`, with `extent` indices of the axis.
[[nodiscard]] OnnxNetValue part_of(const Line& line, size_t axis, const std::string& top,
                                   int64_t extent);
// The values one after another along an axis. Error where their other extents differ.
[[nodiscard]] OnnxNetValue joined(OnnxMapper& mapper, const OnnxNode& node,
                                  std::vector<OnnxNetValue> parts, size_t axis);
// The node's output: the value with other axes; elements are moved where that is needed.
void set_reshaped(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue x,
                  const std::vector<int64_t>& extents);

}  // namespace onnx_operators
}  // namespace tandem
