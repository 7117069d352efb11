// The passes that build_net() runs over a net in the making, in their order here. Each leaves the
// net whole: producers, consumers and gradients of all tensors fit its layers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/model/net.h"

namespace tandem {

class Registry;

// A weight as one layer declares it; several may turn out to be one array.
struct DeclaredArray {
  WeightArray array;
  WeightRule rule;
};

// A net in the making, with what only the passes need to know.
struct Draft {
  Net net;
  const Registry* registry = nullptr;
  std::string file;                // of the definition
  std::vector<int> definition_of;  // for each layer: its number in the definition; -1: inserted
  std::vector<std::vector<DeclaredArray>> declared;  // for each layer: the weights of its type
  std::vector<std::vector<bool>> takes_gradient;  // for each layer and input: may one flow into it;
                                                  // from find_gradients() on: does one
  std::set<std::string> inserted_names;
};

// The layers of one phase, their attributes, tensors in single-assignment form, shapes, loss
// weights and declared weights.
[[nodiscard]] Draft resolve(const NetDefinition& definition, const Registry& registry,
                            const NetOptions& options, int32_t phase);

// The weights of one layer with their rules and fillers.
[[nodiscard]] std::vector<DeclaredArray> declared_arrays(const LayerDefinition& definition,
                                                         const Layer& layer, int32_t phase,
                                                         const std::vector<Shape>& inputs);

// net.weights: in file order over the layers of both phases, with their places. `other` may be
// null: the other phase cannot be built.
void place_weights(Draft& draft, const Draft* other);

// Layers that are no loss but have a loss_weight get a SumLoss of their output.
void insert_loss_sums(const NetDefinition& definition, Draft& draft);
// A Reduction over the batch that is a loss reduces each sample; insert_loss_sums() does the rest.
[[nodiscard]] std::shared_ptr<const Attributes> with_axis_of_samples(
    const LayerDefinition& definition, const std::shared_ptr<const Attributes>& attributes);

// Which layers go backward and which tensors have gradients: on paths from a loss to a trained
// weight. Error if there is nothing to train.
void find_gradients(Draft& draft);

// A tensor whose gradient several layers would write gets a Split.
void insert_splits(Draft& draft);

// The dtype of every layer and tensor: `precision` where the kernels of a device kind know it.
// Weights, labels, losses and metrics stay float32.
void choose_dtypes(Draft& draft, const std::string& device_kind, int32_t precision);

// Layouts by the kernels of a device kind, and Reorder layers where neighbours cannot agree on
// layout or dtype.
void choose_layouts(Draft& draft, const std::string& device_kind);

// Outputs of inserted Splits become their input for another reader, where nothing is reordered.
void view_splits(Draft& draft);

// Layers that may write over their input do.
void run_in_place(Draft& draft);

// net.scalars and net.prediction.
void find_results(Draft& draft);
[[nodiscard]] int find_prediction(const Net& net);

// What kernels of a device kind can do along with their output, they do; the layer behind them that
// is this activation and nothing else keeps its backward pass.
void join_activations(Draft& draft, const std::string& device_kind);

// ---- What the passes share ----------------------------------------------------------------------

// A layer to be put in, by make_inserted_layer().
struct Insertion {
  int before = 0;  // layer
  Layer layer;
  std::vector<bool> takes_gradient;
};

// Puts the layers in; those before the same layer keep their order.
void insert_layers(Draft& draft, std::vector<Insertion> insertions);

// A layer that the definition does not have ("Split", "Reorder"), with default attributes and no
// tensors yet. Its name is made unique.
[[nodiscard]] Layer make_inserted_layer(Draft& draft, const std::string& type,
                                        const std::string& name);

// Producers, consumers, has_gradient and the weights' first layers, anew from the layers.
void relink(Draft& draft);

[[nodiscard]] std::vector<Shape> input_shapes(const Net& net, const Layer& layer);

}  // namespace tandem
