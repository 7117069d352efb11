#include "core/schedule/strategies/asymmetric/asymmetric.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/device/topology.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/cost/list_schedule.h"
#include "core/schedule/strategies/asymmetric/asymmetric_plan.h"

namespace tandem {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& reason, int devices) {
  throw error("--groups {}: {}; write each of the devices 0 to {} in one of two groups, as {}",
              text, reason, devices - 1, devices > 3 ? "E=0,2/W=1,3" : "E=0/W=1");
}

// "E=0,2", with the letter that is expected.
std::vector<int> parse_group(const std::string& text, const std::string& part, char letter,
                             int devices) {
  const std::string prefix = std::string(1, letter) + "=";
  if (!part.starts_with(prefix)) {
    refuse(text, fmt::format("'{}' does not begin with '{}'", part, prefix), devices);
  }
  const std::string listed = part.substr(prefix.size());
  if (listed.empty()) refuse(text, fmt::format("group {} is empty", letter), devices);
  std::vector<int> group;
  for (const std::string& number : split(listed, ',')) {
    int64_t device = -1;
    if (number.empty()) {
      refuse(text, fmt::format("group {} has a comma without a number", letter), devices);
    }
    if (!parse_integer(number, &device)) {
      refuse(text, fmt::format("'{}' is no number of a device", number), devices);
    }
    if (device < 0 || device >= devices) {
      refuse(text, fmt::format("'{}' is none of the {} devices", number, devices), devices);
    }
    group.push_back(static_cast<int>(device));
  }
  std::sort(group.begin(), group.end());  // one division, one result
  return group;
}

AsymmetricGroups parse(const std::string& text, int devices) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) refuse(text, "there is no '/' between the groups", devices);
  AsymmetricGroups groups{parse_group(text, text.substr(0, slash), 'E', devices),
                          parse_group(text, text.substr(slash + 1), 'W', devices)};
  std::vector<int> times(size_t(devices), 0);
  for (const auto* group : {&groups.activations, &groups.weights}) {
    for (const int device : *group) ++times[size_t(device)];
  }
  for (int device = 0; device < devices; ++device) {
    if (times[size_t(device)] == 1) continue;
    refuse(text,
           fmt::format("device {} is {}", device,
                       times[size_t(device)] == 0 ? "in neither group" : "named more than once"),
           devices);
  }
  return groups;
}

std::vector<AsymmetricGroups> all_sizes(int devices) {
  std::vector<AsymmetricGroups> result;
  for (int count = 1; count < devices; ++count) {
    AsymmetricGroups& groups = result.emplace_back();
    for (int device = 0; device < devices; ++device) {
      (device < count ? groups.activations : groups.weights).push_back(device);
    }
  }
  return result;
}

// Neighbors are put in different groups, so that what goes from one group to the other crosses as
// few hubs as it can.
AsymmetricGroups by_topology(const Topology& topology, int devices) {
  constexpr int64_t message = int64_t{1} << 20;
  AsymmetricGroups groups;
  std::vector<bool> placed(size_t(devices), false);
  for (int device = 0; device < devices; ++device) {
    if (placed[size_t(device)]) continue;
    int nearest = -1;
    for (int other = device + 1; other < devices; ++other) {
      if (placed[size_t(other)]) continue;
      const auto distance = [&](int to) {
        return std::pair(topology.path(device, to).channels.size(),
                         topology.seconds(device, to, message));
      };
      if (nearest < 0 || distance(other) < distance(nearest)) nearest = other;
    }
    (nearest < 0 ? groups.weights : groups.activations).push_back(device);
    if (nearest < 0) continue;
    groups.weights.push_back(nearest);
    placed[size_t(nearest)] = true;
  }
  std::sort(groups.weights.begin(), groups.weights.end());
  return groups;
}

void require_per_sample(const Net& net) {
  for (const Layer& layer : net.layers) {
    const bool reports = layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC);
    const bool mixes = !layer.has(TANDEM_PER_SAMPLE) && !reports;
    const bool needs_others = layer.has(TANDEM_BATCH_STATISTICS) && layer.has_backward() &&
                              net.statistics(int(&layer - net.layers.data())).backward > 0;
    if (!mixes && !needs_others) continue;
    throw error(
        "{}: it mixes the samples of a batch; strategy 'asymmetric' needs a net whose layers each "
        "work on samples one by one{}",
        layer.title(), in_file(layer.location));
  }
}

// Those to choose from: the given ones; else neighbors of the topology in different groups;
// without a topology E with the first device, the first two, ... all but one.
std::vector<AsymmetricGroups> possible_groups(const StrategyInputs& inputs,
                                              const std::string& given) {
  if (inputs.devices < 2) {
    throw error(
        "strategy 'asymmetric' needs at least 2 devices, one for activation gradients and "
        "one for the gradients of the weights: use --devices cpu:2 or more");
  }
  require_per_sample(*inputs.net);
  if (!given.empty()) return {parse(given, inputs.devices)};
  if (inputs.topology != nullptr) return {by_topology(*inputs.topology, inputs.devices)};
  return all_sizes(inputs.devices);
}

// As --slices says; `whole` where a rule reads the norms of whole gradients; nullopt: it is chosen.
// Error for slices with such a rule.
std::optional<Division> given_division(const StrategyInputs& inputs, const std::string& given) {
  for (const Division division : {Division::slices, Division::slices_of_large, Division::whole}) {
    if (given != to_text(division)) continue;
    if (!inputs.needs_norms || division == Division::whole) return division;
    throw error("--slices {}: the solver's rule reads the norms of whole gradients: give none",
                given);
  }
  return inputs.needs_norms ? std::optional(Division::whole) : std::nullopt;
}

