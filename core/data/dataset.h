// An opened data set of a plugin: thread-safe and pure, get(index, seed) -> sample.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/data/pixels.h"
#include "core/data/remarks.h"
#include "core/plugin/attributes.h"
#include "plugins/abi.h"

namespace tandem {

class Registry;

// An input of a net besides the image and the label.
struct MoreInput {
  std::string name;  // of the tensor
  Shape shape;       // of one sample; zeros: as the images
  // Generates the values (constant, uniform, gaussian). Without one they are the data set's own.
  std::optional<Filler> filler;
};

struct DatasetOptions {
  // --data: a folder, a file that a data set recognizes, or the name of a data set ("synthetic").
  std::string source;
  // train, val or test; or predict: `source` lists files and folders, one on each line, and every
  // label is 0.
  std::string split = "train";
  int32_t phase = TANDEM_TRAIN;
  uint64_t seed = 1;                              // of a stratified split
  Shape shape{1, 3, 0, 0};                        // that the net expects
  std::vector<std::string> class_names;           // of the model; empty: the data set decides
  std::map<std::string, std::string> parameters;  // declared parameters, as text: {"mirror", "1"}
  std::vector<MoreInput> more;
  bool guarded = false;  // samples of a third party's data set are read between guards
};

// How numbers to learn are scaled: the net learns (value - mean) / deviation, of each of them.
struct TargetScale {
  std::vector<double> means, deviations;  // empty: as they are
};

enum class SampleStatus { good, skipped };

// A sample as it is stored, before get() decodes and transforms it.
struct StoredSample {
  std::string format;  // "JPEG"
  int channels = 0;    // 0: not known
  int64_t width = 0, height = 0;
  int64_t bytes = 0;
  uint64_t content = 0;              // a hash: equal for equal bytes
  std::vector<std::string> remarks;  // "alpha is dropped"; in the same words for every sample
};

class Dataset {
 public:
  // Opens the data set of that name ("synthetic"), or the one that recognizes the file or folder,
  // or image_folder. Error for an unknown source, for one that two data sets recognize, for an
  // undeclared parameter (with near names), and for everything that the plugin refuses.
  Dataset(Registry& registry, const DatasetOptions& options);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  // The same samples with a value for each pixel that is as `parameters` show it: without a mean
  // image, which they do not have. Null: they are so already.
  [[nodiscard]] std::unique_ptr<Dataset> to_be_shown(Registry& registry) const;

  [[nodiscard]] int64_t size() const { return info_.size; }
  [[nodiscard]] int64_t class_count() const { return info_.class_count; }
  // TANDEM_TASK_CLASSES, or what each sample has for each "class": labels, values.
  [[nodiscard]] int64_t task() const { return info_.task; }
  // Of another task than classes: class_count() values of a sample, and as the net learns them.
  void values(int64_t index, float* values) const;
  void targets(int64_t index, float* targets) const;
  void set_target_scale(TargetScale scale) { target_scale_ = std::move(scale); }
  [[nodiscard]] const TargetScale& target_scale() const { return target_scale_; }
  [[nodiscard]] Shape shape() const { return info_.shape; }
  // The texts of a data set: Error naming it and the function if that gives NULL.
  [[nodiscard]] std::vector<std::string> class_names() const;
  [[nodiscard]] std::string sample_name(int64_t index) const;
  [[nodiscard]] std::string notes() const;
  // Parameters that the data set chose by its samples, which a run keeps: notes that begin with
  // "name=value: ".
  [[nodiscard]] std::map<std::string, std::string> chosen_parameters() const;
  [[nodiscard]] std::string type_name() const { return type_->name; }  // "image_folder"
  // True if the seed decided which samples this split holds.
  [[nodiscard]] bool split_is_drawn() const { return info_.split_is_drawn != 0; }
  // The class of a sample without reading its pixels; nullopt: the data set cannot tell.
  [[nodiscard]] std::optional<int64_t> label(int64_t index) const;
  [[nodiscard]] void* handle() const { return handle_; }  // the plugin's
  // nullopt: the data set cannot tell, or (with a reason) the sample is damaged.
  [[nodiscard]] std::optional<StoredSample> describe(int64_t index, std::string* reason) const;
  // Writes shape().c*h*w floats (C,H,W) and the class. A damaged sample is `skipped` with its
  // reason; its pixels are zeros and its label is -1. Throws Error for any other failure.
  SampleStatus get(int64_t index, uint64_t seed, float* pixels, float* label,
                   std::string* reason) const;
  // What the data set said (explain()) of samples that it gave.
  [[nodiscard]] std::vector<Remark> remarks() const { return remarks_.list(); }
  // Samples that were read between guards so far; -1: they are not.
  [[nodiscard]] int64_t guarded_samples() const { return guards_ ? guards_->samples.load() : -1; }
  // Whether get_bytes() works; and if not, the reason as the end of a message.
  [[nodiscard]] bool has_bytes() const { return info_.has_bytes != 0; }
  [[nodiscard]] std::string why_no_bytes() const;
  // Converts the bytes of get_bytes() to the floats of get(), except for the rounding.
  [[nodiscard]] PixelScale pixel_scale() const;
  // As get(), with pixels as bytes. Those of a damaged sample become nearly zero as floats.
  SampleStatus get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label,
                         std::string* reason) const;
  // The other inputs, in the order of the options.
  [[nodiscard]] std::vector<Shape> more_shapes() const;
  void get_more(int64_t index, uint64_t seed, const std::vector<float*>& inputs) const;

 private:
  void prepare_more(const DatasetOptions& options);
  void require_index(int64_t index) const;
  // What the data set's function `read` gives, named as "get". With guards it writes to memory
  // between them first: Error if it writes beyond that, or leaves some of it.
  using Read = std::function<tandem_status(void* values, float* label)>;
  tandem_status reads(const char* name, int64_t index, void* values, int64_t bytes, float* label,
                      const Read& read) const;
  // From the status of the data set's get() or get_bytes(); also checks the label.
  SampleStatus status_of(tandem_status status, int64_t index, float* label,
                         std::string* reason) const;

  DatasetOptions options_;
  const tandem_dataset_type* type_ = nullptr;
  Attributes attributes_;
  void* handle_ = nullptr;
  tandem_dataset_info info_{};
  std::string no_bytes_;  // the plugin's reason
  std::vector<MoreInput> more_;
  TargetScale target_scale_;
  mutable Remarks remarks_;
  std::string owner_;  // "data set 'records' (path of its module)"
  struct Guards {
    std::atomic<int64_t> samples = 0;
  };
  std::unique_ptr<Guards> guards_;
};

}  // namespace tandem
