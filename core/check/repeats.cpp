#include <initializer_list>

#include "core/check/passes.h"

namespace tandem::checker {

Outcome repeats_its_bits(const Subject& subject, const Case& one) {
  Trial run(subject, one.setup);
  const Results first = run.all_passes();
  // A state, such as a running mean, is given anew each time.
  std::string differs = differ(run.all_passes(), first);
  if (!differs.empty()) return broken(differs + " when the same pass runs again");
  differs = differ(results_of(subject, one.setup), first);
  if (!differs.empty()) return broken(differs + " when the layer is prepared again");
  for (const int32_t threads : {1, 3}) {
    LayerSetup setup = one.setup;
    setup.threads = threads;
    const Results other = results_of(subject, setup);
    differs = differ(other, first, rounding);
    if (!differs.empty()) return broken(fmt::format("{} with {} threads", differs, threads));
    differs = differ(results_of(subject, setup), other);
    if (!differs.empty()) {
      return broken(fmt::format("{} when it runs again with {} threads", differs, threads));
    }
  }
  return kept();
}

Outcome draws_by_position(const Subject& subject, const Case& one) {
  const Results first = results_of(subject, one.setup);
  const auto changed = [&](auto change) {
    LayerSetup setup = one.setup;
    change(setup);
    return differ(results_of(subject, setup), first);
  };
  const auto change_all = [](LayerSetup& s) {
    s.step.seed += 1;
    s.step.step += 1;
    s.layer_index += 1;
  };
  if (!subject.has(TANDEM_RANDOM)) {
    return kept_unless(changed(change_all),
                       " with seed and step, but the type has no TANDEM_RANDOM");
  }
  // A layer may draw one bit for each row, so that a few rows are often the same by chance.
  const auto never_changes = [&](const auto& add) {
    for (int more = 1; more <= 12; ++more) {
      if (!changed([&](LayerSetup& s) { add(s, more); }).empty()) return false;
    }
    return true;
  };
  if (never_changes([&](LayerSetup& s, int more) {
        for (int i = 0; i < more; ++i) change_all(s);
      })) {
    return not_applicable();  // nothing is drawn in this case
  }
  using Add = void (*)(LayerSetup&, int);
  for (const auto& [what, add] : std::initializer_list<std::pair<const char*, Add>>{
           {"the seed", [](LayerSetup&s, int more) { s.step.seed += uint64_t(more); }},
           {"the step", [](LayerSetup&s, int more) { s.step.step += uint64_t(more); }},
           {"the layer's index", [](LayerSetup&s, int more) { s.layer_index += uint32_t(more); }},
           {"batch_begin", [](LayerSetup&s, int more) { s.batch_begin += 1000 * more; }},
           {"first_row", [](LayerSetup&s, int more) { s.step.first_row += 1000 * more; }}}) {
    if (never_changes(add)) return broken(fmt::format("the numbers do not depend on {}", what));
  }
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  const Results still = results_of(subject, testing);
  change_all(testing);
  return kept_unless(differ(results_of(subject, testing), still),
                     " with seed and step in testing, too");
}

}  // namespace tandem::checker
