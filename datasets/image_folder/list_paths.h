// Finds the files of a list on the disk, also where the list spells their paths otherwise: letters
// of another form or case, other blanks, '\' for '/', no extension, or a '/' before a path that is
// below the root.
#pragma once

#include <string>
#include <vector>

#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

// Replaces the paths that lead nowhere and have one file that they can mean, and notes how many.
// Nothing is looked up twice, and of a long list whose first thousand files are there, spread
// evenly, no more. `root`: where paths begin.
void find_files(Listing& listing, const std::string& root);

}  // namespace tandem::image_folder
