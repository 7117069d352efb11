#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/check/promises/passes.h"

namespace tandem::checker {

Outcome stays_in_memory(const Subject& subject, const Case& one) {
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  for (const LayerSetup* setup : {&one.setup, static_cast<const LayerSetup*>(&testing)}) {
    Trial run(subject, *setup);
    run.tolerate_violations(false);
    try {
      run.all_passes();
    } catch (const Violation& violation) {
      return broken(violation.what() + std::string(setup == &testing
                                                       ? ", in testing, which also changes no state"
                                                       : ""));
    }
  }
  return kept();
}

namespace {

// What the heap hands out next, in blocks of the size of short lists, has these bytes.
void fill_free_blocks(unsigned char byte) {
  constexpr size_t smallest = 24, largest = 1032, step = 16, of_size = 32;
  std::vector<std::vector<unsigned char>> blocks;
  for (size_t size = smallest; size <= largest; size += step) {
    for (size_t i = 0; i < of_size; ++i) blocks.emplace_back(size, byte);
  }
}

}  // namespace

// What memory held before must not matter: not to what is overwritten, and not elsewhere. NaN stays
// where nothing was written.
Outcome overwrites(const Subject& subject, const Case& one) {
  LayerSetup other = one.setup;
  other.fill = GuardedMemory::finite;
  fill_free_blocks(0xff);
  const Results a = results_of(subject, one.setup);
  fill_free_blocks(0x3f);
  const Results b = results_of(subject, other);
  return kept_unless(differ(a, b), " with what the memory held before, or lies beyond a tensor");
}

Outcome reads_only_what_its_traits_name(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  Trial hidden(subject, one.setup), shown(subject, one.setup);
  shown.show_everything();
  return kept_unless(differ(hidden.all_passes(), shown.all_passes()),
                     " if inputs and outputs that no TANDEM_BACKWARD_READS_ trait names are gone");
}

Outcome accumulates(const Subject& subject, const Case& one) {
  Trial run(subject, one.setup);
  if (!run.wants_weights()) return not_applicable();
  run.forward();
  const std::vector<PlainTensor> fresh = run.backward_weights(run.factors());
  std::vector<PlainTensor> start;
  for (const PlainTensor& gradient : fresh) {
    if (gradient.values.empty()) {  // of a state
      start.emplace_back();
      continue;
    }
    float largest = 1;
    for (const float value : gradient.values) largest = std::max(largest, std::abs(value));
    start.push_back(random_tensor(gradient.shape, 8, 3 * largest));
  }
  const std::vector<PlainTensor> expected = added(start, fresh);
  const std::vector<PlainTensor> actual = run.backward_weights(run.factors(), start);
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (difference(actual[i].values, expected[i].values) <= 1e-5) continue;
    return broken(fmt::format(
        "with TANDEM_ACCUMULATE the gradient of weight '{}' is not the earlier one plus this one",
        declared[i].name));
  }
  return kept();
}

Outcome gives_both_in_one_call(const Subject& subject, const Case& one) {
  Trial run(subject, one.setup);
  if (subject.kernel.backward == nullptr || !run.wants_data() || !run.wants_weights()) {
    return not_applicable();
  }
  const Results apart = run.all_passes();
  Results together = apart;
  std::tie(together.input_gradients, together.weight_gradients) = run.backward(run.factors());
  return kept_unless(differ(together, apart, rounding), " if one call gives all gradients");
}

Outcome takes_a_tensor_twice(const Subject& subject, const Case& one) {
  LayerSetup setup = one.setup;
  bool has_twin = false;
  for (size_t i = 1; i < setup.inputs.size() && one.plain[0]; ++i) {
    if (!one.plain[i] || !equal(setup.inputs[i].shape, setup.inputs[0].shape)) continue;
    setup.inputs[i] = setup.inputs[0];
    has_twin = true;
  }
  if (!has_twin) return not_applicable();
  Trial apart(subject, setup), shared(subject, setup);
  shared.share_inputs();
  return kept_unless(differ(shared.all_passes(), apart.all_passes()),
                     " if one tensor is several inputs");
}

Outcome skips_what_is_not_wanted(const Subject& subject, const Case& one) {
  if (!subject.wants_data(one.setup)) return not_applicable();
  Trial all(subject, one.setup);
  const std::vector<PlainTensor>& factors = all.factors();
  all.forward();
  const std::vector<PlainTensor> expected = all.backward_data(factors);
  bool looked = false;
  // Some gradient is wanted, or the host does not call the pass.
  const auto wanted = std::count_if(expected.begin(), expected.end(),
                                    [](const PlainTensor& t) { return !t.values.empty(); });
  for (size_t skipped = 0; skipped < expected.size() && wanted > 1; ++skipped) {
    if (expected[skipped].values.empty()) continue;
    std::vector<bool> unwanted(expected.size());
    unwanted[skipped] = true;
    Trial run(subject, one.setup);
    run.leave_out(unwanted, {});
    run.forward();
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
    const Results with_zeros = all.all_passes(zeros);
    Trial run(subject, one.setup);
    run.leave_out({}, gone);
    const std::string differs = differ(run.all_passes(zeros), with_zeros, 1e-6);
    looked = true;
    if (!differs.empty()) {
      return broken(fmt::format("{} if the gradient of output {} is absent instead of zero",
                                differs, absent));
    }
  }
  return looked ? kept() : not_applicable();
}

}  // namespace tandem::checker
