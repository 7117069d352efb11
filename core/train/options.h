// Everything a training run is told, as plain data: what `tandem train` reads from its command line
// and a C++ program fills in. It is stored in the run folder, so that a run can be resumed, tested
// and used for predictions.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/device/machine.h"
#include "core/model/definition.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/kernel_choices.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

struct TrainOptions {
  std::string data;  // a folder of images, or "synthetic"
  std::string net;   // a model's name or a prototxt file; "": the solver's, else alexnet
  std::optional<NetDefinition> net_definition;  // instead of `net`: a net built in C++
  // In which state each phase's net is built (its layers' include and exclude rules); else as the
  // solver says: train_state, and the first test_state.
  std::optional<NetState> train_state, test_state;
  std::string solver;       // a prototxt file; "": the model's own, if it has one
  std::string solver_type;  // "": the solver's, else SGD
  std::map<std::string, std::string> solver_fields;  // of the solver, replacing its file's
  std::string devices;                               // "": cpu
  std::string precision;  // a word of parse_precision(); "": float32, or the resumed run's
  std::optional<double> loss_scale;  // of float16; else the default, or the resumed run's
  std::string pixels;                // bytes, floats, or auto: "", or the resumed run's
  std::string strategy;              // "": two_phase
  // Of a run that is resumed, those that are here replace the run's, be their values the defaults.
  StrategyOptions strategy_options;
  const Strategies* strategies = &built_in_strategies();  // to choose from
  int64_t batch = 0;             // global; 0: the net's batch_size, else 64
  int64_t epochs = 0;            // 0: by steps
  int64_t steps = 0;             // 0: by epochs; both 0: the solver's max_iter, else 10 epochs
  std::optional<double> rate;    // base learning rate; else the solver's
  std::optional<uint64_t> seed;  // else the solver's, else 1
  std::filesystem::path out;     // the run folder; "": runs/<net>-<number>
  bool resume = false;           // go on with the run in `out`
  bool adapt_classes = false;    // a user's net with another class count: train an adapted copy
  int64_t test_interval = 0;     // steps between evaluations; 0: the solver's, else every epoch
  int64_t display = 0;   // steps between lines of the log and the metrics; 0: the solver's, else 20
  int64_t snapshot = 0;  // steps between extra checkpoints; 0: the solver's
  int decode_threads = 0;
  bool balance = false;           // every class as often as the others: LoaderOptions::balanced
  double mixup = 0, cutmix = 0;   // TargetOptions; 0: neither
  std::string class_weights;      // as read_class_weights() reads it; "": all alike
  double bad_share_limit = 0.05;  // of damaged images; 0: the first one ends the run, also one of
                                  // the validation images
  std::map<std::string, std::string> data_parameters;  // of the data set: {"resize", "256"}
  MachineOptions machine;
  double watchdog_seconds = 600;
  // Kernels may measure which of their algorithms is the fastest; the run keeps what they chose.
  bool tune = false;
  GraphUse graphs = GraphUse::automatic;  // whether steps run as captured graphs: the same bits
  bool timeline = true;  // write the timeline of a few early steps to the run folder
  const std::atomic<bool>* stop = nullptr;  // becomes true: save, and return
};

// What a run recorded when it began; enough to go on, test and predict.
struct RunRecord {
  TrainOptions options;
  std::string net_name;
  Shape data{1, 3, 0, 0};
  std::vector<std::string> class_names;
  int64_t training_samples = 0;
  std::vector<float> class_weights;  // what each class counts in the loss; empty: all alike
  std::map<std::string, std::string>
      data_parameters;       // with everything resolved: means measured, net's transform
  // Keys of strategy options that the user has given; the others in `options` were chosen.
  std::set<std::string> given_options;
  std::string strategy;      // what `auto` chose, which is then the options' strategy; else ""
  KernelChoices algorithms;  // what kernels measured
};

[[nodiscard]] std::string to_json(const RunRecord& record);
[[nodiscard]] RunRecord run_record_from_json(const std::string& text, const std::string& file);

}  // namespace tandem
