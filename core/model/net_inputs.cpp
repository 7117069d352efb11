// What a net is fed with, from its data layers, Input layers and old `input` fields.
#include <algorithm>

#include "core/model/attributes_reader.h"
#include "core/model/data_layer.h"
#include "core/model/definition.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

using Role = NetInput::Role;

bool is_number(const Shape& shape) {
  return shape.c <= 1 && shape.h <= 1 && shape.w <= 1;
}

// A DummyData layer's i-th filler; one is for all tops, none means zeros.
Filler filler_of(const LayerDefinition& layer, size_t top) {
  std::vector<const Field*> fillers;
  for (const Field* block : layer.body.all("dummy_data_param")) {
    for (const Field* filler : block->message->all("data_filler")) fillers.push_back(filler);
  }
  if (fillers.size() > 1 && fillers.size() != layer.tops.size()) {
    throw error("{}: has {} data_filler for {} tops; write none, one for all or one for each{}",
                layer.title(), fillers.size(), layer.tops.size(), in_place(layer.location));
  }
  if (fillers.empty()) return {};
  const Field& field = *fillers[fillers.size() == 1 ? 0 : top];
  const Filler filler =
      read_filler(block_of(field, layer.title()), layer.title() + ": data_filler");
  if (filler.type == "constant" || filler.type == "gaussian" || filler.type == "uniform") {
    return filler;
  }
  throw error("{}: data_filler is '{}', but data have no fan: use constant, gaussian or uniform{}",
              layer.title(), filler.type, in_place(field.location));
}

NetInput dummy_input(const LayerDefinition& layer, size_t top) {
  NetInput input{layer.tops[top],       Role::more,    declared_shape(layer, top),
                 filler_of(layer, top), layer.title(), layer.location};
  if (input.shape.n == 0) {
    throw error(
        "{}: its output '{}' has no shape: write dummy_data_param {{ shape {{ dim: 10 dim: "
        "3 }} }}, one for all outputs or one for each{}",
        layer.title(), input.name, in_place(layer.location));
  }
  for (int64_t* side : {&input.shape.c, &input.shape.h, &input.shape.w}) {
    *side = std::max<int64_t>(1, *side);
  }
  return input;
}

// The shape of a top, zeros where the file does not say. A Data layer's second top is its labels.
Shape shape_of_top(const LayerDefinition& layer, size_t top) {
  if (layer.type == "Input") return declared_shape(layer, top);
  return top == 0 ? expected_shape(layer) : Shape{1, 1, 1, 1};
}

void add_layer(std::vector<NetInput>& inputs, const LayerDefinition& layer) {
  if (layer.type == "WindowData") {
    throw error(
        "{}: windows cut from images for detection are not read here; cut them into images "
        "of their own, and replace this layer by a Data layer{}",
        layer.title(), in_place(layer.location));
  }
  for (size_t top = 0; top < layer.tops.size(); ++top) {
    if (layer.type == "DummyData") {
      inputs.push_back(dummy_input(layer, top));
      continue;
    }
    if (top > 1 && layer.type != "Input") {
      throw error(
          "{}: a data layer gives data and labels, but '{}' is a third output; an Input "
          "layer can have more, because it says the shape of each{}",
          layer.title(), layer.tops[top], in_place(layer.location));
    }
    inputs.push_back({layer.tops[top], Role::more, shape_of_top(layer, top), std::nullopt,
                      layer.title(), layer.location});
  }
}

void give_roles(std::vector<NetInput>& inputs) {
  int fed = 0;
  for (NetInput& input : inputs) {
    if (input.filler) continue;
    ++fed;
    if (fed == 1) input.role = Role::data;
    if (fed == 2 && is_number(input.shape)) input.role = Role::label;
    if (input.role == Role::label) input.shape = {1, 1, 1, 1};
  }
}

}  // namespace

std::vector<NetInput> NetDefinition::net_inputs(int32_t phase) const {
  std::vector<NetInput> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.push_back({inputs[i],
                      Role::more,
                      i < input_shapes.size() ? input_shapes[i] : Shape{},
                      std::nullopt,
                      fmt::format("net '{}'", name),
                      {file, 0, 0}});
  }
  for (const LayerDefinition& layer : layers) {
    if (layer.is_data() && layer.in_phase(phase)) add_layer(result, layer);
  }
  for (NetInput& input : result) input.shape.n = 1;
  give_roles(result);
  return result;
}

}  // namespace tandem
