#include "datasets/image_folder/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::extension_of;
using picture::is_image;
using picture::is_litter;
using picture::natural_less;

namespace fs = std::filesystem;
using Identity = std::pair<dev_t, ino_t>;

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::directory_entry> entries;
  fs::directory_iterator iterator(folder, failure);
  while (!failure && iterator != fs::directory_iterator{}) {
    if (!is_litter(iterator->path().filename().string())) entries.push_back(*iterator);
    iterator.increment(failure);
  }
  if (failure) {
    throw sdk::invalid("folder '", folder.string(), "' cannot be read: ", failure.message());
  }
  return entries;
}

// Walks one class folder and its subfolders.
class Walk {
 public:
  explicit Walk(const fs::path& root) : prefix_((root / "").string().size()) {}

  void folder(const fs::path& path, ClassFolder& found) {
    struct stat status {};
    // A folder that was reached before, by a link, is not read twice.
    if (::stat(path.c_str(), &status) != 0 ||
        !seen_.insert({status.st_dev, status.st_ino}).second) {
      return;
    }
    for (const fs::directory_entry& entry : entries_of(path)) {
      std::error_code ignored;
      const std::string name = entry.path().filename().string();
      if (entry.is_directory(ignored)) {
        folder(entry.path(), found);
      } else if (!entry.exists(ignored)) {
        ++found.other_files["broken link"];
      } else if (entry.is_regular_file(ignored) && is_image(name)) {
        found.files.push_back(entry.path().string().substr(prefix_));
      } else {
        ++found.other_files[extension_of(name)];
      }
    }
  }

 private:
  size_t prefix_;  // characters of the root and its slash
  std::set<Identity> seen_;
};

void check_folder(const fs::path& root) {
  std::error_code failure;
  const fs::file_status status = fs::status(root, failure);
  if (status.type() == fs::file_type::not_found) throw sdk::invalid("there is no such folder");
  if (status.type() == fs::file_type::none) {
    throw sdk::invalid("the folder cannot be read: ", failure.message());
  }
  if (status.type() != fs::file_type::directory) {
    throw sdk::invalid("is a file, not a folder; ", expected_layout);
  }
}

}  // namespace

Entries read_entries(const fs::path& folder) {
  Entries result;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(ignored)) {
      result.folders.push_back(name);
    } else if (is_image(name)) {
      ++result.images;
    }
  }
  std::sort(result.folders.begin(), result.folders.end(), natural_less);
  return result;
}

std::vector<ClassFolder> read_classes(const fs::path& root) {
  std::vector<ClassFolder> classes;
  for (const std::string& name : read_entries(root).folders) {
    if (name.find('\n') != std::string::npos) {
      throw sdk::invalid("the name of class folder '", name, "' contains a line break");
    }
    ClassFolder found;
    found.name = as_utf8(name);
    Walk(root).folder(root / name, found);
    std::sort(found.files.begin(), found.files.end(), natural_less);
    classes.push_back(std::move(found));
  }
  return classes;
}

std::vector<std::string> read_images(const fs::path& folder) {
  ClassFolder found;
  Walk(folder).folder(folder, found);
  std::sort(found.files.begin(), found.files.end(), natural_less);
  return found.files;
}

std::string text_of(const std::map<std::string, int64_t>& other_files) {
  std::string text;
  for (const auto& [extension, count] : other_files) {
    text += sdk::text(text.empty() ? "" : ", ", count, " ", extension);
  }
  return text;
}

Layout find_layout(const fs::path& root) {
  check_folder(root);
  const Entries entries = read_entries(root);
  Layout layout;
  size_t splits = 0;
  const auto take = [&](const char* name, fs::path& place) {
    const auto& folders = entries.folders;
    if (std::find(folders.begin(), folders.end(), name) == folders.end()) return;
    ++splits;
    if (place.empty()) place = root / name;
  };
  take("train", layout.train);
  take("val", layout.val);
  take("valid", layout.val);
  take("validation", layout.val);
  take("test", layout.test);
  // A class may be called "train" or "test": the folders are splits only if there are two of them,
  // or nothing else.
  const bool alone = splits == entries.folders.size();
  if (!layout.train.empty()) {
    layout.separate = splits > 1 || (alone && !read_entries(layout.train).folders.empty());
  } else {
    layout.separate = splits > 0 && alone;
  }
  if (!layout.separate) return {root, {}, {}, false};
  return layout;
}

}  // namespace tandem::image_folder
