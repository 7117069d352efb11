// A net of classes as one of several labels or of numbers: its losses read a target for each label
// or number in training and in testing.
#pragma once

#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/plugin/registry.h"

namespace tandem {

// The loss layer's type of a task (TANDEM_TASK_LABELS, TANDEM_TASK_VALUES).
[[nodiscard]] const char* usual_loss(int64_t task);

struct TargetNet {
  NetDefinition net;
  std::vector<std::string> notes;  // what was exchanged
};
// A copy with `count` outputs whose losses of the label are of the type `loss`; those that fit the
// task already stay as they are if `loss` is "". Accuracies are left out, and a ReLU between the
// classifier and its loss. Error if there is no loss of the label.
[[nodiscard]] TargetNet with_target_losses(const NetDefinition& net, const Registry& registry,
                                           int64_t task, int64_t count, const std::string& loss);
// Whether it is such a net.
[[nodiscard]] bool tests_targets(const NetDefinition& net);

}  // namespace tandem
