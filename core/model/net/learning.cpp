#include "core/model/net/learning.h"

#include <algorithm>
#include <array>

#include "core/base/text/strings.h"
#include "core/model/adapted/classes.h"
#include "core/model/file/batch_norm.h"
#include "core/model/file/fields.h"

namespace tandem {
namespace {

struct View {
  const NetDefinition& definition;
  const Net& net;
  const std::vector<float>& weights;
  int64_t devices;

  [[nodiscard]] const Tensor& input(const Layer& layer) const {
    return net.tensor(layer.inputs.at(0));
  }
  // The values of an array that a file gives; empty: the filler draws them.
  [[nodiscard]] std::vector<float> values(const WeightArray& array) const {
    if (weights.empty()) return {};
    const auto begin = weights.begin() + array.offset;
    return {begin, begin + array.count};
  }
};

// What a check says of a layer; what it says of several layers becomes one line.
class Problems {
 public:
  void add(const Layer& layer, const std::string& text, bool learns_never) {
    for (Problem& one : found_) {
      if (one.text != text || one.learns_never != learns_never) continue;
      ++one.more;
      return;
    }
    found_.push_back({layer.title(), in_file(layer.location), text, learns_never, 0});
  }

  [[nodiscard]] std::vector<LearningProblem> lines() const {
    std::vector<LearningProblem> lines;
    for (const Problem& one : found_) {
      const std::string others =
          one.more == 0 ? "" : fmt::format(" and {} more of this kind", one.more);
      lines.push_back({one.title + others + ": " + one.text + one.where, one.learns_never});
    }
    return lines;
  }

