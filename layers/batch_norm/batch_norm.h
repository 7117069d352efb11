// BatchNorm: y = (x - mean) / sqrt(variance + eps) per channel, without scale and shift; can run in
// place. In training, mean and variance are those of the whole batch on any number of devices, or
// with per_device those of each device's rows. Running sums of both are kept as state and used in
// testing. S. Ioffe, C. Szegedy: Batch Normalization, 2015.
#pragma once

#include <vector>

#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct BatchNorm : sdk::LayerType {
  const char* name() const override { return "BatchNorm"; }
  const char* help() const override {
    return "each channel shifted and scaled to mean 0, variance 1";
  }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "batch_norm_param";
    return {
        sdk::boolean(block, "use_global_stats")
            .help("use the running statistics instead of the batch's; default: in testing only"),
        sdk::number(block, "moving_average_fraction")
            .by_default("0.999")
            .range(0, 1)
            .help("fraction of the running statistics that each step keeps"),
        sdk::number(block, "eps").by_default("1e-5").range(0, 1e6).help("added to the variance"),
        sdk::boolean(block, "per_device")
            .by_default("false")
            .help("statistics of each device's rows; the running ones are device 0's"),
        sdk::boolean(block, "scale_bias")
            .by_default(has_scale_bias() ? "true" : "false")
            .help("trained factors and biases: chooses between BatchNorm and BatchNormScale"),
        engine_parameter(block),
    };
  }
  uint64_t traits() const override {
    return TANDEM_BATCH_STATISTICS | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS;
  }

  // Whether this type has trained factors and biases. The reader of nets chooses the type by the
  // parameter scale_bias; kernels do not read it.
  virtual bool has_scale_bias() const { return false; }

  // The running sums, and the sum of their weights, which divides both.
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    const sdk::Shape channels{query.input(0).c, 1, 1, 1};
    return {{.name = "mean", .shape = channels, .kind = TANDEM_STATE},
            {.name = "variance", .shape = channels, .kind = TANDEM_STATE},
            {.name = "scale_factor", .shape = {1, 1, 1, 1}, .kind = TANDEM_STATE}};
  }

  static bool uses_kept_statistics(const sdk::Attributes& attributes, bool training) {
    return attributes.is_set("use_global_stats") ? attributes.boolean("use_global_stats")
                                                 : !training;
  }
  sdk::Statistics statistics(const sdk::Query& query) const override {
    const bool own = uses_kept_statistics(query.attributes, query.training()) ||
                     query.attributes.boolean("per_device");
    if (own) return {};
    return {forward_statistics(query.input(0).c), backward_statistics(query.input(0).c)};
  }
  // In doubles: the count, then each channel's mean, then its sum of squared deviations.
  static int64_t forward_statistics(int64_t channels) { return 2 * (1 + 2 * channels); }
  // Each channel's sum of dy, then that of dy * y.
  static int64_t backward_statistics(int64_t channels) { return 2 * channels; }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(6 * elements, 10 * elements, 0, 8 * elements, 12 * elements, 0);
  }
};

}  // namespace tandem::layers
