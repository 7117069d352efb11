// Numbers as "3,5" and "1.200,25", which are written so where ';' or tabs divide the fields of CSV.
#pragma once

#include "datasets/image_folder/list_file.h"

namespace tandem::image_folder {

// Gives columns of such numbers decimal points, with a note. A point before three digits is a mark
// of thousands there. Refusal of columns with points of both kinds, and of those without a comma
// whose points may be either.
void read_decimal_commas(ListFile& list);

}  // namespace tandem::image_folder
