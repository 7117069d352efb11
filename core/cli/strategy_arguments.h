// The options of the strategies on a command line, made from the strategies' own descriptions.
#pragma once

#include <string>
#include <vector>

#include "core/cli/command_line.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem::cli {

// "--strategy sequential|two_phase|...": all strategies, and `more` ("auto").
[[nodiscard]] std::string strategy_option(const std::vector<std::string>& more = {});
// The options of all strategies; those that are given are set in `options`.
void add_strategy_options(Command& command, StrategyOptions& options);
// Throws Error for an option that was given and that `strategy` does not take, and for two that
// contradict each other; `shown` are those that the command itself uses.
void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown = {});

}  // namespace tandem::cli
