#include "core/check/passes.h"
#include "core/check/promises.h"

#include <algorithm>

namespace tandem::checker {

Outcome stays_in_memory(const Subject& subject, const Case& one) {
  LayerRun run(one.setup, subject.registry, subject.device);
  try {
    static_cast<void>(pass_all(subject, run, factors_of(run)));
  } catch (const Violation& violation) {
    return broken(violation.what());
  }
  return kept();
}

// What memory held before must not matter: not to what is overwritten, and not elsewhere. NaN stays
// where nothing was written.
Outcome overwrites(const Subject& subject, const Case& one) {
  LayerSetup other = one.setup;
  other.fill = GuardedMemory::finite;
  const Results a = results_of(subject, one.setup), b = results_of(subject, other);
  const std::string differs = differ(a, b);
  if (!differs.empty()) return broken(differs + " with what the memory held before");
  return kept();
}

Outcome reads_only_what_its_traits_name(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  LayerRun hidden(one.setup, subject.registry, subject.device);
  LayerRun shown(one.setup, subject.registry, subject.device);
  hidden.tolerate_violations();
  shown.tolerate_violations();
  shown.show_everything();
  const std::string differs = differ(pass_all(subject, hidden, factors_of(hidden)),
                                     pass_all(subject, shown, factors_of(shown)));
  if (differs.empty()) return kept();
  return broken(differs +
                " if inputs and outputs that no TANDEM_BACKWARD_READS_ trait names are gone");
}

Outcome accumulates(const Subject& subject, const Case& one) {
  LayerRun run(one.setup, subject.registry, subject.device);
  if (!wants_weights(subject, run, one.setup)) return not_applicable();
  run.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(run);
  static_cast<void>(run.forward());
  const std::vector<PlainTensor> fresh = run.backward_weights(factors);
  std::vector<PlainTensor> start, expected;
  for (const PlainTensor& gradient : fresh) {
    float largest = 1;
    for (const float value : gradient.values) largest = std::max(largest, std::abs(value));
    start.push_back(random_tensor(gradient.shape, 8, 3 * largest));
    expected.push_back(start.back());
    for (size_t i = 0; i < gradient.values.size(); ++i) {
      expected.back().values[i] += gradient.values[i];
    }
  }
  const std::vector<PlainTensor> added = run.backward_weights(factors, start);
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < added.size(); ++i) {
    if (declared[i].kind != TANDEM_TRAINED) continue;
    const double d = difference(added[i].values, expected[i].values);
    if (d > 1e-5) {
      return broken(
          fmt::format("with TANDEM_ACCUMULATE the gradient of weight '{}' is not the "
                      "earlier one plus this one",
                      declared[i].name));
    }
  }
  return kept();
}

Outcome skips_what_is_not_wanted(const Subject& subject, const Case& one) {
  if (!wants_data(subject, one.setup)) return not_applicable();
  LayerRun all(one.setup, subject.registry, subject.device);
  all.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(all);
  static_cast<void>(all.forward());
  const std::vector<PlainTensor> expected = all.backward_data(factors);
  bool looked = false;
  // Some gradient is wanted, or the host does not call the pass.
  const auto wanted = std::count_if(expected.begin(), expected.end(),
                                    [](const PlainTensor& t) { return !t.values.empty(); });
  for (size_t skipped = 0; skipped < expected.size() && wanted > 1; ++skipped) {
    if (expected[skipped].values.empty()) continue;
    std::vector<bool> unwanted(expected.size());
    unwanted[skipped] = true;
    LayerRun run(one.setup, subject.registry, subject.device);
    run.tolerate_violations();
    run.leave_out(unwanted, {});
    static_cast<void>(run.forward());
    const std::vector<PlainTensor> gradients = run.backward_data(factors);
    looked = true;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (i == skipped || same_bits(gradients[i].values, expected[i].values)) continue;
      return broken(fmt::format(
          "the gradient of input {} is another one if that of input {} is not wanted", i, skipped));
    }
  }
  const size_t outputs = factors.size();
  for (size_t absent = 0; absent < outputs && outputs > 1 && !subject.has(TANDEM_LOSS); ++absent) {
    std::vector<PlainTensor> zeros = factors;
    std::fill(zeros[absent].values.begin(), zeros[absent].values.end(), 0.0F);
    std::vector<bool> gone(outputs);
    gone[absent] = true;
    const Results with_zeros = pass_all(subject, all, zeros);
    LayerRun run(one.setup, subject.registry, subject.device);
    run.tolerate_violations();
    run.leave_out({}, gone);
    const std::string differs = differ(pass_all(subject, run, zeros), with_zeros, 1e-6);
    looked = true;
    if (!differs.empty()) {
      return broken(fmt::format("{} if the gradient of output {} is absent instead of zero",
                                differs, absent));
    }
  }
  return looked ? kept() : not_applicable();
}

}  // namespace tandem::checker
