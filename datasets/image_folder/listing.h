// The images of one split of a data set and their classes. image_folder makes it from folders,
// image_list from text files. Classes are numbered once, by the training split or by the model, and
// every split finds them by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/picture/classes.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

struct ListingOptions {
  std::string source;
  std::string split;                     // train, val, test; of image_folder also predict
  std::vector<std::string> class_names;  // of the model; empty: those of the training split
  picture::HeldOut held_out;
  uint64_t seed = 1;
  bool classes_only = false;  // all folders are classes, whatever their names
  bool by_names = false;      // the images of a split are in one folder, named by their classes
};

struct Image {
  std::string path;
  int64_t label = 0;
  std::vector<float> targets;  // of other tasks than classes: a value for each name
};

struct Listing {
  int64_t task = TANDEM_TASK_CLASSES;
  std::vector<std::string> class_names;  // or those of the labels or numbers
  std::vector<Image> images;
  std::vector<std::string> notes;  // for the user: what was left out, and how it was split
  bool split_is_drawn = false;     // by the seed

  template <class... Parts>
  void note(const Parts&... parts) {
    notes.push_back(sdk::text(parts...));
  }
  // Notes the classes without an image. `where`: as "val/ ".
  void note_missing_classes(const std::string& where);
  // Notes two classes whose names differ in the case of letters alone.
  void note_similar_classes();
};

}  // namespace tandem::image_folder
