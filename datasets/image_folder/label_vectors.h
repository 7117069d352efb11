// Columns that hold a vector of numbers in each cell, as "[0, 1, 0]", "1|0|0" or "(0.5, 0.25)":
// each of its places becomes a column, so that they are read as any other columns of numbers are.
#pragma once

#include "datasets/image_folder/form_finder.h"

namespace tandem::image_folder {

// Divides the one label column of a list if it holds vectors. Its columns are called by the names
// that are known (FormRequest), else "label[0]" and so on. Returns what is to be said; "": it holds
// none. Refusal where some lines have a vector and others none or one of another length.
[[nodiscard]] std::string divide_vectors(const FormRequest& request, ListFile& list);

}  // namespace tandem::image_folder
