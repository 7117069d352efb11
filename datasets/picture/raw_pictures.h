// Pictures that lie in files one after another, all of one size and undamaged by nature: what the
// data sets cifar10_binary and mnist_idx share. A sample is read when it is asked for; a file that
// became shorter or cannot be read any more costs its samples, not the run. Thread-safe and pure.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "datasets/picture/byte_form.h"
#include "datasets/picture/transform.h"
#include "plugins/sdk.h"

namespace tandem::picture {

// A file kept open; closed with the object. Throws a Refusal (TANDEM_INVALID) that names it.
class DataFile {
 public:
  explicit DataFile(const std::string& path);
  ~DataFile();
  DataFile(DataFile&& other) noexcept;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size() const { return size_; }  // when it was opened
  // False if it does not hold so much there.
  [[nodiscard]] bool read(int64_t offset, unsigned char* target, size_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

struct RawForm {
  const char* format = "";  // for an audit
  int channels = 0, height = 0, width = 0;
  bool rgb_planes = false;  // planes of R, G, B; else one of gray
};

class RawPictures {
 public:
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(samples_.size()); }
  [[nodiscard]] int64_t class_count() const { return static_cast<int64_t>(class_names_.size()); }
  [[nodiscard]] tandem_shape shape() const {
    return {1, transform_.channels, transform_.height, transform_.width};
  }
  [[nodiscard]] const char* class_name(int64_t index) const;
  [[nodiscard]] const char* sample_name(int64_t index) const;  // "data_batch_1.bin, picture 17"
  [[nodiscard]] const char* notes() const { return notes_.c_str(); }
  [[nodiscard]] int64_t label(int64_t index) const;
  [[nodiscard]] bool split_is_drawn() const { return split_is_drawn_; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const;
  void get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const;
  void describe_bytes(tandem_dataset_info& info) const {
    picture::describe_bytes(transform_, info);
  }
  void describe(int64_t index, tandem_sample_info& info) const;

 protected:
  struct Sample {
    size_t file = 0;
    int64_t number = 0;  // in its file
    int64_t offset = 0;  // of its pixels
    int64_t label = 0;   // as in the file
  };

  // Names the classes, maps the samples' labels to the model's, and takes the part of them that
  // belongs to the request's split where the files do not say (`drawn`).
  void begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
             const RawForm& form, std::vector<std::string> class_names, bool drawn);
  [[nodiscard]] static std::vector<sdk::Parameter> parameters_of(const char* block);

  std::vector<DataFile> files_;
  std::vector<Sample> samples_;

 private:
  void require_two_classes() const;
  void adopt_classes(const char* model_classes);
  void take_part(const tandem_dataset_request& request, double fraction);
  void read_pixels(const Sample& sample, std::vector<unsigned char>& pixels) const;

  RawForm form_;
  TransformOptions transform_;
  std::vector<std::string> class_names_;
  std::string notes_;
  bool split_is_drawn_ = false;
  mutable std::mutex names_mutex_;
  mutable std::map<int64_t, std::string> names_;  // those asked for, which are few
};

}  // namespace tandem::picture
