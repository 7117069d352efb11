#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check/promises/passes.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

// A call of a kernel takes a microsecond, so many elements some hundred.
constexpr int64_t enough_elements = 1 << 18, few_elements = 1 << 13;
constexpr int repeats = 5, repeats_of_size = 3;

// The elements of the largest input.
int64_t elements_of_inputs(const LayerSetup& setup) {
  int64_t count = 0;
  for (const PlainTensor& input : setup.inputs) count = std::max(count, element_count(input.shape));
  return count;
}

// How often the rows make so many elements.
int64_t repeats_for(const LayerSetup& setup, int64_t elements) {
  return (elements - 1) / elements_of_inputs(setup) + 1;
}

// The rows of each input so often.
LayerSetup enlarged(LayerSetup setup, int64_t times) {
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
  tandem_layer_cost cost{};  // as declared
};

// The least time of some runs: the others waited for something.
Times min_times(const Subject& subject, const LayerSetup& setup, int count) {
  Trial run(subject, setup);
  const bool has_data = run.wants_data(), has_weights = run.wants_weights();
  Times times;
  check(ask_cost(subject.type, run.query(), times.cost), "cost");
  const auto consider = [&](const Shape& shape) {
    if (element_count(shape) > element_count(times.shape)) times.shape = shape;
  };
  for (const PlainTensor& input : setup.inputs) consider(input.shape);
  for (const Shape& shape : run.output_shapes()) consider(shape);
  for (int i = 0; i < count; ++i) {
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
std::optional<Times> times_of(const Subject& subject, const LayerSetup& setup,
                              int count = repeats) {
  try {
    return min_times(subject, setup, count);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_largest(const Subject& subject, const Case& one) {
  const auto is_smaller = [](const Case& a, const Case& b) {
    return elements_of_inputs(a.setup) < elements_of_inputs(b.setup);
  };
  const auto largest = std::max_element(subject.cases.begin(), subject.cases.end(), is_smaller);
  return &one == &*largest && !one.setup.inputs.empty();
}

// A pass: its declared work, and what it takes.
struct Work {
  const char* pass;
  double flops, bytes, seconds;
};
std::vector<Work> works_of(const Times& times) {
  const tandem_layer_cost& c = times.cost;
  std::vector<Work> works{{"forward", c.forward_flops, c.forward_bytes, times.forward}};
  if (!std::isfinite(times.backward)) return works;
  works.push_back({"backward", c.backward_data_flops + c.backward_weights_flops,
                   c.backward_data_bytes + c.backward_weights_bytes, times.backward});
  return works;
}

constexpr double least_seconds = 2e-5;  // less may be the call alone
constexpr double cost_factor = 30;
// Other work of the machine makes a pass slower, and never faster.
constexpr double slow_factor = 10000;

// How the time of the work is far from what one core of today needs for it, from 0.3 to 200 billion
// operations in a second; "": it is not.
std::string far_from_measured(const Work& work, double seconds_of_byte) {
  const double least = std::max(work.flops / 200e9, work.bytes * seconds_of_byte / 4),
               most = work.flops / 0.3e9 + 4 * work.bytes * seconds_of_byte;
  if (work.seconds >= least / cost_factor && work.seconds <= slow_factor * most) return "";
  return fmt::format(
      "{} takes {:.2g} s, but the declared {:.2g} operations and {:.2g} bytes take {:.2g} to "
      "{:.2g} s on one core",
      work.pass, work.seconds, work.flops, work.bytes, least, most);
}

// How declared work grows otherwise than rows and time; "": it does not.
std::string grows_otherwise(const Work& small, const Work& large, double rows) {
  const double time = large.seconds / small.seconds,
               work = (large.flops + large.bytes) / std::max(1.0, small.flops + small.bytes);
  const bool is_too_little = work < std::sqrt(rows) && time > rows / 2,
             is_too_much = work > rows * std::sqrt(rows) && time < rows * 2;
  if (!is_too_little && !is_too_much) return "";
  return fmt::format(
      "{} of {:g} times the rows takes {:.2g} times as long, but its declared cost "
      "is {:.2g} times as large",
      small.pass, rows, time, work);
}

// `small`: of so many times fewer rows, if it is known.
std::string wrong_cost(const Subject& subject, const Times& times,
                       const std::optional<Times>& small, double rows) {
  const int64_t bytes = 4 * element_count(times.shape);
  const double of_byte =
      subject.device.seconds_of_copy(1, bytes) / (2 * static_cast<double>(bytes));
  const std::vector<Work> works = works_of(times);
  for (size_t i = 0; i < works.size(); ++i) {
    if (works[i].seconds < least_seconds || !(of_byte > 0)) continue;
    std::string wrong = far_from_measured(works[i], of_byte);
    if (!wrong.empty()) return wrong;
    if (!small.has_value() || works_of(*small)[i].seconds < least_seconds) continue;
    wrong = grows_otherwise(works_of(*small)[i], works[i], rows);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

Outcome costs_what_it_declares(const Subject& subject, const Case& one) {
  if (!is_largest(subject, one) || subject.device.has_own_memory()) return not_applicable();
  LayerSetup setup = one.setup;
  setup.threads = 1;
  const int64_t least = repeats_for(setup, few_elements);
  std::optional<Times> before;
  for (const int64_t more : {1, 3, 9}) {
    const LayerSetup size = enlarged(setup, least * more);
    std::optional<Times> times = times_of(subject, size, repeats_of_size);
    // Other work of the machine may delay some runs, but not all.
    std::string wrong;
    for (int again = 0; times.has_value(); ++again) {
      wrong = wrong_cost(subject, *times, before, static_cast<double>(more));
      if (wrong.empty() || again == 8) break;
      const Times other = times_of(subject, size, repeats_of_size).value_or(*times);
      times->forward = std::min(times->forward, other.forward);
      times->backward = std::min(times->backward, other.backward);
    }
    if (!times.has_value()) return not_applicable();
    if (!wrong.empty()) return broken(wrong);
    if (more == 1) before = times;
  }
  return kept();
}

Outcome measures_time(const Subject& subject, const Case& one) {
  if (!is_largest(subject, one)) return not_applicable();
  LayerSetup setup = one.setup;
  setup.threads = 1;
  std::optional<Times> times =
      times_of(subject, enlarged(setup, repeats_for(setup, enough_elements)));
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
