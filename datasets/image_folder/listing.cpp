#include "datasets/image_folder/listing.h"

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

}  // namespace tandem::image_folder
