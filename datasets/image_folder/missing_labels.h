// Lines of a list that lack a label or a number: refused, left out, or taken for 0, as the data
// option "missing" says.
#pragma once

#include <string>

#include "datasets/image_folder/form_finder.h"

namespace tandem::image_folder {

// "column 'age'", or "the label" of a list without headings and with one column.
[[nodiscard]] std::string title_of(const ListFile& list, size_t column);

// Leaves out the lines of the split test if they have no labels, as of competitions.
void leave_out_unlabeled_test(ListFile& list);

// Removes or changes the entries that lack a value of the form, and adds notes to it. Refusal where
// the request does not say what to do with them, and if none is left.
void settle_missing(const FormRequest& request, LabelForm& form, ListFile& list);

}  // namespace tandem::image_folder
