#include "core/schedule/strategies/common/collectives.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "plugins/simulation.h"

namespace tandem {

namespace {

// Gradients come together on the master, which alone updates.
class ToMaster : public Collective {
 public:
  explicit ToMaster(PlanBuilder& builder)
      : builder_(builder), order_(device_order(builder.inputs())) {}

  void emit_update(const Bucket& bucket) override {
    builder_.emit_update(fmt::format("update {} @0", bucket.name), Stage::update, 0, bucket.weights,
                         StreamKind::update);
  }
  [[nodiscard]] bool updates_everywhere() const override { return false; }

 protected:
  void emit_norms(const Bucket& bucket) {
    builder_.emit_norms(fmt::format("norms {} @0", bucket.name), Stage::update, 0, bucket.weights,
                        StreamKind::update);
  }
  void emit_return(const Bucket& bucket, int source, int target) {
    builder_.emit_transfer(
        "return " + bucket.name, Stage::broadcast_weights, bucket.layer, source, target,
        {{builder_.weights(source, bucket.range), builder_.weights(target, bucket.range)}},
        When::last_batch, full_duplex);
  }
  [[nodiscard]] int devices() const { return builder_.devices(); }

  PlanBuilder& builder_;
  std::vector<int> order_;
};

class Serial final : public ToMaster {
 public:
  using ToMaster::ToMaster;

  void emit_reduction(const Bucket& bucket) override {
    std::vector<Region> received;
    for (int device = 1; device < devices(); ++device) {
      received.push_back(builder_.received_gradients(device, bucket.range));
      builder_.emit_transfer("reduce " + bucket.name, Stage::reduce_gradients, bucket.layer, device,
                             0, {{builder_.gradients(device, bucket.range), received.back()}},
                             When::last_batch, full_duplex);
    }
    if (!received.empty()) {
      builder_.emit_add(fmt::format("add {} @0", bucket.name), Stage::reduce_gradients,
                        {0, StreamKind::update}, builder_.gradients(0, bucket.range),
                        std::move(received), When::last_batch);
    }
    emit_norms(bucket);
  }
  void emit_return(const Bucket& bucket) override {
    for (int device = 1; device < devices(); ++device) ToMaster::emit_return(bucket, 0, device);
  }
  [[nodiscard]] bool is_duplex() const override { return true; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double sum = 0;
    for (int device = 1; device < devices(); ++device) {
      sum += transfer_seconds(builder_.inputs(), device, 0, bucket.range.bytes);
    }
    return sum;
  }
};

class Tree final : public ToMaster {
 public:
  using ToMaster::ToMaster;

  void emit_reduction(const Bucket& bucket) override {
    for (int distance = 1; distance < devices(); distance *= 2) {
      for (int place = 0; place + distance < devices(); place += 2 * distance) {
        emit_pair(bucket, distance, order_[size_t(place + distance)], order_[size_t(place)]);
      }
    }
    emit_norms(bucket);
  }
  void emit_return(const Bucket& bucket) override {
    for (int distance = top(); distance > 0; distance /= 2) {
      for (int place = 0; place + distance < devices(); place += 2 * distance) {
        ToMaster::emit_return(bucket, order_[size_t(place)], order_[size_t(place + distance)]);
      }
    }
  }
  // The master's send stream only gives weights back, but the others' send and receive both.
  [[nodiscard]] bool is_duplex() const override { return devices() <= 2; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double sum = 0;
    for (int distance = 1; distance < devices(); distance *= 2) {
      sum += transfer_seconds(builder_.inputs(), order_[size_t(distance)], 0, bucket.range.bytes);
    }
    return sum;
  }

 private:
  void emit_pair(const Bucket& bucket, int distance, int source, int target) {
    const Region received = builder_.arriving_gradients(
        target, fmt::format("received gradients, distance {}", distance), bucket.range);
    builder_.emit_transfer("reduce " + bucket.name, Stage::reduce_gradients, bucket.layer, source,
                           target, {{builder_.gradients(source, bucket.range), received}},
                           When::last_batch, full_duplex);
    builder_.emit_add(fmt::format("add {} of @{} @{}", bucket.name, source, target),
                      Stage::reduce_gradients, {target, StreamKind::update},
                      builder_.gradients(target, bucket.range), {received}, When::last_batch);
  }
  // The largest power of two below the number of devices.
  [[nodiscard]] int top() const {
    int distance = 1;
    while (2 * distance < devices()) distance *= 2;
    return distance;
  }
};

}  // namespace

std::unique_ptr<Collective> Collective::make(const std::string& reduction, PlanBuilder& builder) {
  if (reduction == "serial") return make_serial(builder);
  if (reduction == "tree") return make_tree(builder);
  if (reduction == "ring") return make_ring(builder);
  throw error("--reduce {}: unknown reduction{}; there are: serial, tree, ring", reduction,
              did_you_mean(reduction, {"serial", "tree", "ring"}));
}

std::unique_ptr<Collective> make_serial(PlanBuilder& builder) {
  return std::make_unique<Serial>(builder);
}
std::unique_ptr<Collective> make_tree(PlanBuilder& builder) {
  return std::make_unique<Tree>(builder);
}

std::vector<int> device_order(const StrategyInputs& inputs) {
  std::vector<int> all(size_t(inputs.devices));
  std::iota(all.begin(), all.end(), 0);
  return device_order(inputs, all);
}

std::vector<int> device_order(const StrategyInputs& inputs, const std::vector<int>& devices) {
  constexpr int64_t typical = 1 << 20;
  std::vector<int> order{devices.front()};
  std::vector<int> left(devices.begin() + 1, devices.end());
  while (!left.empty()) {
    const auto nearest = std::min_element(left.begin(), left.end(), [&](int a, int b) {
      return transfer_seconds(inputs, order.back(), a, typical) <
             transfer_seconds(inputs, order.back(), b, typical);
    });
    order.push_back(*nearest);
    left.erase(nearest);
  }
  return order;
}

double transfer_seconds(const StrategyInputs& inputs, int source, int target, int64_t bytes) {
  if (inputs.topology != nullptr) return inputs.topology->seconds(source, target, bytes);
  const double bandwidth = inputs.link.bandwidth > 0 ? inputs.link.bandwidth : timing::default_link_bandwidth;
  return inputs.link.latency + static_cast<double>(bytes) / bandwidth;
}

}  // namespace tandem
