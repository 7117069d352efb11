// Which folders of a source are splits. Names of splits are recognized however they are spelled
// (datasets/picture/split_names.h); what stays a guess is refused, or said in a line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::image_folder {

// The folder of each split; an empty path: there is none. Not separate: `train` is the whole tree.
struct Layout {
  std::filesystem::path root, train, val, test;
  bool separate = false;
  std::vector<std::string> notes;  // for the user: which folder was taken for which split
};

// Throws a Refusal if `root` is no folder or cannot be read, or if two folders would be the same
// split. `classes_only`: its folders are classes, whatever their names. `by_names`: names of images
// hold their classes.
[[nodiscard]] Layout find_layout(const std::filesystem::path& root, bool classes_only,
                                 bool by_names = false);

}  // namespace tandem::image_folder
