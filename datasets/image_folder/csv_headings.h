// What the first lines of a CSV file tell before its columns are read: headings that are repeated,
// as in files that were joined, and tables of pixels.
#pragma once

#include <cstddef>

#include "datasets/image_folder/list_lines.h"

namespace tandem::image_folder {

// Rows behind the first one that have its texts, in any case.
[[nodiscard]] size_t count_repeats_of_first(const Rows& rows);
void remove_repeats_of_first(Rows& rows);

// Refusal of tables whose fields, or whose one field, are the pixels of a picture.
void refuse_pixels(const Rows& rows, const std::string& file);

// Refusal for a row that has the headings of the first one in another order: the rows below it
// would be read by the wrong columns.
void refuse_other_order(const Rows& rows, const std::string& file);

}  // namespace tandem::image_folder
