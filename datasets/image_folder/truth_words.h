// Columns of yes and no among numbers, as "smoker" beside "age": each list may write them in its
// own way, as words or as numbers, and they become the numbers that the training list has.
#pragma once

#include <vector>

#include "datasets/image_folder/form_finder.h"
#include "datasets/image_folder/label_texts.h"

namespace tandem::image_folder {

// `form`: of numbers, with its names and places, and gets its truths and notes. Refusal for words
// in a column of which the training list has other numbers.
void settle_truths(const FormRequest& request, const std::vector<Survey>& columns, LabelForm& form,
                   ListFile& list);

}  // namespace tandem::image_folder
