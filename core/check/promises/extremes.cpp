// Values at which float32 breaks a formula that is right elsewhere: zeros, equal values, saturated
// scores, tiny and large numbers, a NaN in one row. A result that is not finite breaks the promise
// if the values around show that the formula is finite there.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "core/check/promises/passes.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

// Element `i` of a row whose usual value is `usual`.
struct Place {
  int64_t row, channel, channels, i;
  float usual;
};
struct Extreme {
  const char* what;
  float (*value)(const Place&);
};
constexpr Extreme extremes[] = {
    {"zeros", [](const Place&) { return 0.0F; }},
    {"equal values", [](const Place&) { return 0.5F; }},
    {"a row of zeros", [](const Place& p) { return p.row == 0 ? 0.0F : p.usual; }},
    {"a 1 in one channel, else 0",
     [](const Place& p) { return p.channel == p.row % p.channels ? 1.0F : 0.0F; }},
    {"values near 1e-30", [](const Place& p) { return 1e-30F * p.usual; }},
    {"values near 1e4", [](const Place& p) { return 1e4F * p.usual; }},
    {"88 and -88", [](const Place& p) { return p.i % 2 == 0 ? 88.0F : -88.0F; }},
    {"88 in one channel, else -88",
     [](const Place& p) { return p.channel == p.row % p.channels ? 88.0F : -88.0F; }},
    {"88 in the next channel, else -88",
     [](const Place& p) { return p.channel == (p.row + 1) % p.channels ? 88.0F : -88.0F; }},
};

// Above this the result of a right formula may overflow.
constexpr double too_large = 1e30;

bool all_positive(const PlainTensor& tensor) {
  return std::all_of(tensor.values.begin(), tensor.values.end(), [](float v) { return v > 0; });
}

LayerSetup with(const Case& one, const Extreme& extreme) {
  LayerSetup setup = one.setup;
  for (size_t input = 0; input < setup.inputs.size(); ++input) {
    PlainTensor& tensor = setup.inputs[input];
    if (!one.plain[input] || tensor.shape.n != one.rows()) continue;
    const bool is_positive = all_positive(tensor);  // as a logarithm needs
    const int64_t area = tensor.shape.h * tensor.shape.w, of_row = tensor.shape.c * area;
    for (int64_t k = 0; k < int64_t(tensor.values.size()); ++k) {
      float& value = tensor.values[size_t(k)];
      value = extreme.value({k / of_row, k % of_row / area, tensor.shape.c, k % of_row, value});
      if (is_positive) value = std::abs(value);
    }
  }
  return setup;
}

struct Element {
  size_t tensor, index;
};
std::optional<Element> not_finite(const std::vector<PlainTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t k = 0; k < tensors[i].values.size(); ++k) {
      if (!std::isfinite(tensors[i].values[k])) return Element{i, k};
    }
  }
  return std::nullopt;
}

// Whether the formula is finite where the kernel's result is not.
enum class Truth { finite, infinite, unknown };

// By the values close to the inputs: a finite limit is near them, a pole grows.
Truth by_neighbors(const Case& one, const LayerSetup& setup,
                   const std::function<double(const LayerSetup&)>& result) {
  constexpr double widths[] = {1e-1, 1e-2, 1e-3};
  double largest[] = {0, 0, 0};
  for (size_t w = 0; w < std::size(widths); ++w) {
    for (const unsigned direction : {0U, 1U, 2U, 3U}) {
      LayerSetup near = setup;
      for (size_t i = 0; i < near.inputs.size(); ++i) {
        if (!one.plain[i]) continue;
        const PlainTensor step = random_tensor(near.inputs[i].shape, 200 + direction);
        const bool is_positive = all_positive(one.setup.inputs[i]);
        for (size_t k = 0; k < step.values.size(); ++k) {
          const float way = is_positive ? std::abs(step.values[k]) : step.values[k];
          near.inputs[i].values[k] += float(widths[w]) * way;
        }
      }
      const double value = result(near);
      if (!std::isfinite(value)) return Truth::unknown;
      largest[w] = std::max(largest[w], std::abs(value));
    }
  }
  return largest[2] <= 1.5 * largest[0] + 1e-6 ? Truth::finite : Truth::unknown;
}

