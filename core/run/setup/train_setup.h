// What a training run works with, resolved from its options: the net for these classes, the solver,
// the data sets, and the record that the run folder keeps.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/work.h"
#include "core/data/dataset.h"
#include "core/data/fingerprint.h"
#include "core/model/file/solver_definition.h"
#include "core/run/folder/run_folder.h"
#include "core/run/weights/published.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

struct TrainSetup {
  RunRecord record;
  const Strategies* strategies = nullptr;  // to choose from
  NetDefinition net;
  NetDefinition untuned_net;  // as it was before fine-tuning and class targets changed it
  std::optional<NetDefinition> head_net;  // while only the head learns: the net to train
  SolverDefinition solver;
  std::unique_ptr<Dataset> training_data, validation_data;  // validation_data may be null
  // As they were when the run began to look at them; of the process that writes the run folder.
  std::vector<FileState> training_files, validation_files;
  // Whether the order of rings and groups is chosen; a run resumed on its devices keeps its own.
  bool finds_links = true;
  // The user names no strategy: several devices take the fastest by forecast costs.
  bool forecasts_strategy = false;
  bool mirrors = true;       // whether augmentation may mirror the images
  bool fits_images = false;  // size, augmentation and batch follow the images
  int64_t test_samples = 0;  // of an evaluation during the run; 0: all
  int64_t steps_before = 0;  // of a resumed run, as it was begun; it may have another length now
  // What --weights names, if it is a run folder or of another program.
  std::optional<PublishedWeights> published;
  std::vector<float> first_weights;   // with those of weight files; empty: random ones
  WorkWatch watch{};                  // of measuring for a strategy
  bool ends_at_infinity = false;      // a loss that is not finite ends the run without an Error
  std::vector<std::string> messages;  // for the log: decisions, and what was left out

  template <class... Arguments>
  void note(fmt::format_string<Arguments...> message, Arguments&&... arguments) {
    messages.push_back(fmt::format(message, std::forward<Arguments>(arguments)...));
  }
};

}  // namespace tandem
