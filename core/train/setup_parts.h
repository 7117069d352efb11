// What a new run and a resumed one are set up by alike.
#pragma once

#include <optional>
#include <string>

#include "core/train/setup.h"

namespace tandem {

// Error if it is told and no loss scale, or the precision has none.
void require_loss_scale_of(const std::string& precision, std::optional<double> loss_scale);
// Batch, steps, epochs and precision, where neither the user nor the run's record has said them.
void resolve_amount(TrainSetup& setup, const TrainOptions& options);
// Training and validation data of the record's options.
void open_datasets(Registry& registry, TrainSetup& setup);

}  // namespace tandem
