// Eltwise: combines inputs of one shape element by element: SUM (each times its coeff), PROD or
// MAX. Can run in place of its first input. Of equal values the gradient of MAX goes to one:
// between inputs 0 and 1 to the second, after that to the earlier, as in Caffe.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Eltwise : sdk::LayerType {
  const char* name() const override { return "Eltwise"; }
  const char* help() const override { return "sum, product or maximum of its inputs"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::word("eltwise_param", "operation")
            .by_default("SUM")
            .one_of("PROD|SUM|MAX")
            .help("how elements are combined"),
        sdk::numbers("eltwise_param", "coeff").help("SUM: factor of each input; default 1"),
        sdk::boolean("eltwise_param", "stable_prod_grad")
            .by_default("true")
            .help("PROD: the gradient multiplies the other inputs; else output / input"),
    };
  }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data"), sdk::Input("other").repeated()};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    for (size_t i = 1; i < query.input_count(); ++i) {
      if (sdk::equal(query.input(i), query.input(0))) continue;
      throw sdk::invalid("input ", i, " is ", sdk::text_of(query.input(i)), ", but input 0 is ",
                         sdk::text_of(query.input(0)), ": shapes must be equal");
    }
    require_coefficients(query);
    if (query.input_count() > 255 && query.attributes.text("operation") == "MAX") {
      throw sdk::unsupported("takes at most 255 inputs with operation MAX, not ",
                             query.input_count());
    }
    return {query.input(0)};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    const auto inputs = static_cast<double>(query.input_count());
    const double bytes = 4 * elements * (inputs + 1);
    return make_cost(elements * (inputs - 1), elements * inputs, 0, bytes, bytes, 0);
  }

 private:
  static void require_coefficients(const sdk::Query& query) {
    const size_t coefficients = query.attributes.numbers("coeff").size();
    if (coefficients == 0) return;
    if (query.attributes.text("operation") != "SUM") {
      throw sdk::invalid("coeff is for operation SUM only, not for ",
                         query.attributes.text("operation"));
    }
    if (coefficients != query.input_count()) {
      throw sdk::invalid("has ", coefficients, " coeff for ", query.input_count(),
                         " inputs: write one for each, or none");
    }
  }
};

}  // namespace tandem::layers
