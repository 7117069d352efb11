// The ONNX forms of layer types, one function for each, found by the type's name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/onnx/graph.h"
#include "core/model/net/net.h"

namespace tandem {

// A tensor of the net in the model. Classifiers give it two axes, (rows, values); others have four.
struct OnnxValue {
  std::string name;
  bool is_flat = false;
};

// The net while its layers are written in order.
class OnnxNet {
 public:
  OnnxNet(OnnxGraph& graph, const Net& net, const std::vector<float>& weights,
          bool fold_batch_norm);

  // Writes what tensor `last` needs, where `input` is the net's data. Error for a layer without a
  // form, and for a needed input that is not the data.
  void write(const std::string& input, int last);
  [[nodiscard]] const OnnxValue& value(int tensor) const { return values_.at(tensor); }
  [[nodiscard]] const std::vector<std::string>& folded() const { return folded_; }

  // ---- for the forms

  OnnxGraph& graph;
  const Net& net;

  [[nodiscard]] const Shape& shape_in(const Layer& layer, size_t index = 0) const;
  [[nodiscard]] const Shape& shape_out(const Layer& layer, size_t index = 0) const;
  // Input of a layer as it is; with four axes; with two.
  [[nodiscard]] OnnxValue in(const Layer& layer, size_t index = 0) const;
  [[nodiscard]] std::string image(const Layer& layer, size_t index = 0);
  [[nodiscard]] std::string row(const Layer& layer, size_t index = 0);
  [[nodiscard]] const float* weight(const Layer& layer, size_t index) const;
  [[nodiscard]] int64_t weight_count(const Layer& layer, size_t index) const;
  void set(const Layer& layer, OnnxValue value, size_t output = 0);
  // The one layer that reads the layer's only output, if it has that type; else null.
  [[nodiscard]] const Layer* only_reader(const Layer& layer, const char* type) const;
  [[nodiscard]] bool folds() const { return folds_; }
  // The layer is part of what was written before it.
  void mark_written(const Layer& layer) { written_.at(index_of(layer)) = true; }
  void mark_folded(const Layer& layer);

 private:
  [[nodiscard]] size_t index_of(const Layer& layer) const {
    return static_cast<size_t>(&layer - net.layers.data());
  }
  [[nodiscard]] std::string name_of(int tensor) const;
  void mark_needed(int tensor);

  const std::vector<float>& weights_;
  bool folds_;
  std::map<int, OnnxValue> values_;
  std::vector<bool> needed_, written_;
  std::vector<std::string> folded_;
};

using OnnxForm = void (*)(OnnxNet&, const Layer&);
// Null for a type that has no form.
[[nodiscard]] OnnxForm onnx_form(const std::string& type);
// "layer 'x' (Type): WHY (file:line)"
[[nodiscard]] Error no_onnx_form(const Layer& layer, const std::string& why);

}  // namespace tandem
