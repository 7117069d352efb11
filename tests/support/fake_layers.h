// Layer types for tests of plans: they have shapes, weights and costs, but no kernels.
#pragma once

#include <memory>
#include <string>

#include "core/model/net/net.h"
#include "core/plugin/attributes.h"

namespace tandem::test::fake {

inline int64_t attribute(const tandem_layer_query* query, const char* name) {
  return reinterpret_cast<const Attributes*>(query->attributes)->integer(name);
}
inline double elements(const Shape& shape) {
  return static_cast<double>(element_count(shape));
}

inline tandem_status window_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  const Shape& in = query->inputs[0];
  const int64_t kernel = attribute(query, "kernel"), stride = attribute(query, "stride");
  const int64_t pad = attribute(query, "pad"), channels = attribute(query, "outputs");
  outputs[0] = {in.n, channels > 0 ? channels : in.c, (in.h + 2 * pad - kernel) / stride + 1,
                (in.w + 2 * pad - kernel) / stride + 1};
  return TANDEM_OK;
}
inline tandem_status dense_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  outputs[0] = {query->inputs[0].n, attribute(query, "outputs"), 1, 1};
  return TANDEM_OK;
}
inline tandem_status same_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  outputs[0] = query->inputs[0];
  return TANDEM_OK;
}
inline tandem_status scalar_shapes(const tandem_layer_query*, tandem_shape* outputs) {
  outputs[0] = {1, 1, 1, 1};
  return TANDEM_OK;
}
inline void set_cost(tandem_layer_cost* cost, double flops, double bytes) {
  *cost = {sizeof(tandem_layer_cost), flops, flops, flops, bytes, bytes, bytes};
}
inline tandem_status product_cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
  const Shape& in = query->inputs[0];
  const double outputs = static_cast<double>(attribute(query, "outputs"));
  Shape out{};
  const int64_t kernel = attribute(query, "kernel");
  if (kernel == 0) {
    set_cost(cost, 2 * elements(in) * outputs, 4 * elements(in));
    return TANDEM_OK;
  }
  window_shapes(query, &out);
  const double window = static_cast<double>(kernel * kernel * in.c);
  set_cost(cost, 2 * elements(out) * window, 4 * (elements(in) + elements(out)));
  return TANDEM_OK;
}
inline tandem_status element_cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
  set_cost(cost, elements(query->inputs[0]), 8 * elements(query->inputs[0]));
  return TANDEM_OK;
}

inline tandem_status channel_statistics(const tandem_layer_query* query,
                                        tandem_layer_statistics* statistics) {
  statistics->forward = query->phase == TANDEM_TRAIN ? 3 * query->inputs[0].c : 0;
  statistics->backward = query->phase == TANDEM_TRAIN ? 2 * query->inputs[0].c : 0;
  return TANDEM_OK;
}

using ShapeFunction = tandem_status (*)(const tandem_layer_query*, tandem_shape*);
using CostFunction = tandem_status (*)(const tandem_layer_query*, tandem_layer_cost*);
inline tandem_layer_type make_type(const char* name, int32_t inputs, uint64_t traits,
                                   ShapeFunction shapes, CostFunction cost) {
  return {sizeof(tandem_layer_type),
          name,
          "",
          nullptr,
          0,
          nullptr,
          0,
          inputs,
          inputs,
          1,
          1,
          traits,
          shapes,
          nullptr,
          cost,
          nullptr,
          nullptr};
}

inline const tandem_layer_type convolution = make_type(
    "Convolution", 1, TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING,
    &window_shapes, &product_cost);
inline const tandem_layer_type inner_product =
    make_type("InnerProduct", 1,
              TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING |
                  TANDEM_SLICED_OUTPUTS | TANDEM_SLICED_INPUTS,
              &dense_shapes, &product_cost);
inline const tandem_layer_type pooling =
    make_type("Pooling", 1, TANDEM_PER_SAMPLE, &window_shapes, &element_cost);
inline const tandem_layer_type relu =
    make_type("ReLU", 1,
              TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS |
                  TANDEM_SAVES_NOTHING | TANDEM_SLICED_OUTPUTS,
              &same_shapes, &element_cost);
inline const tandem_layer_type batch_norm = [] {
  tandem_layer_type type = make_type(
      "BatchNorm", 1, TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS | TANDEM_BATCH_STATISTICS,
      &same_shapes, &element_cost);
  type.statistics = &channel_statistics;
  return type;
}();
inline const tandem_layer_type batch_norm_scale = [] {
  tandem_layer_type type = batch_norm;
  type.name = "BatchNormScale";
  type.traits = TANDEM_BATCH_STATISTICS | TANDEM_BACKWARD_READS_INPUTS;
  return type;
}();
inline constexpr tandem_input scores{sizeof(tandem_input), TANDEM_INPUT_DATA, "scores"};
inline constexpr tandem_input label{sizeof(tandem_input), TANDEM_INPUT_LABEL, "label"};
inline constexpr tandem_input targets{sizeof(tandem_input), TANDEM_INPUT_TARGETS, "label"};
inline tandem_layer_type labelled(tandem_layer_type type, const tandem_input* const (&inputs)[2]) {
  type.inputs = inputs;
  type.input_count = 2;
  return type;
}
inline constexpr const tandem_input* of_loss[] = {&scores, &targets};
inline constexpr const tandem_input* of_accuracy[] = {&scores, &label};
inline const tandem_layer_type loss = labelled(
    make_type("SoftmaxWithLoss", 2, TANDEM_PER_SAMPLE | TANDEM_LOSS, &scalar_shapes, &element_cost),
    of_loss);
inline const tandem_layer_type accuracy = labelled(
    make_type("Accuracy", 2, TANDEM_PER_SAMPLE | TANDEM_METRIC, &scalar_shapes, &element_cost),
    of_accuracy);

}  // namespace tandem::test::fake
