#include "datasets/image_folder/list_root.h"

#include <algorithm>

#include "datasets/image_folder/list_paths.h"
#include "datasets/image_folder/list_repeats.h"
#include "datasets/picture/data_file.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;

constexpr size_t checked_files = 10;  // must not all be missing

}  // namespace

fs::path ListRoot::folder_of(const std::string& file) const {
  return given_.empty() ? fs::path(file).parent_path() : fs::path(given_);
}

// Whether paths of the list that begin with '/' are meant below the root, as Caffe joins the two:
// the first ones tell.
bool ListRoot::joins_root(const ListFile& list) const {
  if (given_.empty()) return false;
  size_t looked_at = 0;
  bool any = false;
  for (const ListEntry& entry : list.entries) {
    const fs::path path(entry.path);
    if (!path.is_absolute()) continue;
    if (picture::path_status(path).exists()) return false;
    any = any || picture::path_status(fs::path(given_) / path.relative_path()).exists();
    if (++looked_at == checked_files) break;
  }
  return any;
}

// Paths of another machine, whose files are here.
void ListRoot::find_moved(const ListFile& list, Listing& listing) {
  moved_ = "";
  if (joins_root_) return;
  std::vector<std::string> paths;
  for (const ListEntry& entry : list.entries) paths.push_back(entry.path);
  moved_ = moved_beginning(paths, folder_.string());
  if (moved_.empty()) return;
  const auto count = std::count_if(paths.begin(), paths.end(), [&](const std::string& path) {
    return absolute_elsewhere(path).starts_with(moved_);
  });
  listing.note("'", list.file, "': ", count, count == 1 ? " path begins" : " paths begin",
               " with '", moved_, "', which is not on this machine: taken below '",
               folder_.empty() ? "." : folder_.string(), "'");
}

void ListRoot::look_at(const ListFile& list, Listing& listing) {
  folder_ = folder_of(list.file);
  joins_root_ = joins_root(list);
  find_moved(list, listing);
  if (!moved_.empty()) return;
  const auto is_absolute = [](const ListEntry& entry) {
    return fs::path(entry.path).is_absolute();
  };
  const auto count = std::count_if(list.entries.begin(), list.entries.end(), is_absolute);
  if (count == 0 || given_.empty()) return;
  listing.note("'", list.file, "': ", count, " paths begin with '/': ",
               joins_root_ ? "taken below root '" : "taken as they are, not below root '", given_,
               "'");
}

std::string ListRoot::path_of(const ListEntry& entry) const {
  const std::string elsewhere = absolute_elsewhere(entry.path);
  const bool is_moved = !moved_.empty() && elsewhere.starts_with(moved_);
  const fs::path path(is_moved            ? elsewhere.substr(moved_.size())
                      : elsewhere.empty() ? entry.path
                                          : elsewhere);
  const fs::path below = joins_root_ ? path.relative_path() : path;
  return (path.is_absolute() && !joins_root_ ? path : folder_ / below).string();
}

std::vector<std::string> ListRoot::files_of(const ListFile& list) const {
  Listing all;
  for (const ListEntry& entry : list.entries) all.images.push_back({path_of(entry), 0, {}});
  find_files(all, folder_.string(), list.file);
  std::vector<std::string> files;
  for (const Image& image : all.images) files.push_back(direct_path(image.path));
  return files;
}

void ListRoot::require_some(const std::vector<Image>& images, const std::string& file) const {
  for (size_t i = 0; i < std::min(checked_files, images.size()); ++i) {
    if (picture::path_status(images[i].path).exists()) return;
  }
  const std::string& first = images[0].path;
  if (const std::string why = why_missing(first); !why.empty()) {
    throw sdk::invalid("list '", file, "': there is no file '", first, "'", why);
  }
  throw sdk::invalid("list '", file, "': there is no file '", first,
                     "'; the data option root=FOLDER says where its paths begin",
                     given_.empty() ? "" : sdk::text(" (here '", given_, "')"));
}

}  // namespace tandem::image_folder
