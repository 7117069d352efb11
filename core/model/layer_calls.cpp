#include "core/model/layer_calls.h"

#include <algorithm>
#include <set>

#include "core/model/fields.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

constexpr uint32_t usual_weights = 8;
constexpr uint32_t most_weights = 1024;

// Beyond this many floats no machine's memory goes; what is below can be added up without overflow.
constexpr double most_elements = 1e15;

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

void require(const Layer& layer, tandem_status status, const char* asked) {
  if (status == TANDEM_OK) return;
  const std::string reason = take_reason();
  throw layer_error(layer, reason.empty()
                               ? fmt::format("its plugin refused {} without a reason", asked)
                               : reason);
}

void require_shape(const Layer& layer, const Shape& shape, const std::string& what) {
  const double elements = static_cast<double>(shape.n) * static_cast<double>(shape.c) *
                          static_cast<double>(shape.h) * static_cast<double>(shape.w);
  const bool positive = shape.n > 0 && shape.c > 0 && shape.h > 0 && shape.w > 0;
  if (positive && elements <= most_elements) return;
  throw layer_error(layer, fmt::format("{} would have the shape {}, {}", what, to_string(shape),
                                       positive ? "more than any memory holds" : "which is empty"));
}

}  // namespace

Error layer_error(const Layer& layer, const std::string& reason) {
  return error("{}: {}{}", layer.title(), reason, in_place(layer.location));
}

const tandem_layer_type& find_type(const Registry& registry, const std::string& type,
                                   const std::string& title, const Location& location) {
  try {
    return registry.layer_type(type);
  } catch (const Error& failure) {
    throw error("{}: {}{}", title, failure.what(), in_place(location));
  }
}

std::vector<Shape> output_shapes(const Layer& layer, int32_t phase,
                                 const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  std::vector<Shape> outputs(layer.outputs.size());
  require(layer, layer.type->shapes(&query, outputs.data()), "its shapes");
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_shape(layer, outputs[i], fmt::format("output {}", i));
  }
  return outputs;
}

std::vector<tandem_weight> declared_weights(const Layer& layer, int32_t phase,
                                            const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  std::vector<tandem_weight> weights(usual_weights);
  uint32_t count = 0;
  require(layer, layer.type->weights(&query, weights.data(), usual_weights, &count), "its weights");
  if (count > most_weights) {
    throw layer_error(layer, fmt::format("its plugin declares {} weights", count));
  }
  if (count > usual_weights) {
    const uint32_t capacity = count;
    weights.resize(capacity);
    require(layer, layer.type->weights(&query, weights.data(), capacity, &count), "its weights");
    count = std::min(count, capacity);
  }
  weights.resize(count);
  std::set<std::string> names;
  for (const tandem_weight& weight : weights) {
    if (weight.name == nullptr) throw layer_error(layer, "its plugin declares a nameless weight");
    require_shape(layer, weight.shape, fmt::format("weight '{}'", weight.name));
    if (names.insert(weight.name).second) continue;
    throw layer_error(layer, fmt::format("its plugin declares the weight '{}' twice", weight.name));
  }
  return weights;
}

tandem_layer_cost layer_cost(const Layer& layer, int32_t phase, const std::vector<Shape>& inputs) {
  const tandem_layer_query query = make_query(layer, phase, inputs);
  tandem_layer_cost cost{};
  cost.struct_size = sizeof(cost);
  require(layer, layer.type->cost(&query, &cost), "its cost");
  return cost;
}

tandem_layer_statistics layer_statistics(const Layer& layer, int32_t phase,
                                         const std::vector<Shape>& inputs) {
  tandem_layer_statistics statistics{};
  statistics.struct_size = sizeof(statistics);
  if (!layer.has(TANDEM_BATCH_STATISTICS) || layer.type->statistics == nullptr) return statistics;
  const tandem_layer_query query = make_query(layer, phase, inputs);
  require(layer, layer.type->statistics(&query, &statistics), "its statistics");
  for (const int64_t floats : {statistics.forward, statistics.backward}) {
    if (floats >= 0 && static_cast<double>(floats) <= most_elements) continue;
    throw layer_error(layer, fmt::format("its plugin declares {} statistics", floats));
  }
  return statistics;
}

int32_t layer_activation(const Layer& layer, int32_t phase, const std::vector<Shape>& inputs) {
  int32_t activation = TANDEM_ACTIVATION_NONE;
  if (layer.type->activation == nullptr) return activation;
  const tandem_layer_query query = make_query(layer, phase, inputs);
  require(layer, layer.type->activation(&query, &activation), "its activation");
  return activation;
}

}  // namespace tandem
