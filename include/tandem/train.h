// Training: a new run, or one that is continued.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices.h"
#include "error.h"
#include "net.h"
#include "observer.h"
#include "strategies.h"

namespace tandem {

constexpr int64_t max_batch_images = 1'000'000'000;  // of all devices together

// The options of `tandem train` (docs/reference/commands.md). The run folder keeps them, so that a
// run can be resumed, tested and used for predictions.
struct TrainOptions {
  std::string data;      // a folder of images or another data set, or "synthetic"
  std::string net;       // a model's name or a prototxt file; "": the solver's, else resnet18
  std::string net_text;  // instead of `net`: a net as prototxt, of a NetWriter
  // The state in which the net of each phase is built; else the solver's train_state and first
  // test_state.
  std::optional<NetState> train_state, test_state;
  std::string solver;       // a prototxt file; "": the model's own, if it has one
  std::string solver_type;  // "": the solver's, else SGD
  std::map<std::string, std::string> solver_fields;  // replace those of the solver
  std::string devices;                               // "cpu:2", "cuda:0,1"; "": cpu
  // Processes of the job that trains, each with `devices` of its own; 0: as many as were started.
  int ranks = 0;
  std::string precision;  // float32, bfloat16, float16, tf32; "": float32, or the resumed run's
  std::optional<double> loss_scale;  // of float16; else the default, or the resumed run's
  std::string pixels;                // bytes, floats or auto; "": auto, or the resumed run's
  std::string strategy;              // "": the fastest by forecast, or the resumed run's; or auto
  StrategyOptions strategy_options;
  // What samples have, labels (each a class), multilabel (several labels) or regression (numbers);
  // "": as the data look. The loss of numbers: euclidean or huber; "": the net's, else huber.
  std::string task, loss;
  int64_t image_size = 0;        // height and width of the net's images; 0: the net's
  int64_t batch = 0;             // global; 0: the net's batch_size, else 64
  int64_t epochs = 0;            // 0: by steps
  int64_t steps = 0;             // 0: by epochs; both 0: max_iter of `solver`, else 30 epochs
  std::optional<double> rate;    // base learning rate; else the solver's
  std::optional<uint64_t> seed;  // else the solver's, else 1
  std::filesystem::path out;     // the run folder; "": runs/<net>-<number>
  bool resume = false;           // continue the run in `out`
  bool from_scratch = false;     // initial weights, not those of an ONNX file or of the cache
  bool adapt_classes = false;    // a net file with another class count: train an adapted copy
  int64_t test_interval = 0;     // steps between evaluations; 0: the solver's, else every epoch
  int64_t display = 0;   // steps between lines of the log and the metrics; 0: the solver's, else 20
  int64_t snapshot = 0;  // steps between extra checkpoints; 0: the solver's
  int decode_threads = 0;        // 0: by the number of cores
  int prefetch = 3;              // batches in memory, each read while others are used
  bool balance = false;          // draw every class equally often
  double mixup = 0, cutmix = 0;  // 0: neither
  std::string class_weights;     // balanced, numbers, or a file; "": all alike
  double label_smoothing = 0;    // share of a target that all classes have in equal parts
  int64_t patience = 0;  // evaluations without a better one after which the run ends; 0: any number
  // plain, photos, caffe or finetune; "": by the weights and the model (docs/reference/solvers.md)
  std::string recipe;
  std::string augment;  // none, light, photos or strong; "": by the recipe
  // Fine-tuning, with weight files of the solver. Layers whose names match a pattern ("conv*") keep
  // their weights; so do all BatchNorms. `head_rate`: factor of the learning rate of the head, the
  // layers that no weight file has, and the last one; else by the recipe.
  std::vector<std::string> freeze;
  bool freeze_batch_norm = false;
  std::optional<double> head_rate;
  // Epochs in which the head alone learns, before all layers do; 0: none. Else by the recipe.
  std::optional<double> unfreeze_after;
  // Each layer with a matrix of weights learns at this factor of the rate of the one after it.
  double layer_decay = 1;
  bool download = false;  // fetches the repository that the weights name, if it is not in the cache
  // Decay of a moving average of the weights, which is evaluated and kept as the best; 0: none.
  double average_decay = 0;
  double bad_share_limit = 0.05;  // share of damaged images that ends the run; 0: the first one
  std::map<std::string, std::string> data_parameters;  // of the data set: {"resize", "256"}
  DeviceOptions machine;
  // After which a step that has not finished, or a rank that another one waits for, counts as
  // stuck.
  double watchdog_seconds = 600;
  bool tune = false;  // kernels measure which of their algorithms is the fastest
  // Activations that little work makes are freed and computed again for the backward pass, if that
  // takes less memory: more time, the same bits. Without a value: as the resumed run does; a new
  // one does not.
  std::optional<bool> recompute;
  GraphUse graphs = GraphUse::automatic;
  // Passes of plugins that are not Tandem's own run on copies of their memory, between guards, and
  // end the run where they break a promise. On devices whose memory the host reaches.
  bool check_plugins = false;
  // Layers and data sets of plugins that are not Tandem's own are tried, for 2 s at most each,
  // before the first step.
  bool try_plugins = true;
  std::vector<std::string> plugin_check_without;  // not by these promises: "phases"
  bool timeline = true;  // write the timeline of a few early steps to the run folder
  const std::atomic<bool>* stop = nullptr;  // becomes true: save, and return
  // The options of the command line by name, as "--batch" to "64". They, but for those of which
  // each rank may have its own, and the files that they name must be the same on all ranks. A
  // resumed run takes the default of a field ("--mixup" to "0") as given if its option is here. A
  // program without a command line leaves it empty.
  std::map<std::string, std::string> given;
};

struct TrainResult {
  std::filesystem::path run;  // the run folder
  int rank = 0;               // of this process; others than 0 know only the steps
  int64_t steps = 0;          // done in all
  int64_t steps_before = 0;   // of them those before this call, of a run that was resumed
  bool stopped = false;       // by options.stop, before the end
  double loss = 0;            // of the last step
  Evaluation last, best;
  double seconds = 0;
  double images_per_second = 0;
};

// What train() throws where a run that is to be resumed has done all its steps.
class CompleteRun : public Error {
 public:
  using Error::Error;
};

// Trains and writes a run folder. Throws Error for options that contradict each other, the net or
// the data, and for a loss that is not finite, with the step and the first layer.
TrainResult train(const TrainOptions& options, Observer& observer);

struct FoldsResult {
  std::filesystem::path folder;  // with a run folder for each fold, fold-1, ...
  bool stopped = false;          // by options.stop, before the last fold's end
  std::string text;              // the best figures of the folds, their means and deviations
  std::filesystem::path page;    // kfold.html; kfold.csv beside it has the figures
};

// Cross-validation: trains `folds` runs, each of which holds out another part of the images. Folds
// that are complete are not trained again by a resumed one. Throws Error as train(), and for data
// with a validation split of their own.
FoldsResult train_folds(const TrainOptions& options, int64_t folds, Observer& observer);

// What --find-lr tried: a short run whose learning rate rises with every step, and trial trainings
// at rates below that at which its loss rose far.
struct RateCurve {
  struct Point {
    double rate = 0, loss = 0, smoothed = 0;
  };
  struct Trial {
    double rate = 0;
    int64_t steps = 0;
    double loss = 0;      // infinite: it diverged
    double score = 0;     // of the validation images, as an Evaluation's; 0 where the run has none
    int64_t samples = 0;  // of which it is
    bool learns = false;
  };
  std::vector<Point> points;
  bool diverged = false;      // the loss of the points rose far, or was not finite
  std::vector<Trial> trials;  // in the order in which they ran
  bool is_validated = false;  // a trial's loss is that of the validation images after its last
                              // step; else the mean of its last third
  bool is_scored = false;     // trials have scores
  double suggestion = 0;      // the rate of the best of the longest trials
  std::filesystem::path table, picture;  // all this as CSV and as SVG
};

// Tries learning rates on the run that the options describe, and leaves its weights and folder
// alone: rates that rise from 1e-6 to 10 show the highest one to try; then trials with the run's
// own recipe, fitted to their length, begin at rates about 3 times apart, and the best go on
// longer. Says before how many steps that takes at most. Writes find_lr.csv and find_lr.svg to
// options.out, or to the working folder. The same seed gives the same suggestion. Throws Error as
// train(), for a run that is to be resumed or has several ranks, and where the best trial learns
// nothing.
RateCurve find_rate(const TrainOptions& options, Observer& observer);

// The search for good options: learning rate, augmentation, image size and model.
struct SearchOptions {
  // Of each trial. What they give (rate, augment, image_size) is not drawn; `epochs` or `steps` are
  // those of the last round; `out` is the folder of the search; `resume` goes on with it.
  TrainOptions base;
  int64_t trials = 12;
  double seconds = std::numeric_limits<double>::infinity();  // for all runs together
  std::vector<std::string> models;                           // to draw from; none: base.net
};

struct SearchResult {
  std::filesystem::path folder, page;  // page: search.html; "" where no run was complete
  std::filesystem::path best;          // its run folder
  std::string text;                    // the runs, and which is the best
  std::string command;                 // that trains as the best run was trained, without --out
  bool stopped = false;                // by base.stop, or by the time: resume goes on
};

// Draws trials (the first has the usual options), trains all for a ninth of the epochs, the best
// third for a third, and the best third of these for all; of up to three trials in two rounds, of
// one in one. Each run begins anew, with rates of its own length. Only the best run's weights stay.
// The same seed draws the same trials. Throws Error as train() for the first trial; others may
// fail.
SearchResult search(const SearchOptions& options, Observer& observer);

}  // namespace tandem
