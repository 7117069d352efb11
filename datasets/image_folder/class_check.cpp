#include "datasets/image_folder/class_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::list_of;
using picture::lower_case;
using Names = std::vector<std::string>;

// The path below the class folder.
std::string_view below_class(const std::string& file) {
  return std::string_view(file).substr(file.find('/') + 1);
}

// The folders in a class folder; none if images are beside them. Where there is one alone that is
// no split, as in cat/images, those in it.
std::set<std::string> folders_of(const ClassFolder& one, bool as_written = false) {
  std::vector<std::string_view> paths;
  for (const std::string& file : one.files) paths.push_back(below_class(file));
  while (true) {
    std::set<std::string> folders;
    for (const std::string_view path : paths) {
      const size_t slash = path.find('/');
      if (slash == std::string_view::npos) return {};
      const std::string_view name = path.substr(0, slash);
      folders.insert(as_written ? picture::as_utf8(std::string(name)) : lower_case(name));
    }
    if (folders.size() != 1 || !picture::split_of_name(*folders.begin()).empty()) return folders;
    for (std::string_view& path : paths) path.remove_prefix(path.find('/') + 1);
  }
}

sdk::Refusal same_folders(const Names& classes, const std::set<std::string>& folders) {
  const Names inside(folders.begin(), folders.end());
  const bool are_splits = std::any_of(inside.begin(), inside.end(), [](const std::string& name) {
    return !picture::split_of_name(name).empty();
  });
  return sdk::invalid(list_of(classes), " hold the same folders (", list_of(inside), "): ",
                      are_splits ? "the splits come first, as in train/cat"
                                 : "if they are splits, call them train and val",
                      "; if they are classes, give ", classes_option);
}

void require_different_folders(const std::vector<ClassFolder>& classes) {
  std::map<std::set<std::string>, Names> by_folders;
  std::set<std::string> common;
  bool is_first = true, are_all_nested = true;
  Names all;
  for (const ClassFolder& one : classes) {
    const std::set<std::string> folders = folders_of(one);
    if (one.files.empty()) continue;
    all.push_back(one.name);
    are_all_nested = are_all_nested && !folders.empty();
    by_folders[folders].push_back(one.name);
    if (is_first) common = folders;
    std::erase_if(common, [&](const std::string& name) { return !folders.contains(name); });
    is_first = false;
  }
  if (all.size() < 2) return;
  const auto is_split = [](const std::string& n) { return !picture::split_of_name(n).empty(); };
  const bool has_split = std::any_of(common.begin(), common.end(), is_split);
  if (are_all_nested && (common.size() > 1 || has_split)) throw same_folders(all, common);
  for (const auto& [folders, names] : by_folders) {
    if (folders.size() > 1 && names.size() > 1 && 2 * names.size() > all.size()) {
      throw same_folders(names, folders);
    }
  }
}

// Pictures and what is drawn or written for each of them.
void require_no_masks(const std::vector<ClassFolder>& classes) {
  static constexpr std::array pictures{"images", "imgs",   "image", "img", "jpegimages",
                                       "photos", "inputs", "input", "rgb", "pictures"};
  static constexpr std::array others{
      "masks",  "mask",    "labels", "label",       "annotations",       "annotation",
      "annots", "xmls",    "gt",     "groundtruth", "ground_truth",      "targets",
      "target", "outputs", "depth",  "edges",       "segmentation",      "segmentations",
      "bboxes", "boxes",   "json",   "imagesets",   "segmentationclass", "segmentationobject"};
  const auto find = [&](const auto& known) -> const ClassFolder* {
    for (const ClassFolder& one : classes) {
      if (std::find(known.begin(), known.end(), lower_case(one.name)) != known.end()) return &one;
    }
    return nullptr;
  };
  const ClassFolder* picture = find(pictures);
  const ClassFolder* other = find(others);
  if (picture == nullptr || other == nullptr) return;
  throw sdk::invalid("'", picture->name, "' and '", other->name,
                     "' are pictures and what belongs to each of them, as for segmentation or "
                     "detection, which Tandem does not read; ",
                     expected_layout, "; if they are classes, give ", classes_option);
}

// The stem of the picture whose mask or drawing this is, as "benign (1)" of "benign (1)_mask" and
// of "benign (1)_mask_1"; "" if the name says no such thing.
std::string_view pictured_by(std::string_view stem) {
  static constexpr std::array words{"mask", "masks",      "seg",         "segmentation",
                                    "gt",   "annotation", "groundtruth", "label"};
  constexpr std::string_view between = "_-. ";
  const auto before_last = [&](std::string_view text) {
    const size_t at = text.find_last_of(between);
    return at == std::string_view::npos ? text.substr(0, 0) : text.substr(0, at);
  };
  std::string_view begin = before_last(stem);
  const bool is_counted = begin.size() + 1 < stem.size() &&
                          stem.find_first_not_of("0123456789", begin.size() + 1) == stem.npos;
  if (is_counted && !begin.empty()) {
    stem = begin;
    begin = before_last(stem);
  }
  if (begin.empty()) return begin;
  const std::string_view word = stem.substr(begin.size() + 1);
  const bool is_known = std::find(words.begin(), words.end(), word) != words.end();
  return is_known ? begin : begin.substr(0, 0);
}