 private:
  struct Problem {
    std::string title, where, text;
    bool learns_never;
    int more;
  };
  std::vector<Problem> found_;
};

// ---- normalization

constexpr const char* larger = "give a larger batch (--batch) or larger images (--image-size)";

bool uses_kept_statistics(const Layer& layer) {
  const Attribute* kept = layer.attributes->find("use_global_stats");
  const bool* is_kept = kept == nullptr ? nullptr : std::get_if<bool>(&kept->value);
  return is_kept != nullptr && *is_kept;
}

bool boolean(const Layer& layer, const char* name) {
  const Attribute* found = layer.attributes->find(name);
  const bool* value = found == nullptr ? nullptr : std::get_if<bool>(&found->value);
  return value != nullptr && *value;
}

// How many values share a mean; 0: another kind of layer.
int64_t values_of_a_mean(const View& view, const Layer& layer) {
  const Shape& shape = view.input(layer).shape;
  if (is_batch_norm(layer.type->name) && !uses_kept_statistics(layer)) {
    const int64_t rows = boolean(layer, "per_device") ? shape.n / view.devices : shape.n;
    return std::max<int64_t>(1, rows) * shape.h * shape.w;
  }
  if (layer.is("MVN")) return shape.h * shape.w * (boolean(layer, "across_channels") ? shape.c : 1);
  return layer.is("LayerNorm") ? shape.c : 0;
}

void check_normalization(const View& view, const Layer& layer, Problems& problems) {
  constexpr int64_t few = 4;
  const int64_t count = values_of_a_mean(view, layer);
  if (count == 0 || count >= few) return;
  const bool is_batch = is_batch_norm(layer.type->name);
  const Shape& shape = view.input(layer).shape;
  const std::string of = is_batch
                             ? fmt::format("batch {}, maps of {}x{}", shape.n, shape.h, shape.w)
                             : fmt::format("its input is {}x{}x{}", shape.c, shape.h, shape.w);
  if (count == 1) {
    problems.add(layer,
                 fmt::format("normalizes each value by itself ({}), so that its output is the same "
                             "for every image{}: {}",
                             of, is_batch ? ", and testing divides by a variance of 0" : "",
                             is_batch ? larger : "normalize over more values, or remove it"),
                 true);
  } else if (is_batch) {
    problems.add(layer,
                 fmt::format("normalizes over only {} values of a channel ({}), whose mean and "
                             "variance are far from those of testing: {}",
                             count, of, larger),
                 false);
  }
}

void check_kept_statistics(const View& view, const Layer& layer, Problems& problems) {
  if (!is_batch_norm(layer.type->name) || !uses_kept_statistics(layer)) return;
  constexpr size_t sum_of_weights = 2;
  const std::vector<float> kept = view.values(view.net.weight(layer.weights.at(sum_of_weights)));
  if (!kept.empty() && kept.front() != 0) return;
  problems.add(layer,
               "use_global_stats is true in training, but no weights give its running statistics, "
               "so that it normalizes by a mean and a variance of 0: remove use_global_stats to "
               "train from scratch, or give --weights",
               true);
}

// ---- losses

bool is_loss(const Layer& layer) {
  return layer.has(TANDEM_LOSS);
}

void check_loss_weight(const View& view, const Layer& layer, Problems& problems) {
  if (!is_loss(layer) || view.net.phase != TANDEM_TRAIN) return;
  const bool counts = std::any_of(layer.loss_weights.begin(), layer.loss_weights.end(),
                                  [](double weight) { return weight != 0; });
  if (!counts) {
    problems.add(layer, "its loss_weight is 0: it is shown, and nothing is learned from it", false);
  }
  if (std::any_of(layer.loss_weights.begin(), layer.loss_weights.end(),
                  [](double weight) { return weight < 0; })) {
    problems.add(layer, "its loss_weight is below 0: training makes this loss larger", false);
  }
}

// The layer that computes what a loss reads, without those that only change its form.
const Layer* maker_of(const Net& net, int tensor) {
  static constexpr std::array forms{"Split", "Flatten", "Reshape", "Reorder"};
  while (net.tensor(tensor).producer >= 0) {
    const Layer& maker = net.layer(net.tensor(tensor).producer);
    const bool is_form =
        std::any_of(forms.begin(), forms.end(), [&](const char* form) { return maker.is(form); });
    if (!is_form) return &maker;
    tensor = maker.inputs.at(0);
  }
  return nullptr;
}

struct BeforeLoss {
  const char *losses, *before, *text;  // types, separated by spaces
};
constexpr const char* two_softmaxes =
    "the scores of {} have been through a Softmax already, and the loss has one of its own: two "
    "flatten all differences, and little is learned; remove the first";
constexpr const char* no_negative =
    "its scores come from {}, which makes none below 0 and has no gradient there, so that a class "
    "whose scores are all 0 never learns: let the loss read the layer before it";
constexpr const char* no_negative_value =
    "its values come from {}, which makes none below 0, as half of the targets of a run with "
    "numbers are: let the loss read the layer before it";
constexpr const char* limited =
    "its scores come from {}, which limits them, so that the loss cannot get near 0: let the loss "
    "read the layer before it";
constexpr const char* dropped =
    "its scores come from {}, which sets some of them to 0 at random: put it before the last layer "
    "with weights";
constexpr const char* two_sigmoids =
    "the scores of {} have been through a Sigmoid already, and the loss has one of its own: "
    "remove the first, or targets of 0 are never reached";
constexpr const char* not_probabilities =
    "it reads probabilities, and {} makes scores: use SoftmaxWithLoss, or put a Softmax between";
constexpr std::array before_losses{
    BeforeLoss{"SoftmaxWithLoss", "Softmax", two_softmaxes},
    BeforeLoss{"SoftmaxWithLoss HingeLoss SigmoidCrossEntropyLoss", "ReLU", no_negative},
    BeforeLoss{"SoftmaxWithLoss", "Clip Sigmoid HardSigmoid TanH", limited},
    BeforeLoss{"SoftmaxWithLoss HingeLoss SigmoidCrossEntropyLoss EuclideanLoss HuberLoss",
               "Dropout", dropped},
    BeforeLoss{"HingeLoss", "Softmax Sigmoid", limited},
    BeforeLoss{"SigmoidCrossEntropyLoss", "Sigmoid", two_sigmoids},
    BeforeLoss{"SigmoidCrossEntropyLoss", "Softmax Clip TanH", limited},
    BeforeLoss{"EuclideanLoss HuberLoss", "ReLU", no_negative_value},
    BeforeLoss{"EuclideanLoss HuberLoss", "Sigmoid TanH Softmax", limited},
    BeforeLoss{"MultinomialLogisticLoss", "InnerProduct Convolution ReLU", not_probabilities},
};

void check_layer_before_loss(const View& view, const Layer& layer, Problems& problems) {
  const Layer* maker = is_loss(layer) ? maker_of(view.net, layer.inputs.at(0)) : nullptr;
  if (maker == nullptr) return;
  // What else is compared with values, as by an autoencoder, may be limited, too.
  const bool compares_values = layer.is("EuclideanLoss") || layer.is("HuberLoss");
  if (compares_values && !view.net.tensor(layer.inputs.at(1)).name.starts_with(class_targets_input))
    return;
  for (const BeforeLoss& one : before_losses) {
    const auto is_of = [](const Layer& reader, const char* types) {
      return is_among(split(types, ' '), reader.type->name);
    };
    if (!is_of(layer, one.losses) || !is_of(*maker, one.before)) continue;
    const bool leaks = maker->is("ReLU") && maker->attributes->number("negative_slope") != 0;
    if (!leaks) problems.add(layer, fmt::format(fmt::runtime(one.text), maker->title()), false);
  }
}

void check_number_of_scores(const View& view, const Layer& layer, Problems& problems) {
  if (!layer.is("SoftmaxWithLoss") || view.input(layer).shape.c != 1) return;
  const Attribute* axis = layer.attributes->find("axis");
  const int64_t* written = axis == nullptr ? nullptr : std::get_if<int64_t>(&axis->value);
  if (written != nullptr && *written != 1) return;
  problems.add(
      layer,
      "it has one score, whose probability is always 1 and whose loss is 0: give the layer "
      "before it an output for each class (num_output)",
      true);
}

// ---- weights

// What the file says of the weight, before the passes set the rate of unreached ones to 0.
bool wants_to_learn(const View& view, const Layer& layer, size_t weight) {
  const auto& rules = view.definition.layers.at(layer.random_index).weight_rules;
  return weight >= rules.size() || rules[weight].rate_multiplier() != 0;
}

void check_unreached(const View& view, const Layer& layer, Problems& problems) {
  if (view.net.phase != TANDEM_TRAIN) return;
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    const WeightArray& array = view.net.weight(layer.weights[i]);
    if (array.kind != TANDEM_TRAINED || array.trained() || !wants_to_learn(view, layer, i))
      continue;
    problems.add(
        layer,
        "its weights stay as they are, for no gradient reaches them: no loss reads what it "
        "makes, or a layer without a gradient (ArgMax, Threshold) or propagate_down: false "
        "is between; param { lr_mult: 0 } says that this is meant",
        false);
    return;
  }
}

// Caffe allows it, and so does this; meant is hardly ever that the loss grows.
void check_multipliers(const View& view, const Layer& layer, Problems& problems) {
  if (layer.weights.empty()) return;
  for (const WeightRule& rule : view.definition.layers.at(layer.random_index).weight_rules) {
    if (rule.rate_multiplier() >= 0) continue;
    problems.add(
        layer, "an lr_mult of it is below 0: training makes the loss larger by its weights", false);
    return;
  }
}

// Zeros to which a Bias adds its own values are meant: that is how a net has a learned constant, as
// the class token of a transformer.
bool adds_own_values(const View& view, const Layer& zeros) {
  const std::vector<int>& readers = view.net.tensor(zeros.outputs.at(0)).consumers;
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
    const Layer& layer = view.net.layer(reader);
    return layer.is("Bias") && !layer.weights.empty();
  });
}

