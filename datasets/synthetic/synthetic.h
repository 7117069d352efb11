// Generated images: each class is a pattern of a few low frequencies, each sample that
// pattern with noise. A net can learn them, and generating one costs far less than training on it.
// Every value is a pure function of (split, index).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::synthetic {

class Synthetic : public sdk::DatasetType {
 public:
  Synthetic(const tandem_dataset_request& request, const sdk::Attributes& attributes);

  static const char* name() { return "synthetic"; }
  static const char* help() {
    return "generated images, one noisy pattern for each class; needs no files";
  }
  static std::vector<sdk::Parameter> parameters();

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] int64_t class_count() const override {
    return static_cast<int64_t>(class_names_.size());
  }
  [[nodiscard]] tandem_shape shape() const override { return shape_; }
  [[nodiscard]] const char* class_name(int64_t index) const override;
  [[nodiscard]] const char* sample_name(int64_t index) const override;
  [[nodiscard]] int64_t label(int64_t index) const override { return index % class_count(); }
  // Sample i is of class i mod class_count. The seed changes nothing: there is no augmentation.
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override;
  // Other inputs of the net: a single number is the class, as the label; anything larger is noise.
  void get_inputs(int64_t index, uint64_t seed, float* const* inputs) const override;

 private:
  void read_classes(const tandem_dataset_request& request, int64_t class_count);
  void make_noise(float amplitude);

  tandem_shape shape_{};
  std::vector<int64_t> input_sizes_;
  int64_t size_ = 0;
  uint32_t split_ = 0;
  float scale_ = 1;
  std::vector<std::string> class_names_;
  std::vector<float> noise_;
  mutable std::mutex names_mutex_;
  mutable std::map<int64_t, std::string> names_;  // those requested, which are few
};

}  // namespace tandem::synthetic
