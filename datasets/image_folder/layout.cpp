#include "datasets/image_folder/layout.h"

#include <algorithm>
#include <map>
#include <set>

#include "datasets/image_folder/folder.h"
#include "datasets/image_folder/name_prefix.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;
using picture::list_of;
using Names = std::vector<std::string>;

void check_folder(const fs::path& root) {
  const PathStatus status = picture::path_status(root.string());
  if (!status.exists()) throw sdk::invalid("there is no such folder");
  if (!status.is_folder()) {
    throw sdk::invalid("is a file, not a folder; ", expected_layout);
  }
}

// The folders of a source whose names have the word of a split, by split.
class SplitFolders {
 public:
  explicit SplitFolders(const Names& folders) {
    std::map<std::string, std::map<std::string, Names>> by_rest;
    for (const std::string& folder : folders) {
      const auto [split, rest] = picture::parse_split_name(folder);
      if (!split.empty()) by_rest[rest][split].push_back(folder);
    }
    // "seg_train" is a split beside "seg_test": "toy_train" alone may be a class.
    std::erase_if(by_rest, [](const auto& group) {
      return !group.first.empty() && (group.second.size() < 2 || !group.second.contains("train"));
    });
    if (by_rest.empty()) return;
    if (by_rest.size() > 1 && !by_rest.contains("")) {
      Names all;
      for (const auto& [rest, splits] : by_rest) all.push_back(splits.at("train")[0]);
      throw sdk::invalid("has several training splits (", list_of(all),
                         "): move the splits of each into a folder, and name one of these");
    }
    by_split_ = by_rest.begin()->second;
    move_evaluation();
  }

  [[nodiscard]] size_t splits() const { return by_split_.size(); }
  [[nodiscard]] size_t folders() const {
    size_t count = 0;
    for (const auto& [split, names] : by_split_) count += names.size();
    return count;
  }
  [[nodiscard]] bool contains_split(const std::string& split) const {
    return by_split_.contains(split);
  }
  [[nodiscard]] bool contains(const std::string& folder) const {
    return std::any_of(by_split_.begin(), by_split_.end(), [&](const auto& one) {
      return std::count(one.second.begin(), one.second.end(), folder) > 0;
    });
  }
  // The only folder of a split; "": there is none. Refusal for two.
  [[nodiscard]] std::string only(const std::string& split) const {
    const auto found = by_split_.find(split);
    if (found == by_split_.end()) return "";
    if (found->second.size() == 1) return found->second[0];
    throw sdk::invalid(list_of(found->second), " would all be the split '", split,
                       "': call the one that is meant '", split,
                       "' and keep the others elsewhere; if they are classes, give ",
                       classes_option);
  }

 private:
  // Of "dev" and "eval", as of "val" and "eval", the second is the test split.
  void move_evaluation() {
    Names& val = by_split_["val"];
    const auto first = std::stable_partition(
        val.begin(), val.end(), [](const auto& name) { return !picture::is_evaluation(name); });
    if (first != val.begin() && !by_split_.contains("test") && first != val.end()) {
      by_split_["test"].assign(first, val.end());
      val.erase(first, val.end());
    }
    if (val.empty()) by_split_.erase("val");
  }

  std::map<std::string, Names> by_split_;
};

// Archives often hold a folder of their own name: seg_train/seg_train/forest.
fs::path inner(fs::path place, const std::string& split) {
  while (!place.empty()) {
    const Entries entries = read_entries(place);
    const bool is_wrapper = entries.images == 0 && entries.folders.size() == 1 &&
                            picture::parse_split_name(entries.folders[0]).split == split;
    if (!is_wrapper) break;
    place /= entries.folders[0];
  }
  return place;
}

void note_names(Layout& layout, const Names& folders, const SplitFolders& found) {
  const std::pair<const char*, const fs::path*> all[] = {
      {"train", &layout.train}, {"val", &layout.val}, {"test", &layout.test}};
  std::string taken;
  bool is_plain = true;
  for (const auto& [split, place] : all) {
    if (place->empty()) continue;
    const std::string name = place->lexically_relative(layout.root).string();
    is_plain = is_plain && (name == split || name == "valid" || name == "validation");
    taken += sdk::text(taken.empty() ? "" : ", ", name, "/ is the split ", split);
  }
  if (!is_plain) layout.notes.push_back(taken);
  Names others;
  std::copy_if(folders.begin(), folders.end(), std::back_inserter(others),
               [&](const auto& folder) { return !found.contains(folder); });
  if (others.empty()) return;
  layout.notes.push_back(sdk::text("not read, as beside the splits: ", list_of(others)));
}

