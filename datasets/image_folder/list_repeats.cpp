#include "datasets/image_folder/list_repeats.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "datasets/image_folder/list_paths.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;

// Most paths are as short as they can be, and long lists are compared quickly.
bool is_plain_path(const std::string& path) {
  static constexpr std::array marks{"./", "//", "\\", ":"};
  return !path.starts_with('/') && std::none_of(marks.begin(), marks.end(), [&](const char* mark) {
    return path.find(mark) != std::string::npos;
  });
}

// Lines that differ from an earlier one of the same file.
struct Differing {
  int64_t count = 0;
  const ListEntry* first = nullptr;

  void add(const ListEntry& entry, bool differs) {
    if (differs && count++ == 0) first = &entry;
  }
  [[nodiscard]] std::string text(const std::string& file, const char* one, const char* several,
                                 const char* end) const {
    return sdk::text("'", file, "': ", count, count == 1 ? one : several, " (line ", first->line,
                     ": ", first->path, ")", end);
  }
};

}  // namespace

std::string plain_path(const std::string& path, const std::string& root) {
  if (is_plain_path(path)) return path;
  std::string written = absolute_elsewhere(path);
  if (written.empty()) written = path;
  std::replace(written.begin(), written.end(), '\\', '/');
  const fs::path base = direct_path(root.empty() ? "." : root);
  const fs::path whole = (base / written).lexically_normal();
  const fs::path below = whole.lexically_relative(base);
  return below.empty() || *below.begin() == ".." ? whole.string() : below.string();
}

std::string direct_path(const std::string& path) {
  const bool is_direct = path.starts_with('/') && path.find("./") == std::string::npos &&
                         path.find("//") == std::string::npos;
  std::error_code ignored;
  return is_direct ? path : fs::absolute(path, ignored).lexically_normal().string();
}

std::vector<std::string> notes_of_repeats(const ListFile& list, const std::string& root) {
  std::unordered_map<std::string, const ListEntry*> known;
  Differing labels, splits, folds;
  for (const ListEntry& entry : list.entries) {
    const auto [found, is_new] = known.emplace(plain_path(entry.path, root), &entry);
    if (is_new) continue;
    labels.add(entry, found->second->labels != entry.labels);
    splits.add(entry, found->second->split != entry.split);
    folds.add(entry, found->second->fold != entry.fold);
  }
  std::vector<std::string> notes;
  if (labels.count > 0) {
    notes.push_back(labels.text(
        list.file, " line gives an image another label than before",
        " lines give an image another label than before",
        list.columns.size() == 1 ? "; --task multilabel joins the lines of an image" : ""));
  }
  if (splits.count > 0) {
    notes.push_back(splits.text(list.file, " line has an image of another split",
                                " lines have an image of another split",
                                ": what is learned is judged by itself"));
  }
  if (folds.count > 0) {
    notes.push_back(folds.text(list.file, " line has an image of another fold",
                               " lines have an image of another fold",
                               ": with these folds what is learned is judged by itself"));
  }
  return notes;
}

size_t join_repeats(ListFile& list) {
  for (ListEntry& entry : list.entries) {
    if (entry.is_denied) entry.labels[0].clear();
  }
  std::unordered_map<std::string, size_t> known;
  std::vector<ListEntry> entries;
  std::set<size_t> joined;
  bool any_differs = false;
  for (const ListEntry& entry : list.entries) {
    const std::string key =
        sdk::text(plain_path(entry.path, ""), "\n", entry.split, "\n", entry.fold);
    const auto [found, is_new] = known.emplace(key, entries.size());
    if (is_new) {
      entries.push_back(entry);
      continue;
    }
    std::vector<std::string>& labels = entries[found->second].labels;
    any_differs = any_differs || labels[0] != entry.labels[0];
    labels.push_back(entry.labels[0]);
    joined.insert(found->second);
  }
  if (!any_differs) return 0;
  list.entries = std::move(entries);
  return joined.size();
}

}  // namespace tandem::image_folder
