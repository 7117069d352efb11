// A net as an ONNX graph while its layers are written in order, and the layer that is being
// written: what the forms of layer types (layers.h) work with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/formats/onnx/graph.h"
#include "core/model/net/net.h"

namespace tandem {

// A tensor of the net in the model. Classifiers give it two axes, (rows, values); others have four.
struct OnnxValue {
  std::string name;
  bool is_flat = false;
};

class OnnxLayer;
// Writes a layer of one type.
using OnnxForm = void (*)(OnnxLayer&);

class OnnxNet {
 public:
  OnnxNet(OnnxGraph& graph, const Net& net, const std::vector<float>& weights,
          bool fold_batch_norm);

  // Writes what tensor `last` needs, where `input` is the net's data. `form_of`: the form of a
  // type, null if it has none. Error for a layer without a form, and for a needed input that is not
  // the data.
  void write(const std::string& input, int last, OnnxForm (*form_of)(const std::string& type));
  [[nodiscard]] const OnnxValue& value(int tensor) const { return values_.at(tensor); }
  [[nodiscard]] const std::vector<std::string>& folded() const { return folded_; }

 private:
  friend class OnnxLayer;
  [[nodiscard]] size_t index_of(const Layer& layer) const { return &layer - net_.layers.data(); }
  void mark_needed(int tensor);

  OnnxGraph& graph_;
  const Net& net_;
  const std::vector<float>& weights_;
  bool folds_;
  std::map<int, OnnxValue> values_;
  std::vector<bool> needed_, written_;
  std::vector<std::string> folded_;
};

struct OnnxAxes {
  int64_t h = 0, w = 0;
};

class OnnxLayer {
 public:
  OnnxLayer(OnnxNet& net, const Layer& written_layer)
      : layer(written_layer), graph(net.graph_), net_(net) {}

  const Layer& layer;
  OnnxGraph& graph;

  // ---- parameters

  [[nodiscard]] int64_t integer(const char* name) const { return layer.attributes->integer(name); }
  [[nodiscard]] double number(const char* name) const { return layer.attributes->number(name); }
  [[nodiscard]] const std::string& text(const char* name) const {
    return layer.attributes->text(name);
  }
  // The values of a repeated parameter; none where it is not written.
  template <class T>
  [[nodiscard]] std::vector<T> listed(const std::string& name) const {
    const Attribute* attribute = layer.attributes->find(name);
    const auto* values =
        attribute != nullptr ? std::get_if<std::vector<T>>(&attribute->value) : nullptr;
    return values != nullptr ? *values : std::vector<T>{};
  }
  // A parameter of one value, or of two, height and width; or its parameters for each axis
  // ("stride_h"), where `each` is another name than `both`.
  [[nodiscard]] OnnxAxes axes(const std::string& both, const std::string& each,
                              int64_t absent) const;
  [[nodiscard]] OnnxAxes axes(const std::string& both, int64_t absent) const {
    return axes(both, both, absent);
  }

  // ---- tensors and weights

  [[nodiscard]] const Shape& shape_in(size_t index = 0) const;
  [[nodiscard]] const Shape& shape_out(size_t index = 0) const;
  [[nodiscard]] const Shape& weight_shape(size_t index) const { return array(index).shape; }
  [[nodiscard]] int64_t weight_count(size_t index) const { return array(index).count; }
  // None for a weight that the layer does not have.
  [[nodiscard]] std::vector<float> weight_values(size_t index) const;

  // ---- the model

  // An input as it is; with four axes; with two.
  [[nodiscard]] OnnxValue in(size_t index = 0) const;
  std::string image(size_t index = 0);
  std::string row(size_t index = 0);
  // Adds a node with the layer's name, or with that of a part, "conv1/Mul". Returns its output.
  std::string add(const std::string& operation, const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {});
  std::string add_part(const std::string& part, const std::string& operation,
                       const std::vector<std::string>& inputs,
                       const std::vector<OnnxAttribute>& attributes = {});
  // The same of ReduceSum, ReduceMean and their like: the axes that go are an input, or an
  // attribute of older opsets.
  std::string add_reduction(const std::string& part, const std::string& operation,
                            const std::string& value, const std::vector<int64_t>& axes);
  [[nodiscard]] std::string part(const std::string& name) const { return layer.name + "/" + name; }
  void set(OnnxValue value, size_t output = 0);

  // ---- layers that are written together

  // The one layer that reads the layer's only output.
  [[nodiscard]] std::optional<OnnxLayer> only_reader() const;
  [[nodiscard]] bool folds() const { return net_.folds_; }
  // The layer is part of what was written before it.
  void mark_written() { net_.written_.at(net_.index_of(layer)) = true; }
  void mark_folded();

 private:
  [[nodiscard]] const WeightArray& array(size_t index) const {
    return net_.net_.weight(layer.weights.at(index));
  }

  OnnxNet& net_;
};

}  // namespace tandem
