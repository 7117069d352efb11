// The data set "image_folder": train/ and val/ (or valid/, and test/) with class folders, or class
// folders alone, of which a seeded share of every class is held out.
//
// Refusal (TANDEM_INVALID) for whatever is wrong with the folder: missing, not a folder, without
// images, one class, an empty class, a class that the model or train/ does not have. For the split
// "predict" the source lists files (of any extension) and folders, one on each line; every label is
// 0.
#pragma once

#include "datasets/image_folder/image_set.h"
#include "datasets/image_folder/pack_writer.h"

namespace tandem::image_folder {

class ImageFolder : public ImageSet {
 public:
  ImageFolder(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "image_folder"; }
  static const char* help() {
    return "a folder of images: a folder for each class, or train/ and val/ with such folders";
  }
  static std::vector<sdk::Parameter> parameters();
  static void pack(const tandem_pack_request& request) { write_pack_of<ImageFolder>(request); }
};

}  // namespace tandem::image_folder
