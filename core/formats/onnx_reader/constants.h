// Computes nodes whose inputs are all constant: the chains of Shape, Gather, Concat and others by
// which exporters compute extents, and the constants that they leave in a graph.
#pragma once

#include <optional>
#include <vector>

#include "core/formats/onnx_reader/file.h"

namespace tandem {

// The only output of the node for these inputs (null for one that is left out), or null for an
// operator that is not computed. Error for inputs that do not fit, and for a result of more than
// 2^27 values. Errors of this file name neither the node nor the file: who calls does.
[[nodiscard]] OnnxConstant computed(const OnnxNode& node, const std::vector<OnnxConstant>& inputs);

// What all computed constants of a file may take together: a few times the constants that it has,
// as matrices that are transposed. A small file can ask for any amount.
class OnnxBudget {
 public:
  explicit OnnxBudget(const OnnxFile& file);
  // Error if that is exceeded.
  void take(const OnnxTensor& result);

 private:
  int64_t left_ = int64_t{1} << 28;  // values
};

// Whether such a node would be computed if its inputs were constant.
[[nodiscard]] bool can_be_computed(const std::string& operation);

// Removes the nodes that can be computed from constants alone, whose outputs become constants. Of a
// file without initializers, as Paddle's exporter writes it, Constant nodes of several values are
// the parameters; returns whether there are such. Errors name the node and the file.
[[nodiscard]] bool fold_constants(OnnxFile& file);

// What Shape gives of a value of these extents.
[[nodiscard]] OnnxConstant shape_constant(const OnnxNode& node,
                                          const std::vector<int64_t>& extents);

[[nodiscard]] std::vector<int64_t> integers_of(const OnnxTensor& tensor);

// The extents of a Reshape: 0 keeps one, -1 is computed from the others. Error if they do not fit.
[[nodiscard]] std::vector<int64_t> reshaped(const OnnxNode& node, const std::vector<int64_t>& from,
                                            std::vector<int64_t> to);
// An axis of `rank`, where negative ones count from the end. Error for one that there is not.
[[nodiscard]] size_t axis_of(int64_t axis, size_t rank);
// Extents with axes of extent 1 added.
[[nodiscard]] std::vector<size_t> unsqueezed_axes(const std::vector<int64_t>& axes, size_t rank);

// The part of an axis that a Slice takes: `count` indices from `start`, `step` apart.
struct OnnxRange {
  int64_t start = 0, count = 0, step = 1;
};
[[nodiscard]] OnnxRange range_of(int64_t start, int64_t end, int64_t step, int64_t extent);

}  // namespace tandem
