// Finds the first layer whose output is not finite, or is the same for every image: one forward
// pass of training on one device, whose outputs are all examined. Says what the user can do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/device/parse.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/plugin/registry.h"

namespace tandem {

struct DiagnoseInputs {
  DeviceSpec devices;  // of the run; the pass runs on the first of them
  int32_t precision = TANDEM_FLOAT32;
  Shape data;
  LoaderOptions loading;  // the run's
  uint64_t step = 0;
  int64_t number = 0;     // of the batch
  int32_t first_row = 0;  // rows of the earlier micro-batches of the step
  const Dataset* dataset = nullptr;
};

// "the weights 'conv1.weight'", "layer 'fc6' (InnerProduct)", or "" if every output is finite.
[[nodiscard]] std::string first_not_finite(Registry& registry, const NetDefinition& definition,
                                           const std::vector<float>& weights,
                                           const DiagnoseInputs& inputs);

// "layer 'clip1' (Clip)": the first whose outputs are the same for every image of the batch though
// what it reads is not; "" if there is none.
[[nodiscard]] std::string first_constant(Registry& registry, const NetDefinition& definition,
                                         const std::vector<float>& weights,
                                         const DiagnoseInputs& inputs);

// "and the run stops", and where the last good checkpoint is (`last_good_run`: the run folder; ""
// if it has none).
[[nodiscard]] std::string how_it_stops(const std::string& last_good_run);
// How the message about a value that is not finite ends: as above, and what to try next.
// `weights`: trained weights were the first such values. `learning_rate`: of --lr; nullopt before
// the first update of a run, whose cause it cannot be.
[[nodiscard]] std::string advice_after_not_finite(const Net& net, bool weights,
                                                  std::optional<double> learning_rate,
                                                  const std::string& last_good_run);

}  // namespace tandem
