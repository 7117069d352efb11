#include "datasets/image_folder/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "datasets/image_folder/other_formats.h"
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

constexpr const char* broken_link = "broken link";

enum class Kind { folder, file, other, missing };

struct Entry {
  std::string name;
  Kind kind = Kind::other;
  bool link = false;
};

bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

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
    const std::string path = folder + "/" + name;
    const bool link = found->d_type == DT_LNK || (found->d_type == DT_UNKNOWN && is_link(path));
    entries.push_back({name, kind_of(path, found->d_type), link});
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

FolderIdentity identity_of(const PathStatus& status) {
  return {status.system().st_dev, status.system().st_ino};
}

// What Tandem writes beside pictures: the files of a run, and pictures with what a net looked at.
bool is_explanation(std::string_view name) {
  return picture::lower_case(name).ends_with(".explained.png");
}
bool is_data(std::string_view name) {
  return is_image(name) && !is_explanation(name);
}
bool has(const std::vector<Entry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}
bool is_run(const std::vector<Entry>& entries) {
  return has(entries, "run.json") && (has(entries, "net.prototxt") || has(entries, "classes.txt"));
}

enum class Content { data, output, nothing };

// Whether a folder holds pictures, or what Tandem wrote and none. Stops at the first picture, and
// follows no link.
Content content_of(const fs::path& folder) {
  const std::vector<Entry> entries = entries_of(folder.string());
  if (is_run(entries)) return Content::output;
  const bool is_of_runs = picture::lower_case(folder.filename().string()) == "runs";
  const auto is_picture = [](const Entry& entry) {
    return entry.kind != Kind::folder && is_data(entry.name);
  };
  if (std::any_of(entries.begin(), entries.end(), is_picture)) return Content::data;
  if (is_of_runs) return Content::output;  // of other trainers, too
  Content result = has(entries, "find_lr.csv") ? Content::output : Content::nothing;
  for (const auto& [name, kind, link] : entries) {
    if (is_explanation(name)) result = Content::output;
    if (kind != Kind::folder) continue;
    const Content inside = link ? Content::data : content_of(folder / name);
    if (inside == Content::data) return inside;
    if (inside == Content::output) result = inside;
  }
  return result;
}

}  // namespace

Entries read_entries(const fs::path& folder) {
  Entries result;
  for (const auto& [name, kind, link] : entries_of(folder.string())) {
    if (kind == Kind::folder) {
      if (content_of(folder / name) != Content::output) result.folders.push_back(name);
    } else if (is_data(name)) {
      ++result.images;
    }
  }
  std::sort(result.folders.begin(), result.folders.end(), natural_less);
  return result;
}

FolderReader::FolderReader(const Layout& layout) : prefix_((layout.root / "").string().size()) {
  std::error_code ignored;
  for (fs::path at = fs::weakly_canonical(layout.root, ignored); !at.empty();
       at = at.parent_path()) {
    add(at);
    if (at == at.parent_path()) break;
  }
  for (const fs::path& tree : {layout.train, layout.val, layout.test}) {
    if (tree.empty()) continue;
    add(tree);
    for (const auto& [name, kind, link] : entries_of(tree.string())) {
      const PathStatus status = picture::path_status((tree / name).string());
      if (kind != Kind::folder || !status.exists()) continue;
      const std::string shown = below_root(tree / name);
      const auto [known, is_new] = class_places_.emplace(identity_of(status), shown);
      // Of two names for one folder, that of the folder and not of a link.
      if (is_new || !is_link(layout.root / known->second)) continue;
      known->second = shown;
    }
  }
}

void FolderReader::add(const fs::path& folder) {
  const PathStatus status = picture::path_status(folder.string());
  if (status.exists()) known_.insert(identity_of(status));
}

std::string FolderReader::below_root(const fs::path& path) const {
  return path.string().substr(std::min(prefix_, path.string().size()));
}

std::vector<std::string> FolderReader::class_folders(const fs::path& tree) {
  std::vector<std::string> names;
  for (const auto& [name, kind, link] : entries_of(tree.string())) {
    const fs::path path = tree / name;
    if (kind != Kind::folder) {
      beside_ += is_data(name) ? 1 : 0;
      continue;
    }
    const FolderIdentity identity = identity_of(picture::path_status(path.string()));
    const auto place = class_places_.find(identity);
    const bool is_elsewhere = place != class_places_.end() && place->second != below_root(path);
    if (is_elsewhere && fs::path(place->second).parent_path() != below_root(tree)) {
      throw sdk::invalid("'", below_root(path), "' and '", place->second,
                         "' are the same folder, by a link: what is learned would be judged by "
                         "itself");
    }
    if (is_elsewhere || known_.contains(identity)) {
      seen_twice_.insert(below_root(path));
    } else if (content_of(path) == Content::output) {
      outputs_.insert(below_root(path));
    } else {
      require_one_line("class folder", name);
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return natural_less(as_utf8(a), as_utf8(b));
  });
  return names;
}

