// All passes of one case, and comparisons of their results.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/check/promise.h"

namespace tandem::checker {

// What different orders of float32 sums make of a result.
inline constexpr double rounding = 1e-4;

struct Results {
  std::vector<PlainTensor> outputs, input_gradients, weight_gradients, weights;
};

inline bool is_trained(const LayerRun& run) {
  for (const tandem_weight& weight : run.declared_weights()) {
    if (weight.kind == TANDEM_TRAINED) return true;
  }
  return false;
}

// Output gradients: random, the same in every run; of a loss the loss weight.
inline std::vector<PlainTensor> factors_of(const LayerRun& run) {
  std::vector<PlainTensor> factors;
  for (const Shape& shape : run.output_shapes()) factors.push_back(random_tensor(shape, 99));
  return factors;
}

inline bool wants_data(const Subject& subject, const LayerSetup& setup) {
  return subject.has_data_gradient() && (setup.flags & TANDEM_WANTS_BACKWARD_DATA) != 0;
}
inline bool wants_weights(const Subject& subject, const LayerRun& run, const LayerSetup& setup) {
  return subject.kernel.backward_weights != nullptr && is_trained(run) &&
         (setup.flags & TANDEM_WANTS_BACKWARD_WEIGHTS) != 0;
}

inline Results pass_all(const Subject& subject, LayerRun& run,
                        const std::vector<PlainTensor>& factors) {
  const LayerSetup& setup = run.setup();
  Results results;
  results.outputs = run.forward();
  results.weights = run.weights_after();
  if (setup.phase != TANDEM_TRAIN) return results;
  if (wants_data(subject, setup)) results.input_gradients = run.backward_data(factors);
  if (!wants_weights(subject, run, setup)) return results;
  results.weight_gradients = run.backward_weights(factors);
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].kind != TANDEM_TRAINED) results.weight_gradients[i] = {};  // it has none
  }
  return results;
}

// With a kernel of its own.
inline Results results_of(const Subject& subject, const LayerSetup& setup) {
  LayerRun run(setup, subject.registry, subject.device);
  run.tolerate_violations();
  return pass_all(subject, run, factors_of(run));
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  // Of an unwanted gradient there are none, and memcmp() takes no null pointer.
  if (a.empty() || a.size() != b.size()) return a.size() == b.size();
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// max |a - b| / max |b|; 0 where both are NaN at the same places and else the same.
inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (same_bits(a, b)) return 0;
  if (a.size() != b.size()) return INFINITY;
  double largest = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double here = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!std::isfinite(here)) return INFINITY;
    most = std::max(most, here);
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most == 0 ? 0 : most / std::max(largest, 1e-30);
}

// Why two lists of tensors differ by more than the tolerance (0: in any bit); "" if they do not.
inline std::string differ(const char* what, const std::vector<PlainTensor>& a,
                          const std::vector<PlainTensor>& b, double tolerance = 0) {
  if (a.size() != b.size()) return fmt::format("{}: {} instead of {}", what, a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (tolerance == 0 && same_bits(a[i].values, b[i].values)) continue;
    const double d = difference(a[i].values, b[i].values);
    if (tolerance > 0 && d <= tolerance) continue;
    return fmt::format("{} {} differs by {:.2g} of its largest value", what, i, d);
  }
  return "";
}
inline std::string differ(const Results& a, const Results& b, double tolerance = 0) {
  for (const std::string& text :
       {differ("output", a.outputs, b.outputs, tolerance),
        differ("the gradient of input", a.input_gradients, b.input_gradients, tolerance),
        differ("the gradient of weight", a.weight_gradients, b.weight_gradients, tolerance)}) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace tandem::checker