void check_power(const View& view, const Layer& layer, Problems& problems) {
  if (!layer.is("Power")) return;
  const bool is_constant =
      layer.attributes->number("scale") == 0 || layer.attributes->number("power") == 0;
  if (!is_constant || adds_own_values(view, layer)) return;
  problems.add(layer, "its output is one number for every image (scale or power is 0)", false);
}

bool multiplies_by_weights(const Layer& layer) {
  return layer.is("InnerProduct") ||
         (layer.is("Convolution") && layer.attributes->integer("group") == 1);
}

// Whether all weights are one value, and which.
bool begins_at_one_value(const View& view, const Layer& layer, double* value) {
  const WeightArray& array = view.net.weight(layer.weights.at(0));
  const std::vector<float> values = view.values(array);
  const Filler& filler = array.filler;
  const bool is_uniform = filler.type == "uniform" && filler.min == filler.max;
  const bool is_gaussian = filler.type == "gaussian" && filler.std == 0;
  *value = !values.empty() ? values.front()
           : is_uniform    ? filler.min
           : is_gaussian   ? filler.mean
                           : filler.value;
  if (values.empty()) return filler.type == "constant" || is_uniform || is_gaussian;
  return std::all_of(values.begin(), values.end(), [&](float one) { return one == values[0]; });
}

