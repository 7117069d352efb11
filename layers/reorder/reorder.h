// Reorder: converts a tensor to another layout or dtype. The host inserts it between layers that
// need different ones; its binding's input and output differ only in these.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

struct Reorder : sdk::LayerType {
  const char* name() const override { return "Reorder"; }
  const char* help() const override {
    return "changes the layout or the dtype of a tensor, not its values";
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const double bytes = 8 * static_cast<double>(sdk::count(query.input(0)));
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
