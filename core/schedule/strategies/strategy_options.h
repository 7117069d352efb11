// The options of the strategies, each said once: which strategies take it, what it does, how it is
// read. Help texts, checks and the table in docs/reference/strategies.md come from here.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct StrategyOption {
  std::string name;                     // "--reduce"
  std::vector<std::string> strategies;  // that take it
  std::string help;                     // what it does, with its default
  bool is_flag = false;                 // takes no value
  // Reads the value; Error with the option, the value and what would be right.
  std::function<void(StrategyOptions&, const std::string& value)> set;
  std::function<bool(const StrategyOptions&)> is_explicit;  // differs from what it is by default
  std::function<void(const StrategyOptions& from, StrategyOptions& to)> copy;
  std::function<bool(const StrategyOptions&, const StrategyOptions&)> is_same;
  std::string opposite;  // of a flag: the one that says the contrary
  std::vector<std::string>
      frees;  // what was chosen to go with its value, and is open when it changes

  // Also of `all`, of `auto` and of unknown ones, which are not to blame for an option.
  [[nodiscard]] bool is_of(const std::string& strategy) const;
  // "layerwise: how gradients are added up: ..."
  [[nodiscard]] std::string help_text() const;
};

[[nodiscard]] const std::vector<StrategyOption>& strategy_options();

// Error naming the strategies that take it if `strategy` does not.
void require_option_of(const std::string& strategy, const StrategyOption& option);
// The same for every option that is told.
void require_options_of(const std::string& strategy, const StrategyOptions& options);
// Those of the options that the strategy takes; the others as by default.
[[nodiscard]] StrategyOptions options_of(const std::string& strategy,
                                         const StrategyOptions& options);
// Names of options: those `named`, be their values the default ones, and those that differ.
[[nodiscard]] std::set<std::string> explicit_names(const StrategyOptions& options,
                                                   std::set<std::string> named = {});
// Of the options `told`, those of these names replace what is there. What a changed one frees is
// open again, unless it is `kept`.
void overlay(const StrategyOptions& told, const std::set<std::string>& names,
             const std::set<std::string>& kept, StrategyOptions& options);
// All of them as a Markdown table.
[[nodiscard]] std::string strategy_option_table();

}  // namespace tandem
