#include "datasets/image_folder/images_below.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <vector>

#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;

std::string key_of(const std::string& name) {
  return picture::lower_case(picture::as_utf8(name));
}

// The pictures in the folders in a root, and in the folders in these.
class Pictures {
 public:
  explicit Pictures(const fs::path& root) {
    for (const auto& [name, is_folder] : entries_of(root)) {
      if (is_folder) add(root / name, true);
    }
  }

  // In their order on the disk's list; none: there is no such picture.
  [[nodiscard]] std::vector<fs::path> find(const std::string& name) const {
    const auto& known = picture::is_image(name) ? names_ : stems_;
    const auto found = known.find(key_of(name));
    return found == known.end() ? std::vector<fs::path>() : found->second;
  }

 private:
  using Entries = std::map<std::string, bool>;  // the name, and whether it is a folder

  static Entries entries_of(const fs::path& folder) {
    Entries entries;
    std::error_code failure;
    for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
         at.increment(failure)) {
      const std::string name = at->path().filename().string();
      if (picture::is_litter(name)) continue;
      entries.emplace(name,
                      !picture::is_image(name) && picture::path_status(at->path()).is_folder());
    }
    return entries;
  }

  void add(const fs::path& folder, bool is_first) {
    for (const auto& [name, is_folder] : entries_of(folder)) {
      if (is_folder && is_first) add(folder / name, false);
      if (!picture::is_image(name)) continue;
      const std::string key = key_of(name);
      names_[key].push_back(folder / name);
      stems_[key.substr(0, key.rfind('.'))].push_back(folder / name);
    }
  }

  std::unordered_map<std::string, std::vector<fs::path>> names_, stems_;  // by key_of()
};

bool is_any_there(const std::vector<Image>& images) {
  return std::any_of(images.begin(), images.end(),
                     [](const Image& image) { return picture::path_status(image.path).exists(); });
}

}  // namespace

void find_in_folders(Listing& listing, const std::string& root, const std::string& list) {
  const auto is_bare = [&](const Image& image) {
    return fs::path(image.path).parent_path() == root;
  };
  const bool any = std::any_of(listing.images.begin(), listing.images.end(), is_bare);
  if (!any || is_any_there(listing.images)) return;
  const Pictures pictures(root.empty() ? "." : root);
  std::map<std::string, size_t> folders;
  for (Image& image : listing.images) {
    if (!is_bare(image)) continue;
    const std::string name = fs::path(image.path).filename().string();
    const std::vector<fs::path> found = pictures.find(name);
    if (found.size() > 1) {
      throw sdk::invalid("list '", list, "': '", name, "' may be '", found[0].string(), "' or '",
                         found[1].string(),
                         "': keep one of them, or say by the data option root=FOLDER which folder "
                         "is meant");
    }
    if (found.empty()) continue;
    image.path = found[0].string();
    ++folders[found[0].parent_path().lexically_relative(root.empty() ? "." : root).string()];
  }
  std::vector<std::string> texts;
  for (const auto& [folder, count] : folders) texts.push_back(sdk::text(count, " in ", folder));
  if (texts.empty()) return;
  listing.note("'", list, "': its images are found in folders: ", picture::list_of(texts));
}

}  // namespace tandem::image_folder
