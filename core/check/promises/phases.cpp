// Testing beside training.
#include <cmath>

#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

// A layer that drops elements, and multiplies the others by one factor: what is dropped must be
// made up for by the factor, so that testing, which drops none, gives the mean. "" if it is so, or
// if the layer draws in another way.
std::string changes_mean(const Subject& subject, const LayerSetup& testing, const LayerSetup& one) {
  constexpr int steps = 150;
  constexpr double enough = 500;
  const std::vector<PlainTensor> expected = results_of(subject, testing).outputs;
  double drawn = 0, kept_elements = 0, factor = 0;
  for (int step = 0; step < steps; ++step) {
    LayerSetup setup = one;
    setup.step.step += uint64_t(step);
    const std::vector<PlainTensor> outputs = Trial(subject, setup).forward();
    for (size_t k = 0; k < outputs[0].values.size(); ++k) {
      const double usual = expected[0].values[k], now = outputs[0].values[k];
      if (std::abs(usual) < 0.05) continue;
      ++drawn;
      if (now == 0) continue;
      if (factor == 0) factor = now / usual;
      if (!(std::abs(now / usual - factor) < 1e-3 * std::abs(factor))) return "";
      ++kept_elements;
    }
  }
  if (drawn < enough || kept_elements == 0) return "";
  const double draws =
      steps * static_cast<double>(one.inputs[0].shape.n);  // of whole rows, at least
  const double share = kept_elements / drawn,
               error = std::abs(factor) * std::sqrt(share * (1 - share) / draws);
  if (std::abs(share * factor - 1) <= 5 * error + 0.01) return "";
  return fmt::format(
      "in training {:.3g} of the elements are kept and multiplied by {:.3g}, so their mean is not "
      "that of testing (a type that tests otherwise on purpose says TANDEM_TESTS_OTHERWISE)",
      share, factor);
}

// Of a type that says so, whose results in testing are compared with nothing else.
Outcome tests_the_same_each_time(const Subject& subject, const LayerSetup& testing) {
  LayerSetup later = testing;
  later.step.seed += 1;
  later.step.step += 1;
  const std::string differs =
      differ("output", results_of(subject, later).outputs, results_of(subject, testing).outputs);
  return differs.empty() ? left_out(
                               "testing is not compared with training, as the type says "
                               "TANDEM_TESTS_OTHERWISE")
                         : broken(differs + " with seed and step in testing, which draws nothing");
}

}  // namespace

Outcome tests_as_it_trains(const Subject& subject, const Case& one) {
  const Trial training(subject, one.setup);
  for (const tandem_weight& weight : training.declared_weights()) {
    if (weight.kind == TANDEM_STATE) return not_applicable();
  }
  if (subject.has(TANDEM_BATCH_STATISTICS)) return not_applicable();
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  if (subject.has(TANDEM_TESTS_OTHERWISE)) return tests_the_same_each_time(subject, testing);
  if (subject.has(TANDEM_RANDOM)) {
    const bool is_plain = !subject.has(TANDEM_LOSS | TANDEM_METRIC) &&
                          element_count(one.setup.inputs[0].shape) < 5000;
    return is_plain ? kept_unless(changes_mean(subject, testing, one.setup)) : not_applicable();
  }
  return kept_unless(
      differ("output", results_of(subject, testing).outputs, results_of(subject, one.setup).outputs,
             rounding),
      " in testing, but the type has no TANDEM_RANDOM, TANDEM_BATCH_STATISTICS or state (one that "
      "tests otherwise on purpose says TANDEM_TESTS_OTHERWISE)");
}

}  // namespace tandem::checker