// By the values on the way to zero: what grows as a power goes on so, unlike an exponential.
Truth by_growth(const Case& one, const LayerSetup& setup,
                const std::function<double(const LayerSetup&)>& result) {
  const auto at = [&](double share) {
    LayerSetup smaller = setup;
    for (size_t i = 0; i < smaller.inputs.size(); ++i) {
      if (!one.plain[i]) continue;
      for (float& value : smaller.inputs[i].values) value *= float(share);
    }
    return std::max(std::abs(result(smaller)), 1e-3);  // a NaN stays
  };
  double share = 0.5;
  while (share > 1.0 / 1024 && !std::isfinite(at(share))) share /= 2;
  const double first = at(share), second = at(share / 2), third = at(share / 4);
  if (!std::isfinite(first) || !std::isfinite(second) || !std::isfinite(third)) {
    return Truth::unknown;
  }
  const double slope = std::log2(first / second), before = std::log2(second / third);
  if (slope > before + 0.7 && slope > 1.2) return Truth::infinite;
  return std::log2(first) + std::max(slope, 0.0) * std::log2(1 / share) < std::log2(too_large)
             ? Truth::finite
             : Truth::infinite;
}

// A derivative, by the slopes to both sides in two widths.
Truth by_slopes(Trial& run, float& value) {
  const double here = run.weighted_sum();
  if (!std::isfinite(here)) return Truth::unknown;
  const float middle = value;
  const auto slope = [&](double width) {
    double largest = 0;
    for (const double step : {width, -width}) {
      value = middle + float(step);
      const double moved = std::abs(run.weighted_sum() - here) / width;
      value = middle;
      if (!std::isfinite(moved)) return moved;
      largest = std::max(largest, moved);
    }
    return largest;
  };
  const double width = std::max(1e-3, 1e-3 * std::abs(double(middle)));
  const double wide = slope(16 * width), narrow = slope(width);
  const double rounding_error = 1e-6 * (std::abs(here) + 1) / width;
  if (!std::isfinite(wide) || !std::isfinite(narrow)) return Truth::unknown;
  return narrow <= 2 * wide + rounding_error && narrow < too_large ? Truth::finite : Truth::unknown;
}

// "output 0 is nan at element 3 with zeros"
std::string told(const std::string& tensor, float value, size_t index, const Extreme& extreme) {
  return fmt::format("{} is {} at element {}, with inputs of {}", tensor, shown(double{value}),
                     index, extreme.what);
}

Outcome judged(Truth truth, const std::string& what) {
  if (truth == Truth::finite) return broken(what + ", but finite for the values around them");
  if (truth == Truth::infinite) return kept();
  return note(what + "; whether the formula is, too, cannot be decided");
}

Outcome outputs_at(const Subject& subject, const Case& one, const Extreme& extreme,
                   const LayerSetup& setup, const std::vector<PlainTensor>& outputs,
                   Element place) {
  const auto result = [&](const LayerSetup& near) -> double {
    return double(Trial(subject, near).forward()[place.tensor].values[place.index]);
  };
  Truth truth = by_neighbors(one, setup, result);
  if (truth == Truth::unknown) truth = by_growth(one, setup, result);
  return judged(truth, told(fmt::format("output {}", place.tensor),
                            outputs[place.tensor].values[place.index], place.index, extreme));
}

// Whether a gradient is finite: by its neighbors where it is no derivative.
Truth of_gradient(const Subject& subject, const Case& one, Trial& run, float& value,
                  const std::function<double(Trial&)>& gradient) {
  if (!subject.has(TANDEM_NO_DERIVATIVE)) return by_slopes(run, value);
  return by_neighbors(one, run.setup(), [&](const LayerSetup& near) {
    Trial other(subject, near);
    other.forward();
    return gradient(other);
  });
}

