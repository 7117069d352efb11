#include "datasets/image_folder/name_prefix.h"

#include <algorithm>
#include <map>

#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

struct ByNaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};
using Classes = std::map<std::string, std::vector<std::string>, ByNaturalOrder>;

}  // namespace

std::string class_of_name(const std::string& file) {
  std::string stem = picture::as_utf8(std::filesystem::path(file).stem().string());
  const auto cut = [&stem](const char* characters) {
    const size_t before = stem.size();
    stem.resize(stem.find_last_not_of(characters) + 1);
    return stem.size() < before;
  };
  constexpr const char* marks = " ._-()";
  (void)cut(marks);
  if (!cut("0123456789")) return "";
  (void)cut(marks);
  return stem;
}

bool has_class_in_names(const std::filesystem::path& tree) {
  const std::vector<std::string> files = read_images(tree).files;
  return std::any_of(files.begin(), files.end(),
                     [](const std::string& file) { return !class_of_name(file).empty(); });
}

std::vector<ClassFolder> classes_of_names(const std::filesystem::path& tree) {
  ClassFolder all = read_images(tree);
  Classes files;
  size_t without = 0;
  std::string first;
  for (std::string& file : all.files) {
    const std::string name = class_of_name(file);
    if (!name.empty()) {
      files[name].push_back(std::move(file));
    } else if (without++ == 0) {
      first = file;
    }
  }
  if (without > 0) {
    throw sdk::invalid("layout=prefix: the name of ", without, " of ", all.files.size(), " images ",
                       "is no class with a number behind it, as cat.0.jpg is: '", first, "'");
  }
  std::vector<ClassFolder> classes;
  for (auto& [name, some] : files) classes.push_back({name, std::move(some), {}});
  if (!classes.empty()) classes[0].other_files = std::move(all.other_files);
  return classes;
}

std::string advice_on_names(const std::filesystem::path& tree) {
  const std::vector<std::string> files = read_images(tree).files;
  std::map<std::string, int64_t> counts;
  for (const std::string& file : files) ++counts[class_of_name(file)];
  if (counts.contains("") || counts.size() < 2 || 2 * counts.size() > files.size()) return "";
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) names.push_back(name);
  std::sort(names.begin(), names.end(), natural_less);
  return sdk::text("; their names begin with ", picture::list_of(names),
                   ": if these are the classes, give ", prefix_option);
}

}  // namespace tandem::image_folder
