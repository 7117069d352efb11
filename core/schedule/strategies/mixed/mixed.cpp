#include "core/schedule/strategies/mixed/mixed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/cost/list_schedule.h"
#include "core/schedule/strategies/composed/composition.h"

namespace tandem {
namespace {

using GroupSizes = std::map<int, int>;  // by divided layer

int64_t weights_of(const Net& net, int layer) {
  int64_t count = 0;
  for (const int weight : net.layer(layer).weights) count += net.weight(weight).count;
  return count;
}

// The linear layers that can be divided, those with the most weights first.
std::vector<int> divisible_layers(const Net& net, const std::vector<FcChain>& chains) {
  std::vector<int> layers;
  for (const FcChain& chain : chains) {
    layers.insert(layers.end(), chain.linear.begin(), chain.linear.end());
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [&](int a, int b) { return weights_of(net, a) > weights_of(net, b); });
  return layers;
}

bool fits(const Net& net, int layer, int group, int devices) {
  return group >= 2 && devices % group == 0 &&
         net.tensor(net.layer(layer).outputs[0]).shape.c >= group;
}

// Neighbors of one size are divided together, so that slices of activations travel between them.
std::vector<DividedChain> divided_chains(const std::vector<FcChain>& chains,
                                         const GroupSizes& sizes) {
  std::vector<DividedChain> divided;
  const auto size_of = [&](int layer) {
    const auto found = sizes.find(layer);
    return found == sizes.end() ? 1 : found->second;
  };
  for (const FcChain& chain : chains) {
    for (size_t first = 0; first < chain.linear.size();) {
      const int size = size_of(chain.linear[first]);
      size_t next = first + 1;
      while (next < chain.linear.size() && size_of(chain.linear[next]) == size) ++next;
      if (size > 1) divided.push_back({part_of(chain, first, next - 1), size});
      first = next;
    }
  }
  return divided;
}

std::string to_text(const Net& net, const GroupSizes& sizes) {
  std::string text;
  for (const auto& [layer, size] : sizes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", net.layer(layer).name, size);
  }
  return text.empty() ? "none" : text;
}

// Error for what does not fit the net or the devices.
GroupSizes parse_sizes(const StrategyInputs& inputs, const std::vector<FcChain>& chains,
                       const std::string& divide) {
  const Net& net = *inputs.net;
  const std::vector<int> layers = divisible_layers(net, chains);
  GroupSizes sizes;
  if (divide == "none") return sizes;
  for (const std::string& part : split(divide, ',')) {
    const size_t equals = part.rfind('=');
    const std::string name = part.substr(0, equals);
    int64_t size = 0;
    const bool is_number =
        equals != std::string::npos && parse_integer(part.substr(equals + 1), &size);
    if (!is_number || size < 1 || size > inputs.devices || inputs.devices % size != 0) {
      throw error(
          "--divide {}: each part is LAYER=SIZE, with the devices of a group, which divides all "
          "{}; or it is 'none', or 'all=SIZE'",
          part, inputs.devices);
    }
    const auto group = static_cast<int>(size);
    if (name == "all") {
      for (const int layer : layers) {
        if (fits(net, layer, group, inputs.devices)) sizes[layer] = group;
      }
      continue;
    }
    const int layer = net.find_layer(name);
    const bool is_divisible = std::find(layers.begin(), layers.end(), layer) != layers.end();
    if (!is_divisible || (size > 1 && !fits(net, layer, group, inputs.devices))) {
      std::vector<std::string> names;
      for (const int one : layers) names.push_back(net.layer(one).name);
      throw error("--divide {}: {}; of net '{}' can be divided: {}", part,
                  is_divisible ? "the layer has fewer neurons than the group has devices"
                               : "no such fully connected layer in float32",
                  net.name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
    sizes.erase(layer);
    if (size > 1) sizes[layer] = group;
  }
  return sizes;
}

// Floats that a device receives in a step for a layer: of gradients and weights, and, where it is
// divided alone, of its input, its output and their gradients.
double received_floats(const StrategyInputs& in, int layer, int group) {
  const Net& net = *in.net;
  const Layer& l = net.layer(layer);
  const double groups = double(in.devices) / group, rows = double(net.batch) / in.devices;
  const auto row_floats = [&](int tensor) {
    return double(element_count(net.tensor(tensor).shape)) / double(net.batch);
  };
  const double sums = 2 * (groups - 1) / groups * double(weights_of(net, layer)) / group;
  const double activations =
      2 * rows * (group - 1) * (row_floats(l.inputs[0]) + row_floats(l.outputs[0]) / group);
  return sums + activations;
}

// Of list scheduling: fewer for a large plan, whose attempts take longer, none for a huge one.
int attempts_for(const Plan& plan, int most) {
  constexpr size_t simulated = 50000;  // tasks
  return std::min(static_cast<int>(simulated / (plan.tasks.size() + 1)), most);
}

StepBounds step_bounds(const StrategyInputs& inputs, const Plan& plan) {
  return bounds_of(*inputs.net, plan, *inputs.costs, inputs.link.bandwidth, inputs.topology);
}

class MixedSearch {
 public:
  MixedSearch(const StrategyInputs& inputs, std::vector<FcChain> chains, MixedOptions given)
      : inputs_(inputs), chains_(std::move(chains)), given_(std::move(given)) {
    if (inputs_.devices > 1) inputs_.micro_batches_per_step = 1;  // every simulated step updates
  }

  struct Choice {
    GroupSizes sizes;
    std::string reduce = "ring";
    int64_t bucket = 0;
    int pieces = 2;
    auto operator<=>(const Choice&) const = default;
  };

  [[nodiscard]] Composition composition_of(const Choice& choice) const {
    return {"mixed", choice.reduce, choice.bucket, choice.pieces,
            divided_chains(chains_, choice.sizes)};
  }

  Choice find() {
    Choice start;
    if (!given_.reduce.empty()) start.reduce = given_.reduce;
    start.bucket = given_.bucket > 0 ? given_.bucket : default_bucket(inputs_, start.reduce);
    start.pieces = given_.pieces > 0 ? given_.pieces : std::clamp(16 / inputs_.devices, 2, 8);
    if (!given_.divide.empty()) start.sizes = parse_sizes(inputs_, chains_, given_.divide);
    best_ = start;
    if (inputs_.devices == 1) return best_;
    const bool decides =
        given_.divide.empty() || given_.reduce.empty() || given_.bucket == 0 || given_.pieces == 0;
    if (!decides) return best_;
    seconds_ = seconds_of(best_, seconds_);
    tried_.insert(best_);
    if (given_.divide.empty()) find_sizes();
    if (given_.reduce.empty() && inputs_.devices == 2)
      try_other([](Choice& c) { c.reduce = "serial"; });
    if (given_.bucket == 0) find_bucket();
    if (given_.pieces == 0) (void)try_other([](Choice& choice) { choice.pieces = 2; });
    return best_;
  }

 private:
  // For simulation: of micro-batches that each update.
  [[nodiscard]] Plan plan_of(const Choice& choice) const {
    return compose(inputs_, composition_of(choice));
  }
  // Of a step in the order of the plan, and after a little list scheduling where that is quick. A
  // step that takes `limit` or more by its bound, and any once the search is done, is not
  // simulated: then at least `limit`.
  double seconds_of(const Choice& choice, double limit) {
    const Plan plan = plan_of(choice);
    const StepBounds bounds = step_bounds(inputs_, plan);
    const double bound = bounds.step();
    compute_ = std::min(compute_, bounds.compute);
    if (bound >= limit || is_done()) return std::max(bound, limit);
    const StepModel model(*inputs_.net, plan, *inputs_.costs, inputs_.link, inputs_.topology);
    const int attempts = attempts_for(plan, 2);
    simulated_ += plan.tasks.size() * size_t(attempts + 1);
    return list_schedule(model, attempts, bound, limit).times.step_seconds;
  }
  // Once the step hardly takes longer than the least compute of a plan, which no plan hides, or
  // after so many simulated tasks: the search takes a second or two, whatever the machine.
  [[nodiscard]] bool is_done() const {
    const double near = simulated_ > max_simulated / 3 ? 1.02 : 1.01;
    return seconds_ < near * compute_ || simulated_ > max_simulated;
  }

  template <class Change>
  bool try_other(const Change& change) {
    if (is_done()) return false;
    Choice other = best_;
    change(other);
    if (!tried_.insert(other).second) return false;
    constexpr double better = 0.999;  // a tie goes to the simpler plan
    const double limit = better * seconds_, seconds = seconds_of(other, limit);
    if (seconds >= limit) return false;
    best_ = std::move(other);
    seconds_ = seconds;
    return true;
  }

  void find_sizes() {
    const std::vector<int> layers = divisible_layers(*inputs_.net, chains_);
    std::vector<int> worth;  // smaller traffic with some group
    const auto sizes_of = [&](int layer) {
      std::vector<int> sizes;
      for (int size = inputs_.devices; size >= 2; size = size % 2 == 0 ? size / 2 : 1) {
        if (fits(*inputs_.net, layer, size, inputs_.devices)) sizes.push_back(size);
      }
      std::stable_sort(sizes.begin(), sizes.end(), [&](int a, int b) {
        return received_floats(inputs_, layer, a) < received_floats(inputs_, layer, b);
      });
      return sizes;
    };
    // First a plan in which every layer has the size with the least traffic, and one with the
    // largest groups: of many devices only a few more are tried.
    GroupSizes least, largest;
    for (const int layer : layers) {
      const std::vector<int> sizes = sizes_of(layer);
      if (sizes.empty()) continue;
      largest[layer] = *std::max_element(sizes.begin(), sizes.end());
      if (received_floats(inputs_, layer, sizes.front()) < received_floats(inputs_, layer, 1)) {
        least[layer] = sizes.front();
      }
    }
    // A device that has a part of a layer's weights computes less for them.
    Choice divided = best_;
    divided.sizes = largest;
    compute_ = std::min(compute_, step_bounds(inputs_, plan_of(divided)).compute);
    for (const GroupSizes& sizes : {least, largest}) {
      if (!sizes.empty()) (void)try_other([&](Choice& choice) { choice.sizes = sizes; });
    }
    for (const int layer : layers) {
      const double whole = received_floats(inputs_, layer, 1);
      for (const int size : sizes_of(layer)) {
        if (received_floats(inputs_, layer, size) > whole) continue;
        if (worth.empty() || worth.back() != layer) worth.push_back(layer);
        (void)try_other([&](Choice& choice) { choice.sizes[layer] = size; });
      }
      if (best_.sizes.contains(layer)) {
        (void)try_other([&](Choice& choice) { choice.sizes.erase(layer); });
      }
    }
    // Pairs, which need each other where activations would travel between different groups.
    for (size_t i = 0; i < worth.size(); ++i) {
      for (size_t j = i + 1; j < worth.size(); ++j) {
        for (const int size : sizes_of(worth[j])) {
          if (!fits(*inputs_.net, worth[i], size, inputs_.devices)) continue;
          const auto both = [&](Choice& choice) {
            choice.sizes[worth[i]] = choice.sizes[worth[j]] = size;
          };
          (void)try_other(both);
        }
      }
    }
  }

  void find_bucket() {
    constexpr int64_t least = int64_t{64} << 10;
    constexpr int factor = 8;
    const int64_t most = factor * default_bucket(inputs_, best_.reduce);
    for (int64_t bucket = least; bucket <= most; bucket *= factor) {
      (void)try_other([&](Choice& choice) { choice.bucket = bucket; });
    }
  }

  static constexpr size_t max_simulated = 300000;  // tasks
  StrategyInputs inputs_;
  std::vector<FcChain> chains_;
  MixedOptions given_;
  Choice best_;
  std::set<Choice> tried_;
  double seconds_ = std::numeric_limits<double>::infinity();
  double compute_ = seconds_;  // the least of all plans that were composed
  size_t simulated_ = 0;
};

// "'fc6': divided over 4 in groups of 4; ..."
void note_choices(const StrategyInputs& inputs, const MixedSearch::Choice& choice, Plan& plan) {
  std::map<int, std::vector<std::string>> layers;  // by group
  for (const auto& [layer, size] : choice.sizes) {
    layers[size].push_back("'" + inputs.net->layer(layer).name + "'");
  }
  for (const auto& [size, names] : layers) {
    const int groups = inputs.devices / size;
    plan.notes.push_back(
        groups == 1
            ? fmt::format("{}: divided by neurons over all {} devices", fmt::join(names, ", "),
                          size)
            : fmt::format("{}: divided by {} in {} groups of {} devices, summed over the groups by "
                          "ring",
                          fmt::join(names, ", "), size, groups, size));
  }
  plan.notes.push_back(fmt::format(
      "{}: gradients summed by {} in buckets closed at {}{}",
      layers.empty() ? "all layers" : "all other layers", choice.reduce, human_bytes(choice.bucket),
      choice.reduce == "ring" && !inputs.needs_norms ? ", each device updates its part" : ""));
}

Plan build_mixed(const StrategyInputs& inputs) {
  MixedOptions options = mixed_options().read(inputs.options);
  MixedSearch search(inputs, fc_chains(*inputs.net), options);
  const MixedSearch::Choice choice = search.find();
  Plan plan = compose(inputs, search.composition_of(choice));
  if (inputs.devices > 1) {
    const StepModel model(*inputs.net, plan, *inputs.costs, inputs.link, inputs.topology);
    reorder(plan,
            list_schedule(model, attempts_for(plan, 18), step_bounds(inputs, plan).step()).order);
  }
  options.divide = to_text(*inputs.net, choice.sizes);
  options.reduce = choice.reduce;
  options.bucket = choice.bucket;
  options.pieces = choice.pieces;
  plan.options = mixed_options().write(options);
  note_choices(inputs, choice, plan);
  return plan;
}

std::vector<StrategyOptions> mixed_lossless_cases(int devices) {
  std::vector<StrategyOptions> cases{{}};
  for (const char* reduce : {"serial", "tree", "ring"}) {
    cases.push_back({{"divide", std::string("none")}, {"reduce", std::string(reduce)}});
  }
  for (int group = 2; group <= devices; ++group) {
    if (devices % group != 0) continue;
    cases.push_back({{"divide", fmt::format("all={}", group)}, {"bucket", int64_t{1} << 16}});
  }
  return cases;
}

}  // namespace

const OptionTable<MixedOptions>& mixed_options() {
  static const auto table = [] {
    StrategyOption divide = text_option(
        "--divide",
        "layers divided by neurons and the devices of a group, as fc6=4,fc7=4; or all=4, or none "
        "(default: the fastest on sim)");
    divide.fits_devices = true;
    return OptionTable<MixedOptions>()
        .add(std::move(divide), &MixedOptions::divide)
        .add(count_option("--pieces",
                          "pieces of a part of a ring at most, between which other copies pass "
                          "(default: the fastest on sim)"),
             &MixedOptions::pieces)
        .include(layerwise_options());
  }();
  return table;
}

Strategy mixed_strategy() {
  return {.name = "mixed",
          .summary = "each layer is divided by neurons over groups of devices, or data-parallel",
          .options = mixed_options().options(),
          .build = &build_mixed,
          .lossless_cases = &mixed_lossless_cases};
}

}  // namespace tandem