Outcome gradients_at(const Subject& subject, const Case& one, Trial& run, const Extreme& extreme) {
  if (run.wants_data()) {
    const std::vector<PlainTensor> gradients = run.backward_data(run.factors());
    if (const auto place = not_finite(gradients)) {
      const auto of_input = [&](Trial& near) {
        return double(near.backward_data(near.factors())[place->tensor].values[place->index]);
      };
      return judged(of_gradient(subject, one, run,
                                run.setup().inputs[place->tensor].values[place->index], of_input),
                    told(fmt::format("the gradient of input {}", place->tensor),
                         gradients[place->tensor].values[place->index], place->index, extreme));
    }
  }
  if (!run.wants_weights()) return kept();
  const std::vector<PlainTensor> gradients = run.backward_weights(run.factors());
  const std::vector<tandem_weight> declared = run.declared_weights();
  const auto place = not_finite(gradients);
  if (!place) return kept();
  const auto of_weight = [&](Trial& near) {
    return double(near.backward_weights(near.factors())[place->tensor].values[place->index]);
  };
  return judged(of_gradient(subject, one, run,
                            run.setup().weights[place->tensor].values[place->index], of_weight),
                told(fmt::format("the gradient of weight '{}'", declared[place->tensor].name),
                     gradients[place->tensor].values[place->index], place->index, extreme));
}

Outcome at(const Subject& subject, const Case& one, const Extreme& extreme) {
  const LayerSetup setup = with(one, extreme);
  Trial run(subject, setup);
  const std::vector<PlainTensor> outputs = run.forward();
  if (const auto place = not_finite(outputs)) {
    return outputs_at(subject, one, extreme, setup, outputs, *place);
  }
  return setup.phase == TANDEM_TRAIN ? gradients_at(subject, one, run, extreme) : kept();
}

// What a NaN in row 0 does to the other rows.
std::string spread_of_nan(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_PER_SAMPLE) || one.rows() < 2) return "";
  LayerSetup setup = one.setup;
  change_row(one, setup, 0, [](float& value) { value = NAN; });
  const Results usual = results_of(subject, one.setup), with_nan = results_of(subject, setup);
  std::string spread;
  if (!subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
    spread = other_rows(usual.outputs, with_nan.outputs, "output", one.rows(), 0);
  }
  if (spread.empty()) {
    spread = other_rows(usual.input_gradients, with_nan.input_gradients, "the gradient of input",
                        one.rows(), 0);
  }
  return spread.empty() ? "" : spread + ", which holds a NaN";
}

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
    value = NAN;
    bool seen = true;
    try {
      seen = any_nan(pass());
    } catch (const Error&) {
    }
    value = kept_value;
    if (seen) continue;
    const std::vector<PlainTensor> usual = pass();
    bool matters = false;
    for (const float change : {16.0F, -16.0F}) {
      value = kept_value + change;
      try {
        matters |= !differ("", pass(), usual).empty();
      } catch (const Error&) {
      }
    }
    value = kept_value;
    if (matters) {
      return fmt::format("a NaN in {} (element {}) does not reach a result", what,
                         &value - values.data());
    }
  }
  return "";
}

}  // namespace

Outcome stays_finite(const Subject& subject, const Case& one) {
  constexpr int64_t max_elements = 200000;
  if (one.setup.inputs.empty() || element_count(one.setup.inputs[0].shape) > max_elements) {
    return not_applicable();
  }
  const std::pair<std::string, std::string> divides{"stable_prod_grad", "false"};  // as it says
  const auto& written = one.setup.parameters;
  if (std::count(written.begin(), written.end(), divides) > 0) return not_applicable();
  if (not_finite(results_of(subject, one.setup).outputs)) return not_applicable();
  Outcome result = kept();
  for (const Extreme& extreme : extremes) {
    Outcome outcome = kept();
    try {
      outcome = at(subject, one, extreme);
    } catch (const Error&) {  // the kernel refuses such values
    }
    if (outcome.verdict == Outcome::Verdict::broken) return outcome;
    if (outcome.verdict == Outcome::Verdict::note) result = std::move(outcome);
  }
  try {
    const std::string spread = spread_of_nan(subject, one);
    if (!spread.empty()) return broken(spread);
  } catch (const Error&) {
  }
  return result;
}

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
