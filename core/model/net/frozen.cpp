#include "core/model/net/frozen.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/base/text/strings.h"
#include "core/model/file/batch_norm.h"
#include "core/model/file/fields.h"

namespace tandem {

namespace {

std::vector<std::string> layers_with_weights(const Net& net) {
  std::vector<std::string> names;
  for (const Layer& layer : net.layers) {
    if (!layer.weights.empty()) names.push_back(layer.name);
  }
  return names;
}

// The layer's param blocks, one for each of its weights.
std::vector<WeightRule>& all_rules(LayerDefinition& layer, const Net& net) {
  const int index = net.find_layer(layer.name);
  const size_t count = index < 0 ? 0 : net.layer(index).weights.size();
  if (layer.weight_rules.size() < count) layer.weight_rules.resize(count);
  return layer.weight_rules;
}

}  // namespace

std::vector<std::string> layers_matching(const std::string& pattern, const Net& net) {
  const std::vector<std::string> known = layers_with_weights(net);
  std::vector<std::string> matching;
  for (const std::string& name : known) {
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) matching.push_back(name);
  }
  if (matching.empty()) {
    throw error("--freeze {}: no layer of net '{}' with weights has such a name{}; there are {}",
                pattern, net.name, did_you_mean(pattern, known), fmt::join(known, ", "));
  }
  return matching;
}

std::vector<std::string> normalizing_layers(const NetDefinition& definition) {
  std::vector<std::string> found;
  std::set<std::string> normalized;  // names that now stand for a BatchNorm's output
  for (const LayerDefinition& layer : definition.layers) {
    const bool follows = (layer.type == "Scale" || layer.type == "Bias") &&
                         layer.bottoms.size() == 1 && normalized.contains(layer.bottoms.front());
    const bool belongs = is_batch_norm(layer.type) || follows;
    if (belongs) found.push_back(layer.name);
    for (const std::string& top : layer.tops) {
      if (belongs) {
        normalized.insert(top);
      } else {
        normalized.erase(top);
      }
    }
  }
  return found;
}

NetDefinition with_frozen_layers(const NetDefinition& definition, const Net& net,
                                 const std::vector<std::string>& layers) {
  NetDefinition result = definition;
  std::set<std::string> shared;
  for (LayerDefinition& layer : result.layers) {
    if (!is_among(layers, layer.name)) continue;
    if (is_batch_norm(layer.type)) {
      set_in_block(layer.body, "batch_norm_param", "use_global_stats", "true");
    }
    if (layer.type == "BatchNorm") continue;  // it has no trained weights
    for (WeightRule& rule : all_rules(layer, net)) {
      rule.rate_written = 0;
      if (!rule.name.empty()) shared.insert(rule.name);
    }
  }
  for (LayerDefinition& layer : result.layers) {
    for (WeightRule& rule : layer.weight_rules) {
      if (shared.contains(rule.name)) rule.rate_written = 0;
    }
  }
  return result;
}

NetDefinition with_rates(const NetDefinition& definition, const Net& net,
                         const std::vector<std::string>& layers, double factor) {
  NetDefinition result = definition;
  for (LayerDefinition& layer : result.layers) {
    if (!is_among(layers, layer.name)) continue;
    for (WeightRule& rule : all_rules(layer, net)) {
      rule.rate_written = factor * rule.rate_multiplier();
    }
  }
  return result;
}

}  // namespace tandem
