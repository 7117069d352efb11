#include <algorithm>
#include <map>

#include "core/model/net/draft.h"
#include "core/model/net/layer_calls.h"

namespace tandem {

namespace {

// Each array begins at a cache line.
constexpr int64_t alignment = 16;

// The arrays of the net, by name and by shared name.
class WeightList {
 public:
  explicit WeightList(Net& net) : net_(net) {}

  // The index of the array for this use of a weight; a new array is placed at the end.
  int add(const Layer& layer, const DeclaredWeight& weight) {
    const std::string& shared = weight.rule.name;
    if (!shared.empty()) {
      const auto found = by_shared_.find(shared);
      if (found != by_shared_.end()) return share(layer, weight, found->second);
    }
    const auto found = by_name_.find(weight.array.name);
    if (found != by_name_.end()) {
      require_same_shape(layer, weight, found->second, "in the other phase");
      return found->second;
    }
    const int number = static_cast<int>(net_.weights.size());
    net_.weights.push_back(weight.array);
    net_.weights.back().offset = net_.weight_floats;
    net_.weight_floats += (weight.array.count + alignment - 1) / alignment * alignment;
    owners_.push_back({layer.title() + in_file(layer.location), weight.rule});
    by_name_[weight.array.name] = number;
    if (!shared.empty()) by_shared_[shared] = number;
    return number;
  }

 private:
  struct Owner {
    std::string title;  // of the layer, with its location
    WeightRule rule;
  };

  int share(const Layer& layer, const DeclaredWeight& weight, int number) {
    const std::string why = fmt::format("under the shared name '{}'", weight.rule.name);
    require_same_shape(layer, weight, number, why);
    WeightArray& array = net_.weight(number);
    WeightRule& rule = owners_[size_t(number)].rule;
    adopt(layer, weight, number, "lr_mult", weight.rule.rate_written, rule.rate_written);
    adopt(layer, weight, number, "decay_mult", weight.rule.decay_written, rule.decay_written);
    array.rate_multiplier = rule.rate_multiplier();
    array.decay_multiplier = rule.decay_multiplier();
    return number;
  }

  // A multiplier that one layer gives holds for all that share the array. Two must be equal.
  void adopt(const Layer& layer, const DeclaredWeight& weight, int number, const char* field,
             const std::optional<double>& written, std::optional<double>& first) const {
    if (!written) return;
    if (!first) first = written;
    if (*first == *written) return;
    throw layer_error(layer, "weight '{}', shared under the name '{}', has {} {}, but {} in {}",
                      weight.array.name, weight.rule.name, field, *written, *first,
                      owners_[size_t(number)].title);
  }

  void require_same_shape(const Layer& layer, const DeclaredWeight& weight, int number,
                          const std::string& why) const {
    const WeightArray& first = net_.weight(number);
    if (equal(first.shape, weight.array.shape)) return;
    if (weight.rule.permissive && first.count == weight.array.count) return;
    const bool would_do = first.count == weight.array.count;
    throw layer_error(layer, "weight '{}' has the shape {}, but '{}' is {} {}, in {}{}",
                      weight.array.name, to_string(weight.array.shape), first.name,
                      to_string(first.shape), why, owners_[size_t(number)].title,
                      would_do ? "; share_mode: PERMISSIVE allows it" : "");
  }

  Net& net_;
  std::vector<Owner> owners_;  // the first user of each array
  std::map<std::string, int> by_name_, by_shared_;
};

// Whether the user or the type's default gives a filler; otherwise the weight's own initial value
// is used.
bool has_filler(const Layer& layer, const std::string& name) {
  for (uint32_t i = 0; i < layer.type->parameter_count; ++i) {
    const tandem_parameter& parameter = *layer.type->parameters[i];
    if (parameter.name == name && parameter.type == TANDEM_PARAMETER_FILLER) {
      return parameter.default_value != nullptr || layer.attributes->is_set(name);
    }
  }
  throw layer_error(layer,
                    "its plugin names the filler '{}' without declaring it as a "
                    "filler parameter",
                    name);
}

WeightArray make_array(const Layer& layer, const tandem_weight& weight, const WeightRule& rule) {
  WeightArray array;
  array.name = fmt::format("{}.{}", layer.name, weight.name);
  array.shape = weight.shape;
  array.count = element_count(weight.shape);
  array.fan_in = std::max<int64_t>(1, weight.fan_in);
  array.fan_out = std::max<int64_t>(1, weight.fan_out);
  array.kind = weight.kind;
  array.rate_multiplier = rule.rate_multiplier();
  array.decay_multiplier = rule.decay_multiplier();
  array.filler.value = weight.initial;
  if (weight.filler != nullptr && has_filler(layer, weight.filler)) {
    array.filler = layer.attributes->filler(weight.filler);
  }
  return array;
}

// Training and testing share the arrays, so a type has the same weights in both phases.
void require_same(const Layer& layer, const std::vector<DeclaredWeight>& a,
                  const std::vector<DeclaredWeight>& b) {
  const bool same = std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const DeclaredWeight& x, const DeclaredWeight& y) {
        return x.array.name == y.array.name && equal(x.array.shape, y.array.shape);
      });
  if (!same) throw layer_error(layer, "its plugin declares other weights in the other phase");
}

}  // namespace

std::vector<DeclaredWeight> declare_weights(const LayerDefinition& definition, const Layer& layer,
                                            int32_t phase, const std::vector<Shape>& inputs) {
  const std::vector<tandem_weight> weights = declared_weights(layer, phase, inputs);
  std::vector<WeightRule> rules = definition.weight_rules;
  if (rules.size() > weights.size()) {
    throw layer_error(layer, "has {} param blocks for {} weights", rules.size(), weights.size());
  }
  rules.resize(weights.size());
  std::vector<DeclaredWeight> arrays;
  for (size_t i = 0; i < weights.size(); ++i) {
    arrays.push_back({make_array(layer, weights[i], rules[i]), rules[i]});
  }
  return arrays;
}

void place_weights(Draft& draft, const Draft* other) {
  std::map<int, std::pair<const Draft*, size_t>> in_file_order;
  for (size_t i = 0; i < draft.more.size(); ++i) {
    in_file_order[draft.more[i].definition] = {&draft, i};
  }
  for (size_t i = 0; other != nullptr && i < other->more.size(); ++i) {
    const auto [place, is_new] = in_file_order.try_emplace(other->more[i].definition, other, i);
    const size_t here = place->second.second;
    if (is_new) continue;
    require_same(draft.net.layers[here], draft.more[here].declared, other->more[i].declared);
  }

  WeightList list(draft.net);
  for (const auto& [definition, from] : in_file_order) {
    const auto& [source, i] = from;
    const Layer& layer = source->net.layers[i];
    std::vector<int> numbers;
    std::vector<Shape> shapes;
    for (const DeclaredWeight& weight : source->more[i].declared) {
      const int number = list.add(layer, weight);
      if (std::count(numbers.begin(), numbers.end(), number) > 0) {
        throw layer_error(layer, "two of its weights have one shared name, '{}'", weight.rule.name);
      }
      numbers.push_back(number);
      shapes.push_back(weight.array.shape);
    }
    if (source != &draft) continue;
    draft.net.layers[i].weights = std::move(numbers);
    draft.net.layers[i].weight_shapes = std::move(shapes);
  }
  relink(draft);
}

}  // namespace tandem
