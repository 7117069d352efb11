// Whether the class folders of a tree look as if they were none: splits, groups of classes, or
// pictures beside their masks. What would train without a word and learn nonsense is refused, with
// the option that reads it all the same.
#pragma once

#include <string>
#include <vector>

#include "datasets/image_folder/folder.h"

namespace tandem::image_folder {

// Refusal: "'a' and 'b' ...".
void require_classes(const std::vector<ClassFolder>& classes);
// Whether all names are one that ends with a word such as "part", and a number: "images_part_1".
[[nodiscard]] bool are_named_as_parts(const std::vector<ClassFolder>& classes);
// Which class folders have all of their images in subfolders, a line for the user; "": none.
[[nodiscard]] std::string text_of_subfolders(const std::vector<ClassFolder>& classes);

}  // namespace tandem::image_folder
