// Folders of images on disk: train/, val/ and test/ with class folders, or class folders alone, and
// the images of each class in natural order. Subfolders are read, symbolic links followed, each
// folder once. Refusal of an image whose name has a line break.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tandem::image_folder {

struct ClassFolder {
  std::string name;                            // as UTF-8
  std::vector<std::string> files;              // paths below the tree's root, natural order
  std::map<std::string, int64_t> other_files;  // extension -> number of files that are not images
};

// The class folders of `root`, in natural order of their names; possibly empty. Refusal if a folder
// cannot be read or a name cannot be that of a class.
[[nodiscard]] std::vector<ClassFolder> read_classes(const std::filesystem::path& root);

// Every image below `folder`, as paths below it, in natural order.
[[nodiscard]] std::vector<std::string> read_images(const std::filesystem::path& folder);

struct Entries {
  std::vector<std::string> folders;  // names in natural order, without those of is_litter()
  int64_t images = 0;                // directly in the folder
};
[[nodiscard]] Entries read_entries(const std::filesystem::path& folder);

// ".txt 3, .gif 1"
[[nodiscard]] std::string text_of(const std::map<std::string, int64_t>& other_files);

constexpr const char* expected_layout =
    "expected a folder for each class (cat/1.jpg, dog/2.jpg), or train/ and val/ with such folders";

// The folder of each split; an empty path: there is none. Not separate: `train` is the whole tree.
struct Layout {
  std::filesystem::path train, val, test;
  bool separate = false;
};

// Throws a Refusal if `root` is no folder or cannot be read.
[[nodiscard]] Layout find_layout(const std::filesystem::path& root);

}  // namespace tandem::image_folder
