// Eltwise: combines inputs of one shape element by element: SUM (each times its coeff), PROD, MAX
// or MIN; of two inputs also DIV, their quotient, and POW, the first to the power of the second.
// Can run in place of its first input. Of equal values the gradient of MAX and MIN goes to one:
// between inputs 0 and 1 to the second, after that to the earlier, as in Caffe.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

// DIV or POW of two numbers, and its derivatives.
struct Combination {
  float value, by_first, by_second;

  static TANDEM_HOST_DEVICE Combination quotient(float a, float b) {
    const float value = a / b;
    return {value, 1 / b, -value / b};
  }
  // Where the first is not above 0 a derivative that is not finite, or none, is 0.
  static TANDEM_HOST_DEVICE Combination power(float a, float b) {
    const float value = std::pow(a, b);
    return {value, b == 0 || (a == 0 && b < 1) ? 0 : b * std::pow(a, b - 1),
            a <= 0 ? 0 : value * std::log(a)};
  }
};

struct Eltwise : sdk::LayerType {
  const char* name() const override { return "Eltwise"; }
  const char* help() const override {
    return "sum, product, maximum, minimum, quotient or power of its inputs";
  }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::word("eltwise_param", "operation")
            .by_default("SUM")
            .one_of("PROD|SUM|MAX|MIN|DIV|POW")
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
    const std::string_view operation = query.attributes.text("operation");
    const size_t most = operation == "MAX" || operation == "MIN"   ? 255
                        : operation == "DIV" || operation == "POW" ? 2
                                                                   : query.input_count();
    if (query.input_count() > most) {
      throw sdk::unsupported("takes at most ", most, " inputs with operation ", operation, ", not ",
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
