// A folder with a list for each split (train.txt, Training_list.csv, val.csv, ...).
#pragma once

#include <string>
#include <vector>

namespace tandem::image_folder {

[[nodiscard]] bool has_list_extension(const std::string& name);

// The files of a split in a folder of lists, in order: train.txt, Training_list.csv.
[[nodiscard]] std::vector<std::string> lists_of_split(const std::string& folder,
                                                      const std::string& split);

// "" if there is none. Refusal for two.
[[nodiscard]] std::string list_of_split(const std::string& folder, const std::string& split);

// A folder of a training split with classes, which is read rather than lists beside it. One without
// folders in it has the images of the lists.
[[nodiscard]] bool has_split_folder(const std::string& source);

}  // namespace tandem::image_folder
