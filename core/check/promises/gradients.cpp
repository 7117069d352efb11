#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

// Kernels compute in float32, so a difference over a step h has an error of about 1e-7 |y| / h by
// rounding and of h^2 |f'''| / 6 by curvature. With h = 1e-2 and Richardson's extrapolation from h
// and h / 2 both are below 1e-4 of the largest gradient for outputs of a size near 1. The tolerance
// is well above that and well below what a wrong factor or index makes of it.
constexpr double step = 1e-2;
constexpr double tolerance = 5e-3;
// If the differences over h and h / 2 are this far apart, there is a kink between, and no
// derivative to compare with.
constexpr double kink = 0.02;

// Passes of so many elements take long, and sums of so many float32 outputs may hide the difference
// that one element makes.
bool is_large(const LayerSetup& setup) {
  return !setup.inputs.empty() && element_count(setup.inputs[0].shape) > 5000;
}

// Up to `max_count` places, spread over the tensor.
std::vector<size_t> sampled(size_t size, size_t max_count) {
  std::vector<size_t> places;
  for (size_t i = 0; i < std::min(size, max_count); ++i) {
    places.push_back(size <= max_count ? i : (i * size + size / 2) / max_count);
  }
  return places;
}

// "input 1 ('label')"
std::string input_name(const tandem_layer_type& type, size_t input) {
  if (type.input_count == 0) return fmt::format("input {}", input);
  return fmt::format("input {} ('{}')", input,
                     type.inputs[std::min<size_t>(input, type.input_count - 1)]->name);
}

struct Compared {
  std::string wrong;       // how the gradient is wrong; "": it is not
  bool is_decided = true;  // false: rounding hides what would tell
};

// The gradient of `values`, a tensor of the run's setup.
Compared compare(Trial& run, std::vector<float>& values, const std::vector<float>& gradient,
                 const std::string& what, size_t max_places) {
  double largest = 0;
  for (const float one : gradient) {
    if (!std::isfinite(one)) return {fmt::format("the gradient of {} is not finite", what)};
    largest = std::max(largest, std::abs(double(one)));
  }
  const auto slope = [&](float& value, double width) {
    const float middle = value;
    value = middle + float(width);
    const double above = value, high = run.weighted_sum();
    value = middle - float(width);
    const double below = value, low = run.weighted_sum();
    value = middle;
    return (high - low) / (above - below);
  };
  struct Sample {
    size_t place;
    double wide, expected;
  };
  std::vector<Sample> samples;
  const double size = std::abs(run.weighted_sum());
  for (const size_t place : sampled(values.size(), max_places)) {
    const double wide = slope(values[place], step), narrow = slope(values[place], step / 2);
    samples.push_back({place, wide, narrow + (narrow - wide) / 3});
    largest = std::max(largest, std::abs(samples.back().expected));
  }
  const double rounding = 4e-7 * (size + 1) / step;
  if (rounding > 0.2 * largest && largest > 0) return {"", false};
  for (const Sample& s : samples) {
    if (std::abs(s.wide - s.expected) > kink * largest + rounding) continue;
    const double error = std::abs(double(gradient[s.place]) - s.expected);
    if (error <= tolerance * largest + rounding) continue;
    // A strong curvature, as of the cosine of a short vector, needs a smaller step.
    const double near = slope(values[s.place], step / 4),
                 nearest = slope(values[s.place], step / 8),
                 closer = nearest + (nearest - near) / 3;
    if (std::abs(double(gradient[s.place]) - closer) <= tolerance * largest + rounding) continue;
    return {fmt::format(
        "the gradient of {} at element {} is {:.6g}, but finite differences give {:.6g}", what,
        s.place, gradient[s.place], shown(s.expected))};
  }
  return {};
}

// How the author of a layer that is right all the same gets past the comparison.
constexpr const char* way_out =
    " (a type whose gradients are no derivatives on purpose says TANDEM_NO_DERIVATIVE)";

