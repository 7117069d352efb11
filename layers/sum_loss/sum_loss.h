// SumLoss: the sum of all values of the batch, or its mean over the samples. The host appends one
// to a layer that is not a loss but has a loss_weight, which has this meaning in Caffe.
#pragma once

#include <vector>

#include "layers/common/loss.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SumLoss : sdk::LayerType {
  const char* name() const override { return "SumLoss"; }
  const char* help() const override { return "the sum of all values of the batch"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::word("loss_param", "normalization")
            .by_default("NONE")
            .one_of("NONE|BATCH_SIZE")
            .help("divide by 1 or by the samples"),
    };
  }
  uint64_t traits() const override { return TANDEM_LOSS; }
  std::vector<sdk::Shape> shapes(const sdk::Query&) const override { return {{1, 1, 1, 1}}; }
};

}  // namespace tandem::layers
