// The data set "image_folder": class folders of pictures. The layouts and what is refused:
// listing.h.
#pragma once

#include "datasets/image_folder/image_set.h"

namespace tandem::image_folder {

class ImageFolder : public ImageSet {
 public:
  ImageFolder(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
    begin(request, attributes, list_images(listing_options(request, attributes)));
  }
  static const char* name() { return "image_folder"; }
  static const char* help() {
    return "a folder of images: a folder for each class, or train/ and val/ with such folders";
  }
  static std::vector<sdk::Parameter> parameters() { return parameters_of("image_folder_param"); }
};

}  // namespace tandem::image_folder
