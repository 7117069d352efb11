#include <algorithm>
#include <cmath>
#include <functional>

#include "core/check/passes.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

bool any_nan(const std::vector<PlainTensor>& tensors) {
  for (const PlainTensor& tensor : tensors) {
    for (const float value : tensor.values) {
      if (std::isnan(value)) return true;
    }
  }
  return false;
}

// Where a number has an effect, a NaN in its place must be seen, or refused.
std::string hides_nan(std::vector<float>& values, const std::string& what,
                      const std::function<std::vector<PlainTensor>()>& pass) {
  const size_t max_places = values.size() > 5000 ? 3 : 16;
  for (size_t i = 0; i < std::min(values.size(), max_places); ++i) {
    float& value = values[values.size() <= max_places ? i : i * values.size() / max_places];
    const float kept_value = value;
    const std::vector<PlainTensor> usual = pass();
    bool matters = false;
    for (const float change : {16.0F, -16.0F}) {
      value = kept_value + change;
      try {
        matters |= !differ("", pass(), usual).empty();
      } catch (const Error&) {
      }
    }
    value = NAN;
    bool seen = !matters;
    try {
      seen = seen || any_nan(pass());
    } catch (const Error&) {
      seen = true;
    }
    value = kept_value;
    if (!seen) {
      return fmt::format("a NaN in {} (element {}) does not reach a result", what,
                         &value - values.data());
    }
  }
  return "";
}

}  // namespace

Outcome passes_nan_on(const Subject& subject, const Case& one) {
  if (subject.has(TANDEM_METRIC)) return not_applicable();
  Trial run(subject, one.setup);
  LayerSetup& setup = run.setup();
  const auto forward = [&] { return run.forward(); };
  for (size_t i = 0; i < setup.inputs.size() && !run.output_shapes().empty(); ++i) {
    if (!one.plain[i] || input_role(subject.type, i) == TANDEM_INPUT_NON_DIFFERENTIABLE) continue;
    const std::string hidden =
        hides_nan(setup.inputs[i].values, fmt::format("input {}", i), forward);
    if (!hidden.empty()) return broken(hidden);
  }
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < setup.weights.size(); ++i) {
    if (declared[i].kind == TANDEM_STATE) continue;
    const std::string hidden =
        hides_nan(setup.weights[i].values, fmt::format("weight '{}'", declared[i].name), forward);
    if (!hidden.empty()) return broken(hidden);
  }
  if (!run.wants_data()) return kept();
  std::vector<PlainTensor> factors = run.factors();
  run.forward();
  for (size_t i = 0; i < factors.size(); ++i) {
    const std::string hidden =
        hides_nan(factors[i].values, fmt::format("the gradient of output {}", i),
                  [&] { return run.backward_data(factors); });
    if (!hidden.empty()) return broken(hidden);
  }
  return kept();
}

}  // namespace tandem::checker
