// Split: gives one tensor to several consumers. Its backward pass sums their gradients in order.
// The host inserts it where an output has more than one consumer.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

struct Split : sdk::LayerType {
  const char* name() const override { return "Split"; }
  const char* help() const override { return "copies its input to every output"; }
  sdk::Arity outputs() const override { return {1, -1}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    const auto outputs = static_cast<double>(query.output_count());
    const double bytes = 4 * elements * (outputs + 1);
    return make_cost(0, elements * (outputs - 1), 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
