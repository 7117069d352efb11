// What a layer is: a class derived from LayerType.
#pragma once

#include <cstddef>
#include <vector>

#include "parameters.h"

namespace tandem::sdk {

struct Query {
  explicit Query(const tandem_layer_query& query) : raw(query), attributes(query.attributes) {}
  const Shape& input(size_t i) const { return raw.inputs[i]; }
  size_t input_count() const { return raw.input_count; }
  size_t output_count() const { return raw.output_count; }
  bool training() const { return raw.phase == TANDEM_TRAIN; }

  const tandem_layer_query& raw;
  Attributes attributes;
};

// A declared input: Input("scores"), Input("label").label(). Strings must be literals.
class Input : public tandem_input {
 public:
  explicit Input(const char* input_name) : tandem_input{} {
    struct_size = sizeof(tandem_input);
    role = TANDEM_INPUT_DATA;
    name = input_name;
  }
  Input& label() { return role = TANDEM_INPUT_LABEL, *this; }
  Input& targets() { return role = TANDEM_INPUT_TARGETS, *this; }
  Input& shape_only() { return role = TANDEM_INPUT_SHAPE, *this; }
  Input& non_differentiable() { return role = TANDEM_INPUT_NON_DIFFERENTIABLE, *this; }
  Input& optional() { return is_optional = true, *this; }  // all after it must be, too
  Input& repeated() { return is_repeated = true, *this; }  // once or more often; the last one only

  bool is_optional = false, is_repeated = false;
};
using Inputs = std::vector<Input>;

// The number of outputs.
struct Arity {
  int minimum = 1, maximum = 1;  // maximum -1: any number
};

struct Weight {
  const char* name;
  Shape shape;
  const char* filler = nullptr;  // name of the FILLER parameter, or nullptr: `initial` everywhere
  double initial = 0;
  int64_t fan_in = 1, fan_out = 1;
  int32_t kind = TANDEM_TRAINED;
};

// Floats that the statistics passes write. With TANDEM_BATCH_STATISTICS.
struct Statistics {
  int64_t forward = 0, backward = 0;  // 0: no such pass
};

// The type of a layer. Objects have no state: they are created and destroyed at any time.
class LayerType {
 public:
  virtual ~LayerType() = default;
  virtual const char* name() const = 0;
  virtual const char* help() const = 0;
  virtual std::vector<Parameter> parameters() const { return {}; }
  virtual Inputs inputs() const { return {Input("data")}; }
  virtual Arity outputs() const { return {}; }
  virtual uint64_t traits() const { return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS; }
  virtual std::vector<Shape> shapes(const Query& query) const {
    return std::vector<Shape>(query.output_count(), query.input(0));
  }
  virtual std::vector<Weight> weights(const Query&) const { return {}; }
  // Of a type that does not define it, the host assumes one operation, one read and one write for
  // each element of the inputs.
  virtual tandem_layer_cost cost(const Query&) const { return make_cost(0, 0, 0, 0, 0, 0); }
  // The result must not depend on the number of rows.
  virtual Statistics statistics(const Query&) const { return {}; }
  // The TANDEM_ACTIVATION_... that its forward pass computes, if it computes nothing else.
  virtual int32_t activation(const Query&) const { return TANDEM_ACTIVATION_NONE; }

 protected:
  static tandem_layer_cost make_cost(double forward_flops, double backward_data_flops,
                                     double backward_weights_flops, double forward_bytes,
                                     double backward_data_bytes, double backward_weights_bytes) {
    return {sizeof(tandem_layer_cost), forward_flops, backward_data_flops,
            backward_weights_flops,    forward_bytes, backward_data_bytes,
            backward_weights_bytes};
  }
};

}  // namespace tandem::sdk
