#include <algorithm>
#include <map>

#include "core/model/layer_calls.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

// Each array begins at a cache line.
constexpr int64_t alignment = 16;

// The arrays of the net by name and by the name they are shared under.
class WeightList {
 public:
  explicit WeightList(Net& net) : net_(net) {}

  // The number of the array that this use of a weight stands for; a new one is placed at the end.
  int add(const Layer& layer, const WeightArray& weight, const std::string& shared) {
    if (!shared.empty()) {
      const auto found = by_shared_.find(shared);
      if (found != by_shared_.end()) return share(layer, weight, shared, found->second);
    }
    const auto found = by_name_.find(weight.name);
    if (found != by_name_.end()) {
      demand_same_shape(layer, weight, found->second, "in the other phase");
      return found->second;
    }
    const int number = static_cast<int>(net_.weights.size());
    net_.weights.push_back(weight);
    net_.weights.back().offset = net_.weight_floats;
    net_.weight_floats += (weight.count + alignment - 1) / alignment * alignment;
    by_name_[weight.name] = number;
    if (!shared.empty()) by_shared_[shared] = number;
    return number;
  }

 private:
  int share(const Layer& layer, const WeightArray& weight, const std::string& shared, int number) {
    demand_same_shape(layer, weight, number, fmt::format("under the shared name '{}'", shared));
    const WeightArray& first = net_.weights[static_cast<size_t>(number)];
    if (first.rate_multiplier != weight.rate_multiplier ||
        first.decay_multiplier != weight.decay_multiplier) {
      throw layer_error(
          layer, fmt::format("weight '{}', shared under the name '{}', has lr_mult {} and "
                             "decay_mult {}, but {} and {} in '{}'",
                             weight.name, shared, weight.rate_multiplier, weight.decay_multiplier,
                             first.rate_multiplier, first.decay_multiplier, first.name));
    }
    return number;
  }

  void demand_same_shape(const Layer& layer, const WeightArray& weight, int number,
                         const std::string& why) const {
    const WeightArray& first = net_.weights[static_cast<size_t>(number)];
    if (equal(first.shape, weight.shape)) return;
    throw layer_error(
        layer, fmt::format("weight '{}' has the shape {}, but '{}' is {} {}", weight.name,
                           to_string(weight.shape), first.name, to_string(first.shape), why));
  }

  Net& net_;
  std::map<std::string, int> by_name_, by_shared_;
};

std::map<int, size_t> by_definition(const Draft& draft) {
  std::map<int, size_t> places;
  for (size_t i = 0; i < draft.definition_of.size(); ++i) places[draft.definition_of[i]] = i;
  return places;
}

// By the user, or by a default of the type; otherwise the weight's own initial value holds.
bool asks_for_filler(const Layer& layer, const std::string& name) {
  for (uint32_t i = 0; i < layer.type->parameter_count; ++i) {
    const tandem_parameter& parameter = *layer.type->parameters[i];
    if (parameter.name == name && parameter.type == TANDEM_PARAMETER_FILLER) {
      return parameter.default_value != nullptr || layer.attributes->is_set(name);
    }
  }
  throw layer_error(layer, fmt::format("its plugin names the filler '{}' without declaring it as a "
                                       "filler parameter",
                                       name));
}

WeightArray make_array(const Layer& layer, const tandem_weight& weight, const WeightRule& rule) {
  WeightArray array;
  array.name = fmt::format("{}.{}", layer.name, weight.name);
  array.shape = weight.shape;
  array.count = element_count(weight.shape);
  array.fan_in = std::max<int64_t>(1, weight.fan_in);
  array.fan_out = std::max<int64_t>(1, weight.fan_out);
  array.kind = weight.kind;
  array.rate_multiplier = rule.rate_multiplier;
  array.decay_multiplier = rule.decay_multiplier;
  array.filler.value = weight.initial;
  if (weight.filler != nullptr && asks_for_filler(layer, weight.filler)) {
    array.filler = layer.attributes->filler(weight.filler);
  }
  return array;
}

// Training and testing share one array, so a type cannot have other weights in the other phase.
void demand_same(const Layer& layer, const std::vector<DeclaredArray>& a,
                 const std::vector<DeclaredArray>& b) {
  const bool same = std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const DeclaredArray& x, const DeclaredArray& y) {
        return x.array.name == y.array.name && equal(x.array.shape, y.array.shape);
      });
  if (!same) throw layer_error(layer, "its plugin declares other weights in the other phase");
}

}  // namespace

std::vector<DeclaredArray> declared_arrays(const LayerDefinition& definition, const Layer& layer,
                                           int32_t phase, const std::vector<Shape>& inputs) {
  const std::vector<tandem_weight> weights = declared_weights(layer, phase, inputs);
  std::vector<WeightRule> rules = definition.weight_rules;
  if (rules.size() > weights.size()) {
    throw layer_error(
        layer, fmt::format("has {} param blocks for {} weights", rules.size(), weights.size()));
  }
  rules.resize(weights.size());
  std::vector<DeclaredArray> arrays;
  for (size_t i = 0; i < weights.size(); ++i) {
    arrays.push_back({make_array(layer, weights[i], rules[i]), rules[i].name});
  }
  return arrays;
}

void place_weights(Draft& draft, const Draft* other) {
  std::map<int, std::pair<const Draft*, size_t>> in_file_order;
  if (other != nullptr) {
    for (const auto& [definition, i] : by_definition(*other))
      in_file_order[definition] = {other, i};
  }
  for (const auto& [definition, i] : by_definition(draft)) {
    const auto there = in_file_order.find(definition);
    if (there != in_file_order.end()) {
      demand_same(draft.net.layers[i], draft.declared[i], other->declared[there->second.second]);
    }
    in_file_order[definition] = {&draft, i};
  }

  WeightList list(draft.net);
  for (const auto& [definition, from] : in_file_order) {
    const auto& [source, i] = from;
    const Layer& layer = source->net.layers[i];
    std::vector<int> numbers;
    for (const DeclaredArray& weight : source->declared[i]) {
      numbers.push_back(list.add(layer, weight.array, weight.shared));
    }
    if (source == &draft) draft.net.layers[i].weights = numbers;
  }
  relink(draft);
}

}  // namespace tandem
