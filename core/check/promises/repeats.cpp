#include <malloc.h>

#include <initializer_list>

#include "core/base/files/files.h"
#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

// As recomputation does, and a plan that needs weight gradients first.
Results in_another_order(const Subject& subject, const Case& one, const Results& usual) {
  Trial run(subject, one.setup);
  Results results = usual;
  run.forward();
  results.outputs = run.forward();
  if (one.setup.phase != TANDEM_TRAIN) return results;
  if (run.wants_weights()) results.weight_gradients = run.backward_weights(run.factors());
  if (run.wants_data()) results.input_gradients = run.backward_data(run.factors());
  return results;
}

// How the results of a kernel differ after many passes, as if it counted them; "" if they do not.
std::string differ_after_many(const Subject& subject, const Case& one, const Results& first) {
  constexpr int many = 300;
  constexpr int64_t max_elements = 200;
  const bool is_small =
      !one.setup.inputs.empty() && element_count(one.setup.inputs[0].shape) <= max_elements;
  if (!is_small) return "";
  Trial run(subject, one.setup);
  for (int i = 0; i < many; ++i) run.forward();
  const std::string differs = differ(run.all_passes(), first);
  return differs.empty() ? "" : fmt::format("{} after {} forward passes", differs, many);
}

}  // namespace

Outcome gives_the_same_twice(const Subject& subject, const Case& one) {
  Trial run(subject, one.setup);
  const Results first = run.all_passes();
  // A state, such as a running mean, is given anew each time.
  std::string differs = differ(run.all_passes(), first);
  const char* when = " when the same pass runs again";
  if (differs.empty()) {
    differs = differ(results_of(subject, one.setup), first);
    when = " when the layer is prepared again";
  }
  return kept_unless(differs, std::string(when) +
                                  ". What compares two runs is not tried, as it "
                                  "would seem to be broken, too");
}

Outcome repeats_its_bits(const Subject& subject, const Case& one) {
  Trial run(subject, one.setup);
  const Results first = run.all_passes();
  std::string differs = differ(in_another_order(subject, one, first), first);
  if (!differs.empty()) {
    return broken(differs +
                  " if forward runs twice before the backward passes, and those of weights first");
  }
  differs = differ_after_many(subject, one, first);
  if (!differs.empty()) return broken(differs);
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

namespace {

// Whether drawn numbers change. A layer may draw one bit for each row, or a rare one, so that the
// results of a few rows are often the same by chance.
class Chance {
 public:
  using Add = std::function<void(LayerSetup&, int)>;
  Chance(const Subject& subject, const Case& one, const Results& first)
      : subject_(subject), one_(one), first_(first) {}

  // Whether one of the tries begin to end has other results.
  [[nodiscard]] bool changes(const Add& add, int begin, int end) const {
    for (int more = begin; more <= end; ++more) {
      if (has_changed(add, more)) return true;
    }
    return false;
  }
  // The tries in which results change 40 times if everything does that they may depend on: that one
  // of these things changes none of as many by chance has a probability of 2 to the power of -40.
  // 0: results change too rarely.
  [[nodiscard]] int enough_tries() const {
    constexpr int enough_changes = 40, max_tries = 600, few_tries = 60;
    const Add all = [](LayerSetup& s, int more) {
      s.step.seed += uint64_t(more);
      s.step.step += uint64_t(more);
      s.layer_index += uint32_t(more);
    };
    for (int tries = 1, changes = 0; tries <= max_tries; ++tries) {
      changes += has_changed(all, tries) ? 1 : 0;
      if (changes == enough_changes) return tries;
      if (tries >= few_tries && changes * max_tries < enough_changes * tries) return 0;
    }
    return 0;
  }

 private:
  [[nodiscard]] bool has_changed(const Add& add, int more) const {
    LayerSetup setup = one_.setup;
    add(setup, more);
    return !differ(results_of(subject_, setup), first_).empty();
  }

  const Subject& subject_;
  const Case& one_;
  const Results& first_;
};

}  // namespace

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
  using Add = void (*)(LayerSetup&, int);
  const Chance chance(subject, one, first);
  for (const auto& [what, add] : std::initializer_list<std::pair<const char*, Add>>{
           {"the seed", [](LayerSetup&s, int more) { s.step.seed += uint64_t(more); }},
           {"the step", [](LayerSetup&s, int more) { s.step.step += uint64_t(more); }},
           {"the layer's index", [](LayerSetup&s, int more) { s.layer_index += uint32_t(more); }},
           {"batch_begin", [](LayerSetup&s, int more) { s.batch_begin += 1000 * more; }},
           {"first_row", [](LayerSetup&s, int more) { s.step.first_row += 1000 * more; }}}) {
    constexpr int few = 4;
    if (chance.changes(add, 1, few)) continue;
    const int tries = chance.enough_tries();
    if (tries == 0) return not_applicable();  // nothing, or too little, is drawn in this case
    if (!chance.changes(add, few + 1, tries)) {
      return broken(fmt::format("the numbers do not depend on {}", what));
    }
  }
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  const Results still = results_of(subject, testing);
  change_all(testing);
  return kept_unless(differ(results_of(subject, testing), still),
                     " with seed and step in testing, too");
}

namespace {

struct Held {
  int64_t bytes, files, threads;
};
Held held_now() {
  const struct mallinfo2 info = mallinfo2();
  return {int64_t(info.uordblks + info.hblkhd), int64_t(entries_of("/proc/self/fd").size()),
          int64_t(entries_of("/proc/self/task").size())};
}

// A leak grows with the number of uses. What a library or the allocator keeps for later use does
// not, but it may grow at any time. So each round has more uses than the one before. The first in
// which nothing grows decides, or the last.
constexpr int64_t uses_of_rounds[] = {40, 160, 640};
// Bytes for each use: an allocation takes 32 at least; a large leak needs no more rounds.
constexpr int64_t quiet = 4, leaks = 16, leaks_much = 16384;

}  // namespace

std::string what_grows(const std::function<void()>& use) {
  const auto repeat = [&](int64_t uses) {
    for (int64_t i = 0; i < uses; ++i) use();
  };
  repeat(uses_of_rounds[0]);
  int64_t bytes = 0, uses = 0;
  for (const int64_t of_round : uses_of_rounds) {
    uses = of_round;
    const Held before = held_now();
    repeat(uses);
    const Held after = held_now();
    bytes = after.bytes - before.bytes;
    if (after.files - before.files >= uses) return "a file stays open";
    if (after.threads - before.threads >= uses) return "a thread stays";
    if (bytes < quiet * uses) return "";
    if (bytes >= leaks_much * uses) break;
  }
  return bytes < leaks * uses ? "" : fmt::format("{} bytes more are allocated", bytes / uses);
}

Outcome holds_no_more_each_time(const Subject& subject, const Case& one) {
  const std::vector<PlainTensor>& inputs = one.setup.inputs;
  if (!inputs.empty() && element_count(inputs[0].shape) > 1000) return not_applicable();
  Trial run(subject, one.setup);
  const std::string in_passes = what_grows([&] { run.all_passes(); });
  if (!in_passes.empty()) return broken(in_passes + " each time its passes run");
  return kept_unless(what_grows([&] { static_cast<void>(results_of(subject, one.setup)); }),
                     " each time it is prepared and released");
}

}  // namespace tandem::checker
