// What a device needs to go backward over rows that it has not gone forward over: the tensors that
// are sent to it, and the layers whose forward pass runs again because it saves memory for
// backward.
#pragma once

#include <set>
#include <vector>

#include "core/model/net.h"

namespace tandem {

struct BackwardNeeds {
  // For each layer the tensors to be sent when it is done, before a later layer can run in
  // place over them.
  std::vector<std::vector<int>> after;
  std::vector<int> again;  // layers, in order
  bool data = false;       // something fed from outside beside the labels
};

// `backward[l]`: layer l's backward_data or backward_weights runs there. Every layer that it reads
// from is per sample or a loss.
[[nodiscard]] BackwardNeeds backward_needs(const Net& net, const std::vector<bool>& backward);

}  // namespace tandem
