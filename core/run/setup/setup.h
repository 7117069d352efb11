// Resolves the options of a new run to its setup, step by step. A resumed run starts from its
// record instead (resume.h), and takes some of the steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

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

// ---- shared by new and resumed runs

// Batch, steps, epochs and precision, where neither the user nor the run's record gives them.
void resolve_amount(Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Replaces the record's --pixels "" and auto: bytes where the devices prefer them, the data have
// bytes and nothing is mixed, else floats. `options` are the user's. Throws Error where bytes are
// requested and the data have none.
void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& options);
// Throws Error for a loss scale that is out of range, or given for a precision that has none.
void require_loss_scale_of(const std::string& precision, std::optional<double> loss_scale);

}  // namespace tandem
