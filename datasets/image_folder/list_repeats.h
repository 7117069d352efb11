// Lines of a list that name the same file, however they write its path.
#pragma once

#include <string>
#include <vector>

#include "datasets/image_folder/list_file.h"

namespace tandem::image_folder {

// The same text for paths that lead to one place from the folder `root`: "a/1.png", "./a//1.png",
// "a\1.png", and the absolute path. Nothing is looked up on the disk.
[[nodiscard]] std::string plain_path(const std::string& path, const std::string& root);

// The absolute path, with no "./", "../" and "//" in it.
[[nodiscard]] std::string direct_path(const std::string& path);

// Images that the list has twice, with other labels or in another split or fold: a line for the
// user about each of these kinds.
[[nodiscard]] std::vector<std::string> notes_of_repeats(const ListFile& list,
                                                        const std::string& root);

// Joins the lines of one image, split and fold, each of which names some of its labels. Labels that
// a line denies are none. Returns the number of images that had several lines; 0: lines that repeat
// an image have the same labels, and stay.
size_t join_repeats(ListFile& list);

}  // namespace tandem::image_folder
