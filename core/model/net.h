// A net checked against layer types, for one phase and one global batch: layers in order of
// execution, tensors in single-assignment form (an in-place layer makes a new tensor), weights with
// places in one contiguous array. Not bound to devices: a plan does that. Pure data; building it
// allocates nothing on a device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/attributes.h"
#include "core/base/shape.h"
#include "core/device/parse.h"
#include "core/model/definition.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

struct Tensor {
  std::string name;
  Shape shape;  // at the global batch
  int32_t layout = TANDEM_NCHW;
  int32_t dtype = TANDEM_FLOAT32;
  int producer = -1;           // layer, or -1: the data or the labels
  std::vector<int> consumers;  // layers
  bool has_gradient = false;   // some layer's backward writes it, in this layout and dtype
  int alias_of =
      -1;  // shares the memory of that tensor, which is no alias itself (a layer run in place)
  // Is that tensor for another reader: has its values' memory, and a gradient of its own. An output
  // of a Split that the host put in, whose forward pass is then nothing.
  int view_of = -1;
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
  const tandem_layer_type* type = nullptr;
  std::shared_ptr<const Attributes> attributes;
  std::vector<int> inputs, outputs;  // tensors
  std::vector<int> weights;          // weight arrays
  std::vector<Shape>
      weight_shapes;  // as the layer sees them: a shared array may have another shape
  std::vector<double> loss_weights;  // one an output; 0: not part of the loss
  uint32_t random_index =
      0;  // the layer's place in the file: the same in every phase and on every device
  bool wants_backward_data = false;  // some input's gradient is needed
  bool wants_backward_weights = false;
  bool runs_in_place = false;
  int32_t dtype = TANDEM_FLOAT32;  // it computes in; a Reorder's: its output's
  bool allows_tf32 = false;        // its kernel may round factors of float32 products to TF32
  // What its kernel does to output 0 as it writes it, for the layer behind it (TANDEM_ACTIVATION_),
  // and, of that layer, the one whose kernel does its forward pass along; -1: none does.
  int32_t activation = TANDEM_ACTIVATION_NONE;
  int fused_into = -1;
  Location location;

  [[nodiscard]] bool has(uint64_t trait) const { return (type->traits & trait) != 0; }
  // Whether its type lets a gradient flow into that input at all.
  [[nodiscard]] bool may_take_gradient(size_t input) const;
  [[nodiscard]] bool has_backward() const { return wants_backward_data || wants_backward_weights; }
  // "layer 'conv1' (Convolution)"
  [[nodiscard]] std::string title() const;
};

// "relu"
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
  int data = -1, label = -1;     // tensors fed from the data set; label -1: the net uses none
  std::vector<int> more_inputs;  // fed beside them, in the order of NetDefinition::net_inputs()
  std::vector<Scalar> scalars;
  int prediction = -1;  // the tensor of class scores: what the loss or accuracy reads; -1: none
  double loss_scale = 1024;  // in float16: see loss_scale.h

  // The tensor whose memory holds this one's values; and its gradient.
  [[nodiscard]] int values_of(int tensor) const;
  [[nodiscard]] int gradient_of(int tensor) const;
  // Whether the layer's forward pass has nothing to do.
  [[nodiscard]] bool makes_views(int layer) const;
  // The layer whose forward pass this one's kernel does along; -1: none.
  [[nodiscard]] int fused_layer(int layer) const;
  // Every layer's forward pass is its own kernel's again.
  void separate_activations();
  // Shapes of all tensors when a device has `rows` rows of the batch.
  [[nodiscard]] std::vector<Shape> shapes(int64_t rows) const;
  // What one layer's passes cost over `rows` rows, by its type.
  [[nodiscard]] tandem_layer_cost cost(int layer, int64_t rows) const;
  // Floats of the layer's statistics passes; zeros where it has none.
  [[nodiscard]] tandem_layer_statistics statistics(int layer) const;
  [[nodiscard]] int find_layer(const std::string& name) const;  // -1: none
};

struct NetOptions {
  int32_t phase = TANDEM_TRAIN;
  int64_t batch = 1;       // global
  Shape data{1, 3, 0, 0};  // of one sample (n ignored)
  std::string device_kind =
      default_kind;  // whose kernels' dtypes and layouts are chosen; "": all is float32 and NCHW
  // Of activations and their gradients, where kernels know it; or tf32_precision, which is
  // float32 whose products may be TF32's.
  int32_t precision = TANDEM_FLOAT32;
  double loss_scale = 0;  // of float16: a power of two; 0: the default
};

// Data and Input layers become `data` and `label`; phase rules are applied; parameters are checked
// against the declared ones; a tensor with several gradient consumers gets a Split; layouts and
// dtypes are chosen and Reorder layers inserted where neighbours cannot agree; activations are done
// along by kernels that offer it. Every Error names the layer, its type and file:line. The weights
// (names, shapes, order, offsets) are the same in every phase.
[[nodiscard]] Net build_net(const NetDefinition& definition, const Registry& registry,
                            const NetOptions& options);

// Initial values of all weights, `net.weight_floats` floats, a pure function of (net, seed).
[[nodiscard]] std::vector<float> initial_weights(const Net& net, uint64_t seed);

// The same values piece by piece, so that no second copy of all of them exists: sink(first, values,
// count) is called for ranges that cover all weights once, in any order and on any thread, but
// never twice at a time. Padding is left out. What the sink throws comes out.
using WeightSink = std::function<void(int64_t first, const float* values, int64_t count)>;
void draw_weights(const Net& net, uint64_t seed, const WeightSink& sink);

}  // namespace tandem
