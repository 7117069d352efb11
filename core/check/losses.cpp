#include <algorithm>

#include "core/check/passes.h"

namespace tandem::checker {

Outcome counts_samples(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_LOSS | TANDEM_METRIC)) return not_applicable();
  const int64_t n = one.rows();
  const Results first = results_of(subject, one.setup);
  LayerSetup setup = one.setup;
  setup.normaliser *= 2;
  Results halves = results_of(subject, setup);
  // A plain sum is allowed, too.
  const bool is_sum = differ(halves, first).empty();
  const float factor = is_sum ? 1 : 2;
  multiply(halves.outputs, factor);
  multiply(halves.input_gradients, factor);
  std::string differs = differ("output", {halves.outputs[0]}, {first.outputs[0]}, rounding);
  if (differs.empty()) {
    differs =
        differ("the gradient of input", halves.input_gradients, first.input_gradients, rounding);
  }
  if (!differs.empty()) return broken("it is not divided by the normaliser: " + differs);
  if (n < 2) return kept();
  // A row that holds no sample: nothing in it may matter.
  setup = one.setup;
  setup.row_labels.assign(size_t(n), 1.0F);
  setup.row_labels[0] = -1;
  const Results without = results_of(subject, setup);
  change_row(one, setup, 0, [](float& value) { value += 2; });
  const Results changed = results_of(subject, setup);
  differs = differ("output", {changed.outputs[0]}, {without.outputs[0]}, 1e-6);
  if (!differs.empty()) {
    return broken(differs + " with a row that holds no sample (row_labels below zero)");
  }
  for (size_t i = 0; i < changed.input_gradients.size(); ++i) {
    const PlainTensor& gradient = changed.input_gradients[i];
    if (gradient.values.empty() || gradient.shape.n != n) continue;
    const std::vector<float> row = first_axis_of(gradient, 0, 1).values;
    if (std::any_of(row.begin(), row.end(), [](float v) { return v != 0; })) {
      return broken(fmt::format("input {} has a gradient in a row that holds no sample", i));
    }
  }
  return kept();
}

Outcome scales_with_the_loss_weight(const Subject& subject, const Case& one) {
  if (!subject.wants_data(one.setup) || !subject.has(TANDEM_LOSS)) return not_applicable();
  Trial run(subject, one.setup);
  run.forward();
  std::vector<PlainTensor> once = run.backward_data(run.factors());
  std::vector<PlainTensor> factors = run.factors();
  for (float& value : factors[0].values) value *= 3;
  const std::vector<PlainTensor> thrice = run.backward_data(factors);
  multiply(once, 3);
  return kept_unless(differ("the gradient of input", thrice, once, 1e-5),
                     " from the loss weight times itself");
}

}  // namespace tandem::checker
