#include "datasets/image_folder/listing.h"

#include <map>

#include "datasets/picture/names.h"

namespace tandem::image_folder {

void Listing::note_missing_classes(const std::string& where) {
  std::vector<bool> present(class_names.size(), false);
  for (const Image& image : images) present[static_cast<size_t>(image.label)] = true;
  std::vector<std::string> missing;
  for (size_t i = 0; i < present.size(); ++i) {
    if (!present[i]) missing.push_back(class_names[i]);
  }
  if (missing.empty()) return;
  note(where, "has no image of ", missing.size(), " of ", present.size(),
       " classes: ", picture::list_of(missing));
}

void Listing::note_similar_classes() {
  std::map<std::string, std::string> seen;
  for (const std::string& name : class_names) {
    const auto [found, is_new] = seen.emplace(picture::lower_case(name), name);
    if (!is_new) note("classes '", found->second, "' and '", name, "' differ in case alone");
  }
}

}  // namespace tandem::image_folder
