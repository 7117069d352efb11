// Pictures that a list names without a folder and that lie in folders below its own, as those of
// HAM10000, whose CSV has ids and whose pictures are in two folders beside it.
#pragma once

#include <string>

#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

// If none of the images is there: looks for those without a folder of their own by name, without an
// extension by their stem, in the folders in `root` and in the folders in these, and notes where
// they are. Refusal for a name that may be several files. `list`: the file that names the images.
void find_in_folders(Listing& listing, const std::string& root, const std::string& list);

}  // namespace tandem::image_folder
