// The strategies that a program knows: looks them up by name, checks which options each takes, and
// builds plans.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

// An option, and the names of the strategies that take it.
struct KnownOption {
  StrategyOption option;
  std::vector<std::string> strategies;
  // "layerwise: how gradients are added up: ..."
  [[nodiscard]] std::string help_text() const;
};

// A value type: a program adds strategies of its own to a copy of built_in_strategies().
class Strategies {
 public:
  explicit Strategies(std::vector<Strategy> list = {});
  // Error for a name that exists already.
  void add(Strategy strategy);

  [[nodiscard]] auto begin() const { return list_.begin(); }
  [[nodiscard]] auto end() const { return list_.end(); }
  [[nodiscard]] const Strategy* find(const std::string& name) const;  // nullptr: none
  // Error with near names.
  [[nodiscard]] const Strategy& at(const std::string& name) const;
  // "sequential, two_phase, ..."
  [[nodiscard]] std::string names() const;

  // Of all strategies, each name once, in the order of the strategies.
  [[nodiscard]] const std::vector<KnownOption>& options() const { return options_; }
  // nullptr: no strategy has an option of that key.
  [[nodiscard]] const StrategyOption* find_option(const std::string& key) const;
  // Error naming the strategies that take the option if `strategy` does not. A name that is not a
  // strategy's (`all`, `auto`) takes every option.
  void require_option_of(const std::string& strategy, const KnownOption& option) const;
  // The same for every option in `options`, even if its value is the default. Error also for an
  // option that no strategy has, with near names, and for an invalid value.
  void require_options_of(const std::string& strategy, const StrategyOptions& options) const;
  // The options that the strategy takes.
  [[nodiscard]] StrategyOptions options_of(const std::string& strategy,
                                           const StrategyOptions& options) const;
  // The options that differ from their defaults.
  [[nodiscard]] StrategyOptions explicit_options(const StrategyOptions& options) const;
  // Replaces values in `options` by those in `given`. If a value changes, the options chosen to fit
  // it (StrategyOption::resets) are removed, except those in `kept` and `given`.
  void overlay(const StrategyOptions& given, const std::set<std::string>& kept,
               StrategyOptions& options) const;
  // Checks them against the net (StrategyOption::check).
  void check_options(const Net& net, const StrategyOptions& options) const;
  // All options as a Markdown table.
  [[nodiscard]] std::string option_table() const;

 private:
  std::vector<Strategy> list_;
  std::vector<KnownOption> options_;
};

// sequential, two_phase, layerwise, hybrid, asymmetric, fc_parallel, mixed
[[nodiscard]] const Strategies& built_in_strategies();

// "--quota 2 --eager": the strategy's options as on a command line.
[[nodiscard]] std::string to_text(const Strategy& strategy, const StrategyOptions& options);

// Builds the plan, derives its waits and validates it. Error with near names for an unknown
// strategy, for an option that the strategy does not take, for fewer rows than devices, and for a
// net that the strategy does not support.
[[nodiscard]] Plan build_plan(const std::string& strategy, const StrategyInputs& inputs,
                              const Strategies& known = built_in_strategies());
// The same without the waits, which take time and memory and which a forecast may do without. What
// is run must have them: derive_dependencies(), then validate().
[[nodiscard]] Plan build_plan_without_waits(const std::string& strategy,
                                            const StrategyInputs& inputs,
                                            const Strategies& known = built_in_strategies());

// The plan of testing: forward only, data-parallel. The weights go to every device first, from
// the devices that trained them, if there are such. The scalars are summed on device 0, and the
// class scores of the whole batch are copied to the host. Error for fewer rows than
// devices. `inputs.options` are ignored. `sends_weights`: false if every device has them already.
[[nodiscard]] Plan build_testing_plan(const StrategyInputs& inputs, bool sends_weights = true);

}  // namespace tandem
