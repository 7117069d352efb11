// One folder of class folders, as it is on disk: every class with its images, in natural order.
// Nested folders are walked, symbolic links followed, each folder once.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tandem::image_folder {

struct ClassFolder {
  std::string name;                            // UTF-8, whatever the folder's bytes are
  std::vector<std::string> files;              // paths below the tree's root, natural order
  std::map<std::string, int64_t> other_files;  // extension -> how many files are no images
};

// The class folders of `root`, in natural order of their names; possibly empty. Throws a Refusal if
// a folder cannot be read, or a name cannot be a class's.
[[nodiscard]] std::vector<ClassFolder> read_classes(const std::filesystem::path& root);

// Every image below `folder`, as paths below it, in natural order.
[[nodiscard]] std::vector<std::string> read_images(const std::filesystem::path& folder);

struct Entries {
  std::vector<std::string> folders;  // their names' bytes, natural order, litter left out
  int64_t images = 0;                // lying directly in it
};
[[nodiscard]] Entries read_entries(const std::filesystem::path& folder);

// ".txt 3, .gif 1"
[[nodiscard]] std::string text_of(const std::map<std::string, int64_t>& other_files);

}  // namespace tandem::image_folder
