// A net checked against layer types, for one phase and one global batch: layers in order of
// execution, tensors in single-assignment form (an in-place layer has a new tensor as its output),
// weights with offsets in one contiguous array. Pure data, not bound to devices (a plan is);
// building it allocates nothing on a device.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/device/parse.h"
#include "core/model/file/definition.h"
#include "core/plugin/attributes.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

struct Tensor {
  std::string name;
  Shape shape;  // at the global batch
  int32_t layout = TANDEM_NCHW;
  int32_t dtype = TANDEM_FLOAT32;
  int producer = -1;           // layer; -1: an input of the net
  std::vector<int> consumers;  // layers
  bool has_gradient = false;   // some backward pass writes one, in this layout and dtype
  // The tensor whose memory it shares after a layer that runs in place; not an alias itself.
  int alias_of = -1;
  // The tensor whose values it has, with a gradient of its own: an output of an inserted Split,
  // which has no forward pass then.
  int view_of = -1;
  // The tensor whose gradient it has, with values of its own: an input of a plain sum, which has no
  // backward pass then.
  int gradient_view_of = -1;
};

struct WeightArray {
  std::string name;  // "conv1.weight": the layer's name and the type's
  int layer = -1;    // the first layer that uses it
  Shape shape;
  Filler filler;
  int64_t fan_in = 1, fan_out = 1;
  int32_t kind = TANDEM_TRAINED;
  double rate_multiplier = 1, decay_multiplier = 1;
  int64_t offset = 0;  // in floats, in the net's weight array; a multiple of 16
  int64_t count = 0;
  [[nodiscard]] bool trained() const { return kind == TANDEM_TRAINED && rate_multiplier != 0; }
};

struct Layer {
  std::string name;
  std::string joined_scale;  // the Scale of the file that it computes, too (joined_scales.h)
  const tandem_layer_type* type = nullptr;
  std::shared_ptr<const Attributes> attributes;
  std::vector<int> inputs, outputs;  // tensors
  std::vector<int> weights;          // weight arrays
  std::vector<Shape> weight_shapes;  // for this layer; a shared array may have another shape
  std::vector<double> loss_weights;  // one for each output; 0: not part of the loss
  uint32_t random_index = 0;  // its index in the file, the same in every phase and on every device
  bool wants_backward_data = false;  // some input's gradient is needed
  bool wants_backward_weights = false;
  bool runs_in_place = false;
  int32_t dtype = TANDEM_FLOAT32;  // in which it computes; of a Reorder: that of its output
  bool allows_tf32 = false;        // its kernel may round factors of float32 products to TF32
  // The TANDEM_ACTIVATION_ of the next layer, or of the one after a fused sum, that its kernel
  // applies as it writes output 0.
  int32_t activation = TANDEM_ACTIVATION_NONE;
  // The tensor that its kernel adds to output 0 before that activation: the other input of the sum
  // that is fused into it; -1: none.
  int addend = -1;
  // The layer whose kernel computes its forward pass; -1: its own.
  int fused_into = -1;
  // The layer whose kernel computes its backward pass, too: that one, or the layer after it.
  int gradient_fused_into = -1;
  // The TANDEM_ACTIVATION_ of the layer before, whose backward pass its kernel computes, too.
  int32_t activation_before = TANDEM_ACTIVATION_NONE;
  Location location;

  [[nodiscard]] bool is(std::string_view type_name) const { return type->name == type_name; }
  [[nodiscard]] bool has(uint64_t trait) const { return (type->traits & trait) != 0; }
  [[nodiscard]] bool is_result() const { return has(TANDEM_LOSS | TANDEM_METRIC); }
  // Whether its type has a gradient for that input.
  [[nodiscard]] bool may_take_gradient(size_t input) const;
  [[nodiscard]] bool has_backward() const { return wants_backward_data || wants_backward_weights; }
  // Whether its backward passes read the values of its inputs.
  [[nodiscard]] bool backward_reads_inputs() const;
  // "layer 'conv1' (Convolution)", "layer 'bn' (BatchNorm, with 'scale')"
  [[nodiscard]] std::string title() const;
};

