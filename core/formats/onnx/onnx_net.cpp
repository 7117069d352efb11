#include "core/base/error.h"
#include "core/formats/onnx/layers.h"

namespace tandem {

OnnxNet::OnnxNet(OnnxGraph& written_graph, const Net& written_net,
                 const std::vector<float>& weights, bool fold_batch_norm)
    : graph(written_graph),
      net(written_net),
      weights_(weights),
      folds_(fold_batch_norm),
      needed_(net.layers.size(), false),
      written_(net.layers.size(), false) {}

void OnnxNet::mark_needed(int tensor) {
  std::vector<int> open{tensor};
  while (!open.empty()) {
    const int producer = net.tensor(open.back()).producer;
    open.pop_back();
    if (producer < 0 || needed_[static_cast<size_t>(producer)]) continue;
    needed_[static_cast<size_t>(producer)] = true;
    for (const int input : net.layer(producer).inputs) open.push_back(input);
  }
}

void OnnxNet::write(const std::string& input, int last) {
  mark_needed(last);
  values_[net.data] = {input, false};
  for (const Layer& layer : net.layers) {
    if (!needed_[index_of(layer)] || written_[index_of(layer)]) continue;
    for (const int tensor : layer.inputs) {
      if (values_.contains(tensor)) continue;
      throw no_onnx_form(layer, fmt::format("it reads the input '{}', and an exported net has one "
                                            "input, the pictures",
                                            net.tensor(tensor).name));
    }
    const OnnxForm form = onnx_form(layer.type->name);
    if (form == nullptr) throw no_onnx_form(layer, "this type of layer has no ONNX form");
    form(*this, layer);
    written_[index_of(layer)] = true;
  }
}

const Shape& OnnxNet::shape_in(const Layer& layer, size_t index) const {
  return net.tensor(layer.inputs.at(index)).shape;
}
const Shape& OnnxNet::shape_out(const Layer& layer, size_t index) const {
  return net.tensor(layer.outputs.at(index)).shape;
}

OnnxValue OnnxNet::in(const Layer& layer, size_t index) const {
  return values_.at(layer.inputs.at(index));
}

std::string OnnxNet::image(const Layer& layer, size_t index) {
  OnnxValue& value = values_.at(layer.inputs.at(index));
  if (!value.is_flat) return value.name;
  const Shape& shape = shape_in(layer, index);
  const std::string extents =
      graph.integers(layer.name + "/extents", {-1, shape.c, shape.h, shape.w});
  return graph.add("Reshape", layer.name + "/image", {value.name, extents});
}

std::string OnnxNet::row(const Layer& layer, size_t index) {
  const OnnxValue& value = values_.at(layer.inputs.at(index));
  if (value.is_flat) return value.name;
  return graph.add("Flatten", layer.name + "/row", {value.name}, {{"axis", int64_t{1}}});
}

const float* OnnxNet::weight(const Layer& layer, size_t index) const {
  return weights_.data() + net.weight(layer.weights.at(index)).offset;
}
int64_t OnnxNet::weight_count(const Layer& layer, size_t index) const {
  return net.weight(layer.weights.at(index)).count;
}

void OnnxNet::set(const Layer& layer, OnnxValue value, size_t output) {
  values_[layer.outputs.at(output)] = std::move(value);
}

const Layer* OnnxNet::only_reader(const Layer& layer, const char* type) const {
  const Layer* reader = nullptr;
  for (const int consumer : net.tensor(layer.outputs.at(0)).consumers) {
    if (!needed_[static_cast<size_t>(consumer)]) continue;
    if (reader != nullptr) return nullptr;
    reader = &net.layer(consumer);
  }
  return reader != nullptr && std::string(reader->type->name) == type ? reader : nullptr;
}

void OnnxNet::mark_folded(const Layer& layer) {
  mark_written(layer);
  folded_.push_back(layer.name);
}

Error no_onnx_form(const Layer& layer, const std::string& why) {
  return error("{}: {}{}", layer.title(), why, in_file(layer.location));
}

}  // namespace tandem
