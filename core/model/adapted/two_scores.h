// Nets that tell two classes apart by one output, as is usual in Caffe: SigmoidCrossEntropyLoss
// reads the label, 0 or 1, as the target of the only score.
#pragma once

#include <optional>

#include "core/model/file/definition.h"

namespace tandem {

// A copy with two scores, half of the output for class 1 and minus half for class 0, and
// SoftmaxWithLoss of these: the same loss, gradients and probabilities, and the same weights, with
// what nets of classes have.
// nullopt: no such loss reads one output.
[[nodiscard]] std::optional<NetDefinition> with_two_scores(const NetDefinition& net);

}  // namespace tandem