// "relu"; "no activation" for TANDEM_ACTIVATION_NONE.
[[nodiscard]] const char* activation_name(int32_t activation);

// A scalar the net reports: a loss or a metric.
struct Scalar {
  std::string name;  // the output's name: "loss", "accuracy"
  int layer = -1, output = 0, tensor = -1;
  double loss_weight = 0;  // 0: a metric, or a loss that is only shown
};

struct Net {
  std::string name;
  int32_t phase = TANDEM_TRAIN;
  int64_t batch = 0;
  std::vector<Layer> layers;
  std::vector<Tensor> tensors;
  std::vector<WeightArray> weights;
  int64_t weight_floats = 0;     // the whole array, with padding
  int data = -1, label = -1;     // input tensors; label -1: the net uses none
  std::vector<int> more_inputs;  // the others, in the order of NetDefinition::net_inputs()
  std::vector<Scalar> scalars;
  int prediction = -1;       // the tensor of class scores that the loss or accuracy reads; -1: none
  double loss_scale = 1024;  // in float16: see loss_scale.h

  [[nodiscard]] const Layer& layer(int index) const { return layers[size_t(index)]; }
  [[nodiscard]] Layer& layer(int index) { return layers[size_t(index)]; }
  [[nodiscard]] const Tensor& tensor(int index) const { return tensors[size_t(index)]; }
  [[nodiscard]] Tensor& tensor(int index) { return tensors[size_t(index)]; }
  [[nodiscard]] const WeightArray& weight(int index) const { return weights[size_t(index)]; }
  [[nodiscard]] WeightArray& weight(int index) { return weights[size_t(index)]; }

  // The first of the tensors that share memory because layers run in place.
  [[nodiscard]] int in_place_root(int tensor) const;
  // The tensor whose memory holds the values of this one; and that of its gradient.
  [[nodiscard]] int values_of(int tensor) const;
  [[nodiscard]] int gradient_of(int tensor) const;
  // Whether all outputs of the layer are views, so that it has no forward pass.
  [[nodiscard]] bool makes_views(int layer) const;
  // Whether the gradients of all its inputs are views, so that it has no backward pass.
  [[nodiscard]] bool makes_gradient_views(int layer) const;
  // The activation that is fused into this layer; -1: none.
  [[nodiscard]] int fused_layer(int layer) const;
  // Undoes all fusions: every layer computes its own forward pass.
  void separate_fusions();
  // Shapes of all tensors for `rows` rows of the batch.
  [[nodiscard]] std::vector<Shape> shapes(int64_t rows) const;
  // The cost of a layer's passes over `rows` rows, by its type.
  [[nodiscard]] tandem_layer_cost cost(int layer, int64_t rows) const;
  // Floats of the layer's statistics passes; zeros where it has none.
  [[nodiscard]] tandem_layer_statistics statistics(int layer) const;
  // Also by the name of a joined Scale; -1: none.
  [[nodiscard]] int find_layer(const std::string& name) const;
};

[[nodiscard]] std::vector<Shape> input_shapes(const Net& net, const Layer& layer);

// What a net is built for (passes/build_net.h).
struct NetOptions {
  int32_t phase = TANDEM_TRAIN;
  int64_t batch = 1;       // global
  Shape data{1, 3, 0, 0};  // of one sample (n ignored)
  // The kind of device whose kernels decide dtypes and layouts; "": float32 and NCHW throughout.
  std::string device_kind = default_kind;
  // The dtype of activations and their gradients where kernels support it; or tf32_precision:
  // float32 whose products may round to TF32.
  int32_t precision = TANDEM_FLOAT32;
  double loss_scale = 0;  // of float16: a power of two; 0: the default
};

}  // namespace tandem
