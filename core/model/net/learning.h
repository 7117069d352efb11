// What keeps a net from learning, or makes it learn badly, found by looking at the net before its
// first step: a table of checks. A net of the usual kind has none of it.
#pragma once

#include <string>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

struct LearningProblem {
  std::string text;           // one line: the layers, what is wrong, what would be right
  bool learns_never = false;  // nothing can be learned; otherwise it is odd, but may be meant
};

// `net`: the definition built for training, without a kind of device. `weights`: those that
// training begins with; empty: drawn by the net's fillers. `devices`: among which a batch is
// divided.
[[nodiscard]] std::vector<LearningProblem> find_learning_problems(const NetDefinition& definition,
                                                                  const Net& net,
                                                                  const std::vector<float>& weights,
                                                                  int64_t devices = 1);

}  // namespace tandem
