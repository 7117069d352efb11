#include "datasets/image_folder/list_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;

bool has_folders(const fs::path& folder) {
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    if (picture::path_status(at->path()).is_folder()) return true;
  }
  return false;
}

}  // namespace

bool has_list_extension(const std::string& name) {
  static constexpr std::array known{".txt", ".csv", ".tsv", ".lst", ".list"};
  return std::find(known.begin(), known.end(), picture::extension_of(name)) != known.end();
}

std::vector<std::string> lists_of_split(const std::string& folder, const std::string& split) {
  std::vector<std::string> files;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string name = at->path().filename().string();
    const std::string stem = at->path().stem().string();
    if (has_list_extension(name) && picture::split_of_name(stem) == split &&
        picture::path_status(at->path().string()).is_file()) {
      files.push_back(at->path().string());
    }
  }
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

std::string list_of_split(const std::string& folder, const std::string& split) {
  std::vector<std::string> files = lists_of_split(folder, split);
  if (files.empty()) return "";
  if (files.size() == 1) return files[0];
  throw sdk::invalid(picture::list_of(files), " would all be the list of the split '", split,
                     "': call the one that is meant otherwise than the others, or give a single "
                     "list as --data");
}

bool has_split_folder(const std::string& source) {
  std::error_code failure;
  for (fs::directory_iterator at(source, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (picture::split_of_name(name) == "train" && picture::path_status(at->path()).is_folder() &&
        has_folders(at->path())) {
      return true;
    }
  }
  return false;
}

}  // namespace tandem::image_folder
