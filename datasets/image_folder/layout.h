// How a folder of images is laid out: train/, val/ and test/ with class folders, or class folders
// alone.
#pragma once

#include <filesystem>

namespace tandem::image_folder {

constexpr const char* expected_layout =
    "expected a folder for each class (cat/1.jpg, dog/2.jpg), or train/ and val/ with such folders";

// Where each split lies; an empty path: there is no such folder. Not separate: `train` is the whole
// tree.
struct Layout {
  std::filesystem::path train, val, test;
  bool separate = false;
};

// Throws a Refusal if `root` is no folder or cannot be read.
[[nodiscard]] Layout find_layout(const std::filesystem::path& root);

}  // namespace tandem::image_folder
