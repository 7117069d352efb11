#include "core/schedule/strategies/common/option_table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text/decimal_comma.h"
#include "core/base/text/strings.h"
#include "core/device/machine.h"

namespace tandem {
namespace {

// "64KiB", in the largest unit that says it exactly.
std::string size_text(int64_t bytes) {
  for (const auto& [unit, name] :
       {std::pair(int64_t{1} << 30, "GiB"), {int64_t{1} << 20, "MiB"}, {int64_t{1} << 10, "KiB"}}) {
    if (bytes % unit == 0) return fmt::format("{}{}", bytes / unit, name);
  }
  return fmt::format("{}B", bytes);
}

// As parse() reads it.
std::string value_text(const StrategyOption& option, const OptionValue& value) {
  const auto* bytes = std::get_if<int64_t>(&value);
  if (option.is_size && bytes != nullptr) return size_text(*bytes);
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

// The value as this type of it; `wanted` names the type.
template <class Type>
const Type& read_as(const std::string& key, const OptionValue& value, const char* wanted) {
  const auto* known = std::get_if<Type>(&value);
  if (known == nullptr) throw error("strategy option '{}': its value is not {}", key, wanted);
  return *known;
}

}  // namespace

bool StrategyOption::is_explicit(const StrategyOptions& options) const {
  const auto found = options.find(key);
  if (found == options.end() || found->second == standard) return false;
  return !is_flag || found->second == parse("");
}

void StrategyOption::validate(const OptionValue& value) const {
  if (!is_flag) (void)parse(value_text(*this, value));
}

std::string StrategyOption::to_text(const OptionValue& value) const {
  return is_flag ? name : name + " " + value_text(*this, value);
}

StrategyOption text_option(const char* name, const char* help) {
  return {name, help, [](const std::string& text) -> OptionValue { return text; }};
}

StrategyOption word_option(const char* name, const char* help, std::vector<std::string> known) {
  StrategyOption option{name, help, [name, known](const std::string& text) -> OptionValue {
                          if (std::find(known.begin(), known.end(), text) == known.end()) {
                            throw error("{} {}: unknown value; there are: {}{}", name, text,
                                        fmt::join(known, ", "), did_you_mean(text, known));
                          }
                          return text;
                        }};
  option.words = std::move(known);
  return option;
}

StrategyOption count_option(const char* name, const char* help) {
  return {name, help, [name](const std::string& text) -> OptionValue {
            int64_t number = 0;
            if (!parse_integer(text, &number) || number < 1 || number > max_devices) {
              throw error("{} {}: it must be a whole number of at least 1 and at most {}", name,
                          text, max_devices);
            }
            return number;
          }};
}

StrategyOption fraction_option(const char* name, const char* help) {
  return {name, help, [name](const std::string& text) -> OptionValue {
            double number = 0;
            if (!parse_number(text, &number) || !(number >= 0 && number <= 1)) {
              throw error("{} {}: it must be a share from 0 to 1, e.g. 0.1{}", name, text,
                          decimal_comma_hint(text));
            }
            return number;
          }};
}

StrategyOption size_option(const char* name, const char* help) {
  StrategyOption option{name, help, [name](const std::string& text) -> OptionValue {
                          return parse_size(text, name);
                        }};
  option.is_size = true;
  return option;
}

StrategyOption flag_option(const char* name, const char* help, bool meaning, const char* opposite) {
  StrategyOption option{name, help,
                        [meaning](const std::string&) -> OptionValue { return meaning; }};
  option.is_flag = true;
  option.opposite = opposite;
  return option;
}

std::string key_of(const std::string& name) {
  std::string key = name.substr(name.find_first_not_of('-'));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

namespace option_values {

void read(const std::string& key, const OptionValue& value, bool& field) {
  field = read_as<bool>(key, value, "true or false");
}

void read(const std::string& key, const OptionValue& value, int64_t& field) {
  field = read_as<int64_t>(key, value, "a whole number");
}

void read(const std::string& key, const OptionValue& value, int& field) {
  int64_t number = 0;
  read(key, value, number);
  field = static_cast<int>(std::clamp<int64_t>(number, INT32_MIN, INT32_MAX));
}

void read(const std::string& key, const OptionValue& value, double& field) {
  const auto* whole = std::get_if<int64_t>(&value);
  field = whole != nullptr ? static_cast<double>(*whole) : read_as<double>(key, value, "a number");
}

void read(const std::string& key, const OptionValue& value, std::string& field) {
  field = read_as<std::string>(key, value, "a text");
}

}  // namespace option_values

}  // namespace tandem