struct Candidate {
  Plan plan;
  double bound = 0;  // seconds that no order of its tasks can pass
};

std::vector<Candidate> candidates(const StrategyInputs& inputs, const AsymmetricOptions& options) {
  std::vector<Division> divisions{Division::slices, Division::slices_of_large, Division::whole};
  if (const auto given = given_division(inputs, options.slices)) divisions = {*given};
  std::vector<Candidate> result;
  for (const AsymmetricGroups& groups : possible_groups(inputs, options.groups)) {
    // One device of W has all of each layer, however they are divided.
    const size_t ways = groups.weights.size() > 1 ? divisions.size() : 1;
    for (size_t way = 0; way < ways; ++way) {
      Candidate candidate{asymmetric_plan(inputs, groups, divisions[way], options.to_all)};
      candidate.bound = bounds_of(*inputs.net, candidate.plan, *inputs.costs, inputs.link.bandwidth,
                                  inputs.topology)
                            .step();
      result.push_back(std::move(candidate));
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bound < b.bound; });
  return result;
}

// Fewer for a large plan, whose attempts take longer: as many as together simulate so many tasks.
int attempts(const Plan& plan, size_t simulated, int most) {
  return std::clamp(static_cast<int>(simulated / (plan.tasks.size() + 1)), 1, most);
}
int quick_attempts(const Plan& plan) {
  return attempts(plan, 8000, 6);
}
int thorough_attempts(const Plan& plan) {
  return attempts(plan, 30000, 30);
}

Plan build_asymmetric(const StrategyInputs& inputs) {
  std::vector<Candidate> all = candidates(inputs, asymmetric_options().read(inputs.options));
  const auto model_of = [&](const Plan& plan) {
    return StepModel(*inputs.net, plan, *inputs.costs, inputs.link, inputs.topology);
  };
  struct Tried {
    Candidate* of;
    OrderedStep step;
  };
  const auto is_faster = [](const Tried& a, const Tried& b) {
    return a.step.times.step_seconds < b.step.times.step_seconds;
  };
  constexpr size_t max_tried = 6;  // of many groups: those with the smallest bounds
  std::vector<Tried> tried;        // fastest first
  for (Candidate& candidate : all) {
    if (tried.size() == max_tried) break;
    if (!tried.empty() && candidate.bound >= tried.front().step.times.step_seconds) break;
    tried.push_back({&candidate, list_schedule(model_of(candidate.plan),
                                               quick_attempts(candidate.plan), candidate.bound)});
    std::stable_sort(tried.begin(), tried.end(), is_faster);
  }
  if (tried.size() > 2) tried.resize(2);
  for (Tried& close : tried) {
    const Plan& plan = close.of->plan;
    if (close.of->bound >= tried.front().step.times.step_seconds) continue;
    if (thorough_attempts(plan) == quick_attempts(plan)) continue;  // they were the same ones
    close.step = list_schedule(model_of(plan), thorough_attempts(plan), close.of->bound);
  }
  const Tried& best = *std::min_element(tried.begin(), tried.end(), is_faster);
  reorder(best.of->plan, best.step.order);
  return std::move(best.of->plan);
}

std::vector<StrategyOptions> asymmetric_lossless_cases(int devices) {
  std::vector<StrategyOptions> cases;
  for (int mask = 1; mask + 1 < 1 << devices; ++mask) {
    AsymmetricGroups groups;
    for (int device = 0; device < devices; ++device) {
      ((mask >> device & 1) != 0 ? groups.activations : groups.weights).push_back(device);
    }
    cases.push_back(asymmetric_options().write({groups.to_text(), "", false}));
  }
  if (devices < 3) return cases;  // one device of W has all of the weights
  for (const char* slices : {"all", "large", "none"}) {
    cases.push_back(asymmetric_options().write({"", slices, false}));
  }
  cases.push_back(asymmetric_options().write({"", "all", true}));
  return cases;
}

}  // namespace

const OptionTable<AsymmetricOptions>& asymmetric_options() {
  static const auto table = [] {
    StrategyOption groups = text_option(
        "--groups",
        "devices that compute gradients of activations (E) and of weights (W), as E=0,2/W=1,3 "
        "(default: by topology or costs)");
    groups.resets = {"slices"};
    groups.fits_devices = true;
    StrategyOption slices = word_option("--slices",
                                        "layers whose weights the devices of W divide, the others "
                                        "being one device's each: all, large "
                                        "or none (default: by costs)",
                                        {"all", "large", "none"});
    slices.fits_devices = true;
    return OptionTable<AsymmetricOptions>()
        .add(std::move(groups), &AsymmetricOptions::groups)
        .add(std::move(slices), &AsymmetricOptions::slices)
        .add(flag_option("--to-all",
                         "send each layer's output to all other devices, as published (default: to "
                         "those that need it)"),
             &AsymmetricOptions::to_all);
  }();
  return table;
}

Strategy asymmetric_strategy() {
  return {.name = "asymmetric",
          .summary = "one group of devices computes activation gradients, the other weights",
          .options = asymmetric_options().options(),
          .build = &build_asymmetric,
          .lossless_cases = &asymmetric_lossless_cases};
}

}  // namespace tandem