// The class folders of each split may be in one folder: train/images/cat, val/images/cat. One
// folder alone is no data set of classes.
void open_wrappers(Layout& layout) {
  if (layout.train.empty()) return;
  const auto folder_in = [](const fs::path& place) -> std::string {
    const Entries entries = place.empty() ? Entries{} : read_entries(place);
    return entries.images == 0 && entries.folders.size() == 1 ? entries.folders[0] : "";
  };
  const std::string of_train = folder_in(layout.train);
  if (!of_train.empty() && read_entries(layout.train / of_train).folders.size() > 1) {
    layout.train /= of_train;
  }
  const Names classes = read_entries(layout.train).folders;
  for (fs::path* place : {&layout.val, &layout.test}) {
    const std::string name = folder_in(*place);
    if (name.empty() || std::count(classes.begin(), classes.end(), name) > 0) continue;
    const Names inside = read_entries(*place / name).folders;
    const bool are_classes = std::any_of(inside.begin(), inside.end(), [&](const auto& folder) {
      return std::count(classes.begin(), classes.end(), folder) > 0;
    });
    if (are_classes) *place /= name;
  }
}

// Competitions give the test pictures without classes. Other trainers want them in one folder, as
// test/unknown, which is no class and looks like none.
void leave_out_unlabeled(Layout& layout, bool by_names) {
  if (layout.train.empty() || layout.test.empty()) return;
  Entries entries = read_entries(layout.test);
  if (by_names && has_class_in_names(layout.test)) return;
  if (entries.images == 0 && entries.folders.size() == 1) {
    const std::string only = picture::as_utf8(entries.folders[0]);
    Names classes;
    for (const std::string& folder : read_entries(layout.train).folders) {
      classes.push_back(picture::as_utf8(folder));
    }
    const bool is_class = std::count(classes.begin(), classes.end(), only) > 0;
    if (is_class || !picture::did_you_mean(only, classes).empty()) return;
    entries = read_entries(layout.test / entries.folders[0]);
  }
  if (entries.images == 0 || !entries.folders.empty()) return;
  layout.notes.push_back(sdk::text("the ", entries.images, " images of ",
                                   layout.test.filename().string(),
                                   "/ have no classes: not a test split"));
  layout.test.clear();
}

void require_different(const Layout& layout) {
  const auto same = [](const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return !a.empty() && !b.empty() && fs::equivalent(a, b, ignored);
  };
  for (const fs::path* other : {&layout.val, &layout.test}) {
    if (!same(layout.train, *other)) continue;
    throw sdk::invalid("'", layout.train.filename().string(), "' and '", other->filename().string(),
                       "' are the same folder, by a link: what is learned would be judged by "
                       "itself");
  }
}

}  // namespace

Layout find_layout(const fs::path& root, bool classes_only, bool by_names) {
  check_folder(root);
  Layout layout{root, root, {}, {}, false, {}};
  if (classes_only) return layout;
  const Names folders = read_entries(root).folders;
  const SplitFolders found(folders);
  // A class may be called "train" or "test": the folders are splits only if there are two of them,
  // or nothing else.
  const bool alone = found.folders() == folders.size();
  const bool has_train = found.contains_split("train");
  if (!has_train && !(found.splits() > 0 && alone)) return layout;
  if (has_train && found.splits() < 2 && !alone) return layout;
  const fs::path train = root / found.only("train");
  if (found.folders() == 1 && has_train && read_entries(train).folders.empty()) return layout;
  const auto place = [&](const char* split) {
    const std::string name = found.only(split);
    return name.empty() ? fs::path() : inner(root / name, split);
  };
  layout.train = place("train");
  layout.val = place("val");
  layout.test = place("test");
  layout.separate = true;
  open_wrappers(layout);
  require_different(layout);
  leave_out_unlabeled(layout, by_names);
  note_names(layout, folders, found);
  return layout;
}

}  // namespace tandem::image_folder
