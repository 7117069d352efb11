// What a run makes of the labels: mixed samples and the weight of each class in the loss.
#include "core/run/setup/setup.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/plain_text_file.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_statistics.h"
#include "core/model/adapted/classes.h"
#include "plugins/composed.h"

namespace tandem {
namespace {

float weight_of(const std::string& text, const std::string& where) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  constexpr float max_weight = std::numeric_limits<float>::max();
  if (used == 0 || used != text.size() || !(value >= 0 && value <= max_weight)) {
    throw error("{}: '{}' is not a weight; it must be a number from 0 to {:.2g}", where, text,
                max_weight);
  }
  return static_cast<float>(value);
}

std::vector<float> balanced_weights(const Dataset& training) {
  std::vector<int64_t> counts(size_t(training.class_count()));
  for (const int64_t label : class_labels(training)) ++counts[size_t(label)];
  const auto classes = counts.size() - size_t(std::count(counts.begin(), counts.end(), 0));
  std::vector<float> weights;
  for (const int64_t count : counts) {
    // A class without samples has no share.
    weights.push_back(count == 0 ? 1.0F
                                 : static_cast<float>(static_cast<double>(training.size()) /
                                                      static_cast<double>(classes) /
                                                      static_cast<double>(count)));
  }
  return weights;
}

std::vector<float> weights_of_file(const std::string& path, const Dataset& training) {
  std::istringstream file;
  try {
    file.str(read_plain_text(path));
  } catch (const Error& failure) {
    throw error("class weights '{}': neither 'balanced', nor numbers as 1,2,0.5, nor a file: {}",
                path, failure.what());
  }
  std::vector<std::string> names = training.class_names();
  for (std::string& name : names) name = plain_name(name);
  std::map<std::string, float> found;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string where = fmt::format("{}:{}", path, ++number);
    line = without_blanks(line);
    if (line.empty()) continue;
    const size_t gap = line.find_last_of(" \t,");
    if (gap == std::string::npos) {
      throw error("{}: '{}' is not a class and its weight, as: tench 2.5", where, line);
    }
    std::string name = plain_name(line.substr(0, gap));
    while (!name.empty() && std::string_view(" \t,").find(name.back()) != std::string_view::npos) {
      name.pop_back();
    }
    const bool is_known = std::count(names.begin(), names.end(), name) > 0;
    if (!is_known && name.size() > 1 && name.front() == '"' && name.back() == '"') {  // of CSV
      name = name.substr(1, name.size() - 2);
    }
    const std::string weight = line.substr(gap + 1);
    const bool is_heading = number == 1 && weight.find_first_of("0123456789") == std::string::npos;
    if (std::count(names.begin(), names.end(), name) == 0) {
      if (is_heading) continue;
      throw error("{}: there is no class '{}'{}", where, name, did_you_mean(name, names));
    }
    if (!found.emplace(name, weight_of(weight, where)).second) {
      throw error("{}: class '{}' had a weight already", where, name);
    }
  }
  std::vector<float> weights;
  for (const std::string& name : names) {
    if (found.count(name) == 0) throw error("{}: class '{}' has no weight", path, name);
    weights.push_back(found[name]);
  }
  return weights;
}

}  // namespace

std::vector<float> read_class_weights(const std::string& text, const Dataset& training) {
  if (text == "balanced") return balanced_weights(training);
  const bool is_list = text.find_first_not_of("0123456789.,eE+- ") == std::string::npos;
  if (!is_list) return weights_of_file(text, training);
  std::vector<float> weights;
  for (const std::string& part : split(text, ',')) {
    weights.push_back(weight_of(part, fmt::format("class weights {}", text)));
  }
  return weights;
}

void resolve_targets(const Registry& registry, TrainSetup& setup) {
  const TrainOptions& chosen = setup.record.options;
  if (chosen.balance && chosen.class_weights == "balanced") {
    throw error(
        "--balance and --class-weights balanced: each compensates for rare classes, and both "
        "together do it twice; give one of them");
  }
  if (!chosen.class_weights.empty()) {
    setup.record.class_weights = read_class_weights(chosen.class_weights, *setup.training_data);
  }
  const bool mixes = chosen.mixup != 0 || chosen.cutmix != 0 || chosen.label_smoothing != 0;
  if (mixes || !setup.record.class_weights.empty()) {
    setup.net = with_class_targets(setup.net, registry, setup.training_data->class_count());
  }
  check_targets(target_options(setup), setup.training_data->class_count());
}

TargetOptions target_options(const TrainSetup& setup) {
  TargetOptions targets;
  targets.wanted = reads_class_targets(setup.net);
  targets.mixup = setup.record.options.mixup;
  targets.cutmix = setup.record.options.cutmix;
  targets.class_weights = setup.record.class_weights;
  targets.smoothing = setup.record.options.label_smoothing;
  return targets;
}

}  // namespace tandem
