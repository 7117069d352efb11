// Finds the files of a list on the disk, also where the list spells their paths otherwise: letters
// of another form or case, other blanks, '\' for '/', no extension, "%20" for a blank, or a '/'
// before a path that is below the root.
#pragma once

#include <string>
#include <vector>

#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

// Replaces the paths that lead nowhere and have one file that they can mean, and notes how many.
// Nothing is looked up twice, and of a long list whose first thousand files are there, spread
// evenly, no more. `root`: where paths begin; `list`: the file that names them. If none is there,
// names without a folder are looked for in the folders below the root: find_in_folders().
void find_files(Listing& listing, const std::string& root, const std::string& list);

// A path as it is written, without "file://" and with '/' where another system has '\\', if it is
// absolute there or an address; "" for any other.
[[nodiscard]] std::string absolute_elsewhere(const std::string& path);

// The beginning that such paths share and this machine does not have, if what is behind it is found
// below `root`: the lists of others name their folders. "": there is none, or the paths are here.
[[nodiscard]] std::string moved_beginning(const std::vector<std::string>& paths,
                                          const std::string& root);

// Why there is no such file, where its folder has files that the path may mean: "; ...". "": it has
// none.
[[nodiscard]] std::string why_missing(const std::string& path);

}  // namespace tandem::image_folder
