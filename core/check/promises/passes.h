// All passes of one case, and comparisons of their results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/check/promises/promises.h"

namespace tandem::checker {

// What different orders of float32 sums make of a result.
inline constexpr double rounding = 1e-4;
// The difference of values that is allowed, as a share of the largest: in float32 that of other
// orders of sums. In 16 bits a library's kernel may round its bias.
[[nodiscard]] double tolerance_of(int32_t dtype);

// Some are empty: those of a pass that does not run, of a label, and of a weight that is not
// trained.
struct Results {
  std::vector<PlainTensor> outputs, input_gradients, weight_gradients, weights;
};

// A layer that is run for a promise, with a kernel of its own. It tolerates violations, which are
// for one promise to find. The subject outlives it.
class Trial : public LayerRun {
 public:
  Trial(const Subject& subject, const LayerSetup& setup);

  // Output gradients: random, the same in every run; of a loss the loss weight.
  [[nodiscard]] const std::vector<PlainTensor>& factors() const { return factors_; }
  [[nodiscard]] bool wants_data() const;
  [[nodiscard]] bool wants_weights() const;

  // Of the outputs of a forward pass, with the factors: its derivatives are the gradients.
  [[nodiscard]] double weighted_sum();
  Results all_passes() { return all_passes(factors_); }
  Results all_passes(const std::vector<PlainTensor>& factors);

 private:
  const Subject& subject_;
  std::vector<PlainTensor> factors_;
};

[[nodiscard]] bool is_trained(const LayerBinding& layer);
[[nodiscard]] Results results_of(const Subject& subject, const LayerSetup& setup);

// Inputs rounded to a dtype, in which the kernel is asked to compute.
[[nodiscard]] LayerSetup in_dtype(const Subject& subject, LayerSetup setup, int32_t dtype);

// Changes a row of the inputs that have one for each row of input 0, and that hold numbers.
template <class Change>
void change_row(const Case& one, LayerSetup& setup, int64_t row, const Change& change) {
  const int64_t n = one.rows();
  for (size_t i = 0; i < setup.inputs.size(); ++i) {
    PlainTensor& input = setup.inputs[i];
    if (!one.plain[i] || input.shape.n != n) continue;
    const int64_t size = element_count(input.shape) / n;
    for (int64_t k = row * size; k < (row + 1) * size; ++k) change(input.values[size_t(k)]);
  }
}

void multiply(std::vector<PlainTensor>& tensors, float factor);
// The sums of tensors of equal shapes.
[[nodiscard]] std::vector<PlainTensor> added(std::vector<PlainTensor> a,
                                             const std::vector<PlainTensor>& b);

// What of the process grows with each use, as "a file stays open"; "" if nothing does. Calls use()
// some hundred times.
[[nodiscard]] std::string what_grows(const std::function<void()>& use);

// How rows other than the changed one differ; "" if they do not.
[[nodiscard]] std::string other_rows(const std::vector<PlainTensor>& a,
                                     const std::vector<PlainTensor>& b, const char* what,
                                     int64_t rows, int64_t changed);

// For texts: a NaN has no sign.
[[nodiscard]] double shown(double value);

[[nodiscard]] bool same_bits(const std::vector<float>& a, const std::vector<float>& b);
// max |a - b| / max |b|; 0 where both are NaN at the same places and else the same.
[[nodiscard]] double difference(const std::vector<float>& a, const std::vector<float>& b);
// Why two lists of tensors differ by more than the tolerance (0: in any bit); "" if they do not.
[[nodiscard]] std::string differ(const char* what, const std::vector<PlainTensor>& a,
                                 const std::vector<PlainTensor>& b, double tolerance = 0);
// The same of outputs and gradients.
[[nodiscard]] std::string differ(const Results& a, const Results& b, double tolerance = 0);

}  // namespace tandem::checker
