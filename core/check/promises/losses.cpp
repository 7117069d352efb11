#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check/promises/passes.h"
#include "core/plugin/layer_questions.h"

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

namespace {

// How results with another label in a row differ in what they may not: "" if they do not. Rows of a
// type with statistics of the batch may depend on each other, as those of a loss that is divided by
// the labelled rows do.
std::string differs_with_label(const Subject& subject, LayerSetup setup, const Results& usual,
                               int64_t row) {
  Trial run(subject, setup);
  run.tolerate_violations(false);
  try {
    const Results results = run.all_passes();
    if (!subject.has(TANDEM_BATCH_STATISTICS)) {
      const std::string other = other_rows(results.input_gradients, usual.input_gradients,
                                           "the gradient of input", setup.inputs[0].shape.n, row);
      if (!other.empty()) return other;
    }
    setup.fill = GuardedMemory::finite;
    const std::string read = differ(results_of(subject, setup), results);
    return read.empty() ? "" : read + " with what lies beyond a tensor";
  } catch (const Violation& violation) {
    return violation.what();
  } catch (const Error&) {  // it is refused
    return "";
  }
}

bool any_nonzero(const std::vector<float>& values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return v != 0; });
}

// A label that is read as another type is 0, or none; one that is kept in 8 bits is another one
// from 256 on. "" if a loss learns from all labels.
std::string mistakes_label(const Subject& subject, const Case& one, size_t input) {
  const int64_t classes = one.setup.inputs[0].shape.c, n = one.rows();
  if (!subject.has(TANDEM_LOSS) || !subject.wants_data(one.setup) || classes < 3) return "";
  LayerSetup setup = one.setup;
  PlainTensor& labels = setup.inputs[input];
  // Empty where the label is refused.
  const auto gradient_of = [&](int64_t label) -> std::vector<float> {
    const int64_t of_row = element_count(labels.shape) / n;
    std::fill_n(labels.values.begin(), of_row, static_cast<float>(label));
    try {
      return first_axis_of(results_of(subject, setup).input_gradients[0], 0, 1).values;
    } catch (const Error&) {
      return {};
    }
  };
  const std::vector<float> of_zero = gradient_of(0);
  if (!any_nonzero(of_zero)) return "";
  constexpr int64_t of_8_bits = 256;
  if (classes > of_8_bits && gradient_of(of_8_bits) == of_zero) {
    return "label 256 gives the gradient of label 0: an integer of 8 bits does not hold it";
  }
  for (int64_t label = 1; label < classes; ++label) {
    const std::vector<float> gradient = gradient_of(label);
    if (gradient.empty() || any_nonzero(gradient)) return "";
  }
  return "only label 0 gives a gradient: labels are float32, as all values";
}

}  // namespace

// One beyond the classes, none, and a label so large that no memory has its place. A pass that
// refuses one keeps the promise.
Outcome keeps_labels_in_their_row(const Subject& subject, const Case& one) {
  const int64_t n = one.rows();
  const Results usual = results_of(subject, one.setup);
  bool has_labels = false;
  for (size_t input = 0; input < one.setup.inputs.size(); ++input) {
    if (!is_label(subject.type, input) || one.setup.inputs[input].shape.n != n) continue;
    has_labels = true;
    const auto of_row = element_count(one.setup.inputs[input].shape) / n;
    const auto classes = float(one.setup.inputs[0].shape.c);
    const std::pair<float, const char*> labels[] = {
        {classes, "the first beyond the classes"},
        {-1.0F, "which is none"},
        {16777216.0F,
         "2^24, far beyond the classes and the last whole number before float32 leaves "
         "some out"}};
    for (const auto& [label, meaning] : labels) {
      for (const int64_t row : {int64_t{0}, n - 1}) {
        LayerSetup setup = one.setup;
        setup.inputs[input].values[size_t(row * of_row)] = label;
        const std::string wrong = differs_with_label(subject, setup, usual, row);
        if (!wrong.empty()) {
          return broken(fmt::format("label {:.0f} ({}) in row {}: {}", label, meaning, row, wrong));
        }
      }
    }
    const std::string wrong = mistakes_label(subject, one, input);
    if (!wrong.empty()) return broken(wrong);
  }
  return has_labels ? kept() : not_applicable();
}

namespace {

// The values of integer parameters that may be a number of classes: below the labels, descending.
std::vector<int64_t> counts_of_classes(const Subject& subject, const Case& one) {
  const Attributes attributes = attributes_of(subject.type, one.setup);
  std::vector<int64_t> counts;
  for (const auto& [name, attribute] : attributes.values()) {
    const auto* count = std::get_if<int64_t>(&attribute.value);
    if (count != nullptr && *count >= 1) counts.push_back(*count);
  }
  std::sort(counts.rbegin(), counts.rend());
  return counts;
}

}  // namespace

std::optional<Case> with_fewer_classes(const Subject& subject, const Case& one) {
  const auto is_refused = [&](const LayerSetup& setup) {
    try {
      Trial(subject, setup).forward();
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  for (const int64_t classes : counts_of_classes(subject, one)) {
    Case fewer = one;
    bool has_changed = false;
    for (size_t input = 0; input < one.setup.inputs.size(); ++input) {
      if (!is_label(subject.type, input)) continue;
      for (float& label : fewer.setup.inputs[input].values) {
        if (!(label >= float(classes)) || label != std::floor(label)) continue;
        label = float(int64_t(label) % classes);
        has_changed = true;
      }
    }
    if (!has_changed) continue;
    if (!is_refused(one.setup)) return std::nullopt;
    if (!is_refused(fewer.setup)) return fewer;
  }
  return std::nullopt;
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
