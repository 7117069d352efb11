// Numbers to predict that float32, in which nets are trained, cannot keep apart.
#pragma once

#include "datasets/image_folder/label_form.h"

namespace tandem::image_folder {

// Refusal for a column whose values lie so close to each other, for their size, that the steps of
// float32 there are over a fiftieth of their standard deviation. `form`: of numbers.
void refuse_lost_steps(const LabelForm& form, const ListFile& list);

}  // namespace tandem::image_folder
