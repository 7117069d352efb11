// The strategies by which devices share the work of a step, and their options, for programs that
// offer them to their users.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct StrategyInfo {
  std::string name, help;
};
[[nodiscard]] std::vector<StrategyInfo> list_strategies();

// Of TrainOptions::strategy_options.
struct StrategyOptionInfo {
  std::string name;      // "split"
  std::string help;      // the strategies that take it, what it does, the default
  bool is_flag = false;  // its value is ""
};
[[nodiscard]] std::vector<StrategyOptionInfo> list_strategy_options();

}  // namespace tandem
