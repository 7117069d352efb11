// Whether a run's images are floats or bytes (--pixels), and what that means on its devices.
#pragma once

#include "core/train/setup.h"

namespace tandem {

struct SessionOptions;

// Replaces the record's "" and auto by what they come to: bytes on cuda devices, where the data
// have them and nothing is mixed, else floats. `told`: the user's options, of a new or a resumed
// run. Error if the data have no bytes and are to give them.
void resolve_pixels(const Registry& registry, TrainSetup& setup, const TrainOptions& told);

// What the batches of both phases hold.
void choose_pixels(const TrainSetup& setup, SessionOptions& options);

// Of a run whose choice is `pixels`, on this data set.
[[nodiscard]] PixelForm pixel_form(const std::string& pixels, const Dataset& dataset);

}  // namespace tandem
