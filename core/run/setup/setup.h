// Resolves the options of a new run to its setup, step by step. A resumed run starts from its
// record instead (resume.h), and takes some of the steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/targets.h"
#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// Of a new run. Throws Error for options that do not fit each other, the net or the data.
[[nodiscard]] TrainSetup resolve(Registry& registry, const TrainOptions& options,
                                 const Strategies& strategies = built_in_strategies());

// What the loader makes of the labels: mixed samples, class weights.
[[nodiscard]] TargetOptions target_options(const TrainSetup& setup);
// The form of the pixels that a run whose --pixels is `pixels` reads from this data set.
[[nodiscard]] PixelForm pixel_form(const std::string& pixels, const Dataset& dataset);

// The weight of each class in the loss. `text`: "balanced" (all classes have the same weight in
// all, and samples a mean weight of 1), numbers in the order of the classes ("1,2,0.5"), or a file
// with a class's name and its weight on each line. Throws Error unless each class has one weight.
[[nodiscard]] std::vector<float> read_class_weights(const std::string& text,
                                                    const Dataset& training);

// ---- of new runs

// Reads the class weights, and lets the net read a weight for each class where that is needed.
void resolve_targets(const Registry& registry, TrainSetup& setup);
// Reads the solver's weight files into the setup's first_weights, and changes its net by the
// options; messages tell each. Error for a file that does not fit, for options that freeze nothing
// or everything, and for frozen layers that no file has.
void resolve_fine_tuning(const Registry& registry, TrainSetup& setup);
// How long the head learns alone, once the run's length is known. Error for a time that makes no
// sense: without weight files, as long as the run, or with nothing else to learn afterwards.
void resolve_unfreezing(const Registry& registry, TrainSetup& setup);

// Throws Error for a loss of several labels or of numbers that would read a class as a number.
void require_losses_of_classes(const TrainSetup& setup);

// Throws Error where nothing can be learned: by the net, its first weights, the class weights or
// the data. Notes what is odd but can learn.
void require_learning(const Registry& registry, TrainSetup& setup);

// ---- of new and resumed runs

// Sets the setup's head_net where after so many steps only the head learns.
void begin_with_head(const Registry& registry, int64_t steps_done, TrainSetup& setup);
// Batch, steps, epochs and precision, where neither the user nor the run's record gives them.
void resolve_amount(Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Replaces the record's --pixels "" and auto: bytes where the devices prefer them, the data have
// bytes and nothing is mixed, else floats. `options` are the user's. Throws Error where bytes are
// requested and the data have none.
void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Throws Error for a loss scale that is out of range, or given for a precision that has none.
void require_loss_scale_of(const std::string& precision, std::optional<double> loss_scale);

}  // namespace tandem
