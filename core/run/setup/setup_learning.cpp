// Looks for what would keep the run from learning before its first step: at the net, the first
// weights, the rate, and the data.
#include "core/run/setup/setup.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "core/base/error.h"
#include "core/data/dataset_statistics.h"
#include "core/device/parse.h"
#include "core/model/adapted/classes.h"
#include "core/model/net/learning.h"
#include "core/model/passes/build_net.h"

namespace tandem {
namespace {

void check_rate(TrainSetup& setup) {
  const SolverDefinition& solver = setup.solver;
  if (solver.base_rate == 0 && solver.warm_up_rate == 0) {
    setup.note("the learning rate is 0 (--lr, base_lr): no weight will change");
  }
  if (solver.base_rate * solver.weight_decay >= 1) {
    setup.note(
        "weight_decay {:g} times the learning rate {:g} is {:g}: from 1 on each step takes more of "
        "a weight away than there is of it",
        solver.weight_decay, solver.base_rate, solver.base_rate * solver.weight_decay);
  }
  if (solver.warm_up_steps > solver.max_steps) {
    setup.note("warmup_iter {}: the run ends after {} steps, before the rate is base_lr",
               solver.warm_up_steps, solver.max_steps);
  }
  const TrainOptions& chosen = setup.record.options;
  if (chosen.label_smoothing > 0.5) {
    setup.note(
        "--label-smoothing {:g}: most of each target is spread over all classes; 0.1 is "
        "usual",
        chosen.label_smoothing);
  }
  const int64_t images = chosen.batch * solver.micro_batches_per_step;
  if (images > setup.record.training_samples) {
    setup.note("a step reads {} images, and there are {} to train on: it repeats some (--batch)",
               images, setup.record.training_samples);
  }
}

// Several labels or numbers: those that are the same of all images.
void check_values(TrainSetup& setup) {
  const Dataset& training = *setup.training_data;
  if (training.task() == TANDEM_TASK_CLASSES) return;
  std::vector<float> first(size_t(training.class_count())), values(first.size());
  std::vector<bool> differs(first.size(), false);
  training.values(0, first.data());
  for (int64_t i = 1; i < training.size(); ++i) {
    training.values(i, values.data());
    for (size_t k = 0; k < values.size(); ++k) differs[k] = differs[k] || values[k] != first[k];
  }
  std::vector<std::string> equal;
  for (size_t k = 0; k < differs.size(); ++k) {
    if (!differs[k]) equal.push_back(fmt::format("{} {:g}", setup.record.class_names[k], first[k]));
  }
  if (equal.empty()) return;
  const std::string what = fmt::format("data '{}': all {} training images have the same {} ({})",
                                       setup.record.options.data, training.size(),
                                       task_text(training.task()), fmt::join(equal, ", "));
  if (equal.size() == differs.size()) {
    throw error("{}: there is nothing to tell apart; give images with different ones", what);
  }
  setup.note("{}: nothing about these can be learned", what);
}

// Which classes the training images are of; empty: the data set cannot tell.
std::vector<int64_t> counts_of_classes(const Dataset& training) {
  if (training.task() != TANDEM_TASK_CLASSES) return {};
  std::vector<int64_t> counts(size_t(training.class_count()));
  for (int64_t i = 0; i < training.size(); ++i) {
    const std::optional<int64_t> label = training.label(i);
    if (!label || *label < 0 || *label >= training.class_count()) return {};
    ++counts[size_t(*label)];
  }
  return counts;
}

void check_labels(const std::vector<int64_t>& counts, const TrainSetup& setup) {
  const auto used =
      std::find_if(counts.begin(), counts.end(), [](auto count) { return count > 0; });
  if (used == counts.end() || *used != setup.training_data->size()) return;
  throw error(
      "data '{}': all {} training images are of class '{}', so that there is nothing to tell "
      "apart; give images of at least two classes",
      setup.record.options.data, *used, setup.record.class_names.at(size_t(used - counts.begin())));
}

void check_class_weights(const std::vector<int64_t>& counts, TrainSetup& setup) {
  const std::vector<float>& weights = setup.record.class_weights;
  std::vector<std::string> ignored;
  int counted = 0;
  for (size_t c = 0; c < std::min(counts.size(), weights.size()); ++c) {
    counted += counts[c] > 0 && weights[c] != 0 ? 1 : 0;
    if (counts[c] > 0 && weights[c] == 0) ignored.push_back(setup.record.class_names[c]);
  }
  if (ignored.empty()) return;
  if (counted < 2) {
    throw error(
        "--class-weights {}: the weight of {} that has training images is 0, so that {}",
        setup.record.options.class_weights, counted == 0 ? "every class" : "every class but one",
        counted == 0 ? "nothing is learned" : "that one would be the answer for every image");
  }
  setup.note("class weight 0 (--class-weights): nothing is learned from the images of {}",
             fmt::join(ignored, ", "));
}

// Evenly spaced samples, up to the first that differs. Copies of one picture may be meant, as for
// trying what a net makes of it; pictures without any detail are not.
void check_pixels(TrainSetup& setup) {
  constexpr int64_t max_read = 64;
  const Dataset& data = *setup.training_data;
  const int64_t count = std::min(max_read, data.size());
  std::vector<float> first, pixels(size_t(element_count(data.shape())));
  uint64_t first_content = 0;
  bool are_copies = false;  // of one file, whose random crops differ
  int64_t equal = 0;
  for (int64_t i = 0; i < count; ++i) {
    float label = 0;
    std::string reason;
    const int64_t index = i * data.size() / count;
    if (data.get(index, 1, pixels.data(), &label, &reason) == SampleStatus::skipped) continue;
    const auto stored = data.describe(index, &reason);
    const uint64_t content = stored ? stored->content : 0;
    if (first.empty()) {
      first = pixels;
      first_content = content;
    }
    if (pixels != first) {
      if (content == 0 || content != first_content) return;
      are_copies = true;
    }
    ++equal;
  }
  if (equal < 2) return;
  const bool is_flat = !are_copies && std::all_of(first.begin(), first.end(), [&](float value) {
    return value == first.front();
  });
  const std::string same = fmt::format(
      "data '{}': {} training images, from all of them, were looked at, and {}",
      setup.record.options.data, equal,
      are_copies ? "all are copies of one" : "the net would get the same pixels of each");
  constexpr const char* what = "there is nothing to tell apart; look at --preview of 'tandem data'";
  if (is_flat) {
    throw error("{}, all {:g} (is the scale 0, or are the pictures empty?): {}", same, first[0],
                what);
  }
  setup.note("{}: {}", same, what);
}

// A class that a loss leaves out, as Caffe's nets leave out pixels without a class.
void check_ignored_classes(const Net& net, TrainSetup& setup) {
  const std::vector<std::string>& classes = setup.record.class_names;
  for (const Layer& layer : net.layers) {
    const bool reads_label = layer.inputs.size() > 1 && layer.inputs[1] == net.label;
    const Attribute* ignored = layer.attributes->find("ignore_label");
    if (!layer.has(TANDEM_LOSS) || !reads_label || ignored == nullptr || !ignored->is_set) continue;
    const int64_t label = layer.attributes->integer("ignore_label");
    if (label < 0 || label >= static_cast<int64_t>(classes.size())) continue;
    const std::string text = fmt::format("{}: ignore_label {} is the class '{}'", layer.title(),
                                         label, classes[size_t(label)]);
    constexpr const char* what = "remove ignore_label, or give a number that is no class";
    if (classes.size() == 2) {
      throw error("{}, so that the other would be the answer for every image: {}{}", text, what,
                  in_file(layer.location));
    }
    setup.note("{}: nothing is learned from its images; {}{}", text, what, in_file(layer.location));
  }
}

void check_net(const Registry& registry, TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  NetOptions options;
  options.batch = chosen.batch;
  options.data = setup.record.data;
  options.device_kind = "";
  const Net net = build_net(setup.net, registry, options);
  check_ignored_classes(net, setup);
  const auto devices =
      static_cast<int64_t>(parse_devices(chosen.devices, registry).ordinals.size());
  for (const LearningProblem& one : find_learning_problems(setup.net, net, setup.first_weights,
                                                           devices * std::max(1, chosen.ranks))) {
    if (one.learns_never) throw error("nothing can be learned: {}", one.text);
    setup.messages.push_back("note: " + one.text);
  }
}

}  // namespace

// With one output, and with several, what is predicted is not what would be learned.
void require_losses_of_classes(const TrainSetup& setup) {
  static constexpr std::array others{"SigmoidCrossEntropyLoss", "EuclideanLoss", "HuberLoss"};
  std::set<std::string> labels;
  for (const NetInput& input : setup.net.net_inputs(TANDEM_TRAIN)) {
    if (input.role == NetInput::Role::label) labels.insert(input.name);
  }
  for (const LayerDefinition& layer : setup.net.layers) {
    const bool reads_label = layer.bottoms.size() > 1 && labels.contains(layer.bottoms[1]);
    const bool is_other = std::find(others.begin(), others.end(), layer.type) != others.end();
    if (!reads_label || !is_other || !layer.in_phase(TANDEM_TRAIN)) continue;
    throw error(
        "{}: would read the number of each image's class (0, 1, ...) as a value, while predictions "
        "take the class with the largest output: use SoftmaxWithLoss (type: \"SoftmaxWithLoss\"), "
        "and an output for each class in the layer before it (num_output: {}); {}, give a list of "
        "images that has them{}",
        layer.title(), std::max<size_t>(2, setup.record.class_names.size()),
        layer.type == others[0] ? "for several labels of an image (--task multilabel)"
                                : "for numbers to predict (--task regression)",
        in_file(layer.location));
  }
}

void require_learning(const Registry& registry, TrainSetup& setup) {
  check_net(registry, setup);
  check_rate(setup);
  check_values(setup);
  if (!has_classes(setup.net)) return;
  const std::vector<int64_t> counts = counts_of_classes(*setup.training_data);
  check_labels(counts, setup);
  check_class_weights(counts, setup);
  check_pixels(setup);
}

}  // namespace tandem