// Of a type that says so.
Outcome finite_without_derivative(const std::vector<PlainTensor>& gradients) {
  for (const PlainTensor& gradient : gradients) {
    for (const float one : gradient.values) {
      if (!std::isfinite(one)) return broken("a gradient is not finite");
    }
  }
  return left_out(
      "gradients are not compared with finite differences, as the type says TANDEM_NO_DERIVATIVE");
}

constexpr size_t usual_places = 20, places_of_large = 4;

// Gradients for output gradients that are so many times as large; "" if they are as large, too.
constexpr float enlargement = 64;
std::string not_proportional(std::vector<PlainTensor> gradients,
                             const std::vector<PlainTensor>& of_more) {
  multiply(gradients, enlargement);
  const std::string differs = differ("the gradient", of_more, gradients, 1e-5);
  return differs.empty() ? ""
                         : fmt::format(
                               "{} from {:g} times itself if the output gradients are {:g} "
                               "times as large",
                               differs, enlargement, enlargement);
}

// Large inputs are looked at where no case has smaller ones, as those of a net.
bool is_left_to_others(const Subject& subject, const Case& one) {
  return is_large(one.setup) &&
         std::any_of(subject.cases.begin(), subject.cases.end(),
                     [](const Case& other) { return !is_large(other.setup); });
}

Outcome undecided(const std::vector<std::string>& names) {
  return note(
      fmt::format("not checked: in float32 the rounding of sums hides the gradient of {}; "
                  "give a smaller case with --set and --input",
                  fmt::join(names, ", ")));
}

}  // namespace

Outcome check_input_gradients(const Subject& subject, const Case& one) {
  if (is_left_to_others(subject, one) || !subject.wants_data(one.setup)) return not_applicable();
  Trial run(subject, one.setup);
  run.forward();
  const std::vector<PlainTensor> gradients = run.backward_data(run.factors());
  if (subject.has(TANDEM_NO_DERIVATIVE)) return finite_without_derivative(gradients);
  std::vector<PlainTensor> factors = run.factors();
  multiply(factors, enlargement);
  const std::string grows = not_proportional(gradients, run.backward_data(factors));
  if (!grows.empty()) return broken(grows + way_out);
  std::vector<std::string> hidden;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].values.empty() || !one.plain[i]) continue;
    const std::string name = input_name(subject.type, i);
    const Compared compared = compare(run, run.setup().inputs[i].values, gradients[i].values, name,
                                      is_large(one.setup) ? places_of_large : usual_places);
    if (!compared.wrong.empty()) return broken(compared.wrong + way_out);
    if (!compared.is_decided) hidden.push_back(name);
  }
  return hidden.empty() ? kept() : undecided(hidden);
}

Outcome check_weight_gradients(const Subject& subject, const Case& one) {
  if (is_left_to_others(subject, one)) return not_applicable();
  Trial run(subject, one.setup);
  if (!run.wants_weights()) return not_applicable();
  run.forward();
  const std::vector<PlainTensor> gradients = run.backward_weights(run.factors());
  if (subject.has(TANDEM_NO_DERIVATIVE)) return finite_without_derivative(gradients);
  const std::vector<tandem_weight> declared = run.declared_weights();
  std::vector<PlainTensor> factors = run.factors();
  multiply(factors, enlargement);
  const std::string grows = not_proportional(gradients, run.backward_weights(factors));
  if (!grows.empty()) return broken(grows + way_out);
  std::vector<std::string> hidden;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (declared[i].kind != TANDEM_TRAINED) continue;
    const std::string name = fmt::format("weight '{}'", declared[i].name);
    const Compared compared = compare(run, run.setup().weights[i].values, gradients[i].values, name,
                                      is_large(one.setup) ? places_of_large : usual_places);
    if (!compared.wrong.empty()) return broken(compared.wrong + way_out);
    if (!compared.is_decided) hidden.push_back(name);
  }
  return hidden.empty() ? kept() : undecided(hidden);
}

}  // namespace tandem::checker