// A name without its extension, in lower case.
std::string stem_of(const std::string& file) {
  const std::string_view path = below_class(file);
  return lower_case(path.substr(0, path.rfind('.')));
}

// Pictures of a class that by their names are masks of others in it.
struct MasksBeside {
  size_t count = 0;
  std::string first;
};

MasksBeside masks_of(const ClassFolder& one) {
  MasksBeside masks;
  size_t unsure = 0;
  std::set<std::string> stems;
  for (const std::string& file : one.files) {
    const std::string stem = stem_of(file);
    const std::string_view picture = pictured_by(stem);
    if (picture.empty()) continue;
    if (stems.empty()) {
      for (const std::string& other : one.files) stems.insert(stem_of(other));
    }
    if (!stems.contains(std::string(picture))) continue;
    if (masks.count == 0) masks.first = file;
    ++masks.count;
    unsure += stem.ends_with("label") || stem.ends_with("gt") ? 1 : 0;
  }
  // A bottle's label and a car of the kind GT are not beside most pictures.
  constexpr size_t share = 3;
  const bool may_be_pictures = unsure == masks.count && share * masks.count < one.files.size();
  return may_be_pictures ? MasksBeside() : masks;
}

void require_no_masks_beside(const std::vector<ClassFolder>& classes) {
  size_t images = 0, pairs = 0;
  std::string first;
  for (const ClassFolder& one : classes) {
    const MasksBeside masks = masks_of(one);
    images += one.files.size();
    pairs += masks.count;
    if (first.empty()) first = masks.first;
  }
  constexpr size_t few = 2, share = 20;
  if (pairs < few || share * pairs < images) return;
  throw sdk::invalid(pairs, " of the ", images,
                     " images are, by their names, masks or drawings of "
                     "others beside them, as '",
                     first, "': move them elsewhere; if they are images of their classes, give ",
                     classes_option);
}

// Whether the names only count from 0 or 1: 1, 2, 3; img_000, img_001.
bool is_counter(const std::set<std::string>& stems) {
  std::set<uint64_t> numbers;
  std::string text;
  for (const std::string& stem : stems) {
    const size_t begin = stem.find_last_not_of("0123456789") + 1;
    if (begin == stem.size() || stem.size() - begin > 18) return false;
    if (!text.empty() && text != stem.substr(0, begin) + '#') return false;
    text = stem.substr(0, begin) + '#';
    numbers.insert(std::stoull(stem.substr(begin)));
  }
  return *numbers.begin() <= 1 && *numbers.rbegin() - *numbers.begin() + 1 == numbers.size();
}

void require_different_files(const std::vector<ClassFolder>& classes) {
  // Comparing numbers of files first, as most classes differ in them.
  std::map<std::pair<size_t, std::string>, std::vector<const ClassFolder*>> alike;
  for (const ClassFolder& one : classes) {
    if (one.files.size() < 2) continue;
    const auto first = std::min_element(
        one.files.begin(), one.files.end(),
        [](const std::string& a, const std::string& b) { return below_class(a) < below_class(b); });
    alike[{one.files.size(), stem_of(*first)}].push_back(&one);
  }
  const auto stems_of = [](const ClassFolder& one) {
    std::set<std::string> stems;
    for (const std::string& file : one.files) stems.insert(stem_of(file));
    return stems;
  };
  for (const auto& [key, group] : alike) {
    if (group.size() < 2) continue;
    const std::set<std::string> first = stems_of(*group[0]);
    if (is_counter(first)) continue;
    for (size_t i = 1; i < group.size(); ++i) {
      if (stems_of(*group[i]) != first) continue;
      throw sdk::invalid("'", group[0]->name, "' and '", group[i]->name,
                         "' hold files of the same names (", list_of({first.begin(), first.end()}),
                         "), as if they were not two classes but two pictures of each thing; if "
                         "they are classes, give ",
                         classes_option);
    }
  }
}

}  // namespace

void require_classes(const std::vector<ClassFolder>& classes) {
  require_no_masks(classes);
  require_no_masks_beside(classes);
  require_different_folders(classes);
  require_different_files(classes);
}

bool are_named_as_parts(const std::vector<ClassFolder>& classes) {
  static constexpr std::array words{"part", "images", "image",  "imgs",    "batch",
                                    "set",  "folder", "volume", "archive", "chunk"};
  std::set<std::string> stems;
  for (const ClassFolder& one : classes) {
    const std::string name = lower_case(one.name);
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == name.size()) return false;
    const size_t end = name.find_last_not_of("_-. ", digits == 0 ? 0 : digits - 1) + 1;
    stems.insert(name.substr(0, end));
  }
  return classes.size() > 1 && stems.size() == 1 &&
         std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return stems.begin()->ends_with(word); });
}

std::string text_of_subfolders(const std::vector<ClassFolder>& classes) {
  Names joined;
  for (const ClassFolder& one : classes) {
    const std::set<std::string> folders = folders_of(one, true);
    if (folders.size() < 2) continue;
    joined.push_back(sdk::text(one.name, " (", list_of({folders.begin(), folders.end()}), ")"));
  }
  if (joined.empty()) return "";
  return sdk::text("images in subfolders are of the class above them: ", list_of(joined),
                   "; to learn the subfolders as classes, move them up");
}

}  // namespace tandem::image_folder
