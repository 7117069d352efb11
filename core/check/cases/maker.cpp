#include "core/check/cases/maker.h"

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

PlainTensor values_of(Values values, const Shape& shape, int64_t classes, unsigned seed) {
  PlainTensor tensor = random_tensor(shape, seed);
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    float& value = tensor.values[i];
    // Not close to zero, where many functions have a kink.
    if (values == Values::normal) value += value < 0 ? -0.1F : 0.1F;
    if (values == Values::positive) value = 0.2F + std::abs(value);
    if (values == Values::flags) value = i % 2 == 0 ? 1.0F : 0.0F;
    if (values == Values::indices) value = float((i * 3 + 1) % 7);
    if (values == Values::labels) {
      value = float(int64_t(i * 5 + 1) % std::max<int64_t>(1, classes));
    }
  }
  return tensor;
}

std::string arguments_of(const Parameters& parameters, const std::vector<Shape>& shapes,
                         uint32_t outputs) {
  std::string arguments;
  for (const auto& [name, value] : parameters) {
    arguments += fmt::format(" --set {}={}", name, value);
  }
  for (const Shape& shape : shapes) arguments += " --input " + to_string(shape);
  if (outputs > 1) arguments += fmt::format(" --outputs {}", outputs);
  return arguments;
}

// Labels are below the channels of input 0. Where a layer has a row of weights for each class, as
// num_output says, they are below that, too.
int64_t classes_of(const LayerSetup& setup, const std::vector<Shape>& shapes) {
  int64_t classes = shapes.empty() ? 1 : shapes[0].c;
  for (const PlainTensor& weight : setup.weights) {
    if (weight.shape.n > 1) classes = std::min(classes, weight.shape.n);
  }
  double outputs = 0;
  for (const auto& [name, value] : setup.parameters) {
    if (name == "num_output" && parse_number(value, &outputs) && outputs >= 1) {
      classes = std::min(classes, int64_t(outputs));
    }
  }
  return classes;
}

}  // namespace

Case Maker::make(const Parameters& parameters, const std::vector<Shape>& shapes, uint32_t outputs,
                 const std::vector<Values>& values,
                 std::shared_ptr<const Attributes> attributes) const {
  Case one;
  LayerSetup& setup = one.setup;
  setup.type = type_.name;
  setup.parameters = parameters;
  setup.attributes = std::move(attributes);
  setup.output_count = outputs;
  setup.normaliser = float(shapes.empty() ? 1 : shapes[0].n);
  one.arguments = arguments_of(parameters, shapes, outputs);
  if (options_.trying && setup.attributes == nullptr) options_.trying(one.arguments);
  add_weights(setup, shapes);
  const int64_t classes = classes_of(setup, shapes);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Values kind = i < values.size()    ? values[i]
                        : is_label(type_, i) ? Values::labels
                                             : Values::normal;
    setup.inputs.push_back(values_of(kind, shapes[i], classes, unsigned(i) + 1));
    const bool is_shape = input_role(type_, i) == TANDEM_INPUT_SHAPE;
    one.plain.push_back((kind == Values::normal || kind == Values::positive) && !is_shape);
  }
  const LayerRun run(setup, registry_, device_);
  for (const Shape& shape : run.output_shapes()) {
    if (element_count(shape) < 1) throw error("an output would be empty");
  }
  return one;
}

void Maker::add_weights(LayerSetup& setup, const std::vector<Shape>& inputs) const {
  const Attributes attributes = attributes_of(type_, setup);
  std::vector<tandem_weight> weights;
  check(ask_weights(type_, query_of(setup, attributes, inputs), weights), type_.name);
  for (size_t i = 0; i < weights.size(); ++i) {
    PlainTensor tensor = random_tensor(weights[i].shape, 50 + unsigned(i), 0.5F);
    for (float& value : tensor.values) {
      if (weights[i].kind == TANDEM_STATE) value = 0.5F + std::abs(value);
    }
    setup.weights.push_back(std::move(tensor));
  }
}

}  // namespace tandem::checker
