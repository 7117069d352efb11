#include "core/check/promises/passes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tandem::checker {

double tolerance_of(int32_t dtype) {
  return dtype == TANDEM_FLOAT32 ? rounding : dtype == TANDEM_BFLOAT16 ? 0.03 : 0.005;
}

Trial::Trial(const Subject& subject, const LayerSetup& setup)
    : LayerRun(setup, subject.registry, subject.device), subject_(subject) {
  tolerate_violations();
  for (const Shape& shape : output_shapes()) factors_.push_back(random_tensor(shape, 99));
}

bool Trial::wants_data() const {
  return subject_.wants_data(setup_);
}

bool Trial::wants_weights() const {
  return kernel_.backward_weights != nullptr && is_trained(*this) &&
         (setup_.flags & TANDEM_WANTS_BACKWARD_WEIGHTS) != 0;
}

double Trial::weighted_sum() {
  double sum = 0;
  const std::vector<PlainTensor> outputs = forward();
  for (size_t i = 0; i < factors_.size(); ++i) {
    for (size_t k = 0; k < factors_[i].values.size(); ++k) {
      sum += double(outputs[i].values[k]) * double(factors_[i].values[k]);
    }
  }
  return sum;
}

Results Trial::all_passes(const std::vector<PlainTensor>& factors) {
  Results results;
  results.outputs = forward();
  results.weights = weights_after();
  if (setup_.phase != TANDEM_TRAIN) return results;
  if (wants_data()) results.input_gradients = backward_data(factors);
  if (wants_weights()) results.weight_gradients = backward_weights(factors);
  return results;
}

bool is_trained(const LayerBinding& layer) {
  const std::vector<tandem_weight> declared = layer.declared_weights();
  return std::any_of(declared.begin(), declared.end(),
                     [](const tandem_weight& weight) { return weight.kind == TANDEM_TRAINED; });
}

Results results_of(const Subject& subject, const LayerSetup& setup) {
  return Trial(subject, setup).all_passes();
}

LayerSetup in_dtype(const Subject& subject, LayerSetup setup, int32_t dtype) {
  for (size_t i = 0; i < setup.inputs.size(); ++i) {
    if (!is_label(subject.type, i)) setup.inputs[i] = rounded_to(dtype, setup.inputs[i]);
  }
  setup.input_dtype = setup.output_dtype = dtype;
  return setup;
}

void multiply(std::vector<PlainTensor>& tensors, float factor) {
  for (PlainTensor& tensor : tensors) {
    for (float& value : tensor.values) value *= factor;
  }
}

std::vector<PlainTensor> added(std::vector<PlainTensor> a, const std::vector<PlainTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a[i].values.size(); ++k) a[i].values[k] += b[i].values[k];
  }
  return a;
}

double shown(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  // Of an unwanted gradient there are none, and memcmp() takes no null pointer.
  if (a.empty() || a.size() != b.size()) return a.size() == b.size();
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (same_bits(a, b)) return 0;
  if (a.size() != b.size()) return INFINITY;
  double largest = 0, greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double here = std::abs(double(a[i]) - double(b[i]));
    if (!std::isfinite(here)) return INFINITY;
    greatest = std::max(greatest, here);
    largest = std::max(largest, std::abs(double(b[i])));
  }
  return greatest == 0 ? 0 : greatest / std::max(largest, 1e-30);
}

std::string differ(const char* what, const std::vector<PlainTensor>& a,
                   const std::vector<PlainTensor>& b, double tolerance) {
  if (a.size() != b.size()) return fmt::format("{}: {} instead of {}", what, a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (tolerance == 0 && same_bits(a[i].values, b[i].values)) continue;
    const double d = difference(a[i].values, b[i].values);
    if (tolerance > 0 && d <= tolerance) continue;
    if (!std::isfinite(d)) return fmt::format("{} {} is not finite", what, i);
    return fmt::format("{} {} differs by {:.2g} of its largest value", what, i, d);
  }
  return "";
}

std::string differ(const Results& a, const Results& b, double tolerance) {
  for (const std::string& text :
       {differ("output", a.outputs, b.outputs, tolerance),
        differ("the gradient of input", a.input_gradients, b.input_gradients, tolerance),
        differ("the gradient of weight", a.weight_gradients, b.weight_gradients, tolerance)}) {
    if (!text.empty()) return text;
  }
  return "";
}

std::string other_rows(const std::vector<PlainTensor>& a, const std::vector<PlainTensor>& b,
                       const char* what, int64_t rows, int64_t changed) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].values.empty() || a[i].shape.n != rows) continue;
    for (int64_t row = 0; row < rows; ++row) {
      if (row == changed || difference(first_axis_of(a[i], row, row + 1).values,
                                       first_axis_of(b[i], row, row + 1).values) <= 1e-6) {
        continue;
      }
      return fmt::format("row {} of {} {} changes with row {} of the inputs", row, what, i,
                         changed);
    }
  }
  return "";
}

}  // namespace tandem::checker
