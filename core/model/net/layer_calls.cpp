#include "core/model/net/layer_calls.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/model/file/forks.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

// More floats than any memory holds; sums of smaller numbers do not overflow.
constexpr double max_elements = 1e15;

tandem_layer_query make_query(const Layer& layer, int32_t phase, const std::vector<Shape>& inputs) {
  tandem_layer_query query{};
  query.struct_size = sizeof(query);
  query.phase = phase;
  query.attributes = layer.attributes->handle();
  query.inputs = inputs.data();
  query.input_count = static_cast<uint32_t>(inputs.size());
  query.output_count = static_cast<uint32_t>(layer.outputs.size());
  return query;
}

void require_shape(const Layer& layer, const Shape& shape, const std::string& what) {
  const double elements = static_cast<double>(shape.n) * static_cast<double>(shape.c) *
                          static_cast<double>(shape.h) * static_cast<double>(shape.w);
  const bool positive = shape.n > 0 && shape.c > 0 && shape.h > 0 && shape.w > 0;
  if (positive && elements <= max_elements) return;
  throw layer_error(layer, "{} would have the shape {}, {}", what, to_string(shape),
                    positive ? "more than any memory holds" : "which is empty");
}

// The name becomes part of names in weight files and of lines of tables.
bool is_good_name(const char* name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name == nullptr || !is_letter(*name)) return false;
  for (; *name != '\0'; ++name) {
    const bool is_digit = *name >= '0' && *name <= '9';
    if (!is_letter(*name) && !is_digit && *name != '_' && *name != '-' && *name != '.')
      return false;
  }
  return true;
}

void require_weight(const Layer& layer, const tandem_weight& weight, size_t index) {
  if (!is_good_name(weight.name)) {
    throw layer_error(layer,
                      "its plugin declares weight {} without a name of letters, "
                      "digits, '_', '-' and '.' that begins with a letter",
                      index);
  }
  require_shape(layer, weight.shape, fmt::format("weight '{}'", weight.name));
  if (weight.kind != TANDEM_TRAINED && weight.kind != TANDEM_STATE) {
    throw layer_error(layer,
                      "weight '{}' has kind {}, which version {}.{} of the layer "
                      "tables does not know; use a newer Tandem",
                      weight.name, weight.kind, TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR);
  }
  if (weight.filler == nullptr && !std::isfinite(weight.initial)) {
    throw layer_error(layer, "weight '{}' has the initial value {}, which is not finite",
                      weight.name, weight.initial);
  }
}

// A type that is wrong here would be found out by a later layer, which would be blamed.
void require_rows(const Layer& layer, const std::vector<Shape>& inputs,
                  const std::vector<Shape>& outputs) {
  if (!layer.has(TANDEM_PER_SAMPLE) || layer.is_result() || inputs.empty()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].n == inputs[0].n) continue;
    throw layer_error(layer,
                      "output {} would have {} rows, but its input has {}: its type promises "
                      "that a row of an output belongs to the same row of the inputs",
                      i, outputs[i].n, inputs[0].n);
  }
}

std::string in_module(const void* function) {
  Dl_info info{};
  const bool is_known = ::dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return is_known ? fmt::format(", module {}", info.dli_fname) : "";
}

}  // namespace

Asking::Asking(const Layer& layer, const char* question, const void* function)
    : owner_(fmt::format("{}{}{}", layer.title(), in_file(layer.location), in_module(function))),
      note_(question, owner_.c_str()) {}

Error layer_error(const Layer& layer, const std::string& reason) {
  return error("{}: {}{}", layer.title(), reason, in_file(layer.location));
}

void require_answer(const Layer& layer, tandem_status status, const char* asked) {
  if (status == TANDEM_OK) return;
  const std::string reason = take_reason();
  throw layer_error(layer, reason.empty()
                               ? fmt::format("its plugin refused {} without a reason", asked)
                               : reason);
}

const tandem_layer_type& find_type(const Registry& registry, const std::string& type,
                                   const std::string& title, const Location& location) {
  try {
    return registry.layer_type(type);
  } catch (const Error& failure) {
    const std::string hint = hint_of_type(type);
    throw error(
        "{}: {}{}", title,
        hint.empty() ? failure.what() : fmt::format("type '{}' is not supported: {}", type, hint),
        in_file(location));
  }
}

std::vector<Shape> output_shapes(const Layer& layer, int32_t phase,
                                 const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  std::vector<Shape> outputs(layer.outputs.size());
  const Asking note(layer, "shapes", layer.type->shapes);
  require_answer(layer, layer.type->shapes(&query, outputs.data()), "its shapes");
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_shape(layer, outputs[i], fmt::format("output {}", i));
  }
  require_rows(layer, inputs, outputs);
  return outputs;
}

