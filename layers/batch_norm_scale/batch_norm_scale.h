// BatchNormScale: a BatchNorm with the Scale that usually follows it as one layer, y = weight * (x
// - mean) / sqrt(variance + eps) + bias per channel. Its weights are those of a BatchNorm, then the
// factors and biases. In net files also `type: "BatchNorm"` with `batch_norm_param { scale_bias:
// true }`. It is a type of its own because its backward pass reads x: no normalized values are
// stored, and a ReLU after it can be fused in training, too.
#pragma once

#include <vector>

#include "layers/batch_norm/batch_norm.h"

namespace tandem::layers {

struct BatchNormScale : BatchNorm {
  const char* name() const override { return "BatchNormScale"; }
  const char* help() const override {
    return "BatchNorm and Scale in one layer; also written as a BatchNorm with scale_bias";
  }
  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = BatchNorm::parameters();
    const char* block = "batch_norm_param";
    result.push_back(sdk::filler(block, "scale_filler").help("initial factors; default 1"));
    result.push_back(
        sdk::filler(block, "bias_filler").by_default("constant").help("initial biases"));
    return result;
  }
  bool has_scale_bias() const override { return true; }
  uint64_t traits() const override {
    return TANDEM_BATCH_STATISTICS | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_INPUTS;
  }

  // Where the factors and biases are among the weights.
  static constexpr size_t factors = 3, biases = 4;

  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    std::vector<sdk::Weight> result = BatchNorm::weights(query);
    const sdk::Shape channels = result[0].shape;
    result.push_back({.name = "weight", .shape = channels, .filler = "scale_filler", .initial = 1});
    result.push_back({.name = "bias", .shape = channels, .filler = "bias_filler"});
    return result;
  }

  // The sums over the whole batch, which the backward statistics are, are also the gradients of the
  // weights. Each device gives the share that its rows have of the batch, so that the sum over the
  // devices is right. Arguments: 1 / the number of values of a channel in the batch and in the
  // rows.
  TANDEM_HOST_DEVICE static float share_of_rows(float of_batch, float of_rows) {
    return of_batch / of_rows;
  }
};

}  // namespace tandem::layers
