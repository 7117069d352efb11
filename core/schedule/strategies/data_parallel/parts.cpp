#include "core/schedule/strategies/data_parallel/parts.h"

#include <set>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/builder/weight_ranges.h"

namespace tandem {
namespace {

int find_split(const Net& net, const std::string& split) {
  const int layer = net.find_layer(split);
  if (layer >= 0) return layer;
  std::vector<std::string> names;
  for (const Layer& known : net.layers) names.push_back(known.name);
  throw error("--split {}: net '{}' has no such layer{}", split, net.name,
              did_you_mean(split, names));
}

StrategyOption split_option() {
  StrategyOption option = text_option("--split",
                                      "first layer of the FC part; alexnet: as the AlexNet-like "
                                      "test says (default: auto, the smallest predicted step); in "
                                      "sequential it only names the stages");
  option.check = [](const Net& net, const OptionValue& value) {
    const auto* split = std::get_if<std::string>(&value);
    if (split == nullptr || *split == "auto" || *split == "alexnet") return;
    (void)find_split(net, *split);
  };
  return option;
}

}  // namespace

const OptionTable<PartsOptions>& parts_options() {
  static const auto table = OptionTable<PartsOptions>()
                                .add(split_option(), &PartsOptions::split)
                                .include(threshold_options());
  return table;
}

Parts parts_at(const Net& net, int split_layer) {
  Parts parts;
  parts.split_layer = split_layer;
  const std::vector<int> first_user = first_users(net);
  for (size_t weight = 0; weight < net.weights.size(); ++weight) {
    if (!net.weights[weight].trained() || first_user[weight] < 0) continue;
    (first_user[weight] >= split_layer ? parts.fc_weights : parts.conv_weights)
        .push_back(static_cast<int>(weight));
  }
  return parts;
}

Parts parts_at(const Net& net, const std::string& split) {
  Parts parts = parts_at(net, find_split(net, split));
  if (!parts.fc_weights.empty() && !parts.conv_weights.empty()) return parts;
  const char* part = parts.fc_weights.empty() ? "FC" : "conv";
  const std::vector<int> trained = split_candidates(net);
  const std::string& first = net.layer(trained.front()).name;
  if (trained.size() < 2) {
    throw error(
        "--split {}: the {} part would have no weights to train: the only layer with any is '{}', "
        "so leave the split to 'auto'",
        split, part, first);
  }
  throw error(
      "--split {}: the {} part would have no weights to train; the FC part may begin after '{}' "
      "and up to '{}'",
      split, part, first, net.layer(trained.back()).name);
}

std::vector<int> split_candidates(const Net& net) {
  std::vector<int> layers;
  std::set<int> seen;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    bool has_new = false;
    for (const int weight : net.layers[i].weights) {
      if (net.weight(weight).trained()) has_new |= seen.insert(weight).second;
    }
    if (has_new) layers.push_back(static_cast<int>(i));
  }
  return layers;
}

}  // namespace tandem
