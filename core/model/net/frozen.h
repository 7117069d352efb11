// Copies of a net's definition for fine-tuning: layers that keep their weights, and layers with
// another learning rate. The file that the net was read from stays as it is; a run folder keeps the
// copy, so that a resumed run has the same.
#pragma once

#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/model/net/net.h"

namespace tandem {

// Wherever both are given, `net` is the definition built for training, without a kind of device.
// Layers are given by name.

// The layers with weights whose names match the pattern (fnmatch), in the order of the net. Error
// with near names if there is none.
[[nodiscard]] std::vector<std::string> layers_matching(const std::string& pattern, const Net& net);

// Every BatchNorm, and the Scale and Bias layers that take its output.
[[nodiscard]] std::vector<std::string> normalizing_layers(const NetDefinition& definition);

// A copy in which these layers are not trained: each lr_mult is 0, also of layers that share the
// weights, and a BatchNorm uses its running statistics in training, too, and leaves them as they
// are.
[[nodiscard]] NetDefinition with_frozen_layers(const NetDefinition& definition, const Net& net,
                                               const std::vector<std::string>& layers);

// A copy in which the weights of these layers have `factor` times their lr_mult.
[[nodiscard]] NetDefinition with_rates(const NetDefinition& definition, const Net& net,
                                       const std::vector<std::string>& layers, double factor);

}  // namespace tandem
