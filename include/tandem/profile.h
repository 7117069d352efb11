// Measuring the steps of a strategy on synthetic data, on real, paced or simulated devices: the
// time of every stage, timelines, and costs for later predictions.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "devices.h"
#include "strategies.h"

namespace tandem {

struct ProfileOptions {
  std::string net = "alexnet";    // a model's name or a prototxt file
  std::string net_text;           // instead of `net`: a net as prototxt, of a NetWriter
  int64_t classes = 0, size = 0;  // of the samples; 0: as the net has them
  int64_t batch = 0;              // global; 0: the net's batch_size, else 64
  std::string devices = "cpu";
  std::string precision = "float32";
  DeviceOptions machine;
  std::string paced;  // a cost file: compute takes its times and is not done; "": it is done
  int warm_up = 2, steps = 5;
};

// The tasks of one stage of one step on one device.
struct StageSpan {
  int64_t step = 0;
  std::string stage;  // "forward", "send_conv_gradients", ...
  int device = 0;
  double start = 0, end = 0;  // of its first and last task, seconds on a clock of all steps
};

// The parts of a step with a split into convolutional and fully connected layers
// (docs/guide/pipeline.md), seconds; each is the longest of all devices.
struct StepParts {
  double forward = 0;         // a
  double backward_fc = 0;     // b
  double backward_conv = 0;   // c
  double fc_gradients = 0;    // m: moved and applied
  double conv_gradients = 0;  // n: moved and applied
  double broadcast = 0;
  // two_phase: a + b + max(c, m) + n; sequential: a + b + c + m + n; both + the broadcast unless it
  // is hidden.
  [[nodiscard]] double two_phase(bool hidden_broadcast) const;
  [[nodiscard]] double sequential() const;
};

// The measurements of one strategy.
class Profile {
 public:
  std::string strategy;
  std::string split;               // first layer of the FC part; "": there is none
  std::vector<std::string> notes;  // what the strategy decided
  std::string memory;              // of each device, for people
  std::string message_path;        // between the devices of several ranks, for people; "": plain

  double step_seconds = 0;  // median
  double fastest = 0, slowest = 0;
  double images_per_second = 0;
  double bound_seconds = 0;       // of the busiest device or link: no order of the tasks is faster
  StepParts parts;                // of the step with the median time
  std::string stage_table;        // of that step, for people
  std::vector<StageSpan> stages;  // of all measured steps, in order of steps

  // Throw Error if the file cannot be written.
  void write_timeline(const std::filesystem::path& file) const;  // Chrome trace JSON
  void write_picture(const std::filesystem::path& file) const;   // the timeline as SVG
  void write_costs(const std::filesystem::path& file) const;     // for ProfileOptions::paced

 private:
  friend class Profiler;
  struct Details;
  std::shared_ptr<const Details> details_;
};

// Measures strategies on the same work. Without a cost file, the times of the first strategy are
// the costs from which later ones choose their options. In a job of several ranks (mpirun) the
// devices are those of each, and all ranks make the same calls; what they return is about all ranks
// on rank 0, where alone a Profile writes its files. A process has one such Profiler.
class Profiler {
 public:
  // Throws Error for a net, devices or a cost file that cannot be used.
  explicit Profiler(const ProfileOptions& options);
  ~Profiler();

  [[nodiscard]] int rank() const;  // of this process; 0: the only one, or the first
  [[nodiscard]] int rank_count() const;
  [[nodiscard]] int device_count() const;  // of all ranks
  // `note` gets a line on how far the measuring is where that takes long. Once `stop` is set,
  // measure() ends with the steps that it has; Error if there is none. For one process.
  void watch(std::function<void(const std::string&)> note, const std::atomic<bool>* stop);
  // Throws Error for a strategy or an option that cannot be used here. Measures nothing.
  void require(const std::string& strategy, const StrategyOptions& strategy_options) const;
  // Options that the strategy does not take are ignored.
  [[nodiscard]] Profile measure(const std::string& strategy,
                                const StrategyOptions& strategy_options = {});
  // Seconds of the same step with copies between devices left out; the difference is exposed
  // communication.
  [[nodiscard]] double seconds_without_communication(const Profile& profile) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Peak resident memory of this process, bytes.
[[nodiscard]] int64_t peak_memory_bytes();

}  // namespace tandem
