// Folders of images on disk: one for each split with class folders, or class folders alone, and the
// images of each class in natural order. Subfolders are read and symbolic links followed, but no
// folder is read twice, and what Tandem writes (runs, explanations) is no data. Refusal of an image
// whose name has a line break.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "datasets/image_folder/layout.h"

namespace tandem::image_folder {

using FolderIdentity = std::pair<dev_t, ino_t>;

struct ClassFolder {
  std::string name;                            // as UTF-8
  std::vector<std::string> files;              // paths below the tree's root, natural order
  std::map<std::string, int64_t> other_files;  // extension -> number of files that are not images
};

// Reads the class folders of a layout's trees, each folder once however many links lead to it.
class FolderReader {
 public:
  explicit FolderReader(const Layout& layout);

  // The names of the class folders of a tree, in natural order; possibly none. Refusal if the tree
  // cannot be read or a name cannot be that of a class.
  [[nodiscard]] std::vector<std::string> class_folders(const std::filesystem::path& tree);
  // These with their images. To be called once for a tree.
  [[nodiscard]] std::vector<ClassFolder> read_classes(const std::filesystem::path& tree);
  // What was not read, a line each for the user.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  void add(const std::filesystem::path& folder);
  [[nodiscard]] std::string below_root(const std::filesystem::path& path) const;
  [[nodiscard]] bool take(const std::string& path);
  // The images below `path`, by their paths without `prefix` characters, of the class `number`.
  void walk(const std::string& path, size_t prefix, size_t number, ClassFolder& found);
  void follow_links(size_t prefix, std::vector<ClassFolder>& classes);

  size_t prefix_;                                       // characters of the root and its slash
  std::set<FolderIdentity> known_;                      // trees, those above them, what was read
  std::map<FolderIdentity, std::string> class_places_;  // class folders, below the root
  std::set<std::string> outputs_, seen_twice_;          // left out, below the root
  std::vector<std::pair<size_t, std::string>> links_;   // of classes, not followed yet
  int64_t beside_ = 0;                                  // images beside class folders

  friend ClassFolder read_images(const std::filesystem::path& folder);
};

// Every image below `folder`, as of one class without a name.
[[nodiscard]] ClassFolder read_images(const std::filesystem::path& folder);

struct Entries {
  std::vector<std::string> folders;  // names in natural order, without litter and Tandem's output
  int64_t images = 0;                // directly in the folder
};
[[nodiscard]] Entries read_entries(const std::filesystem::path& folder);

// ".txt 3, .gif 1"
[[nodiscard]] std::string text_of(const std::map<std::string, int64_t>& other_files);

constexpr const char* expected_layout =
    "expected a folder for each class (cat/1.jpg, dog/2.jpg), or train/ and val/ with such folders";
// What reads all folders as classes, for messages.
constexpr const char* classes_option = "--data-option layout=classes";

}  // namespace tandem::image_folder
