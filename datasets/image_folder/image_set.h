// Pictures in files, of which somebody has listed the paths and classes: decoded, cropped and
// scaled as a net wants them. What the data sets image_folder and image_list share. Thread-safe
// and pure.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasets/image_folder/listing.h"
#include "datasets/image_folder/picture_cache.h"
#include "datasets/image_folder/reader.h"
#include "datasets/picture/transform.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

class ImageSet {
 public:
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
  [[nodiscard]] const char* sample_name(int64_t index) const { return image(index).path.c_str(); }
  [[nodiscard]] const char* notes() const { return notes_.c_str(); }
  [[nodiscard]] int64_t label(int64_t index) const { return image(index).label; }
  [[nodiscard]] bool split_is_drawn() const { return listing_.split_is_drawn; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const;
  void describe(int64_t index, tandem_sample_info& info) const;

 protected:
  // Derived classes call it with what they listed.
  void begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
             Listing listing);
  [[nodiscard]] static ListingOptions listing_options(const tandem_dataset_request& request,
                                                      const sdk::Attributes& attributes);
  [[nodiscard]] static std::vector<sdk::Parameter> parameters_of(const char* block);

 private:
  [[nodiscard]] const Image& image(int64_t index) const {
    return listing_.images.at(static_cast<size_t>(index));
  }
  void read_size_of_first_image();
  // True if the picture is kept as its sample needs it.
  [[nodiscard]] bool get_kept(int64_t index, uint64_t seed, float* pixels) const;
  void read_and_keep(Reader& reader, const picture::Size& whole, int64_t index, uint64_t seed,
                     float* pixels) const;

  Listing listing_;
  picture::TransformOptions transform_;
  std::string notes_;
  // By image: the hash of the bytes that were decoded to their end; 0: none yet.
  mutable std::unique_ptr<std::atomic<uint64_t>[]> whole_;
  std::unique_ptr<PictureCache> cache_;
};

// One picture as the net reads it: only what the sample shows is decoded and resampled. Shared with
// the data set image_pack.
void read_sample(Reader& reader, const picture::Size& whole,
                 const picture::TransformOptions& options, int64_t index, uint64_t seed,
                 float* pixels);

// A reader of this thread, for gray or colour.
[[nodiscard]] Reader& thread_reader(bool gray);

}  // namespace tandem::image_folder
