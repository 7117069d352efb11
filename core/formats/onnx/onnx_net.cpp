#include "core/formats/onnx/onnx_net.h"

#include "core/model/net/layer_calls.h"

namespace tandem {

OnnxNet::OnnxNet(OnnxGraph& graph, const Net& net, const std::vector<float>& weights,
                 bool fold_batch_norm)
    : graph_(graph),
      net_(net),
      weights_(weights),
      folds_(fold_batch_norm),
      needed_(net.layers.size(), false),
      written_(net.layers.size(), false) {}

void OnnxNet::mark_needed(int tensor) {
  std::vector<int> open{tensor};
  while (!open.empty()) {
    const int producer = net_.tensor(open.back()).producer;
    open.pop_back();
    if (producer < 0 || needed_[size_t(producer)]) continue;
    needed_[size_t(producer)] = true;
    for (const int input : net_.layer(producer).inputs) open.push_back(input);
  }
}

void OnnxNet::write(const std::string& input, int last,
                    OnnxForm (*form_of)(const std::string& type)) {
  mark_needed(last);
  values_[net_.data] = {input, false};
  for (const Layer& layer : net_.layers) {
    if (!needed_[index_of(layer)] || written_[index_of(layer)]) continue;
    for (const int tensor : layer.inputs) {
      if (values_.contains(tensor)) continue;
      throw layer_error(layer,
                        "it reads the input '{}', and an exported net has one input, the pictures",
                        net_.tensor(tensor).name);
    }
    const OnnxForm form = form_of(layer.type->name);
    if (form == nullptr) throw layer_error(layer, "this type of layer has no ONNX form");
    OnnxLayer written(*this, layer);
    form(written);
    written.mark_written();
  }
}

OnnxAxes OnnxLayer::axes(const std::string& both, const std::string& each, int64_t absent) const {
  const Attributes& attributes = *layer.attributes;
  const std::string h = each + "_h", w = each + "_w";
  if (attributes.find(h) != nullptr && attributes.is_set(h)) {
    return {attributes.integer(h), attributes.integer(w)};
  }
  auto values = listed<int64_t>(both);
  const Attribute* one = attributes.find(both);
  if (one != nullptr && one->is_set && std::holds_alternative<int64_t>(one->value)) {
    values = {std::get<int64_t>(one->value)};
  }
  return values.empty() ? OnnxAxes{absent, absent} : OnnxAxes{values.front(), values.back()};
}

const Shape& OnnxLayer::shape_in(size_t index) const {
  return net_.net_.tensor(layer.inputs.at(index)).shape;
}
const Shape& OnnxLayer::shape_out(size_t index) const {
  return net_.net_.tensor(layer.outputs.at(index)).shape;
}
std::vector<float> OnnxLayer::weight_values(size_t index) const {
  if (index >= layer.weights.size()) return {};
  const float* values = net_.weights_.data() + array(index).offset;
  return {values, values + array(index).count};
}

OnnxValue OnnxLayer::in(size_t index) const {
  return net_.value(layer.inputs.at(index));
}

std::string OnnxLayer::image(size_t index) {
  const OnnxValue value = in(index);
  if (!value.is_flat) return value.name;
  const Shape& shape = shape_in(index);
  const std::string extents = graph.integers(part("extents"), {-1, shape.c, shape.h, shape.w});
  return add_part("image", "Reshape", {value.name, extents});
}

std::string OnnxLayer::row(size_t index) {
  const OnnxValue value = in(index);
  if (value.is_flat) return value.name;
  return add_part("row", "Flatten", {value.name}, {{"axis", int64_t{1}}});
}

std::string OnnxLayer::add(const std::string& operation, const std::vector<std::string>& inputs,
                           const std::vector<OnnxAttribute>& attributes) {
  return graph.add(operation, layer.name, inputs, attributes);
}

std::string OnnxLayer::add_part(const std::string& name, const std::string& operation,
                                const std::vector<std::string>& inputs,
                                const std::vector<OnnxAttribute>& attributes) {
  return graph.add(operation, part(name), inputs, attributes);
}

std::string OnnxLayer::add_reduction(const std::string& name, const std::string& operation,
                                     const std::string& value, const std::vector<int64_t>& axes) {
  // The first opset in which the axes are an input.
  const int64_t first = operation == "ReduceSum" ? 13 : 18;
  if (graph.opset() < first) return add_part(name, operation, {value}, {{"axes", axes}});
  return add_part(name, operation, {value, graph.integers(part(name + "/axes"), axes)});
}

void OnnxLayer::set(OnnxValue value, size_t output) {
  net_.values_[layer.outputs.at(output)] = std::move(value);
}

std::optional<OnnxLayer> OnnxLayer::only_reader() const {
  const Layer* reader = nullptr;
  for (const int consumer : net_.net_.tensor(layer.outputs.at(0)).consumers) {
    if (!net_.needed_[size_t(consumer)]) continue;
    if (reader != nullptr) return {};
    reader = &net_.net_.layer(consumer);
  }
  if (reader == nullptr) return {};
  return OnnxLayer(net_, *reader);
}

void OnnxLayer::mark_folded() {
  mark_written();
  net_.folded_.push_back(layer.name);
}

}  // namespace tandem
