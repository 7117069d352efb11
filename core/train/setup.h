// What a training run works with, resolved from its options: the net for these classes, the solver,
// the data sets, and the record that the run folder keeps. Resuming starts from the record instead.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/solver_definition.h"
#include "core/plugin/registry.h"
#include "core/train/options.h"
#include "core/train/run_folder.h"

namespace tandem {

struct TrainSetup {
  RunRecord record;  // with options resolved: nothing in them is "" or 0 any more, except epochs
  NetDefinition net;
  SolverDefinition solver;
  std::unique_ptr<Dataset> training_data, validation_data;  // validation_data may be null
  // A run that goes on with its devices keeps the order and groups that it has.
  bool finds_links = true;
  int64_t test_samples = 0;           // of an evaluation during the run; 0: all
  std::vector<std::string> messages;  // for the log: what was decided, what was left out
};

// A new run's; Errors for whatever does not fit together.
[[nodiscard]] TrainSetup resolve(Registry& registry, const TrainOptions& options);
// A run's that goes on: its record, with what `options` says anew (devices, strategy, epochs,
// steps, data, ...).
[[nodiscard]] TrainSetup resolve_resumed(Registry& registry, const TrainOptions& options,
                                         const RunFolder& folder);

// One split of the record's data, as the net of that phase is fed with it. `source` "" = the
// record's.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(Registry& registry, const NetDefinition& net,
                                                    const RunRecord& record,
                                                    const std::string& source,
                                                    const std::string& split, int32_t phase);

}  // namespace tandem
