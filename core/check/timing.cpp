#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check/passes.h"

namespace tandem::checker {

namespace {

// A call of a kernel takes a microsecond, so many elements some hundred.
constexpr int64_t enough_elements = 1 << 18;
constexpr int repeats = 5;

// The elements of the largest input.
int64_t elements_of_inputs(const LayerSetup& setup) {
  int64_t count = 0;
  for (const PlainTensor& input : setup.inputs) count = std::max(count, element_count(input.shape));
  return count;
}

// The rows of each input again and again.
LayerSetup enlarged(LayerSetup setup) {
  const int64_t times = (enough_elements - 1) / elements_of_inputs(setup) + 1;
  const int64_t n = setup.inputs[0].shape.n;
  for (PlainTensor& input : setup.inputs) {
    if (input.shape.n != n) continue;
    const std::vector<float> once = input.values;
    for (int64_t i = 1; i < times; ++i) {
      input.values.insert(input.values.end(), once.begin(), once.end());
    }
    input.shape.n *= times;
  }
  setup.normaliser *= float(times);
  return setup;
}

struct Times {
  Shape shape{};  // of the largest tensor
  double forward = INFINITY, backward = INFINITY;
};

// The least time of some runs: the others waited for something.
Times min_times(const Subject& subject, const LayerSetup& setup) {
  Trial run(subject, setup);
  const bool has_data = run.wants_data(), has_weights = run.wants_weights();
  Times times;
  const auto consider = [&](const Shape& shape) {
    if (element_count(shape) > element_count(times.shape)) times.shape = shape;
  };
  for (const PlainTensor& input : setup.inputs) consider(input.shape);
  for (const Shape& shape : run.output_shapes()) consider(shape);
  for (int i = 0; i < repeats; ++i) {
    const double began = subject.device.seconds();
    run.forward();
    const double forward_done = subject.device.seconds();
    times.forward = std::min(times.forward, forward_done - began);
    if (has_data) run.backward_data(run.factors());
    if (has_weights) run.backward_weights(run.factors());
    if (!has_data && !has_weights) continue;
    times.backward = std::min(times.backward, subject.device.seconds() - forward_done);
  }
  return times;
}

// Empty if a pass fails: other promises report that.
std::optional<Times> times_of(const Subject& subject, const LayerSetup& setup) {
  try {
    return min_times(subject, setup);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Outcome measures_time(const Subject& subject, const Case& one) {
  const auto is_smaller = [](const Case& a, const Case& b) {
    return elements_of_inputs(a.setup) < elements_of_inputs(b.setup);
  };
  const auto largest = std::max_element(subject.cases.begin(), subject.cases.end(), is_smaller);
  if (&one != &*largest || one.setup.inputs.empty()) return not_applicable();
  LayerSetup setup = one.setup;
  setup.threads = 1;
  std::optional<Times> times = times_of(subject, enlarged(setup));
  if (!times.has_value()) times = times_of(subject, setup);
  if (!times.has_value() || !(times->forward > 0)) return not_applicable();
  const Shape& s = times->shape;
  const auto elements = double(element_count(s));
  const double copy = subject.device.seconds_of_copy(1, 4 * element_count(s));
  Outcome result = note(fmt::format("forward {:.2f} ns", 1e9 * times->forward / elements));
  result.figures["forward_ns"] = 1e9 * times->forward / elements;
  if (std::isfinite(times->backward)) {
    result.detail += fmt::format(", backward {:.2f} ns", 1e9 * times->backward / elements);
    result.figures["backward_ns"] = 1e9 * times->backward / elements;
  }
  result.detail +=
      fmt::format(", a copy {:.2f} ns for each element of {}{}", 1e9 * copy / elements,
                  to_string(s), subject.device.has_own_memory() ? "" : ", on one thread");
  result.figures["copy_ns"] = 1e9 * copy / elements;
  return result;
}

}  // namespace tandem::checker
