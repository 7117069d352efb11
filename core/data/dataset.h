// A data set of a plugin, opened: thread-safe and pure, get(index, seed) -> sample. And the order
// of its samples as a function of (seed, epoch), so that a run can be resumed and split over
// devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/attributes.h"
#include "core/base/shape.h"
#include "core/data/pixels.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

// What a net is fed with beside an image and its label.
struct MoreInput {
  std::string name;              // of the tensor
  Shape shape;                   // of one sample; zeros: as the images
  std::optional<Filler> filler;  // made up from it (constant, uniform, gaussian); else the data
                                 // set's own
};

struct DatasetOptions {
  std::string source;           // --data: a folder, a file that a data set recognizes, or the name
                                // of a data set ("synthetic")
  std::string split = "train";  // train, val, test; predict: `source` lists files and folders, one
                                // a line, and every label is 0
  int32_t phase = TANDEM_TRAIN;
  uint64_t seed = 1;                              // of a stratified split
  Shape shape{1, 3, 0, 0};                        // what the net expects
  std::vector<std::string> class_names;           // of the model; empty: the data set decides
  std::map<std::string, std::string> parameters;  // declared parameters, as text: {"mirror", "1"}
  std::vector<MoreInput> more;
};

enum class SampleStatus { good, skipped };

// What is stored of one sample, as opposed to what get() makes of it.
struct StoredSample {
  std::string format;  // "JPEG"
  int channels = 0;    // 0: not known
  int64_t width = 0, height = 0;
  int64_t bytes = 0;
  uint64_t content = 0;  // a hash: equal for equal bytes
};

class Dataset {
 public:
  // "synthetic" or another data set's name opens that one; a file or folder the one that
  // recognizes it, else image_folder. Errors: an unknown source, one that two data sets would read,
  // an undeclared parameter (near names), whatever the plugin refuses.
  Dataset(Registry& registry, const DatasetOptions& options);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  [[nodiscard]] int64_t size() const { return info_.size; }
  [[nodiscard]] int64_t class_count() const { return info_.class_count; }
  [[nodiscard]] Shape shape() const { return info_.shape; }
  [[nodiscard]] std::vector<std::string> class_names() const;
  [[nodiscard]] std::string sample_name(int64_t index) const;
  [[nodiscard]] std::string notes() const;
  [[nodiscard]] std::string type_name() const;  // "image_folder"
  // True if the seed decided which samples this split holds.
  [[nodiscard]] bool split_is_drawn() const { return info_.split_is_drawn != 0; }
  // The class of a sample without reading its pixels; none: the data set cannot tell.
  [[nodiscard]] std::optional<int64_t> label(int64_t index) const;
  [[nodiscard]] void* handle() const { return handle_; }  // the plugin's
  // None: the data set cannot tell, or (with a reason) the sample is damaged.
  [[nodiscard]] std::optional<StoredSample> describe(int64_t index, std::string* reason) const;
  // Writes shape().c*h*w floats (C,H,W) and the class. A damaged sample: `skipped`, with its
  // reason; pixels are then zeros and the label is -1. Throws Error for anything worse.
  SampleStatus get(int64_t index, uint64_t seed, float* pixels, float* label,
                   std::string* reason) const;
  // Whether get_bytes() works; else why not, as the end of a message.
  [[nodiscard]] bool has_bytes() const;
  [[nodiscard]] std::string why_no_bytes() const;
  // What makes of get_bytes() what get() gives, but for the rounding.
  [[nodiscard]] PixelScale pixel_scale() const;
  // As get(), with pixels as bytes; those of a damaged sample come next to zeros.
  SampleStatus get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label,
                         std::string* reason) const;
  // The further inputs, in the order of the options.
  [[nodiscard]] std::vector<Shape> more_shapes() const;
  void get_more(int64_t index, uint64_t seed, const std::vector<float*>& inputs) const;

 private:
  void prepare_more(const DatasetOptions& options);
  void require_index(int64_t index) const;
  // What a data set's get() or get_bytes() said, its label checked.
  SampleStatus status_of(tandem_status status, int64_t index, float* label,
                         std::string* reason) const;

  const tandem_dataset_type* type_ = nullptr;
  Attributes attributes_;
  void* handle_ = nullptr;
  tandem_dataset_info info_{};
  std::string no_bytes_;  // the plugin's reason
  std::vector<MoreInput> more_;
};

// The endless sequence of training samples: position p is sample order(p / size)[p % size] of epoch
// p / size. Thread-safe. Without shuffling the order of every epoch is 0, 1, 2, ... With `labels`
// of all samples (balanced) an epoch is as long, but every class has the same number of places in
// it, within one: its samples are dealt out in random order, again and again where it has fewer.
class SampleOrder {
 public:
  SampleOrder(int64_t size, uint64_t seed, bool shuffle, std::vector<int64_t> labels = {});
  ~SampleOrder();
  [[nodiscard]] int64_t index(int64_t position) const;
  [[nodiscard]] int64_t epoch(int64_t position) const { return position / size_; }
  // The seed of that position's augmentation: a function of (seed, epoch, sample); of (seed,
  // position) where a sample may come twice in an epoch.
  [[nodiscard]] uint64_t sample_seed(int64_t position) const;

 private:
  struct Cache;
  int64_t size_;
  uint64_t seed_;
  bool shuffle_;
  std::vector<std::vector<int64_t>> by_class_;  // balanced: the samples of each class that has any
  std::unique_ptr<Cache> cache_;

  [[nodiscard]] std::vector<int64_t> balanced_epoch(int64_t number) const;
};

// The class of every sample. Error if the data set cannot tell without reading pixels.
[[nodiscard]] std::vector<int64_t> class_labels(const Dataset& dataset);

}  // namespace tandem
