#include "datasets/image_folder/layout.h"

#include <algorithm>

#include "datasets/image_folder/folder.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;

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
  // A class may be called "train" or "test": it takes a second split beside it, or nothing else at
  // all, to read the folders as splits.
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
