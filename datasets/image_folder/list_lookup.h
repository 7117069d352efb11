// What the lists of pictures come to for one split: which files, and of which class each is.
#pragma once

#include "datasets/image_folder/listing.h"

namespace tandem::image_folder {

struct ListOptions {
  ListingOptions common;
  std::string root;     // where relative paths begin; "": the list's folder
  std::string classes;  // a file with a class name a line, for lists with numbers; "": the numbers
};

// The file of a split in a folder of lists; "" if there is none.
[[nodiscard]] std::string list_of_split(const std::string& folder, const std::string& split);

// Throws a Refusal (TANDEM_INVALID) for whatever is wrong with the lists.
[[nodiscard]] Listing list_listed(const ListOptions& options);

}  // namespace tandem::image_folder
