// Numbers to predict that float32, in which nets are trained, cannot keep apart.
#pragma once

#include "datasets/image_folder/label_form.h"

namespace tandem::image_folder {

// Notes the columns whose values lose, as floats, what tells them apart: they lie close to each
// other for their size. Refusal if that are all columns. `form`: of numbers.
void note_lost_steps(LabelForm& form, const ListFile& list);

}  // namespace tandem::image_folder
