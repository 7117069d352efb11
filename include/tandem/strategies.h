// The strategies by which devices share the work of a step, and their options, which
// docs/reference/strategies.md describes.
//
//   tandem::StrategyOptions options = {{"reduce", "tree"}, {"bucket", 1 << 20}};
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tandem {

// Values of a strategy's options by their keys. An option that is not there has its default.
using OptionValue = std::variant<bool, int64_t, double, std::string>;
using StrategyOptions = std::map<std::string, OptionValue>;

// For programs that offer all strategies and options to their users.
struct StrategyInfo {
  std::string name, help;
};
[[nodiscard]] std::vector<StrategyInfo> list_strategies();

struct StrategyOptionInfo {
  std::string name;      // "--reduce"
  std::string help;      // the strategies that take it, what it does, the default
  bool is_flag = false;  // takes no value
};
[[nodiscard]] std::vector<StrategyOptionInfo> list_strategy_options();
// Sets the option of this name to the value that the text says ("" for a flag). Throws Error
// that says which values are valid.
void set_strategy_option(StrategyOptions& options, const std::string& name,
                         const std::string& text);

}  // namespace tandem
