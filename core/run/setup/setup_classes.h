// A net's number of classes: that of the blob which its loss reads, so that a layer of a plugin may
// be the classifier. Gives the net the number of the data, or refuses.
#pragma once

#include <cstdint>

#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// As many as the net has scores for each sample; needs the record's shape of the data.
[[nodiscard]] int64_t classes_of_net(const Registry& registry, const TrainSetup& setup);
// For data with classes. Throws Error if the net has another number and may not be adapted, or
// cannot be, as a plugin's layer makes the scores.
void fit_classes(const Registry& registry, TrainSetup& setup, int64_t classes, bool may_adapt);
// For samples with several labels, or with numbers: Error where a plugin's layer makes the scores,
// and another number of them.
void require_scores(const Registry& registry, const TrainSetup& setup, int64_t count);

}  // namespace tandem
