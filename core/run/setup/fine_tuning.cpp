// Fine-tuning: a run that begins with the weights of files. Some layers may keep them (--freeze,
// --freeze-bn), and what is new may learn faster (--head-lr), early layers slower (--layer-decay).
// The run's net has all of it, so that a resumed run has the same. What is new may also learn alone
// at first (--unfreeze-after): the record has these layers, and the net is that of all layers.
#include "core/run/setup/setup.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/model/adapted/classes.h"
#include "core/model/file/fields.h"
#include "core/model/net/frozen.h"
#include "core/model/net/initial_weights.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/run/weights/pretrained.h"

namespace tandem {
namespace {

// The net for its weights: their order and places depend on neither batch nor devices.
Net net_for_weights(const Registry& registry, const TrainSetup& setup) {
  NetOptions options;
  options.data = setup.record.data;
  options.device_kind = "";
  return build_net(setup.net, registry, options);
}

void require_options(const TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  const double head_rate = chosen.head_rate.value_or(1), alone = chosen.unfreeze_after.value_or(0);
  if (!std::isfinite(head_rate) || head_rate <= 0) {
    throw error("--head-lr {}: a factor above 0, as 10", head_rate);
  }
  if (!(alone >= 0 && std::isfinite(alone))) {
    throw error("--unfreeze-after {}: a number of epochs, as 1 or 0.5; 0 for none", alone);
  }
  if (alone > 0 && setup.solver.weights.empty()) {
    throw error(
        "--unfreeze-after {}: until then only layers learn that no file of weights has, and there "
        "is none; give --weights PATH",
        alone);
  }
  if (!(chosen.layer_decay > 0 && chosen.layer_decay <= 1)) {
    throw error("--layer-decay {}: a factor above 0 and at most 1, as 0.9", chosen.layer_decay);
  }
  if ((chosen.freeze.empty() && !chosen.freeze_batch_norm) || !setup.solver.weights.empty()) return;
  throw error(
      "{}: frozen layers keep the weights of a file, and without one they would keep random ones; "
      "give --weights PATH",
      chosen.freeze.empty() ? "--freeze-bn" : fmt::format("--freeze {}", chosen.freeze.front()));
}

// Returns the layers that no file has.
std::set<std::string> read_first_weights(const Net& net, TrainSetup& setup) {
  std::set<std::string> missing;
  for (const Layer& layer : net.layers) {
    if (!layer.weights.empty()) missing.insert(layer.name);
  }
  if (setup.solver.weights.empty()) return missing;
  setup.first_weights = initial_weights(net, *setup.record.options.seed);
  for (const std::string& file : setup.solver.weights) {
    const Pretrained report = setup.published
                                  ? read_published(*setup.published, net, &setup.first_weights)
                                  : read_pretrained(file, net, &setup.first_weights);
    for (const std::string& layer : report.copied) missing.erase(layer);
    setup.messages.push_back(to_text(report, file));
  }
  return missing;
}

// Those of the pattern's layers that a file has: a layer that is new in this net has nothing to
// keep.
std::vector<std::string> frozen_by(const std::string& pattern, const Net& net,
                                   const std::set<std::string>& missing) {
  std::vector<std::string> layers = layers_matching(pattern, net);
  std::erase_if(layers, [&](const std::string& name) { return missing.contains(name); });
  if (!layers.empty()) return layers;
  throw error("--freeze {}: no file of --weights has such a layer, so it would keep random weights",
              pattern);
}

std::string frozen_text(const Net& before, const Net& after, const std::set<std::string>& frozen) {
  int64_t layers = 0, all = 0, trained = 0;
  std::string last;
  for (const Layer& layer : after.layers) {
    if (!layer.weights.empty()) ++layers;
    if (last.empty() && layer.wants_backward_weights) last = layer.name;
  }
  for (size_t i = 0; i < before.weights.size(); ++i) {
    if (before.weights[i].kind != TANDEM_TRAINED) continue;
    all += before.weights[i].count;
    if (after.weights[i].trained()) trained += after.weights[i].count;
  }
  return fmt::format(
      "{} of {} layers are frozen (--freeze, --freeze-bn), {} of {} weights learn; the backward "
      "pass ends at layer '{}'",
      frozen.size(), layers, trained, all, last);
}

void freeze(const Registry& registry, const Net& net, const std::set<std::string>& missing,
            TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  std::set<std::string> frozen;
  for (const std::string& pattern : chosen.freeze) {
    for (const std::string& name : frozen_by(pattern, net, missing)) frozen.insert(name);
  }
  if (chosen.freeze_batch_norm) {
    const std::vector<std::string> found = normalizing_layers(setup.net);
    if (found.empty()) throw error("--freeze-bn: net '{}' has no BatchNorm", net.name);
    for (const std::string& name : found) {
      if (!missing.contains(name)) frozen.insert(name);
    }
  }
  if (frozen.empty()) return;
  setup.net = with_frozen_layers(setup.net, net, {frozen.begin(), frozen.end()});
  const bool nothing_learns =
      std::none_of(net.layers.begin(), net.layers.end(), [&](const Layer& layer) {
        return layer.wants_backward_weights && !frozen.contains(layer.name);
      });
  if (nothing_learns) {
    throw error(
        "--freeze {}: every layer that has weights would be frozen; leave out the last one, '{}'",
        fmt::join(chosen.freeze, ","), classifier_names(setup.net).back());
  }
  setup.messages.push_back(frozen_text(net, net_for_weights(registry, setup), frozen));
}

// "fc", or "a, b, c, ... 12 in all"
std::string layers_text(const std::vector<std::string>& layers) {
  constexpr size_t shown = 3;
  if (layers.size() <= shown + 1) return fmt::format("{}", fmt::join(layers, ", "));
  return fmt::format("{}, ... {} in all",
                     fmt::join(layers.begin(), layers.begin() + ptrdiff_t(shown), ", "),
                     layers.size());
}

void raise_head_rate(const Net& net, const std::vector<std::string>& head, TrainSetup& setup) {
  const double factor = *setup.record.options.head_rate;
  if (factor == 1) return;
  setup.net = with_rates(setup.net, net, head, factor);
  setup.note("{} learn{} at {} times the rate (--head-lr)", layers_text(head),
             head.size() == 1 ? "s" : "", factor);
}

// Those with weights that are no part of the head.
std::vector<std::string> layers_below(const Net& net, const std::vector<std::string>& head) {
  std::vector<std::string> layers;
  for (const Layer& layer : net.layers) {
    if (!layer.weights.empty() && !is_among(head, layer.name)) layers.push_back(layer.name);
  }
  return layers;
}

// A convolution or InnerProduct and what follows it, up to the next one, learn at one rate.
void decay_rates(const Net& net, TrainSetup& setup) {
  const double decay = setup.record.options.layer_decay;
  if (decay == 1) return;
  std::vector<std::vector<std::string>> groups;
  bool has_matrix = false;
  for (const Layer& layer : net.layers) {
    if (layer.weights.empty()) continue;
    const WeightArray& first = net.weight(layer.weights.front());
    const bool is_matrix = first.count > first.shape.n;
    if (groups.empty() || (is_matrix && has_matrix)) groups.emplace_back();
    groups.back().push_back(layer.name);
    has_matrix = has_matrix || is_matrix;
  }
  double factor = 1;
  for (size_t i = groups.size(); i-- > 0; factor *= decay) {
    if (i + 1 < groups.size()) setup.net = with_rates(setup.net, net, groups[i], factor);
  }
  if (groups.size() < 2) return;
  setup.note(
      "{} learns at the whole rate, each layer before it at {} of the next, the first at "
      "{:.2g} (--layer-decay)",
      groups.back().front(), decay, factor / decay);
}

// New layers learn faster than trained ones, but not at a rate above 0.005 with momentum: on the
// features of a trained net a higher one made them diverge, whatever the batch.
double usual_head_rate(const SolverDefinition& solver) {
  constexpr double max_factor = 10, max_rate = 0.005;
  const bool has_momentum = solver.type == "Nesterov" || solver.type == "SGD";
  if (!has_momentum || !(solver.base_rate > 0)) return max_factor;
  return std::clamp(std::round(max_rate / solver.base_rate), 1.0, max_factor);
}

}  // namespace

void resolve_fine_tuning(const Registry& registry, TrainSetup& setup) {
  require_options(setup);
  const bool has_files = !setup.solver.weights.empty();
  TrainOptions& chosen = setup.record.options;
  if (!has_files && !chosen.head_rate) chosen.head_rate = 1;
  if (!has_files && chosen.head_rate == 1 && chosen.layer_decay == 1) return;
  const Net net = net_for_weights(registry, setup);
  const std::set<std::string> missing = read_first_weights(net, setup);
  const bool tunes = chosen.recipe == "finetune" && !missing.empty();
  if (!chosen.head_rate && !tunes) chosen.head_rate = 1;
  // The head: what no file has, and the classifiers.
  std::set<std::string> names = has_files ? missing : std::set<std::string>{};
  for (const std::string& name : classifier_names(setup.net)) names.insert(name);
  const std::vector<std::string> head(names.begin(), names.end());
  setup.record.first_weights = fmt::format("{}", fmt::join(setup.solver.weights, ","));
  decay_rates(net, setup);
  if (chosen.head_rate) raise_head_rate(net, head, setup);
  freeze(registry, net, missing, setup);
  if (has_files && (tunes || chosen.unfreeze_after)) setup.record.head = head;
}

void resolve_unfreezing(const Registry& registry, TrainSetup& setup) {
  RunRecord& record = setup.record;
  TrainOptions& chosen = record.options;
  if (!chosen.head_rate) {
    chosen.head_rate = usual_head_rate(setup.solver);
    raise_head_rate(net_for_weights(registry, setup), record.head, setup);
  }
  const bool is_given = chosen.unfreeze_after.has_value();
  if (!is_given) chosen.unfreeze_after = record.head.empty() ? 0 : 1;
  const int64_t step = unfreezing_step(record, setup.solver.micro_batches_per_step);
  const auto leave_out = [&] {
    chosen.unfreeze_after = 0;
    record.head.clear();
  };
  constexpr int64_t min_epochs = 3;  // of a run with a first part by default
  const int64_t images = chosen.steps * chosen.batch * setup.solver.micro_batches_per_step;
  const bool is_long = images >= min_epochs * record.training_samples && chosen.steps > step;
  if (*chosen.unfreeze_after == 0 || (!is_given && !is_long)) return leave_out();
  if (step >= chosen.steps) {
    throw error(
        "--unfreeze-after {}: that is after step {}, and the run has {} steps: --freeze '*' trains "
        "the new layers alone",
        *chosen.unfreeze_after, step, chosen.steps);
  }
  const Net net = net_for_weights(registry, setup);
  const bool any_learns = std::any_of(net.layers.begin(), net.layers.end(), [&](const Layer& l) {
    return l.wants_backward_weights && !is_among(record.head, l.name);
  });
  if (!any_learns && is_given) {
    throw error(
        "--unfreeze-after {}: there is nothing to unfreeze, as {} alone learn{} in the whole run",
        *chosen.unfreeze_after, layers_text(record.head), record.head.size() == 1 ? "s" : "");
  }
  if (!any_learns) return leave_out();
  setup.note("only {} learn{} until step {}, then all layers do (--unfreeze-after {})",
             layers_text(record.head), record.head.size() == 1 ? "s" : "", step,
             *chosen.unfreeze_after);
}

void begin_with_head(const Registry& registry, int64_t steps_done, TrainSetup& setup) {
  const RunRecord& record = setup.record;
  const int64_t step = unfreezing_step(record, setup.solver.micro_batches_per_step);
  if (step == 0 || steps_done > step) return;
  const Net net = net_for_weights(registry, setup);
  setup.head_net = with_frozen_layers(setup.net, net, layers_below(net, record.head));
}

}  // namespace tandem
