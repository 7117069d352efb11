#include "core/schedule/strategies/strategies.h"

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "include/tandem/strategies.h"

namespace tandem {

std::vector<StrategyInfo> list_strategies() {
  std::vector<StrategyInfo> list;
  for (const Strategy& strategy : built_in_strategies()) {
    list.push_back({strategy.name, strategy.summary});
  }
  return list;
}

std::vector<StrategyOptionInfo> list_strategy_options() {
  std::vector<StrategyOptionInfo> list;
  for (const KnownOption& known : built_in_strategies().options()) {
    list.push_back({known.option.name, known.help_text(), known.option.is_flag});
  }
  return list;
}

void set_strategy_option(StrategyOptions& options, const std::string& name,
                         const std::string& text) {
  std::vector<std::string> names;
  for (const KnownOption& known : built_in_strategies().options()) {
    names.push_back(known.option.name);
    if (known.option.name != name) continue;
    options[known.option.key] = known.option.parse(text);
    return;
  }
  throw error("there is no strategy option '{}'{}", name, did_you_mean(name, names));
}

}  // namespace tandem
