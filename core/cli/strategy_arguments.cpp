#include <algorithm>

#include "core/base/error.h"
#include "core/cli/commands.h"

namespace tandem::cli {

std::string strategy_help(const std::string& standard) {
  return built_in_strategies().names() + standard;
}

void add_strategy_options(CLI::App& command, StrategyOptions& options) {
  for (const KnownOption& known : built_in_strategies().options()) {
    const StrategyOption& option = known.option;
    if (option.is_flag) {
      command.add_flag_callback(
          option.name, [&options, &option] { options[option.key] = option.parse(""); },
          known.help_text());
    } else {
      command.add_option_function<std::string>(
          option.name,
          [&options, &option](const std::string& text) {
            options[option.key] = option.parse(text);
          },
          known.help_text());
    }
  }
}

void require_strategy_options(const CLI::App& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown) {
  const Strategies& strategies = built_in_strategies();
  for (const KnownOption& known : strategies.options()) {
    const StrategyOption& option = known.option;
    if (command.count(option.name) == 0) continue;
    const bool is_shown = std::any_of(shown.begin(), shown.end(), [&](const StrategyOption& other) {
      return other.name == option.name;
    });
    if (!is_shown) strategies.require_option_of(strategy, known);
    if (!option.opposite.empty() && command.count(option.opposite) > 0) {
      throw error("{} and {} contradict each other: give one of them", option.name,
                  option.opposite);
    }
  }
}

}  // namespace tandem::cli
