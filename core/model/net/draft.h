// A net in the making: what the passes of build_net() (passes/build_net.cpp) work on, and what they
// share. Each pass leaves the net consistent: producers, consumers and gradients of all tensors fit
// its layers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

class Registry;

// A weight as one layer declares it. Several of them may share one array.
struct DeclaredWeight {
  WeightArray array;
  WeightRule rule;
};

// What only the passes know of a layer.
struct DraftLayer {
  int definition = -1;                   // its index in the definition; -1: inserted
  std::vector<DeclaredWeight> declared;  // the weights of its type
  // For each input: whether a gradient may flow into it; after find_gradients(): whether one does.
  std::vector<bool> takes_gradient;
};

// A net, with the data that only the passes need.
struct Draft {
  Net net;
  const Registry* registry = nullptr;
  std::string file;                   // of the definition
  std::vector<DraftLayer> more;       // of each layer of the net
  std::set<std::string> layer_names;  // of all layers, the inserted ones included

  // Whether the layer's backward pass writes the gradient of that input.
  [[nodiscard]] bool writes_gradient(size_t layer, size_t input) const {
    return net.layers[layer].wants_backward_data && more[layer].takes_gradient[input];
  }
};

// A layer to insert, made by make_insertion().
struct Insertion {
  int before = 0;  // layer
  Layer layer;
  std::vector<bool> takes_gradient;
};

// A layer that is not in the definition ("Split", "Reorder"), with default attributes, the tensor
// as its input, which takes a gradient, and `outputs` outputs that the caller adds. Its name is
// made unique.
[[nodiscard]] Insertion make_insertion(Draft& draft, const std::string& type,
                                       const std::string& name, int before, int input,
                                       size_t outputs);

// Inserts the layers. Those before the same layer keep their order.
void insert_layers(Draft& draft, std::vector<Insertion> insertions);

// Removes layers and tensors, each by index, that no remaining layer uses. The indices of the
// others change. Before any layer is inserted.
void remove_layers(Draft& draft, const std::set<int>& layers, const std::set<int>& tensors);

// The weights of a net (weight_arrays.cpp): those that a layer's type declares over these inputs,
// with their rules and fillers.
[[nodiscard]] std::vector<DeclaredWeight> declare_weights(const LayerDefinition& definition,
                                                          const Layer& layer, int32_t phase,
                                                          const std::vector<Shape>& inputs);

// Sets net.weights and the offset of each in the one array that holds them, in file order over the
// layers of both phases, so that names and offsets are the same in both. `other`: the draft of the
// other phase, null if that phase cannot be built.
void place_weights(Draft& draft, const Draft* other);

// Sets producers, consumers, has_gradient and the first layer of each weight from the layers.
void relink(Draft& draft);

// Adds a tensor and returns its index.
int add_tensor(Net& net, const std::string& name, const Shape& shape);

}  // namespace tandem
