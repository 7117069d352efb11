// The ring: reduce-scatter, the owner's update, all-gather. Where the solver's rule wants the norms
// of whole gradients (LARS, clip_gradients) nobody has one of a part; then the summed gradients
// travel around in place of the weights, and every device updates everything, with the same bits.
#include <fmt/format.h>

#include "core/schedule/strategies/collectives.h"

namespace tandem {

namespace {

constexpr int64_t smallest_half = 16 << 10;  // below it a part is not cut in two: latency counts

class Ring final : public Collective {
 public:
  Ring(PlanBuilder& builder, const std::vector<Bucket>& buckets)
      : builder_(builder), order_(device_order(builder.inputs())) {
    if (is_owned()) {
      place_parts(buckets);
    } else {
      const int64_t bytes = all_weights(builder_.net()).bytes;
      for (int d = 0; d < devices(); ++d) {
        builder_.plan().state_parts.push_back({d, 0, bytes, 0, bytes});
      }
    }
  }

  void emit_reduction(const Bucket& bucket) override {
    for (int round = 0; round + 1 < devices(); ++round) {
      for (int half = 0; half < halves(bucket); ++half) {
        for (int place = 0; place < devices(); ++place) {
          emit_scatter(bucket, part_at(place, round + 1), half, place);
        }
      }
    }
    if (is_owned()) return;
    emit_gather(bucket, Stage::reduce_gradients, "gather", &PlanBuilder::gradients);
    for (int device = 0; device < devices(); ++device) {
      builder_.emit_norms(fmt::format("norms {} @{}", bucket.name, device), Stage::update, device,
                          bucket.weights, StreamKind::update);
    }
  }

  void emit_update(const Bucket& bucket) override {
    for (int place = 0; place < devices(); ++place) {
      const int device = order_[size_t(place)];
      if (!is_owned()) {
        builder_.emit_update(fmt::format("update {} @{}", bucket.name, device), Stage::update,
                             device, bucket.weights, StreamKind::update);
        continue;
      }
      for (int half = 0; half < halves(bucket); ++half) {
        const WeightRange range = slice(bucket, place, half);
        if (range.bytes == 0) continue;
        const StatePart& kept = state_of(bucket, device);
        const UpdatePart part{range, kept.begin + range.offset - kept.offset, kept.stride};
        builder_.emit_update(
            fmt::format("update {} {} @{}", bucket.name, part_name(place, half), device),
            Stage::update, device, bucket.weights, StreamKind::update, &part);
      }
    }
  }

  void emit_return(const Bucket& bucket) override {
    if (is_owned()) emit_gather(bucket, Stage::return_weights, "return", &PlanBuilder::weights);
  }

  [[nodiscard]] bool updates_everywhere() const override { return true; }
  [[nodiscard]] bool is_duplex() const override { return false; }
  [[nodiscard]] double seconds(const Bucket& bucket) const override {
    double slowest = 0;
    const int64_t bytes = bucket.range.bytes / devices();
    for (int place = 0; place < devices(); ++place) {
      slowest = std::max(
          slowest, transfer_seconds(builder_.inputs(), order_[size_t(place)], next(place), bytes));
    }
    return slowest * (devices() - 1) * (is_owned() ? 1 : 2);
  }

 private:
  using Array = Region (PlanBuilder::*)(int, const WeightRange&);

  [[nodiscard]] int devices() const { return builder_.devices(); }
  [[nodiscard]] bool is_owned() const { return !builder_.inputs().needs_norms; }
  [[nodiscard]] int next(int place) const { return order_[size_t((place + 1) % devices())]; }
  // The part that the device at that place holds `rounds` behind its own.
  [[nodiscard]] int part_at(int place, int rounds) const {
    return (place - rounds + devices()) % devices();
  }
  [[nodiscard]] int halves(const Bucket& bucket) const {
    return bucket.range.bytes / devices() >= 2 * smallest_half ? 2 : 1;
  }
  [[nodiscard]] WeightRange slice(const Bucket& bucket, int part, int half) const {
    return slice_of(slice_of(bucket.range, part, devices()), half, halves(bucket));
  }
  static std::string part_name(int part, int half) {
    return fmt::format("part {}{}", part, half == 0 ? "" : "b");
  }

  // Every owner's parts lie one behind the other, in the order of the buckets.
  void place_parts(const std::vector<Bucket>& buckets) {
    std::vector<StatePart>& parts = builder_.plan().state_parts;
    std::vector<int64_t> filled(size_t(devices()), 0);
    for (const Bucket& bucket : buckets) {
      for (int place = 0; place < devices(); ++place) {
        const WeightRange range = slice_of(bucket.range, place, devices());
        const auto device = size_t(order_[size_t(place)]);
        if (range.bytes == 0) continue;
        parts.push_back({order_[size_t(place)], range.offset, range.bytes, filled[device], 0});
        filled[device] += (range.bytes + 63) / 64 * 64;
      }
    }
    for (StatePart& part : parts) part.stride = filled[size_t(part.device)];
  }
  [[nodiscard]] const StatePart& state_of(const Bucket& bucket, int device) const {
    for (const StatePart& part : builder_.plan().state_parts) {
      const bool inside = part.offset >= bucket.range.offset &&
                          part.offset < bucket.range.offset + bucket.range.bytes;
      if (part.device == device && inside) return part;
    }
    throw error("ring: bucket '{}' has no state on device {}", bucket.name, device);
  }

  // The sum so far of a part goes to the next device, which adds its own.
  void emit_scatter(const Bucket& bucket, int part, int half, int place) {
    const WeightRange range = slice(bucket, part, half);
    if (range.bytes == 0) return;
    const int source = order_[size_t(place)], target = next(place);
    const int buffer = builder_.buffer({"received gradients",
                                        target,
                                        BufferKind::transient,
                                        all_weights(builder_.net()).bytes,
                                        1,
                                        {}});
    const Region received{buffer, range.offset, range.bytes};
    const std::string what = bucket.name + " " + part_name(part, half);
    builder_.emit_transfer("reduce " + what, Stage::reduce_gradients, bucket.layer, source, target,
                           {{builder_.gradients(source, range), received}}, When::last_batch,
                           full_duplex);
    builder_.emit_add(fmt::format("add {} @{}", what, target), Stage::reduce_gradients,
                      {target, StreamKind::update}, builder_.gradients(target, range), {received},
                      When::last_batch);
  }

  // Every owner's part around the ring.
  void emit_gather(const Bucket& bucket, Stage stage, const std::string& verb, Array array) {
    for (int round = 0; round + 1 < devices(); ++round) {
      for (int half = 0; half < halves(bucket); ++half) {
        for (int place = 0; place < devices(); ++place) {
          const int part = part_at(place, round);
          const WeightRange range = slice(bucket, part, half);
          if (range.bytes == 0) continue;
          const int source = order_[size_t(place)], target = next(place);
          builder_.emit_transfer(
              fmt::format("{} {} {}", verb, bucket.name, part_name(part, half)), stage,
              bucket.layer, source, target,
              {{(builder_.*array)(source, range), (builder_.*array)(target, range)}},
              When::last_batch, full_duplex);
        }
      }
    }
  }

  PlanBuilder& builder_;
  std::vector<int> order_;
};

}  // namespace

std::unique_ptr<Collective> make_ring(PlanBuilder& builder, const std::vector<Bucket>& buckets) {
  return std::make_unique<Ring>(builder, buckets);
}

}  // namespace tandem
