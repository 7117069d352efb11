#include "datasets/image_folder/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::extension_of;
using picture::is_image;
using picture::is_litter;

namespace fs = std::filesystem;
using Identity = std::pair<dev_t, ino_t>;

constexpr const char* broken_link = "broken link";

enum class Kind { folder, file, other, missing };

struct Entry {
  std::string name;
  Kind kind = Kind::other;
};

// Asks the system only where the folder's list does not tell: of links, and on some file systems.
Kind kind_of(const std::string& path, unsigned char type) {
  if (type == DT_DIR) return Kind::folder;
  if (type == DT_REG) return Kind::file;
  if (type != DT_LNK && type != DT_UNKNOWN) return Kind::other;
  const PathStatus status = picture::path_status(path);
  if (!status.exists()) return Kind::missing;
  return status.is_folder() ? Kind::folder : status.is_file() ? Kind::file : Kind::other;
}

// Without those of is_litter(), in any order. Without std::filesystem, whose paths take much longer
// than the system to list a hundred thousand files.
std::vector<Entry> entries_of(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), &::closedir);
  int failure = list == nullptr ? errno : 0;
  std::vector<Entry> entries;
  while (list != nullptr) {
    errno = 0;
    const dirent* found = ::readdir(list.get());
    if (found == nullptr) {
      failure = errno;
      break;
    }
    const std::string name = found->d_name;
    if (is_litter(name)) continue;  // also "." and ".."
    entries.push_back({name, kind_of(folder + "/" + name, found->d_type)});
  }
  if (failure != 0) {
    throw sdk::invalid("folder '", folder, "' cannot be read: ", std::strerror(failure));
  }
  return entries;
}

// What runs and commands write of images has one on each line.
void require_one_line(const char* what, const std::string& name) {
  if (name.find_first_of("\n\r") == std::string::npos) return;
  throw sdk::invalid("the name of ", what, " '", name, "' contains a line break: rename it");
}

// Walks one class folder and its subfolders.
class Walk {
 public:
  explicit Walk(const fs::path& root) : prefix_((root / "").string().size()) {}

  void folder(const std::string& path, ClassFolder& found) {
    const PathStatus status = picture::path_status(path);
    if (!status.exists()) return;
    // A folder that was reached before, by a link, is not read twice.
    const struct stat& system = status.system();
    if (!seen_.insert({system.st_dev, system.st_ino}).second) return;
    for (const auto& [name, kind] : entries_of(path)) {
      const std::string whole = path.ends_with('/') ? path + name : path + "/" + name;
      if (kind == Kind::folder) {
        folder(whole, found);
      } else if (kind == Kind::missing) {
        ++found.other_files[broken_link];
      } else if (kind == Kind::file && is_image(name)) {
        found.files.push_back(whole.substr(prefix_));
        require_one_line("image", found.files.back());
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
  const PathStatus status = picture::path_status(root);
  if (!status.exists()) throw sdk::invalid("there is no such folder");
  if (!status.is_folder()) {
    throw sdk::invalid("is a file, not a folder; ", expected_layout);
  }
}

}  // namespace

Entries read_entries(const fs::path& folder) {
  Entries result;
  for (const auto& [name, kind] : entries_of(folder.string())) {
    if (kind == Kind::folder) {
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
    require_one_line("class folder", name);
    ClassFolder found;
    found.name = as_utf8(name);
    Walk(root).folder((root / name).string(), found);
    std::sort(found.files.begin(), found.files.end(), natural_less);
    classes.push_back(std::move(found));
  }
  return classes;
}

std::vector<std::string> read_images(const fs::path& folder) {
  ClassFolder found;
  Walk(folder).folder(folder.string(), found);
  std::sort(found.files.begin(), found.files.end(), natural_less);
  return found.files;
}

std::string text_of(const std::map<std::string, int64_t>& other_files) {
  std::string text;
  for (const auto& [extension, count] : other_files) {
    const bool is_plural = extension == broken_link && count > 1;
    text += sdk::text(text.empty() ? "" : ", ", count, " ", extension, is_plural ? "s" : "");
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
