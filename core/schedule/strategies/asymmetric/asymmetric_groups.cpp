#include "core/schedule/strategies/asymmetric/asymmetric_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/device/topology.h"

namespace tandem {

namespace {

std::string joined(const std::vector<int>& devices) {
  return fmt::format("{}", fmt::join(devices, ","));
}

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
  for (const auto* group : {&groups.errors, &groups.weights}) {
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
  for (int errors = 1; errors < devices; ++errors) {
    AsymmetricGroups& groups = result.emplace_back();
    for (int device = 0; device < devices; ++device) {
      (device < errors ? groups.errors : groups.weights).push_back(device);
    }
  }
  return result;
}

// Neighbours are put in different groups, so that what goes from one group to the other crosses as
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
    (nearest < 0 ? groups.weights : groups.errors).push_back(device);
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
        layer.title(),
        layer.location.file.empty() ? "" : fmt::format(" ({})", tandem::to_string(layer.location)));
  }
}

}  // namespace

std::string AsymmetricGroups::to_text() const {
  return fmt::format("E={}/W={}", joined(errors), joined(weights));
}

std::vector<AsymmetricGroups> asymmetric_groups(const StrategyInputs& inputs) {
  if (inputs.devices < 2) {
    throw error(
        "strategy 'asymmetric' needs at least 2 devices, one for the errors and one for the "
        "weights: use --devices cpu:2 or more");
  }
  require_per_sample(*inputs.net);
  const std::string& text = inputs.options.roles.groups;
  if (!text.empty()) return {parse(text, inputs.devices)};
  if (inputs.topology != nullptr) return {by_topology(*inputs.topology, inputs.devices)};
  return all_sizes(inputs.devices);
}

}  // namespace tandem
