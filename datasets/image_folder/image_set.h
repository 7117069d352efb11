// Pictures in files with listed paths and classes, decoded, cropped and scaled for a net: the base
// of the data sets image_folder and image_list. Thread-safe and pure.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "datasets/image_folder/listing.h"
#include "datasets/image_folder/picture_cache.h"
#include "datasets/image_folder/reader.h"
#include "datasets/picture/byte_form.h"
#include "datasets/picture/transform.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

class ImageSet : public sdk::DatasetType {
 public:
  [[nodiscard]] int64_t size() const override {
    return static_cast<int64_t>(listing_.images.size());
  }
  [[nodiscard]] int64_t class_count() const override {
    return static_cast<int64_t>(listing_.class_names.size());
  }
  [[nodiscard]] tandem_shape shape() const override {
    return {1, transform_.channels, transform_.height, transform_.width};
  }
  [[nodiscard]] const char* class_name(int64_t index) const override {
    return listing_.class_names.at(static_cast<size_t>(index)).c_str();
  }
  [[nodiscard]] const char* sample_name(int64_t index) const override {
    return image(index).path.c_str();
  }
  // The same however the path of the source was written: from its folder on, or absolute.
  [[nodiscard]] std::string name_in_source(int64_t index) const;
  [[nodiscard]] const char* notes() const override { return notes_.c_str(); }
  [[nodiscard]] int64_t label(int64_t index) const override { return image(index).label; }
  [[nodiscard]] bool split_is_drawn() const override { return listing_.split_is_drawn; }
  [[nodiscard]] const Levels& levels() const { return levels_; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override {
    read(index, seed, pixels, label);
  }
  void get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const override {
    read(index, seed, pixels, label);
  }
  void describe_bytes(tandem_dataset_info& info) const override {
    picture::describe_bytes(transform_, info);
  }
  void describe(int64_t index, tandem_sample_info& info) const override;
  [[nodiscard]] int64_t task() const override { return listing_.task; }
  void targets(int64_t index, float* values) const override {
    const std::vector<float>& mine = image(index).targets;
    std::copy(mine.begin(), mine.end(), values);
  }

 protected:
  // Called by derived classes with their listing.
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
  // To floats or bytes.
  template <class Pixel>
  void read(int64_t index, uint64_t seed, Pixel* pixels, float* label) const;
  // Writes the pixels and returns true if the cache has the picture at the scale of this sample.
  template <class Pixel>
  [[nodiscard]] bool get_kept(int64_t index, uint64_t seed, Pixel* pixels) const;
  template <class Pixel>
  void read_and_keep(Reader& reader, const picture::Size& whole, int64_t index, uint64_t seed,
                     Pixel* pixels) const;

  Listing listing_;
  std::filesystem::path folder_;  // of the source
  picture::TransformOptions transform_;
  Levels levels_;
  std::string notes_;
  // For each image, the hash of the bytes that were decoded to their end; 0: none yet.
  mutable std::unique_ptr<std::atomic<uint64_t>[]> whole_;
  std::unique_ptr<PictureCache> cache_;
};

// One sample of a picture, as floats or bytes: only the region that it shows is decoded and
// resampled. Also used by the data set image_pack.
template <class Pixel>
void read_sample(Reader& reader, const picture::Size& whole,
                 const picture::TransformOptions& options, int64_t index, uint64_t seed,
                 Pixel* pixels) {
  const auto number = static_cast<uint64_t>(index);
  const picture::Plan plan = picture::make_plan(whole, options, number, seed);
  const int shrink = reader.can_shrink() ? picture::possible_shrink(plan) : 1;
  const picture::View view = reader.decode(shrink, picture::needed_part(whole, shrink, plan));
  picture::transform(view, whole, plan, options, number, seed, pixels);
}

// What is said of a stored picture: all but the hash of its content, and the host gets remarks.
void describe_picture(Bytes file, tandem_sample_info& info);

// The calling thread's reader of gray or of color pictures, while it is used for one picture.
class ThreadReader {
 public:
  ThreadReader(bool gray, const Levels& levels) : reader_(of_thread(gray)) {
    reader_.set_levels(levels);
  }
  ThreadReader(const picture::TransformOptions& options, const Levels& levels)
      : ThreadReader(options.channels == 1, levels) {}
  ~ThreadReader() { reader_.close(); }
  ThreadReader(const ThreadReader&) = delete;
  ThreadReader& operator=(const ThreadReader&) = delete;
  Reader& operator*() const { return reader_; }
  Reader* operator->() const { return &reader_; }

 private:
  static Reader& of_thread(bool gray);

  Reader& reader_;
};

}  // namespace tandem::image_folder
