#include "core/schedule/strategies/common/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "plugins/simulation.h"

namespace tandem {
namespace {

// Gradients come together on the root, which alone updates.
class ToRoot : public Collective {
 public:
  explicit ToRoot(PlanBuilder& builder)
      : builder_(builder), order_(device_order(builder.inputs())) {}

  void emit_update(const Bucket& bucket) override {
    builder_.emit_update(fmt::format("update {} @0", bucket.name), stages::update, 0,
                         bucket.weights, StreamKind::update);
  }
  [[nodiscard]] bool updates_everywhere() const override { return false; }

 protected:
  void emit_norms(const Bucket& bucket) {
    builder_.emit_norms(fmt::format("norms {} @0", bucket.name), stages::update, 0, bucket.weights,
                        StreamKind::update);
  }
  void emit_copy(const Bucket& bucket, int source, int target) {
    builder_.emit_transfer("broadcast " + bucket.name, stages::broadcast_weights, bucket.layer,
                           source, target,
                           builder_.copies(&PlanRegions::weights, source, target, {bucket.range}),
                           When::last_micro_batch, full_duplex);
  }
  [[nodiscard]] int devices() const { return builder_.devices(); }

  PlanBuilder& builder_;
  std::vector<int> order_;
};

class Serial final : public ToRoot {
 public:
  using ToRoot::ToRoot;

  void emit_reduction(const Bucket& bucket) override {
    std::vector<Region> received;
    for (int device = 1; device < devices(); ++device) {
      received.push_back(builder_.received_gradients(device, bucket.range));
      builder_.emit_transfer("reduce " + bucket.name, stages::reduce_gradients, bucket.layer,
                             device, 0,
                             {{builder_.gradients(device, bucket.range), received.back()}},
                             When::last_micro_batch, full_duplex);
    }
    if (!received.empty()) {
      builder_.emit_add(fmt::format("add {} @0", bucket.name), stages::reduce_gradients,
                        {0, StreamKind::update}, builder_.gradients(0, bucket.range),
                        std::move(received), When::last_micro_batch);
    }
    emit_norms(bucket);
  }
  void emit_broadcast(const Bucket& bucket) override {
    for (int device = 1; device < devices(); ++device) emit_copy(bucket, 0, device);
  }
  [[nodiscard]] bool is_duplex() const override { return true; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double sum = 0;
    for (int device = 1; device < devices(); ++device) {
      sum += transfer_seconds(builder_.inputs(), device, 0, bucket.range.count());
    }
    return sum;
  }
};

class Tree final : public ToRoot {
 public:
  using ToRoot::ToRoot;

  void emit_reduction(const Bucket& bucket) override {
    for (int distance = 1; distance < devices(); distance *= 2) {
      for (int place = 0; place + distance < devices(); place += 2 * distance) {
        emit_pair(bucket, distance, order_[size_t(place + distance)], order_[size_t(place)]);
      }
    }
    emit_norms(bucket);
  }
  void emit_broadcast(const Bucket& bucket) override {
    for (int distance = top(); distance > 0; distance /= 2) {
      for (int place = 0; place + distance < devices(); place += 2 * distance) {
        emit_copy(bucket, order_[size_t(place)], order_[size_t(place + distance)]);
      }
    }
  }
  // The root's send stream carries weights only, but those of the others carry both.
  [[nodiscard]] bool is_duplex() const override { return devices() <= 2; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double sum = 0;
    for (int distance = 1; distance < devices(); distance *= 2) {
      sum += transfer_seconds(builder_.inputs(), order_[size_t(distance)], 0, bucket.range.count());
    }
    return sum;
  }

