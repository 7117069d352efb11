// Values of a strategy's options by their keys, as records have them: {"reduce": "tree", "bucket":
// 65536}. An option that is not there has its default. Each strategy reads them into a struct of
// its own (strategies/option_table.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace tandem {

using OptionValue = std::variant<bool, int64_t, double, std::string>;
using StrategyOptions = std::map<std::string, OptionValue>;

}  // namespace tandem
