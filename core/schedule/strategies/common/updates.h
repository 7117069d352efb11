// Updates by several devices, each of which has the newest values of the weights it updates. In
// other strategies the root has what an update depends on; here it is sent to each device: whether
// the loss was finite, and the norms of gradients that others have.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/extended_state.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {

// The trained weight arrays whose gradient is complete when this layer has gone backward.
[[nodiscard]] std::vector<int> weights_completed_by(const Net& net, int layer);

class Updates {
 public:
  explicit Updates(PlanBuilder& builder) : builder_(builder), extended_(builder) {}

  // These devices keep the solver's state in their extended memory.
  void extend(const std::vector<int>& devices) { extends_.insert(devices.begin(), devices.end()); }

  // Sends `root`'s found_inf to the other devices; after the report, before their updates.
  void emit_found_inf(int root, const std::vector<int>& devices);
  // The device's update of these arrays, whose gradients it has, and before it the norms that the
  // rule needs. Where the rule clips, the update waits for finish(). `what`: "conv1".
  void add(int device, Stage stage, const std::string& what, const std::vector<int>& weights);
  // The norms of these arrays and of their gradients, to another device that updates them.
  void send_norms(Stage stage, int source, int target, const std::vector<int>& weights);
  // Clipped updates, once every device has the norms of all gradients.
  void finish();

 private:
  struct Pending {
    int device = 0;
    Stage stage = stages::update_conv;
    std::string what;
    std::vector<int> weights;
  };
  void exchange_norms();
  void emit(const Pending& update);

  PlanBuilder& builder_;
  ExtendedState extended_;
  std::set<int> extends_;
  std::vector<Pending> pending_;
};

}  // namespace tandem