 private:
  void emit_pair(const Bucket& bucket, int distance, int source, int target) {
    const Region received = builder_.arriving_gradients(
        target, fmt::format("received gradients, distance {}", distance), bucket.range);
    builder_.emit_transfer("reduce " + bucket.name, stages::reduce_gradients, bucket.layer, source,
                           target, {{builder_.gradients(source, bucket.range), received}},
                           When::last_micro_batch, full_duplex);
    builder_.emit_add(fmt::format("add {} of @{} @{}", bucket.name, source, target),
                      stages::reduce_gradients, {target, StreamKind::update},
                      builder_.gradients(target, bucket.range), {received}, When::last_micro_batch);
  }
  // The largest power of two below the number of devices.
  [[nodiscard]] int top() const {
    int distance = 1;
    while (2 * distance < devices()) distance *= 2;
    return distance;
  }
};

// Reduce-scatter, the owner's update, all-gather. Where the solver's rule wants the norms of whole
// gradients (LARS, clip_gradients) nobody has one of a part. Then the summed gradients are gathered
// in place of the weights, and every device updates everything, with the same bits.
class Ring final : public Collective {
 public:
  Ring(PlanBuilder& builder, const std::vector<int>& devices, int pieces)
      : builder_(builder), group_(builder, device_order(builder.inputs(), devices), pieces) {}

  void emit_reduction(const Bucket& bucket) override {
    const RingGroup::Label label{bucket.name, bucket.layer, stages::reduce_gradients,
                                 stages::reduce_gradients};
    group_.emit_reduce_scatter(label, bucket.range);
    if (is_owned()) return;
    group_.emit_all_gather(label, bucket.range, &PlanRegions::gradients);
    for (int place = 0; place < devices(); ++place) {
      const int device = group_.member(place);
      builder_.emit_norms(fmt::format("norms {} @{}", bucket.name, device), stages::update, device,
                          bucket.weights, StreamKind::update);
    }
  }

  void emit_update(const Bucket& bucket) override {
    for (int place = 0; place < devices(); ++place) {
      const int device = group_.member(place);
      if (!is_owned()) {
        builder_.emit_update(fmt::format("update {} @{}", bucket.name, device), stages::update,
                             device, bucket.weights, StreamKind::update);
        continue;
      }
      for (int piece = 0; piece < group_.pieces(bucket.range); ++piece) {
        const std::vector<WeightSlice> parts =
            slices_in(builder_.net(), bucket.weights, group_.slice(bucket.range, place, piece));
        if (parts.empty()) continue;
        builder_.emit_update(fmt::format("update {} {} @{}", bucket.name,
                                         RingGroup::part_name(place, piece), device),
                             stages::update, device, parts, StreamKind::update);
      }
    }
  }

  void emit_broadcast(const Bucket& bucket) override {
    if (!is_owned()) return;
    group_.emit_all_gather({bucket.name, bucket.layer, stages::broadcast_weights}, bucket.range,
                           &PlanRegions::weights);
  }

  [[nodiscard]] bool updates_everywhere() const override { return true; }
  [[nodiscard]] bool is_duplex() const override { return false; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double slowest = 0;
    const int64_t bytes = bucket.range.count() / devices();
    for (int place = 0; place < devices(); ++place) {
      slowest = std::max(slowest, transfer_seconds(builder_.inputs(), group_.member(place),
                                                   group_.member(place + 1), bytes));
    }
    return slowest * (devices() - 1) * (is_owned() ? 1 : 2);
  }

 private:
  [[nodiscard]] int devices() const { return group_.size(); }
  [[nodiscard]] bool is_owned() const { return !builder_.inputs().needs_norms; }

  PlanBuilder& builder_;
  RingGroup group_;
};

}  // namespace

std::unique_ptr<Collective> Collective::make(const std::string& reduction, PlanBuilder& builder,
                                             int pieces) {
  if (reduction == "serial") return std::make_unique<Serial>(builder);
  if (reduction == "tree") return std::make_unique<Tree>(builder);
  if (reduction == "ring") return make_ring(builder, builder.inputs().all_devices(), pieces);
  throw error("--reduce {}: unknown reduction{}; there are: serial, tree, ring", reduction,
              did_you_mean(reduction, {"serial", "tree", "ring"}));
}

std::unique_ptr<Collective> Collective::make_ring(PlanBuilder& builder,
                                                  const std::vector<int>& devices, int pieces) {
  return std::make_unique<Ring>(builder, devices, pieces);
}

std::vector<int> device_order(const StrategyInputs& inputs) {
  return device_order(inputs, inputs.all_devices());
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
  const double bandwidth =
      inputs.link.bandwidth > 0 ? inputs.link.bandwidth : timing::default_link_bandwidth;
  return inputs.link.latency + static_cast<double>(bytes) / bandwidth;
}

}  // namespace tandem
