#include "core/plugin/layer_questions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/numbers/shape.h"
#include "core/plugin/host.h"

namespace tandem {

namespace {

constexpr uint32_t usual_weights = 8;
constexpr uint32_t max_weights = 1024;
constexpr uint32_t max_options = 64;

}  // namespace

int32_t input_role(const tandem_layer_type& type, size_t input) {
  if (type.input_count == 0) return TANDEM_INPUT_DATA;
  return type.inputs[std::min<size_t>(input, type.input_count - 1)]->role;
}

bool is_label(const tandem_layer_type& type, size_t input) {
  const int32_t role = input_role(type, input);
  return role == TANDEM_INPUT_LABEL || role == TANDEM_INPUT_TARGETS;
}

bool takes_gradient(const tandem_layer_type& type, size_t input) {
  return (type.traits & TANDEM_METRIC) == 0 && input_role(type, input) == TANDEM_INPUT_DATA;
}

bool has_data_gradient(const tandem_layer_type& type) {
  bool any = takes_gradient(type, 0);
  for (uint32_t i = 1; i < type.input_count; ++i) any |= takes_gradient(type, i);
  return any;
}

tandem_status ask_weights(const tandem_layer_type& type, const tandem_layer_query& query,
                          std::vector<tandem_weight>& weights) {
  weights.clear();
  if (type.weights == nullptr) return TANDEM_OK;
  uint32_t capacity = usual_weights, count = 0;
  for (;;) {
    weights.assign(capacity, {});
    const tandem_status status =
        type.weights(&query, weights.data(), sizeof(tandem_weight), capacity, &count);
    if (status != TANDEM_OK) return status;
    if (count <= capacity) break;
    if (count > max_weights) {
      host_table().explain(fmt::format("its plugin declares {} weights", count).c_str());
      return TANDEM_INVALID;
    }
    capacity = count;
  }
  weights.resize(count);
  return TANDEM_OK;
}

tandem_status ask_cost(const tandem_layer_type& type, const tandem_layer_query& query,
                       tandem_layer_cost& cost) {
  cost = {};
  cost.struct_size = sizeof cost;
  if (type.cost != nullptr) return type.cost(&query, &cost);
  double elements = 0;
  for (uint32_t i = 0; i < query.input_count; ++i) {
    elements += double(element_count(query.inputs[i]));
  }
  cost.forward_flops = cost.backward_data_flops = elements;
  cost.forward_bytes = 8 * elements;
  cost.backward_data_bytes = 12 * elements;
  return TANDEM_OK;
}

tandem_status ask_layouts(const tandem_kernel& kernel, const tandem_binding& binding,
                          std::vector<tandem_layout_option>& options) {
  uint32_t count = 0;
  if (kernel.layouts != nullptr) {
    options.assign(max_options, {});
    const tandem_status status =
        kernel.layouts(&binding, options.data(), sizeof(tandem_layout_option), max_options, &count);
    options.resize(status == TANDEM_OK ? std::min(count, max_options) : 0);
    if (status != TANDEM_OK) return status;
  }
  if (count == 0) options = {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  return TANDEM_OK;
}

}  // namespace tandem
