#include "datasets/picture/file_groups.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tandem::picture {

std::vector<size_t> part_of_files(const std::vector<std::string>& files,
                                  const std::vector<int64_t>& labels,
                                  const std::vector<std::string>& class_names, const HeldOut& share,
                                  uint64_t seed, bool held_out) {
  std::unordered_map<std::string_view, size_t> known;
  std::vector<size_t> file_of;           // of each sample
  std::vector<int64_t> labels_of_files;  // of the first sample of each
  for (size_t i = 0; i < files.size(); ++i) {
    const auto [file, is_new] = known.emplace(files[i], known.size());
    if (is_new) labels_of_files.push_back(labels[i]);
    file_of.push_back(file->second);
  }
  const std::vector<size_t> taken = part_of(labels_of_files, class_names, share, seed, held_out);
  if (known.size() == files.size()) return taken;
  constexpr auto left_out = static_cast<size_t>(-1);
  std::vector<size_t> place(known.size(), left_out);
  for (size_t i = 0; i < taken.size(); ++i) place[taken[i]] = i;
  std::vector<size_t> part;
  for (size_t i = 0; i < files.size(); ++i) {
    if (place[file_of[i]] != left_out) part.push_back(i);
  }
  std::stable_sort(part.begin(), part.end(),
                   [&](size_t a, size_t b) { return place[file_of[a]] < place[file_of[b]]; });
  return part;
}

size_t count_files(const std::vector<std::string>& files) {
  return std::unordered_set<std::string_view>(files.begin(), files.end()).size();
}

}  // namespace tandem::picture
