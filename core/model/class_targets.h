// Nets whose losses read a target for each class in place of a label: samples may then be of
// several classes, and count more or less.
#pragma once

#include "core/model/definition.h"
#include "core/plugin/registry.h"

namespace tandem {

// What such a net is fed with in training, behind everything else: for each sample a value for each
// class.
constexpr const char* class_targets_input = "class_targets";

// A copy whose losses of the label, in training, read that input in its place. In testing it is the
// same net. Error if one of them takes labels only (TANDEM_LABEL_OR_TARGETS), or there is none.
[[nodiscard]] NetDefinition with_class_targets(const NetDefinition& net, const Registry& registry,
                                               int64_t classes);
[[nodiscard]] bool reads_class_targets(const NetDefinition& net);

// The layer, in those phases only, whatever its rules said.
[[nodiscard]] LayerDefinition kept_to(LayerDefinition layer, bool trains, bool tests);

}  // namespace tandem