std::vector<ClassFolder> FolderReader::read_classes(const fs::path& tree) {
  std::vector<ClassFolder> classes;
  const size_t prefix = (tree / "").string().size();
  for (const std::string& name : class_folders(tree)) {
    ClassFolder found;
    found.name = as_utf8(name);
    walk((tree / name).string(), prefix, classes.size(), found);
    classes.push_back(std::move(found));
  }
  follow_links(prefix, classes);
  return classes;
}

// After all that is there without links, so that images are of the class in whose folder they are.
void FolderReader::follow_links(size_t prefix, std::vector<ClassFolder>& classes) {
  for (size_t i = 0; i < links_.size(); ++i) {  // more are found meanwhile
    const auto [number, path] = links_[i];
    if (take(path)) walk(path, prefix, number, classes[number]);
  }
  links_.clear();
  for (ClassFolder& one : classes) {
    std::sort(one.files.begin(), one.files.end(), natural_less);
  }
}

// False, and noted, if the folder is read already.
bool FolderReader::take(const std::string& path) {
  const PathStatus status = picture::path_status(path);
  if (!status.exists()) return false;
  const FolderIdentity identity = identity_of(status);
  const bool is_new = !class_places_.contains(identity) && known_.insert(identity).second;
  if (!is_new) seen_twice_.insert(below_root(path));
  return is_new;
}

void FolderReader::walk(const std::string& path, size_t prefix, size_t number, ClassFolder& found) {
  const std::vector<Entry> entries = entries_of(path);
  if (is_run(entries)) {
    outputs_.insert(below_root(path));
    return;
  }
  for (const auto& [name, kind, link] : entries) {
    const std::string whole = path.ends_with('/') ? path + name : path + "/" + name;
    if (kind == Kind::folder) {
      if (link) {
        links_.emplace_back(number, whole);
      } else if (take(whole)) {
        walk(whole, prefix, number, found);
      }
    } else if (kind == Kind::missing) {
      ++found.other_files[broken_link];
    } else if (kind == Kind::file && is_data(name)) {
      found.files.push_back(whole.substr(prefix));
      require_one_line("image", found.files.back());
    } else {
      ++found.other_files[is_explanation(name) ? ".explained.png" : extension_of(name)];
    }
  }
}

std::vector<std::string> FolderReader::notes() const {
  const auto counted = [](const std::set<std::string>& names, const char* what) {
    return sdk::text(names.size(), " ", what, names.size() == 1 ? "" : "s");
  };
  const auto listed = [](const std::set<std::string>& names) {
    return picture::list_of({names.begin(), names.end()});
  };
  std::vector<std::string> lines;
  if (!outputs_.empty()) {
    lines.push_back(sdk::text("not read, as a trainer wrote ", outputs_.size() == 1 ? "it" : "them",
                              ": ", listed(outputs_)));
  }
  if (!seen_twice_.empty()) {
    lines.push_back(sdk::text(counted(seen_twice_, "link"), " to what is read already ",
                              seen_twice_.size() == 1 ? "adds" : "add",
                              " nothing: ", listed(seen_twice_)));
  }
  if (beside_ > 0) {
    lines.push_back(sdk::text(beside_, beside_ == 1 ? " image" : " images",
                              " beside the class folders ", beside_ == 1 ? "is" : "are",
                              " not read"));
  }
  return lines;
}

ClassFolder read_images(const fs::path& folder) {
  Layout layout;
  layout.root = folder;
  std::vector<ClassFolder> found(1);
  const size_t prefix = (folder / "").string().size();
  FolderReader reader(layout);
  reader.walk(folder.string(), prefix, 0, found[0]);
  reader.follow_links(prefix, found);
  return std::move(found[0]);
}

std::string text_of(const std::map<std::string, int64_t>& other_files) {
  std::string text;
  for (const auto& [extension, count] : other_files) {
    const bool is_plural = extension == broken_link && count > 1;
    const std::string other = other_format_of_extension(extension);
    text += sdk::text(text.empty() ? "" : ", ", count, " ", extension, is_plural ? "s" : "",
                      other.empty() ? "" : " (" + other + ")");
  }
  return text;
}

}  // namespace tandem::image_folder
