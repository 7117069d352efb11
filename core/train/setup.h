// What a training run works with, resolved from its options: the net for these classes, the solver,
// the data sets, and the record that the run folder keeps. A resumed run starts from its record
// instead (resume.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/fingerprint.h"
#include "core/data/targets.h"
#include "core/model/solver_definition.h"
#include "core/plugin/registry.h"
#include "core/schedule/strategies/strategies.h"
#include "core/train/published.h"
#include "core/train/run_folder.h"

namespace tandem {

struct TrainSetup {
  RunRecord record;
  const Strategies* strategies = nullptr;  // to choose from
  NetDefinition net;
  NetDefinition untuned_net;  // as it was before fine-tuning and class targets changed it
  SolverDefinition solver;
  std::unique_ptr<Dataset> training_data, validation_data;  // validation_data may be null
  // As they were when the run began to look at them; of the process that writes the run folder.
  std::vector<FileState> training_files, validation_files;
  // Whether the order of rings and groups is chosen; a run resumed on its devices keeps its own.
  bool finds_links = true;
  bool mirrors = true;       // whether augmentation may mirror the images
  int64_t test_samples = 0;  // of an evaluation during the run; 0: all
  // What --weights names, if it is a run folder or of another program.
  std::optional<PublishedWeights> published;
  std::vector<float> first_weights;   // with those of weight files; empty: random ones
  bool ends_at_infinity = false;      // a loss that is not finite ends the run without an Error
  std::vector<std::string> messages;  // for the log: decisions, and what was left out
};

// Of a new run. Throws Error for options that do not fit each other, the net or the data.
[[nodiscard]] TrainSetup resolve(Registry& registry, const TrainOptions& options,
                                 const Strategies& strategies = built_in_strategies());

// Opens one split of the record's data as input of the net of that phase. `source` "": the
// record's.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(Registry& registry, const NetDefinition& net,
                                                    const RunRecord& record,
                                                    const std::string& source,
                                                    const std::string& split, int32_t phase);

// For other data than those that the record's parameters were given for: removes the parameters
// that the data set for `source` does not declare. Returns a note of them for the user; "" if none
// was.
[[nodiscard]] std::string leave_out_undeclared(Registry& registry, const std::string& source,
                                               RunRecord& record);

// The net's own transform_param as parameters of a data set of images: mean, scale, mirror, resize.
[[nodiscard]] std::map<std::string, std::string> image_parameters(
    const TransformDefinition& transform);

// What the loader makes of the labels: mixed samples, class weights.
[[nodiscard]] TargetOptions target_options(const TrainSetup& setup);
// The form of the pixels that a run whose --pixels is `pixels` reads from this data set.
[[nodiscard]] PixelForm pixel_form(const std::string& pixels, const Dataset& dataset);

// ---- shared by new and resumed runs

// Opens training and validation data as the record's options say.
void open_datasets(Registry& registry, TrainSetup& setup);
// The run's data: a data set's name, or a path that holds in any working folder.
[[nodiscard]] std::string data_source(Registry& registry, const RunRecord& record);
// Batch, steps, epochs and precision, where neither the user nor the run's record gives them.
void resolve_amount(Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Replaces the record's --pixels "" and auto: bytes where the devices prefer them, the data have
// bytes and nothing is mixed, else floats. `options` are the user's. Throws Error where bytes are
// requested and the data have none.
void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Throws Error for a loss scale that is out of range, or given for a precision that has none.
void require_loss_scale_of(const std::string& precision, std::optional<double> loss_scale);

}  // namespace tandem
