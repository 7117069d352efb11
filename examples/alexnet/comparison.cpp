#include "comparison.h"

#include <fmt/format.h>
#include <tandem/error.h>
#include <tandem/profile.h>
#include <tandem/strategies.h>

#include <algorithm>
#include <chrono>

#include "pipeline.h"
#include "text.h"

namespace alexnet {
namespace {

// What the step would be without avoidable waits: the sum of its parts where that is known, else
// the time of the busiest device or link.
void set_formula(StrategyResult& result, const tandem::Profile& profile, bool hides_broadcast) {
  if (result.strategy == "sequential") {
    result.formula = "a + b + c + m + n + broadcast";
    result.by_formula = profile.parts.sequential();
  } else if (result.strategy == "two_phase") {
    result.formula = hides_broadcast ? "a + b + max(c, m) + n + exposed broadcast"
                                     : "a + b + max(c, m) + n + broadcast";
    result.by_formula = profile.parts.two_phase(hides_broadcast);
    if (hides_broadcast) result.by_formula += exposed_broadcast(profile);
  } else {
    result.formula = "max(compute, busiest link)";
    result.by_formula = profile.bound_seconds;
  }
}

void measure_one(tandem::Profiler& profiler, const Options& options, StrategyResult& result) {
  announce(result.strategy, options);
  const tandem::Profile profile = profiler.measure(result.strategy, options.strategy_options);
  set_formula(result, profile, options.hides_broadcast());
  result.step = profile.step_seconds;
  result.message_path = profile.message_path;
  result.images_per_second = profile.images_per_second;
  profile.write_timeline(file_of_strategy(options.timeline, result.strategy));
  if (!options.svg.empty()) {
    result.picture = file_of_strategy(options.svg, result.strategy);
    profile.write_picture(result.picture);
  }
  result.without_communication = profiler.seconds_without_communication(profile);
}

}  // namespace

std::vector<StrategyResult> compare_strategies(const Options& options) {
  tandem::Profiler profiler(profile_options(options));
  begin_as_rank(profiler, options);
  watch(profiler);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<StrategyResult> results;
  const std::vector<tandem::StrategyInfo> all = tandem::list_strategies();
  for (const tandem::StrategyInfo& strategy : all) {
    StrategyResult& result = results.emplace_back();
    result.strategy = strategy.name;
    try {
      measure_one(profiler, options, result);
    } catch (const tandem::Error& refused) {
      // What `sequential` cannot do, no other can.
      if (strategy.name == "sequential") throw;
      result.refusal = refused.what();
    }
    if (was_stopped()) {
      if (!result.refusal.empty()) results.pop_back();
      say("stopped after {} of {} strategies\n", results.size(), all.size());
      break;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto done = static_cast<double>(results.size());
    if (results.size() < all.size()) {
      say("{} of {} strategies measured, about {:.0f} s left\n", results.size(), all.size(),
          seconds / done * (static_cast<double>(all.size()) - done));
    }
  }
  return results;
}

void print(const std::vector<StrategyResult>& results, const Options& options) {
  say("\nAlexNet, batch {} in all on {}; compute: {}; input: synthetic\n\n", options.batch,
      options.devices, compute_text(options));
  if (!results.empty() && !results.front().message_path.empty()) {
    say("{}\n\n", results.front().message_path);
  }
  say("{:<12} {:>12} {:>12}   {:<41} {:>10} {:>12}\n", "strategy", "step", "formula", "",
      "images/s", "exposed");
  for (const StrategyResult& r : results) {
    if (!r.refusal.empty()) {
      say("{:<12} cannot be: {}\n", r.strategy, r.refusal);
      continue;
    }
    const double exposed = std::max(0.0, r.step - r.without_communication);
    say("{:<12} {} {} = {:<41} {:>10.1f} {:>10.1f} %\n", r.strategy, milliseconds_text(r.step),
        milliseconds_text(r.by_formula), r.formula, r.images_per_second, 100 * exposed / r.step);
  }
  say("a forward, b and c backward of the FC and the conv part, m and n their gradients and "
      "updates\n"
      "(docs/guide/pipeline.md). With more than two devices the sum can exceed the step: the first "
      "devices\n"
      "begin while the root still serves the others\n");
  for (const StrategyResult& r : results) {
    if (!r.picture.empty()) say("{}: drawn in {}\n", r.strategy, r.picture);
  }
  say("timelines written to {}\n\n", file_of_strategy(options.timeline, "<strategy>"));
}

}  // namespace alexnet
