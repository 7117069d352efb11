// The options of the strategies on a command line, made from their own table.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/cli/command_line.h"
#include "core/schedule/strategies/strategy.h"

namespace tandem::cli {

// "--strategy sequential|two_phase|...": all strategies, and `more` ("auto").
[[nodiscard]] std::string strategy_option(const std::vector<std::string>& more = {});
// All of strategy_options().
void add_strategy_options(Command& command, StrategyOptions& options);
// Throws Error for an option that was given and that `strategy` does not take, and for two that
// contradict each other; `shown` are those that the command itself uses.
void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<std::string>& shown = {});
// The names of those that were given, whatever their values.
[[nodiscard]] std::set<std::string> given_strategy_options(const Command& command);

}  // namespace tandem::cli
