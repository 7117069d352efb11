// Which images a split of a folder holds, and of which class each is. Two layouts: train/ and val/
// (or valid/, and test/) with class folders, or class folders alone, of which a seeded share of
// every class is held out. Classes are numbered once, by train's folders or by the model, and every
// split is mapped to them by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::image_folder {

struct ListingOptions {
  std::string source;
  std::string split;                     // train, val, test; predict: see list_images()
  std::vector<std::string> class_names;  // of the model; empty: train's folders decide
  double val_fraction = 0.2;
  uint64_t seed = 1;
};

struct Image {
  std::string path;
  int64_t label = 0;
};

struct Listing {
  std::vector<std::string> class_names;
  std::vector<Image> images;
  std::vector<std::string> notes;  // for the user: what was left out, and how it was split
  bool split_is_drawn = false;     // by the seed
};

// Throws a Refusal (TANDEM_INVALID) for whatever is wrong with the folder: missing, no folder, no
// images, one class, an empty class, a class the model or train does not know. Split "predict": the
// source lists files (whatever their extension) and folders, one a line; every label is 0.
[[nodiscard]] Listing list_images(const ListingOptions& options);

}  // namespace tandem::image_folder
