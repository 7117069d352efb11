// The ring: reduce-scatter, the owner's update, all-gather. Where the solver's rule wants the norms
// of whole gradients (LARS, clip_gradients) nobody has one of a part; then the summed gradients
// travel around in place of the weights, and every device updates everything, with the same bits.
#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/group_reduce.h"

namespace tandem {

namespace {

class Ring final : public Collective {
 public:
  explicit Ring(PlanBuilder& builder)
      : builder_(builder), group_(builder, device_order(builder.inputs())) {}

  void emit_reduction(const Bucket& bucket) override {
    const RingGroup::Shown shown{bucket.name, bucket.layer};
    group_.emit_reduce_scatter(shown, bucket.range);
    if (is_owned()) return;
    group_.emit_all_gather(shown, "gather", bucket.range, &PlanBuilder::gradients);
    for (int device = 0; device < devices(); ++device) {
      builder_.emit_norms(fmt::format("norms {} @{}", bucket.name, device), Stage::update, device,
                          bucket.weights, StreamKind::update);
    }
  }

  void emit_update(const Bucket& bucket) override {
    for (int place = 0; place < devices(); ++place) {
      const int device = group_.member(place);
      if (!is_owned()) {
        builder_.emit_update(fmt::format("update {} @{}", bucket.name, device), Stage::update,
                             device, bucket.weights, StreamKind::update);
        continue;
      }
      for (int half = 0; half < group_.halves(bucket.range); ++half) {
        const std::vector<WeightSlice> parts =
            slices_in(builder_.net(), bucket.weights, group_.slice(bucket.range, place, half));
        if (parts.empty()) continue;
        builder_.emit_update(
            fmt::format("update {} {} @{}", bucket.name, RingGroup::part_name(place, half), device),
            Stage::update, device, parts, StreamKind::update);
      }
    }
  }

  void emit_return(const Bucket& bucket) override {
    if (!is_owned()) return;
    group_.emit_all_gather({bucket.name, bucket.layer, Stage::broadcast_weights}, "return",
                           bucket.range, &PlanBuilder::weights);
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
  [[nodiscard]] int devices() const { return builder_.devices(); }
  [[nodiscard]] bool is_owned() const { return !builder_.inputs().needs_norms; }

  PlanBuilder& builder_;
  RingGroup group_;
};

}  // namespace

std::unique_ptr<Collective> make_ring(PlanBuilder& builder) {
  return std::make_unique<Ring>(builder);
}

}  // namespace tandem
