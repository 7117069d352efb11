// The strategies that a program knows, and what follows from all of them together: names, options
// and who takes them, plans.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

// An option, and the names of the strategies that take it.
struct KnownOption {
  StrategyOption option;
  std::vector<std::string> strategies;
  // "layerwise: how gradients are added up: ..."
  [[nodiscard]] std::string help_text() const;
};

// A value: a program adds strategies of its own to a copy of built_in_strategies().
class Strategies {
 public:
  explicit Strategies(std::vector<Strategy> list = {});
  // Error for a name that is there.
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
  // Of a name that is no strategy's (`all`, `auto`) every option may be given.
  // Error naming the strategies that take the option if `strategy` does not.
  void require_option_of(const std::string& strategy, const KnownOption& option) const;
  // The same for every option that is there, be its value the default. Error also for one that no
  // strategy has, with near names, and for a value that cannot be.
  void require_options_of(const std::string& strategy, const StrategyOptions& options) const;
  // Those of the options that the strategy takes.
  [[nodiscard]] StrategyOptions options_of(const std::string& strategy,
                                           const StrategyOptions& options) const;
  // Those that differ from their defaults.
  [[nodiscard]] StrategyOptions explicit_options(const StrategyOptions& options) const;
  // `given` replace what is in `options`. What was chosen to go with a value that changes is open
  // again, unless its key is in `kept` or it is given, too.
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

// sequential, two_phase, layerwise, hybrid, asymmetric, fc_parallel
[[nodiscard]] const Strategies& built_in_strategies();

// "--quota 2 --eager", as a command line has the strategy's options.
[[nodiscard]] std::string to_text(const Strategy& strategy, const StrategyOptions& options);

// Builds, derives what tasks wait for, validates. Error with near names for an unknown strategy,
// for an option that is not the strategy's, for fewer rows than devices, and for what the strategy
// cannot do with the net.
[[nodiscard]] Plan build_plan(const std::string& strategy, const StrategyInputs& inputs,
                              const Strategies& known = built_in_strategies());

}  // namespace tandem
