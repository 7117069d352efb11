// Nets whose losses read a target for each class in place of a label: samples may then be of
// several classes, and count more or less.
#pragma once

#include "core/model/definition.h"

namespace tandem {

// What such a net is fed with in training, behind everything else: for each sample a value for each
// class.
constexpr const char* class_targets_input = "class_targets";

// A copy whose SoftmaxWithLoss layers, in training, read that input in place of the label. In
// testing it is the same net. Error if the training net has another layer that takes the label for
// its loss, or no SoftmaxWithLoss.
[[nodiscard]] NetDefinition with_class_targets(const NetDefinition& net, int64_t classes);
[[nodiscard]] bool reads_class_targets(const NetDefinition& net);

// The layer, in those phases only, whatever its rules said.
[[nodiscard]] LayerDefinition kept_to(LayerDefinition layer, bool trains, bool tests);

}  // namespace tandem
