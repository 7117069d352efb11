// Uncompressed pictures of one size, one after another in files: the base of the data sets
// cifar10_binary and mnist_idx. Every sample is read on request; a file that became shorter or
// cannot be read any more costs its samples, not the run. Thread-safe and pure.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "datasets/picture/byte_form.h"
#include "datasets/picture/classes.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/transform.h"
#include "plugins/sdk.h"

namespace tandem::picture {

struct RawForm {
  const char* format = "";  // for an audit
  int channels = 0, height = 0, width = 0;
  bool rgb_planes = false;  // planes of R, G, B; else one of gray
};

class RawPictures : public sdk::DatasetType {
 public:
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  [[nodiscard]] int64_t class_count() const override {
    return static_cast<int64_t>(class_names_.size());
  }
  [[nodiscard]] tandem_shape shape() const override {
    return {1, transform_.channels, transform_.height, transform_.width};
  }
  [[nodiscard]] const char* class_name(int64_t index) const override;
  [[nodiscard]] const char* sample_name(
      int64_t index) const override;  // "data_batch_1.bin, picture 17"
  [[nodiscard]] const char* notes() const override { return notes_.c_str(); }
  [[nodiscard]] int64_t label(int64_t index) const override;
  [[nodiscard]] bool split_is_drawn() const override { return split_is_drawn_; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override;
  void get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const override;
  void describe_bytes(tandem_dataset_info& info) const override {
    picture::describe_bytes(transform_, info);
  }
  void describe(int64_t index, tandem_sample_info& info) const override;

 protected:
  struct Sample {
    size_t file = 0;
    int64_t number = 0;  // in its file
    int64_t offset = 0;  // of its pixels
    int64_t label = 0;   // as in the file
  };

  // Sets the class names, maps the samples' labels to those of the model and, with `drawn`, keeps
  // the randomly drawn part of the samples that is the request's split.
  void begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
             const RawForm& form, std::vector<std::string> class_names, bool drawn);
  // Whether the split is drawn from a file that was named itself. All of a test file, by its name,
  // is its test split; this is noted, and so is training on it.
  [[nodiscard]] bool is_drawn_from(const std::string& file, const std::string& split);
  [[nodiscard]] static std::vector<sdk::Parameter> parameters_of(const char* block);

  std::vector<DataFile> files_;
  std::vector<Sample> samples_;

 private:
  void require_two_classes() const;
  void adopt_classes(const char* model_classes);
  void take_part(const tandem_dataset_request& request, const HeldOut& share);
  void note_part(const tandem_dataset_request& request, double fraction);
  void read_pixels(const Sample& sample, std::vector<unsigned char>& pixels) const;

  RawForm form_;
  TransformOptions transform_;
  std::vector<std::string> class_names_;
  std::string notes_;
  bool split_is_drawn_ = false;
  mutable std::mutex names_mutex_;
  mutable std::map<int64_t, std::string> names_;  // those requested, which are few
};

}  // namespace tandem::picture
