#include "core/cli/strategy_arguments.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/schedule/strategies/strategy_options.h"

namespace tandem::cli {

std::string strategy_option(const std::vector<std::string>& more) {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) names.push_back(strategy.name);
  names.insert(names.end(), more.begin(), more.end());
  return fmt::format("--strategy {}", fmt::join(names, "|"));
}

void add_strategy_options(Command& command, StrategyOptions& options) {
  for (const StrategyOption& option : strategy_options()) {
    if (option.is_flag) {
      command.flag(
          option.name, [&options, &option] { option.set(options, ""); }, option.help_text());
    } else {
      command.option(
          option.name + " VALUE",
          [&options, &option](const std::string& value) { option.set(options, value); },
          option.help_text());
    }
  }
}

void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<std::string>& shown) {
  for (const StrategyOption& option : strategy_options()) {
    const bool is_shown = std::find(shown.begin(), shown.end(), option.name) != shown.end();
    if (!is_shown && command.given(option.name)) require_option_of(strategy, option);
    const bool is_contradicted = !option.opposite.empty() && command.given(option.opposite);
    if (is_contradicted && command.given(option.name)) {
      throw error("{} and {} contradict each other: give one of them", option.name,
                  option.opposite);
    }
  }
}

std::set<std::string> given_strategy_options(const Command& command) {
  std::set<std::string> names;
  for (const StrategyOption& option : strategy_options()) {
    if (command.given(option.name)) names.insert(option.name);
  }
  return names;
}

}  // namespace tandem::cli
