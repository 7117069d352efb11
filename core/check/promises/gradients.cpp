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

// The derivative by one value, over a step and as the limit of two.
struct Slopes {
  double wide, expected;
};
Slopes slopes_of(Trial& run, float& value, double width) {
  const auto slope = [&](double by) {
    const float middle = value;
    value = middle + float(by);
    const double above = value, high = run.weighted_sum();
    value = middle - float(by);
    const double below = value, low = run.weighted_sum();
    value = middle;
    return (high - low) / (above - below);
  };
  const double wide = slope(width), narrow = slope(width / 2);
  return {wide, narrow + (narrow - wide) / 3};
}

// What gradients of a tensor are compared with: the largest of them, and the error of sums.
struct Scale {
  double largest = 0, rounding = 0;
  [[nodiscard]] bool fits(double gradient, double expected) const {
    return std::abs(gradient - expected) <= tolerance * largest + rounding;
  }
};

enum class Fit { right, kinked, wrong };
Fit fit_of(Trial& run, float& value, double gradient, const Slopes& slopes, const Scale& scale) {
  if (std::abs(slopes.wide - slopes.expected) > kink * scale.largest + scale.rounding) {
    return Fit::kinked;
  }
  if (scale.fits(gradient, slopes.expected)) return Fit::right;
  // A strong curvature, as of the cosine of a short vector, needs a smaller step.
  return scale.fits(gradient, slopes_of(run, value, step / 4).expected) ? Fit::right : Fit::wrong;
}

// Moves all values of the inputs away that a step brings past this one, or past its opposite, as
// layers that sort have a kink there. False if there are none.
bool clear_of_ties(const Case& one, LayerSetup& setup, size_t input, size_t place) {
  constexpr auto far = float(3 * step);
  const float middle = setup.inputs[input].values[place];
  bool has_moved = false;
  for (size_t i = 0; i < setup.inputs.size(); ++i) {
    if (!one.plain[i]) continue;
    std::vector<float>& values = setup.inputs[i].values;
    for (size_t k = 0; k < values.size(); ++k) {
      if (i == input && k == place) continue;
      for (const float tie : {middle, -middle}) {
        if (std::abs(values[k] - tie) >= far) continue;
        values[k] = values[k] < tie ? tie - far : tie + far;
        has_moved = true;
      }
    }
  }
  return has_moved;
}

// A tensor of a run whose gradient is compared.
struct Compare {
  const Subject& subject;
  const Case& one;
  Trial& run;
  bool is_weight;
  size_t index;
  std::string what;

  [[nodiscard]] std::vector<float>& values(Trial& of) const {
    return (is_weight ? of.setup().weights : of.setup().inputs)[index].values;
  }
  [[nodiscard]] Fit without_ties(size_t place, const Scale& scale, Fit usual) const {
    LayerSetup setup = run.setup();
    if (is_weight || !clear_of_ties(one, setup, index, place)) return usual;
    Trial clear(subject, setup);
    clear.forward();
    const double gradient = clear.backward_data(clear.factors())[index].values[place];
    float& value = values(clear)[place];
    return fit_of(clear, value, gradient, slopes_of(clear, value, step), scale);
  }
  [[nodiscard]] Compared with(const std::vector<float>& gradient, size_t max_places) const {
    Scale scale;
    for (const float value : gradient) {
      if (!std::isfinite(value)) return {fmt::format("the gradient of {} is not finite", what)};
      scale.largest = std::max(scale.largest, std::abs(double(value)));
    }
    std::vector<float>& all = values(run);
    const double size = std::abs(run.weighted_sum());
    const std::vector<size_t> places = sampled(all.size(), max_places);
    std::vector<Slopes> slopes;
    for (const size_t place : places) {
      slopes.push_back(slopes_of(run, all[place], step));
      scale.largest = std::max(scale.largest, std::abs(slopes.back().expected));
    }
    scale.rounding = 4e-7 * (size + 1) / step;
    if (scale.rounding > 0.2 * scale.largest && scale.largest > 0) return {"", false};
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t place = places[i];
      Fit fit = fit_of(run, all[place], gradient[place], slopes[i], scale);
      if (fit != Fit::right) fit = without_ties(place, scale, fit);
      if (fit != Fit::wrong) continue;
      return {fmt::format(
          "the gradient of {} at element {} is {:.6g}, but finite differences give {:.6g}", what,
          place, gradient[place], shown(slopes[i].expected))};
    }
    return {};
  }
};

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
    const Compared compared = Compare{subject, one, run, false, i, name}.with(
        gradients[i].values, is_large(one.setup) ? places_of_large : usual_places);
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
    const Compared compared = Compare{subject, one, run, true, i, name}.with(
        gradients[i].values, is_large(one.setup) ? places_of_large : usual_places);
    if (!compared.wrong.empty()) return broken(compared.wrong + way_out);
    if (!compared.is_decided) hidden.push_back(name);
  }
  return hidden.empty() ? kept() : undecided(hidden);
}

}  // namespace tandem::checker
