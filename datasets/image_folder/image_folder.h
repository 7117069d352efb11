// The data set "image_folder": class folders of pictures, decoded, cropped and scaled as a net
// wants them. The layouts and what is refused: listing.h; damaged files: decode.h. Thread-safe and
// pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/image_folder/listing.h"
#include "datasets/image_folder/transform.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

class ImageFolder {
 public:
  ImageFolder(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "image_folder"; }
  static const char* help() {
    return "a folder of images: a folder for each class, or train/ and val/ with such folders";
  }
  static std::vector<sdk::Parameter> parameters();

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(listing_.images.size()); }
  [[nodiscard]] int64_t class_count() const {
    return static_cast<int64_t>(listing_.class_names.size());
  }
  [[nodiscard]] tandem_shape shape() const {
    return {1, transform_.channels, transform_.height, transform_.width};
  }
  [[nodiscard]] const char* class_name(int64_t index) const {
    return listing_.class_names.at(static_cast<size_t>(index)).c_str();
  }
  [[nodiscard]] const char* sample_name(int64_t index) const {
    return listing_.images.at(static_cast<size_t>(index)).path.c_str();
  }
  [[nodiscard]] const char* notes() const { return notes_.c_str(); }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const;

 private:
  void read_transform(const tandem_dataset_request& request, const sdk::Attributes& attributes);
  void read_size_of_first_image();

  Listing listing_;
  TransformOptions transform_;
  std::string notes_;
};

}  // namespace tandem::image_folder
