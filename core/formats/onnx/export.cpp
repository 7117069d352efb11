#include "core/formats/onnx/export.h"

#include "core/base/error.h"
#include "core/formats/onnx/layers.h"

namespace tandem {

OnnxModel make_onnx(const Net& net, const std::vector<float>& weights, const PictureSteps& steps,
                    const OnnxOptions& options) {
  if (net.prediction < 0) {
    throw error("net '{}' gives no class scores: it has neither a loss with labels nor an accuracy",
                net.name);
  }
  const Shape& data = net.tensor(net.data).shape;
  OnnxGraph graph(net.name, options.opset);
  OnnxModel model;
  model.input = {1, data.c, data.h, data.w};
  if (options.picture) {
    model.input.h = options.picture->height;
    model.input.w = options.picture->width;
  }
  if (options.any_picture) model.input.h = model.input.w = -1;
  const bool has_steps = options.picture || options.any_picture;
  std::string input = graph.set_input(has_steps ? "picture" : net.tensor(net.data).name,
                                      {model.input.c, model.input.h, model.input.w});
  const Layer& last = net.layer(net.tensor(net.prediction).producer);
  const bool has_softmax = std::string(last.type->name) == "Softmax";
  model.gives_probabilities = has_softmax || options.softmax || options.sigmoid;
  if (options.any_picture) {
    input = add_steps_of_any_picture(graph, input, data, steps);
  } else if (options.picture) {
    input = add_picture_steps(graph, input, model.input, data, steps);
  }
  OnnxNet written(graph, net, weights, options.fold_batch_norm);
  written.write(input, net.prediction, &onnx_form);
  const OnnxValue scores = written.value(net.prediction);
  const Shape& shape = net.tensor(net.prediction).shape;
  model.classes = shape.c * shape.h * shape.w;
  model.folded = written.folded();
  std::string result = scores.name;
  if (!scores.is_flat) {
    result = graph.add("Flatten", "rows", {result}, {{"axis", int64_t{1}}});
  }
  if (options.softmax && !has_softmax) {
    result = graph.add("Softmax", "softmax", {result}, {{"axis", int64_t{1}}});
  }
  if (options.sigmoid) result = graph.add("Sigmoid", "sigmoid", {result});
  const bool are_values = !options.means.empty();
  if (are_values) {
    const std::vector<int64_t> row{1, model.classes};
    const std::string deviations = graph.constant("deviations", row, options.deviations);
    const std::string means = graph.constant("means", row, options.means);
    result =
        graph.add("Add", "unscaled", {graph.add("Mul", "spread", {result, deviations}), means});
  }
  graph.set_output(are_values                  ? "values"
                   : model.gives_probabilities ? "probabilities"
                                               : "scores",
                   result, {model.classes});
  model.bytes = graph.bytes();
  return model;
}

}  // namespace tandem
