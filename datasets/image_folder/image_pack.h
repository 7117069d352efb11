// The data set "image_pack": a file that `tandem pack` wrote (pack_file.h), with the splits and
// classes of the packed data set.
#pragma once

#include <algorithm>

#include "datasets/image_folder/image_set.h"
#include "datasets/image_folder/pack_file.h"
#include "datasets/picture/data_file.h"

namespace tandem::image_folder {

class ImagePack : public sdk::DatasetType {
 public:
  ImagePack(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "image_pack"; }
  static const char* help() { return "a file made by 'tandem pack'"; }
  static std::vector<sdk::Parameter> parameters();
  // By its first bytes.
  static bool recognizes(const std::string& source);

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(pictures_.size()); }
  [[nodiscard]] int64_t class_count() const override {
    return static_cast<int64_t>(class_names_.size());
  }
  [[nodiscard]] tandem_shape shape() const override {
    return {1, transform_.channels, transform_.height, transform_.width};
  }
  [[nodiscard]] const char* class_name(int64_t index) const override {
    return class_names_.at(static_cast<size_t>(index)).c_str();
  }
  [[nodiscard]] const char* sample_name(int64_t index) const override {
    return pictures_.at(static_cast<size_t>(index)).name.c_str();
  }
  [[nodiscard]] const char* notes() const override { return notes_.c_str(); }
  [[nodiscard]] int64_t label(int64_t index) const override {
    return pictures_.at(static_cast<size_t>(index)).label;
  }
  [[nodiscard]] bool split_is_drawn() const override { return split_is_drawn_; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override;
  void get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const override;
  void describe_bytes(tandem_dataset_info& info) const override {
    picture::describe_bytes(transform_, info);
  }
  void describe(int64_t index, tandem_sample_info& info) const override;
  [[nodiscard]] int64_t task() const override { return task_; }
  void targets(int64_t index, float* values) const override {
    const std::vector<float>& mine = pictures_.at(static_cast<size_t>(index)).targets;
    std::copy(mine.begin(), mine.end(), values);
  }

 private:
  void take_split(const PackIndex& index, const tandem_dataset_request& request,
                  const picture::HeldOut& share);
  // Takes the training pictures that are held out for validation, or the others.
  void take_part(const PackIndex& index, const tandem_dataset_request& request,
                 const picture::HeldOut& share, bool held_out);
  void adopt_classes(const char* model_classes);
  void adopt_targets(const std::vector<std::string>& model);
  void take_levels(const Levels& packed, const Levels& given, bool is_training);
  void read_size_of_first_picture();
  [[nodiscard]] picture::Bytes read(const PackedPicture& one, Reader& reader) const;
  // To floats or bytes.
  template <class Pixel>
  void read_to(int64_t index, uint64_t seed, Pixel* pixels, float* label) const;

  picture::DataFile file_;
  picture::TransformOptions transform_;
  Levels levels_;
  std::vector<std::string> class_names_;
  std::vector<PackedPicture> pictures_;
  int64_t task_ = TANDEM_TASK_CLASSES;
  std::string notes_;
  bool split_is_drawn_ = false;
};

}  // namespace tandem::image_folder
