// Finds the first layer whose output is not finite: one forward pass on one device, whose outputs
// are all examined.
#pragma once

#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/model/definition.h"
#include "core/plugin/registry.h"

namespace tandem {

struct DiagnoseInputs {
  std::string device_kind;  // of the run; the pass runs on one such device
  int32_t precision = TANDEM_FLOAT32;
  Shape data;
  LoaderOptions loading;  // the run's
  uint64_t step = 0;
  int64_t number = 0;  // of the batch
  const Dataset* dataset = nullptr;
};

// "the weights 'conv1.weight'", "layer 'fc6' (InnerProduct)", or "" if every output is finite.
[[nodiscard]] std::string first_not_finite(Registry& registry, const NetDefinition& definition,
                                           const std::vector<float>& weights,
                                           const DiagnoseInputs& inputs);

}  // namespace tandem
