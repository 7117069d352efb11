// The classes of a net: how many there are, a copy for another number, and a copy whose losses read
// a target for each class in place of a label (mixup, class weights).
#pragma once

#include "core/model/file/definition.h"
#include "core/plugin/registry.h"

namespace tandem {

// Whether some loss or metric reads labels as classes. If none does, labels are targets or mark
// pairs, or there are none, and any number of classes is right.
[[nodiscard]] bool has_classes(const NetDefinition& net);
// Whether a layer's input 0 is scores of classes: a loss of labels, Accuracy, Softmax.
[[nodiscard]] bool reads_scores(const LayerDefinition& layer);
// How many scores an input of layer `at` has: the num_output of the last layer before it that has
// one, or the sum of those that a Concat joins. 0: there is none.
[[nodiscard]] int64_t score_count(const NetDefinition& net, size_t at, size_t input);
// The number of scores of the last classifier: the last layer before the loss that has a
// num_output. Error if there is none.
[[nodiscard]] int64_t class_count(const NetDefinition& net);
// The classifiers: the last layer with outputs before each loss and accuracy. Error if there is
// none.
[[nodiscard]] std::vector<std::string> classifier_names(const NetDefinition& net);
// How many of the best classes an Accuracy layer looks at.
[[nodiscard]] int64_t top_k(const LayerDefinition& accuracy);
// A copy whose classifiers have `classes` outputs and the name "<name>_<classes>", so that weights
// are never taken for those of another number of classes. Error where a Concat joins the scores.
[[nodiscard]] NetDefinition with_class_count(const NetDefinition& net, int64_t classes);

// The input with a value for each class of each sample; the last one of the net.
constexpr const char* class_targets_input = "class_targets";
// A copy whose losses of the label read that input instead in training; testing is unchanged. Error
// if such a loss reads labels only (no TANDEM_INPUT_TARGETS), or if there is none.
[[nodiscard]] NetDefinition with_class_targets(const NetDefinition& net, const Registry& registry,
                                               int64_t classes);
[[nodiscard]] bool reads_class_targets(const NetDefinition& net);

}  // namespace tandem
