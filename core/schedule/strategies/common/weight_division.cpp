#include "core/schedule/strategies/common/weight_division.h"

#include <algorithm>
#include <map>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/updates.h"

namespace tandem {

std::string to_text(Division division) {
  switch (division) {
    case Division::slices:
      return "all";
    case Division::slices_of_large:
      return "large";
    case Division::whole:
      break;
  }
  return "none";
}

WeightDivision::WeightDivision(const Net& net, const std::vector<int>& devices, Division division)
    : net_(net), users_(net.weights.size()), channels_(net.layers.size()) {
  for (const Layer& layer : net.layers) {
    for (const int weight : layer.weights) ++users_[size_t(weight)];
  }
  std::map<int, int64_t> load;  // weights of each device's whole layers
  for (const int device : devices) load[device] = 0;
  const auto count = static_cast<int>(devices.size());
  int64_t all = 0;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    if (net.layers[i].wants_backward_weights) all += weights_of(static_cast<int>(i));
  }
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.wants_backward_weights) continue;
    const bool slices = division == Division::slices ||
                        (division == Division::slices_of_large &&
                         int64_t{2} * count * weights_of(static_cast<int>(i)) > all);
    const int64_t channels = net.tensor(layer.outputs[0]).shape.c;
    if (slices && count > 1 && layer.has(TANDEM_SLICED_OUTPUTS) && channels >= count &&
        !is_shared(static_cast<int>(i))) {
      for (int k = 0; k < count; ++k) {
        channels_[i].push_back({devices[size_t(k)], share(channels, count, k)});
      }
      continue;
    }
    // Gradients of weights that layers share are added up in one place.
    int device = devices.front();
    if (!is_shared(static_cast<int>(i))) {
      device = std::min_element(load.begin(), load.end(), [](const auto& a, const auto& b) {
                 return a.second < b.second;
               })->first;
    }
    load[device] += weights_of(static_cast<int>(i));
    channels_[i] = {{device, {0, channels}}};
  }
}

int64_t WeightDivision::weights_of(int layer) const {
  int64_t count = 0;
  for (const int weight : net_.layer(layer).weights) {
    count += net_.weight(weight).count;
  }
  return count;
}

bool WeightDivision::is_shared(int layer) const {
  const std::vector<int>& weights = net_.layer(layer).weights;
  return std::any_of(weights.begin(), weights.end(),
                     [this](int weight) { return users_[size_t(weight)] > 1; });
}

std::vector<Interval> WeightDivision::ranges(int layer, const Placement& channels) const {
  if (!is_divided(layer)) return weight_ranges(net_, weights_completed_by(net_, layer));
  std::vector<Interval> result;
  for (const int weight : net_.layer(layer).weights) {
    const WeightArray& array = net_.weight(weight);
    if (!array.trained()) continue;
    const int64_t one = array.count / array.shape.n;
    result.push_back(
        buffers::bytes_of(array, {channels.interval.begin * one, channels.interval.end * one}));
  }
  return result;
}

std::vector<bool> WeightDivision::layers_of(int device) const {
  std::vector<bool> result;
  for (const std::vector<Placement>& layer : channels_) {
    result.push_back(std::any_of(layer.begin(), layer.end(),
                                 [&](const Placement& one) { return one.device == device; }));
  }
  return result;
}

std::vector<Placement> WeightDivision::weights_at() const {
  std::vector<Placement> result;
  std::vector<bool> trained(net_.weights.size(), false);
  for (int layer = 0; layer < static_cast<int>(channels_.size()); ++layer) {
    for (const Placement& channels : of(layer)) {
      for (const Interval& range : ranges(layer, channels)) {
        result.push_back({channels.device, range});
      }
    }
    for (const int weight : weights_completed_by(net_, layer)) trained[size_t(weight)] = true;
  }
  for (size_t i = 0; i < trained.size(); ++i) {
    if (!trained[i]) result.push_back({0, buffers::bytes_of(net_.weights[i])});
  }
  return result;
}

}  // namespace tandem
