#include "core/check/passes.h"
#include "core/check/promises.h"

#include <algorithm>
#include <cmath>

namespace tandem::checker {

namespace {

// A call of a kernel takes a microsecond, so many elements some hundred.
constexpr int64_t enough_elements = 1 << 18;
constexpr int repeats = 5;

int64_t elements_of_inputs(const LayerSetup& setup) {
  int64_t most = 0;
  for (const PlainTensor& input : setup.inputs) most = std::max(most, element_count(input.shape));
  return most;
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
  setup.normaliser *= static_cast<float>(times);
  return setup;
}

struct Times {
  Shape shape{};  // of the largest tensor
  double forward = INFINITY, backward = INFINITY;
};

// The least time of some runs: the others waited for something.
Times least_times(const Subject& subject, const LayerSetup& setup) {
  LayerRun run(setup, subject.registry, subject.device);
  run.tolerate_violations();
  Times times;
  const auto consider = [&](const Shape& shape) {
    if (element_count(shape) > element_count(times.shape)) times.shape = shape;
  };
  for (const PlainTensor& input : setup.inputs) consider(input.shape);
  for (const Shape& shape : run.output_shapes()) consider(shape);
  const std::vector<PlainTensor> factors = factors_of(run);
  for (int i = 0; i < repeats; ++i) {
    const double began = subject.device.seconds();
    static_cast<void>(run.forward());
    const double forward_done = subject.device.seconds();
    times.forward = std::min(times.forward, forward_done - began);
    const bool has_data = wants_data(subject, setup);
    const bool has_weights = wants_weights(subject, run, setup);
    if (has_data) static_cast<void>(run.backward_data(factors));
    if (has_weights) static_cast<void>(run.backward_weights(factors));
    if (!has_data && !has_weights) continue;
    times.backward = std::min(times.backward, subject.device.seconds() - forward_done);
  }
  return times;
}

// Whatever goes wrong is for other promises to find.
std::optional<Times> times_of(const Subject& subject, const LayerSetup& setup) {
  try {
    return least_times(subject, setup);
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
  const auto elements = static_cast<double>(element_count(s));
  const double copy = subject.device.seconds_of_copy(1, 4 * element_count(s));
  Outcome result = note(fmt::format("forward {:.2f} ns", 1e9 * times->forward / elements));
  result.figures["forward_ns"] = 1e9 * times->forward / elements;
  if (std::isfinite(times->backward)) {
    result.detail += fmt::format(", backward {:.2f} ns", 1e9 * times->backward / elements);
    result.figures["backward_ns"] = 1e9 * times->backward / elements;
  }
  result.detail +=
      fmt::format(", a copy {:.2f} ns for each element of {}x{}x{}x{}{}", 1e9 * copy / elements,
                  s.n, s.c, s.h, s.w, subject.device.has_own_memory() ? "" : ", on one thread");
  result.figures["copy_ns"] = 1e9 * copy / elements;
  return result;
}

}  // namespace tandem::checker
