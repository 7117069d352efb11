// The record of a run: its options, with everything that was resolved and chosen when it began. The
// run folder keeps it, so that the run can be resumed, tested and used for predictions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/data/dataset.h"
#include "core/data/fingerprint.h"
#include "core/device/machine.h"
#include "core/schedule/kernels/kernel_choices.h"
#include "include/tandem/train.h"

namespace tandem {

// The architecture of processors that this program is built for.
#if defined(__x86_64__)
inline constexpr const char* own_architecture = "x86-64";
#elif defined(__aarch64__)
inline constexpr const char* own_architecture = "aarch64";
#else
inline constexpr const char* own_architecture = "another architecture";
#endif

struct RunRecord {
  TrainOptions options;    // nothing in them is "" or 0 any more, except epochs
  MachineOptions machine;  // of options.machine, and what was found of the links
  std::string net_name;
  std::filesystem::path folder;  // where relative paths of data begin
  Shape data{1, 3, 0, 0};
  std::vector<std::string> class_names;
  std::string dataset;  // that read the training data; "": not known, or there are none
  int64_t training_samples = 0;
  // What a sample has: TANDEM_TASK_CLASSES, or for each of class_names a label or a value.
  int64_t task = 0;
  TargetScale target_scale;          // of values
  std::vector<float> class_weights;  // what each class counts in the loss; empty: all alike
  std::map<std::string, std::string>
      data_parameters;  // with everything resolved: means measured, net's transform
  // Of the splits (train, val), as the run last read them.
  std::map<std::string, Fingerprint> fingerprints;
  // Keys of strategy options that the user has given; the others in `options` were chosen.
  std::set<std::string> given_options;
  std::string strategy;      // what `auto` chose, which is then the options' strategy; else ""
  KernelChoices algorithms;  // what kernels measured
  std::set<std::string> layer_types;  // that the net is built of; empty: not known
  std::string first_weights;          // files that the run began with; "": random weights
  std::vector<std::string> head;      // the layers that learn alone at first; empty: all learn
  std::string architecture = own_architecture;  // of the processor that computed the last steps
};

// Whether `tandem import` made the run: it has weights, but no data and no steps.
[[nodiscard]] inline bool is_imported(const RunRecord& record) {
  return record.options.data.empty();
}

// The step before which only the head learns; 0 where all layers learn from the first step on.
// `micro_batches`: the solver's, of each step.
[[nodiscard]] int64_t unfreezing_step(const RunRecord& record, int64_t micro_batches);

// One of its data_parameters; "" if it has none of this name.
[[nodiscard]] std::string parameter(const RunRecord& record, const std::string& name);
// Of its data_parameters those that say how a picture becomes the net's input: mean, mean_image,
// scale, color, fit, resize, interpolation, resampling.
[[nodiscard]] std::map<std::string, std::string> preparation_of(const RunRecord& record);

[[nodiscard]] std::string to_json(const RunRecord& record);
[[nodiscard]] RunRecord run_record_from_json(const std::string& text, const std::string& file);

}  // namespace tandem
