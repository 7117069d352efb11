#include "examples/alexnet/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/strings.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/report/report.h"
#include "core/schedule/report/svg.h"
#include "core/schedule/strategies/strategy_options.h"
#include "core/train/price.h"
#include "examples/alexnet/pipeline.h"

namespace alexnet {
namespace {

using namespace tandem;

// What the step would be if nothing waited that need not: of strategies with a master by the parts
// of their step, of the others by what is busiest.
void set_formula(StrategyResult& result, const Measurement& measured, Session& session,
                 const CostTable& costs) {
  if (result.strategy == "sequential") {
    result.formula = "a + b + c + m + n + broadcast";
    result.by_formula = measured.parts.sequential();
  } else if (result.strategy == "two_phase") {
    const bool hidden = session.options().strategy_options.hidden_broadcast;
    result.formula =
        hidden ? "a + b + max(c, m) + n + exposed broadcast" : "a + b + max(c, m) + n + broadcast";
    result.by_formula = measured.parts.two_phase(hidden);
    if (hidden) result.by_formula += exposed_broadcast(session.training().plan, measured.events);
  } else {
    const Plan& plan = session.training().plan;
    const double told = session.options().machine.link.bandwidth;
    const double bandwidth = told > 0 ? told : link_of(plan, measured.events).bandwidth;
    result.formula = "max(compute, busiest link)";
    result.by_formula = bounds_of(session.training().net, plan, costs, bandwidth).step();
  }
}

class Comparison {
 public:
  Comparison(Registry& registry, const NetDefinition& net, const Shape& data,
             const Options& options)
      : registry_(registry), net_(net), options_(options), base_(session_options(options, data)) {}

  std::vector<StrategyResult> run() {
    std::vector<StrategyResult> results;
    for (const Strategy& strategy : strategies()) {
      StrategyResult& result = results.emplace_back();
      result.strategy = strategy.name;
      try {
        measure_one(result);
      } catch (const Error& refused) {
        // What `sequential` cannot do, no other can.
        if (strategy.name == "sequential") throw;
        result.refusal = refused.what();
      }
    }
    return results;
  }

 private:
  void measure_one(StrategyResult& result) {
    announce(result.strategy, options_, options_.measured_steps());
    SessionOptions o = base_;
    o.strategy = result.strategy;
    o.strategy_options = options_of(result.strategy, base_.strategy_options);
    Plan plan;
    {
      Session session(registry_, net_, o);
      plan = session.training().plan;
      o.strategy_options = session.options().strategy_options;
      const Measurement measured = measure(session, options_.warm_up, options_.measured_steps());
      // The first one's costs are everybody's: the later ones choose by them.
      if (!base_.costs) base_.costs = costs_of(session, session.net(), plan, measured.events);
      set_formula(result, measured, session, *base_.costs);
      result.step = measured.step_seconds;
      result.images_per_second = measured.images_per_second;
      write_text_file(file_of_strategy(options_.timeline, result.strategy),
                      to_chrome_trace(plan, measured.events));
      if (!options_.svg.empty()) {
        result.picture = file_of_strategy(options_.svg, result.strategy);
        write_text_file(result.picture, to_svg(plan, measured.events));
      }
    }
    result.without_communication = step_seconds_without_communication(
        registry_, net_, o, plan, options_.warm_up, options_.measured_steps());
  }

  Registry& registry_;
  const NetDefinition& net_;
  const Options& options_;
  SessionOptions base_;
};

}  // namespace

std::vector<StrategyResult> compare_strategies(Registry& registry, const NetDefinition& net,
                                               const Shape& data, const Options& options) {
  return Comparison(registry, net, data, options).run();
}

void print(const std::vector<StrategyResult>& results, const Options& options) {
  fmt::print("\nAlexNet, batch {} in all on {}; compute: {}; input: synthetic\n\n", options.batch,
             options.devices, compute_text(options));
  fmt::print("{:<12} {:>12} {:>12}   {:<41} {:>10} {:>12}\n", "strategy", "step", "formula", "",
             "images/s", "exposed");
  for (const StrategyResult& r : results) {
    if (!r.refusal.empty()) {
      fmt::print("{:<12} cannot be: {}\n", r.strategy, r.refusal);
      continue;
    }
    const double exposed = std::max(0.0, r.step - r.without_communication);
    fmt::print("{:<12} {:>9.2f} ms {:>9.2f} ms = {:<41} {:>10.1f} {:>10.1f} %\n", r.strategy,
               1e3 * r.step, 1e3 * r.by_formula, r.formula, r.images_per_second,
               100 * exposed / r.step);
  }
  fmt::print(
      "a forward, b and c backward of the FC and the conv part, m and n their gradients and "
      "updates\n"
      "(docs/pipeline.md). With more than two devices the sum can exceed the step: the first "
      "devices\n"
      "begin while the master still serves the others\n");
  for (const StrategyResult& r : results) {
    if (!r.picture.empty()) fmt::print("{}: drawn in {}\n", r.strategy, r.picture);
  }
  fmt::print("timelines written to {}\n\n", file_of_strategy(options.timeline, "<strategy>"));
}

}  // namespace alexnet
