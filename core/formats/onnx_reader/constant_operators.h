// Operators that are computed when a file is read, in tables of four ideas, and what they share.
#pragma once

#include <memory>
#include <vector>

#include "core/formats/onnx_reader/constants.h"

namespace tandem::onnx_constants {

using Extents = std::vector<int64_t>;
using Inputs = std::vector<OnnxConstant>;
using Evaluation = OnnxConstant (*)(const OnnxNode&, const Inputs&);
struct NamedEvaluation {
  const char* name;
  Evaluation evaluate;
};

[[nodiscard]] const std::vector<NamedEvaluation>& arithmetic();
[[nodiscard]] const std::vector<NamedEvaluation>& layers();
[[nodiscard]] const std::vector<NamedEvaluation>& shapes();
[[nodiscard]] const std::vector<NamedEvaluation>& slices();

constexpr int64_t max_folded_values = int64_t{1} << 27;  // of a tensor

// An input. Error if it is left out.
[[nodiscard]] const OnnxTensor& input(const Inputs& inputs, size_t i);
[[nodiscard]] inline bool has(const Inputs& inputs, size_t i) {
  return i < inputs.size() && inputs[i] != nullptr;
}

// A tensor of zeros. Error for too many.
[[nodiscard]] std::shared_ptr<OnnxTensor> make(const Extents& shape, bool is_integer);
void set(OnnxTensor& tensor, size_t i, double value);
// to[k] = from[i], of tensors of one type.
void copy(const OnnxTensor& from, size_t i, OnnxTensor& to, size_t k);

[[nodiscard]] Extents strides_of(const Extents& shape);
// Copies, for each element of the result, the element of `x` at `start` + the sum of its indices
// times `strides`.
[[nodiscard]] OnnxConstant strided(const OnnxTensor& x, const Extents& shape,
                                   const Extents& strides, int64_t start = 0);
// The extents of two values that are combined element by element.
[[nodiscard]] Extents broadcast(const Extents& a, const Extents& b);
// x repeated so that it has this shape.
[[nodiscard]] OnnxConstant spread(const OnnxTensor& x, const Extents& shape);
[[nodiscard]] OnnxConstant with_shape(const OnnxTensor& x, Extents shape);
// The axes by their numbers, each once, in order. Error if one is there twice.
[[nodiscard]] std::vector<size_t> axes_of(const Extents& axes, size_t rank);

}  // namespace tandem::onnx_constants