// Whether another layer of this kind is between it and every loss.
bool is_hidden(const View& view, const Layer& layer) {
  std::vector<bool> depends(view.net.tensors.size(), false);
  for (const int output : layer.outputs) depends[size_t(output)] = true;
  for (const Layer& later : view.net.layers) {
    const bool reads = std::any_of(later.inputs.begin(), later.inputs.end(),
                                   [&](int input) { return depends[size_t(input)]; });
    if (!reads) continue;
    if (multiplies_by_weights(later)) return true;
    for (const int output : later.outputs) depends[size_t(output)] = true;
  }
  return false;
}

// Whether all that multiply begin at 0: then only the last biases ever have a gradient.
bool all_begin_at_zero(const View& view) {
  int layers = 0;
  for (const Layer& layer : view.net.layers) {
    if (!multiplies_by_weights(layer) || !layer.wants_backward_weights) continue;
    double value = 0;
    if (!begins_at_one_value(view, layer, &value) || value != 0) return false;
    ++layers;
  }
  return layers > 1;
}

void check_first_weights(const View& view, const Layer& layer, Problems& problems) {
  double value = 0;
  const bool learns = multiplies_by_weights(layer) && layer.wants_backward_weights;
  if (!learns || !begins_at_one_value(view, layer, &value) || !is_hidden(view, layer)) return;
  if (value != 0) {
    // Outputs with the same weights have the same gradients.
    problems.add(
        layer,
        fmt::format("all its weights begin at {:g}, so that its outputs are equal and stay "
                    "so: give it weight_filler {{ type: \"msra\" }}",
                    value),
        false);
    return;
  }
  const bool all = all_begin_at_zero(view);
  problems.add(layer,
               fmt::format("its weights begin at 0, as Caffe's do without a filler{}: give it "
                           "weight_filler {{ type: \"msra\" }}",
                           all ? ", and so do those of all other layers, so that nothing but the "
                                 "last biases ever changes"
                               : ", so that at first it computes the same for every image"),
               all);
}

using Check = void (*)(const View&, const Layer&, Problems&);
constexpr std::array<Check, 9> checks{
    check_normalization,     check_kept_statistics,  check_loss_weight,
    check_layer_before_loss, check_number_of_scores, check_unreached,
    check_first_weights,     check_multipliers,      check_power,
};

}  // namespace

std::vector<LearningProblem> find_learning_problems(const NetDefinition& definition, const Net& net,
                                                    const std::vector<float>& weights,
                                                    int64_t devices) {
  const View view{definition, net, weights, devices};
  Problems problems;
  for (const Layer& layer : net.layers) {
    if (layer.inputs.empty()) continue;
    for (const Check& check : checks) check(view, layer, problems);
  }
  return problems.lines();
}

}  // namespace tandem