std::vector<tandem_weight> declared_weights(const Layer& layer, int32_t phase,
                                            const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  std::vector<tandem_weight> weights;
  const Asking note(layer, "weights", layer.type->weights);
  require_answer(layer, ask_weights(*layer.type, query, weights), "its weights");
  std::set<std::string> names;
  for (const tandem_weight& weight : weights) {
    require_weight(layer, weight, names.size());
    if (names.insert(weight.name).second) continue;
    throw layer_error(layer, "its plugin declares the weight '{}' twice", weight.name);
  }
  return weights;
}

const tandem_kernel& kernel_of(const Layer& layer, const Registry& registry,
                               const std::string& device_kind) {
  try {
    return registry.kernel(layer.type->name, device_kind);
  } catch (const Error& failure) {
    throw layer_error(layer, failure.what());
  }
}

tandem_layer_cost layer_cost(const Layer& layer, int32_t phase, const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  tandem_layer_cost cost{};
  const Asking note(layer, "cost", layer.type->cost);
  require_answer(layer, ask_cost(*layer.type, query, cost), "its cost");
  for (const double number :
       {cost.forward_flops, cost.backward_data_flops, cost.backward_weights_flops,
        cost.forward_bytes, cost.backward_data_bytes, cost.backward_weights_bytes}) {
    if (number >= 0 && std::isfinite(number)) continue;
    throw layer_error(layer, "its plugin declares a cost of {}: it must be finite and not negative",
                      number);
  }
  return cost;
}

tandem_layer_statistics layer_statistics(const Layer& layer, int32_t phase,
                                         const std::vector<Shape>& inputs) {
  tandem_layer_statistics statistics{};
  statistics.struct_size = sizeof(statistics);
  if (!layer.has(TANDEM_BATCH_STATISTICS) || layer.type->statistics == nullptr) return statistics;
  const tandem_layer_query query = make_query(layer, phase, inputs);
  const Asking note(layer, "statistics", layer.type->statistics);
  require_answer(layer, layer.type->statistics(&query, &statistics), "its statistics");
  for (const int64_t floats : {statistics.forward, statistics.backward}) {
    if (floats >= 0 && static_cast<double>(floats) <= max_elements) continue;
    throw layer_error(layer, "its plugin declares {} statistics", floats);
  }
  return statistics;
}

int32_t layer_activation(const Layer& layer, int32_t phase, const std::vector<Shape>& inputs) {
  int32_t activation = TANDEM_ACTIVATION_NONE;
  if (layer.type->activation == nullptr) return activation;
  const tandem_layer_query query = make_query(layer, phase, inputs);
  const Asking note(layer, "activation", layer.type->activation);
  require_answer(layer, layer.type->activation(&query, &activation), "its activation");
  return activation;
}

LayerBinding::LayerBinding(const Net& net, const Layer& layer, const std::vector<Shape>& shapes) {
  const auto describe = [&](int tensor) {
    return tandem_tensor{shapes[size_t(tensor)], net.tensor(tensor).dtype,
                         net.tensor(tensor).layout};
  };
  for (const int input : layer.inputs) inputs.push_back(describe(input));
  for (const int output : layer.outputs) outputs.push_back(describe(output));
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    weights.push_back(layer.weight_shapes.empty() ? net.weight(layer.weights[i]).shape
                                                  : layer.weight_shapes[i]);
  }
  raw.struct_size = sizeof raw;
  raw.phase = net.phase;
  raw.layer_index = layer.random_index;
  raw.flags = (layer.wants_backward_data ? TANDEM_WANTS_BACKWARD_DATA : 0) |
              (layer.wants_backward_weights ? TANDEM_WANTS_BACKWARD_WEIGHTS : 0) |
              (layer.runs_in_place ? TANDEM_RUNS_IN_PLACE : 0) |
              (layer.allows_tf32 ? TANDEM_ALLOWS_TF32 : 0) |
              (layer.addend >= 0 ? TANDEM_FUSED_SUM : 0);
  raw.layer_name = layer.name.c_str();
  raw.attributes = layer.attributes ? layer.attributes->handle() : nullptr;
  raw.inputs = inputs.data();
  raw.input_count = static_cast<uint32_t>(inputs.size());
  raw.tensor_size = sizeof(tandem_tensor);
  raw.outputs = outputs.data();
  raw.output_count = static_cast<uint32_t>(outputs.size());
  raw.weights = weights.data();
  raw.weight_count = static_cast<uint32_t>(weights.size());
  raw.batch_size = net.batch;
  raw.slice_end = outputs.empty() ? 0 : outputs[0].shape.c;
}

}  // namespace tandem
