#include "core/run/setup/setup_classes.h"

#include <optional>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/data/dataset_statistics.h"
#include "core/device/parse.h"
#include "core/model/adapted/classes.h"
#include "core/model/passes/build_net.h"

namespace tandem {
namespace {

// Scores that a layer of a third party makes, or changes on their way to the loss.
struct ForeignScores {
  int64_t count = 0;
  std::string layer;  // its title
};

const Layer* maker_of(const Net& net, int tensor) {
  for (const Layer& layer : net.layers) {
    for (const int output : layer.outputs) {
      if (output == tensor) return &layer;
    }
  }
  return nullptr;
}

// Those that the last loss reads; nullopt: they come from a layer whose num_output can be changed,
// through built-in layers only. How many such a layer makes, only its author's code tells.
std::optional<ForeignScores> foreign_scores(const Registry& registry, const TrainSetup& setup) {
  const std::string& devices = setup.record.options.devices;  // "": not chosen yet
  const std::string kind = devices.empty() ? default_kind : parse_devices(devices, registry).kind;
  const auto is_foreign = [&](const std::string& type) {
    const ModuleReport* module = registry.module_of_kernel(type, kind);
    return module != nullptr && !module->built_in;
  };
  std::string reader;
  bool any = false;
  for (const LayerDefinition& layer : setup.net.layers) {
    if (!layer.in_phase(TANDEM_TRAIN)) continue;
    any = any || is_foreign(layer.type);
    if (reads_scores(layer)) reader = layer.name;
  }
  if (!any || reader.empty()) return std::nullopt;
  NetOptions options;
  options.data = setup.record.data;
  options.device_kind = "";
  const Net net = build_net(setup.net, registry, options);
  const std::vector<std::string> names = classifier_names(setup.net);
  const std::set<std::string> classifiers(names.begin(), names.end());
  for (const Layer& loss : net.layers) {
    if (loss.name != reader || loss.inputs.empty()) continue;
    const int scores = loss.inputs[0];
    for (const Layer* layer = maker_of(net, scores);
         layer != nullptr && !classifiers.contains(layer->name) && !layer->inputs.empty();
         layer = maker_of(net, layer->inputs[0])) {
      if (!is_foreign(layer->type->name)) continue;
      return ForeignScores{net.tensors[size_t(scores)].shape.c, layer->title()};
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse_scores(const TrainSetup& setup, const ForeignScores& scores, int64_t count,
                                const char* unit) {
  throw error(
      "net '{}': {} gives the loss {} scores for each sample, the data have {} {}: change that "
      "layer's parameters; --adapt-classes changes the num_output of a layer only",
      setup.net.file, scores.layer, scores.count, count, unit);
}

}  // namespace

int64_t classes_of_net(const Registry& registry, const TrainSetup& setup) {
  const std::optional<ForeignScores> scores = foreign_scores(registry, setup);
  return scores ? scores->count : class_count(setup.net);
}

void fit_classes(const Registry& registry, TrainSetup& setup, int64_t classes, bool may_adapt) {
  if (!has_classes(setup.net)) return;
  std::optional<ForeignScores> scores = foreign_scores(registry, setup);
  if (scores && scores->count == classes) return;
  const int64_t outputs = class_count(setup.net);
  if (scores && scores->count != outputs) refuse_scores(setup, *scores, classes, "classes");
  if (outputs == classes) return;
  if (!may_adapt) {
    throw error(
        "net '{}' has {} outputs in its last layer, the data have {} classes: use --adapt-classes "
        "to train an adapted copy (kept in the run folder; the file stays as it is)",
        setup.net.file, outputs, classes);
  }
  setup.net = with_class_count(setup.net, classes);
  scores = foreign_scores(registry, setup);
  if (scores && scores->count != classes) refuse_scores(setup, *scores, classes, "classes");
  setup.note("the net's last layer has {} outputs, one a class (its file says {})", classes,
             outputs);
}

void require_scores(const Registry& registry, const TrainSetup& setup, int64_t count) {
  const std::optional<ForeignScores> scores = foreign_scores(registry, setup);
  if (scores && scores->count != count) {
    refuse_scores(setup, *scores, count, task_text(setup.record.task));
  }
}

}  // namespace tandem
