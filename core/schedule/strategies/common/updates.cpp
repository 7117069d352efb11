#include "core/schedule/strategies/common/updates.h"

#include <fmt/format.h>

#include <map>

namespace tandem {

std::vector<int> weights_completed_by(const Net& net, int layer) {
  std::vector<int> result;
  if (!net.layer(layer).wants_backward_weights) return result;
  for (const int weight : net.layer(layer).weights) {
    const WeightArray& array = net.weight(weight);
    if (array.layer == layer && array.trained()) result.push_back(weight);
  }
  return result;
}

void Updates::emit_found_inf(int root, const std::vector<int>& devices) {
  if (builder_.net().scalars.empty()) return;
  for (const int device : devices) {
    if (device == root) continue;
    builder_.emit_transfer("send found_inf", Stage::report, -1, root, device,
                           {{builder_.found_inf(root), builder_.found_inf(device)}},
                           When::every_micro_batch, control_streams);
  }
}

void Updates::add(int device, Stage stage, const std::string& what,
                  const std::vector<int>& weights) {
  if (weights.empty()) return;
  builder_.emit_norms(fmt::format("norms {} @{}", what, device), stage, device, weights,
                      StreamKind::update);
  const Pending update{device, stage, what, weights};
  if (builder_.inputs().clips_gradients) {
    pending_.push_back(update);
  } else {
    emit(update);
  }
}

void Updates::emit(const Pending& update) {
  if (extends_.contains(update.device)) {
    extended_.emit_update(update.what, update.stage, update.device, update.weights);
    return;
  }
  builder_.emit_update(fmt::format("update {} @{}", update.what, update.device), update.stage,
                       update.device, update.weights, StreamKind::update);
}

void Updates::finish() {
  if (pending_.empty()) return;
  exchange_norms();
  for (const Pending& update : pending_) emit(update);
  pending_.clear();
}

void Updates::send_norms(Stage stage, int source, int target, const std::vector<int>& weights) {
  const std::vector<Region> sources = builder_.norms(source, weights);
  const std::vector<Region> targets = builder_.norms(target, weights);
  std::vector<CopySegment> segments;
  for (size_t i = 0; i < sources.size(); ++i) segments.push_back({sources[i], targets[i]});
  builder_.emit_transfer("send norms", stage, -1, source, target, std::move(segments),
                         When::last_micro_batch, control_streams);
}

void Updates::exchange_norms() {
  std::map<int, std::set<int>> known;  // by device
  std::map<int, int> source;           // of each array: the first device that has its norms
  for (const Pending& update : pending_) {
    for (const int weight : update.weights) {
      known[update.device].insert(weight);
      source.try_emplace(weight, update.device);
    }
  }
  for (const auto& [device, mine] : known) {
    std::map<int, std::vector<int>> missing;  // by the device they come from
    for (const auto& [weight, from] : source) {
      if (!mine.contains(weight)) missing[from].push_back(weight);
    }
    for (const auto& [from, weights] : missing) {
      send_norms(stages::update_conv, from, device, weights);
    }
  }
}

}  // namespace tandem
