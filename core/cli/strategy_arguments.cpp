#include "core/cli/strategy_arguments.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"

namespace tandem::cli {

std::string strategy_option(const std::vector<std::string>& more) {
  std::vector<std::string> names;
  for (const Strategy& strategy : built_in_strategies()) names.push_back(strategy.name);
  names.insert(names.end(), more.begin(), more.end());
  return fmt::format("--strategy {}", fmt::join(names, "|"));
}

void add_strategy_options(Command& command, StrategyOptions& options) {
  for (const KnownOption& known : built_in_strategies().options()) {
    const StrategyOption& option = known.option;
    if (option.is_flag) {
      command.flag(
          option.name, [&options, &option] { options[option.key] = option.parse(""); },
          known.help_text());
      continue;
    }
    const std::string value =
        option.words.empty() ? "VALUE" : fmt::format("{}", fmt::join(option.words, "|"));
    command.option(
        option.name + " " + value,
        [&options, &option](const std::string& text) { options[option.key] = option.parse(text); },
        known.help_text());
  }
}

void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown) {
  const Strategies& strategies = built_in_strategies();
  for (const KnownOption& known : strategies.options()) {
    const StrategyOption& option = known.option;
    if (!command.given(option.name)) continue;
    const bool is_shown = std::any_of(shown.begin(), shown.end(), [&](const StrategyOption& other) {
      return other.name == option.name;
    });
    if (!is_shown) strategies.require_option_of(strategy, known);
    if (!option.opposite.empty() && command.given(option.opposite)) {
      throw error("{} and {} contradict each other: give one of them", option.name,
                  option.opposite);
    }
  }
}

}  // namespace tandem::cli
