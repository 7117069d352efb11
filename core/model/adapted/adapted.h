// Copies of a net's definition for a run's options: another image size, an accuracy in training.
// The file that the net was read from stays as it is; a run folder keeps the copy.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/file/definition.h"

namespace tandem {

// A copy whose images are `size` pixels high and wide. Error if the net has no input of images.
[[nodiscard]] NetDefinition with_image_size(const NetDefinition& net, int64_t size);

// A copy whose BatchNorm layers add `eps` to the variance.
[[nodiscard]] NetDefinition with_batch_norm_eps(const NetDefinition& net, double eps);

// A copy whose top-1 accuracy, if it is of testing only, is computed in training, too. The loss and
// its gradients stay as they are.
[[nodiscard]] NetDefinition with_training_accuracy(const NetDefinition& net);
// The output of that accuracy; "" if the net has none in training.
[[nodiscard]] std::string training_accuracy(const NetDefinition& net);

}  // namespace tandem
