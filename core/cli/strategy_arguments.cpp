#include <algorithm>

#include "core/base/error.h"
#include "core/cli/commands.h"
#include "core/schedule/strategies/strategy_options.h"

namespace tandem::cli {

std::string strategy_help(const std::string& standard) {
  std::string text;
  for (const Strategy& strategy : strategies()) {
    text += (text.empty() ? "" : ", ") + strategy.name;
  }
  return text + standard;
}

void add_strategy_options(CLI::App& command, StrategyOptions& options) {
  for (const StrategyOption& option : strategy_options()) {
    if (option.is_flag) {
      command.add_flag_callback(
          option.name, [&options, &option] { option.set(options, ""); }, option.help_text());
    } else {
      command.add_option_function<std::string>(
          option.name,
          [&options, &option](const std::string& value) { option.set(options, value); },
          option.help_text());
    }
  }
}

void require_strategy_options(const CLI::App& command, const std::string& strategy,
                              const std::vector<std::string>& shown) {
  for (const StrategyOption& option : strategy_options()) {
    const bool is_shown = std::find(shown.begin(), shown.end(), option.name) != shown.end();
    if (!is_shown && command.count(option.name) > 0) require_option_of(strategy, option);
    const bool is_contradicted = !option.opposite.empty() && command.count(option.opposite) > 0;
    if (is_contradicted && command.count(option.name) > 0) {
      throw error("{} and {} contradict each other: give one of them", option.name,
                  option.opposite);
    }
  }
}

std::set<std::string> given_strategy_options(const CLI::App& command) {
  std::set<std::string> names;
  for (const StrategyOption& option : strategy_options()) {
    if (command.count(option.name) > 0) names.insert(option.name);
  }
  return names;
}

}  // namespace tandem::cli
